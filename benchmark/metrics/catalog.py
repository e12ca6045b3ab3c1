"""Every metric's name, label, direction, range and edge rules, in one place.

Tables, plots and pages read it, so it imports nothing but the standard library. A key is snake
case with the cut-off last; one with a cut-off belongs to a family: ``cmc_at_5``,
``tar_at_far_1e-4``.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Literal

_RETRIEVAL = (
    "A query's own item is excluded by id, junk and same-camera matches by the protocol. Queries "
    "without a match are left out and counted. Vectors are normalised for cosine only."
)
_RATE = "Ties are accepted or refused together; a target below 1/n is refused."


@dataclass(frozen=True)
class Metric:
    """What a reader must know to show a metric.

    Attributes:
        key: Stable name, as records store it.
        label: What tables and axes print.
        higher_is_better: Direction; None where neither is better.
        low: Smallest possible value, or None.
        high: Largest possible value, or None.
        rules: Ties, empty queries, self-matches, normalisation.
        unit: ``share`` (printed as percent), ``coefficient`` or ``count``.
    """

    key: str
    label: str
    higher_is_better: bool | None
    low: float | None
    high: float | None
    rules: str
    unit: Literal["share", "coefficient", "count"] = "share"


def _share(key: str, label: str, rules: str, *, higher: bool | None = True) -> Metric:
    return Metric(key, label, higher, 0.0, 1.0, rules)


def _signed(key: str, label: str, rules: str, *, higher: bool | None = True) -> Metric:
    return Metric(key, label, higher, -1.0, 1.0, rules, "coefficient")


_TIES = "The rank is 1 + the non-matching items scoring at least as high as the best match. "

_FIXED = (
    _share("map", "mAP", f"mAP@1.0; precision with ties merged. {_RETRIEVAL}"),
    _share("mrr", "MRR", _TIES + _RETRIEVAL),
    _share("minp", "mINP", f"Matches over the rank of the hardest, ties against it. {_RETRIEVAL}"),
    _share("eer", "EER", "On straight lines between the ROC's points.", higher=False),
    _share("cka", "CKA", "Linear, centred; not defined where one side is constant.", higher=None),
    _share("flips_positive", "Positive flips", "Wrong before, right now; share of all queries."),
    _share(
        "flips_negative",
        "Negative flips",
        "Right before, wrong now; share of all queries.",
        higher=False,
    ),
    _share("group_gap", "Group gap", "Best minus worst group; groups need a query.", higher=False),
    _share("compatible", "Compatible", "new/old > old/old, strictly; 0 or 1."),
    _share("not_hurting", "Not hurting", "new/new >= the independent new model's; 0 or 1."),
    _share("pairwise", "Pairs kept", "Share of pairs that keep BCT eq. 1; ties keep it."),
    _share("average_compatibility", "AC", "Share of pairs i > j with M_ij > M_jj, strictly."),
    _share("average_accuracy", "AM", "Mean of M_ij over i >= j."),
    _signed("absolute_gain", "Absolute gain", "new/old minus old/old."),
    Metric(
        "update_gain",
        "Update gain",
        True,
        None,
        None,
        "None where not compatible or where the upper bound does not exceed old/old.",
    ),
    _share("avg", "AVG", "Mean of new/old and new/new on TAR@FAR 1e-4 and TPIR@FPIR 1e-2."),
    _signed("kendall_tau", "Kendall tau", "Tau-b: ties lower it; None where a side is constant."),
)

_RATES = r"([1-9](?:\.\d+)?e-\d+|0\.\d+|1)"
_FAMILIES: tuple[tuple[str, str, str], ...] = (
    (r"cmc_at_(\d+)", "CMC@{0}", _TIES + _RETRIEVAL),
    (r"mrr_at_(\d+)", "MRR@{0}", "0 where the rank exceeds the cut-off. " + _TIES + _RETRIEVAL),
    (
        rf"tar_at_far_{_RATES}",
        "TAR@FAR {0}",
        f"Smallest threshold whose FAR is within the target. {_RATE}",
    ),
    (
        rf"tar_at_nearest_far_{_RATES}",
        "TAR@nearest FAR {0}",
        "FAR nearest to the target, which it may exceed; of two the larger. For comparison.",
    ),
    (
        rf"tpir_at_fpir_{_RATES}",
        "TPIR@FPIR {0}",
        f"Ranked first and above the threshold; each gallery apart. {_RATE}",
    ),
    (
        rf"all_pairs_tpir_at_fpir_{_RATES}",
        "TPIR@FPIR {0}, all pairs",
        "Galleries pooled, all negative pairs impostors, no rank condition. Only for comparison "
        f"with scripts that do so. {_RATE}",
    ),
    (
        r"rank_(\d+)",
        "Rank-{0}",
        "Closed set: mated probes only, whatever the score. Ties rank the probe's subject last.",
    ),
)

_PREFIXES = {
    "area_": ("area of {0}", "Mean along the backfilling curve; a constant's is the constant."),
    "offline_area_": ("offline area of {0}", "Old until all is backfilled, then new."),
    "pooled_": ("{0}, pooled", "Both galleries joined to one, a rule of its own."),
    "g1_": ("{0} (G1)", "Gallery G1 alone."),
    "g2_": ("{0} (G2)", "Gallery G2 alone."),
}

KNOWN: tuple[str, ...] = tuple(metric.key for metric in _FIXED)
EXAMPLES: tuple[str, ...] = (
    *KNOWN,
    "cmc_at_1",
    "cmc_at_5",
    "mrr_at_10",
    "tar_at_far_1e-4",
    "tar_at_nearest_far_1e-4",
    "tpir_at_fpir_1e-2",
    "rank_1",
    "area_cmc_at_1",
    "pooled_tpir_at_fpir_1e-2",
    "group_latin__cmc_at_1",
)


def describe(key: str) -> Metric:
    """What a metric's key means.

    Args:
        key: ``map``, ``cmc_at_5``, ``tar_at_far_1e-4``, ``area_map``, ``pooled_rank_1`` ...

    Returns:
        Label, direction, range and rules.

    Raises:
        ValueError: If the key is unknown; the message names the nearest known one.

    Example:
        >>> describe("cmc_at_5").label
        'CMC@5'
        >>> describe("area_tar_at_far_1e-4").label
        'area of TAR@FAR 1e-4'
    """
    metric = _find(key)
    if metric is None:
        near = difflib.get_close_matches(key, EXAMPLES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"key: expected a known metric, got {key!r}{hint}")
    return metric


def rate(value: float) -> str:
    """A target rate as keys write it.

    Example:
        >>> rate(0.0001), rate(0.05), rate(0.025), rate(0.000025)
        ('1e-4', '5e-2', '0.025', '2.5e-5')
    """
    digits, _, exponent = f"{value:e}".partition("e")
    power = int(exponent)
    digits = digits.rstrip("0").rstrip(".")
    if power >= 0 or ("." in digits and power >= -4):
        return f"{value:g}"
    return f"{digits}e{power}"


def _find(key: str) -> Metric | None:
    for metric in _FIXED:
        if metric.key == key:
            return metric
    for pattern, label, rules in _FAMILIES:
        match = re.fullmatch(pattern, key)
        if match and not (match[1].isdigit() and int(match[1]) < 1):
            return _share(key, label.format(match[1]), rules)
    of_group = re.fullmatch(r"group_(.+?)__(.+)", key)
    if of_group is not None:
        return _of_group(key, *of_group.groups())
    for prefix, (label, rules) in sorted(_PREFIXES.items(), key=lambda item: -len(item[0])):
        if key.startswith(prefix):
            inner = _find(key.removeprefix(prefix))
            if inner is None:
                return None
            name = label.format(inner.label)
            return Metric(
                key,
                name,
                inner.higher_is_better,
                inner.low,
                inner.high,
                f"{rules} {inner.rules}",
                inner.unit,
            )
    return None


def _of_group(key: str, group: str, of: str) -> Metric | None:
    inner = _find(of)
    if inner is None:
        return None
    rules = f"Queries of one group, all stored items. {inner.rules}"
    return replace(inner, key=key, label=f"{inner.label} ({group.replace('_', ' ')})", rules=rules)
