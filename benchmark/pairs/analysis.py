"""Coverage of intervals, bias, regret of verdicts and shares that are kept, of records of pairs.

A report's interval is about queries like its own. The truth is measured on other queries, which
have a sampling error of their own: an interval *covers* the truth where the 95 % interval of their
difference holds 0, with the arms of both joined by the square root of the sum of squares (MOVER:
Zou and Donner, Construction of confidence limits about effect measures, 2008).

Regret is the truth of the best strategy that usual constraints allow minus the truth of the one
that was recommended, on queries that the report has not seen. The best one is chosen by the same
noisy truth, so that regret is rather too large.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmark.metrics.compatibility import LEAST_UPGRADE, share_of_upgrade
from benchmark.pairs.records import PairRecord, ReportRow
from benchmark.upgrade.read.request import KEEP, LIKELY, REEMBED, WANTED

NAIVE = ("naive", "truncate")
ROTATION, LINEAR = "procrustes:query", "linear:query"
SIZE = 1000
"""Sampled items of the maps in statements that name no other number."""
CHOSEN_ON = frozenset({"cranfield", "banking77", "grocery"})
"""Corpora that the verdict's level and least alignments were chosen on; the others show them."""
HALVES = {"chosen on": True, "shown on": False}
"""Words for both halves of the corpora -> is a corpus of it among these?"""


def decision(report: ReportRow, level: float = LIKELY) -> str | None:
    """The verdict with another level of the test whether re-embedding is better at all.

    Of the report's interval, whose arm is shortened by normal quantiles. Records may be older than
    the level: their own verdict says what else is taken where the upgrade is one.
    """
    row = report.table[REEMBED]
    gain, low = report.value(REEMBED) - report.value(KEEP), row["gain_low"]
    if low is None or gain < LEAST_UPGRADE:
        return KEEP
    reach = float(ndtri(1 - level) / ndtri(0.975))
    if gain - reach * (gain - low) <= 0:
        return KEEP
    return REEMBED if report.verdict == KEEP else report.verdict


def _rotated_if_better(report: ReportRow) -> str | None:
    if ROTATION not in report.table:
        return None
    return ROTATION if report.value(ROTATION) > report.value(KEEP) else KEEP


RULES: Mapping[str, Callable[[ReportRow], str | None]] = {
    "the verdict": decision,
    "always re-embed": lambda r: REEMBED,
    "always keep the old model": lambda r: KEEP,
    "always rotate the queries": lambda r: ROTATION if ROTATION in r.table else None,
    "retention x gain > 1": _rotated_if_better,
}
"""Decisions from a report alone, None where its maps are others. ``retention x gain`` is the
rotation's score over the new model's, times the new model's over the old one's: it is above 1 where
the rotation's is above the old model's, in the report as in truth."""


@dataclass(frozen=True)
class Held:
    """An estimate of a report beside the truth on other queries."""

    strategy: str
    corpus: str  # its id
    off: float  # the estimate minus the truth
    covered: bool | None  # by :func:`covers`; None without an interval
    gain: bool | None  # that of the gain over the old model is covered
    same_off: float  # the estimate minus the truth on the report's own queries
    within: bool | None  # that is within the sampling error; None where nothing is estimated


def covers(value: float, ends: tuple[float, float], other: float, its: tuple[float, float]) -> bool:
    """True where the interval of the difference of two independent estimates holds 0.

    ``ends`` are those of the interval of ``value``, ``its`` of that of ``other``.

    Example:
        >>> covers(0.5, (0.4, 0.6), 0.63, (0.53, 0.73)), covers(0.5, (0.4, 0.6), 0.65, (0.6, 0.7))
        (True, False)
    """
    above = math.hypot(ends[1] - value, other - its[0])
    below = math.hypot(value - ends[0], its[1] - other)
    return -below <= other - value <= above


def held(records: Iterable[PairRecord]) -> Iterator[Held]:
    """Every strategy of every report."""
    for record in records:
        for report in record.reports:
            keep = report.table[KEEP]
            for name, row in report.table.items():
                yield _held(name, record.corpus.id, row, keep)


def _held(
    name: str, corpus: str, row: Mapping[str, float | None], keep: Mapping[str, float | None]
) -> Held:
    x = {key: math.nan if value is None else value for key, value in row.items()}
    base, true = keep["score"] or 0.0, keep["other"] or 0.0
    gain = None
    if name != KEEP and not math.isnan(x["gain_low"] + x["other_gain_low"]):
        gain = covers(
            x["score"] - base, (x["gain_low"], x["gain_high"]),
            x["other"] - true, (x["other_gain_low"], x["other_gain_high"]),
        )  # fmt: skip
    covered = None
    if not math.isnan(x["low"] + x["other_low"]):
        ends = ((x["low"], x["high"]), (x["other_low"], x["other_high"]))
        covered = covers(x["score"], ends[0], x["other"], ends[1])
    off = x["score"] - x["same"]
    within = None if row["sampling"] is None else abs(off) <= row["sampling"] + 1e-9
    return Held(name, corpus, x["score"] - x["other"], covered, gain, off, within)


def regret(report: ReportRow, name: str | None) -> float:
    """The truth of the best strategy that may be taken minus that of one; NaN for none."""
    possible = [s for s in report.table if s not in report.barred]
    best = max(report.value(s, "other") for s in possible)
    return math.nan if name is None else best - report.value(name, "other")


def regrets(records: Iterable[PairRecord], rule: str = "the verdict") -> list[float]:
    """Regret of a rule in every report."""
    found = RULES[rule]
    return [regret(report, found(report)) for r in records for report in r.reports]


def right(report: ReportRow) -> bool | None:
    """The verdict's direction beside the truth; None where it is neither of both.

    *Keep the old model* is right where re-embedding gives less than the least upgrade on other
    queries, *embed everything again* where nothing cheaper that may be done keeps the wanted share
    of the upgrade there.
    """
    old, new = (report.value(name, "other") for name in (KEEP, REEMBED))
    if decision(report) == KEEP:
        return new - old < LEAST_UPGRADE
    if decision(report) != REEMBED:
        return None
    cheaper = [
        report.value(s, "other") for s in report.table
        if s not in report.barred and s not in (KEEP, REEMBED) and not s.startswith(("re-", "rrf"))
    ]  # fmt: skip
    return max(cheaper) < old + WANTED * (new - old)


def whole(record: PairRecord, name: str, size: int | None = None) -> float:
    """The truth of a strategy on all queries, by the mean of the draws of a size, else of all.

    NaN where there is no report of that size, or none of the strategy.
    """
    found = []
    for report in record.reports:
        if size in (None, report.size) and name in report.strategies:
            n, m = report.queries
            mine, others = (report.value(name, column) for column in ("same", "other"))
            found.append((n * mine + m * others) / (n + m))
    return float(np.mean(found)) if found else math.nan


def by_pair(records: Iterable[PairRecord]) -> dict[str, list[PairRecord]]:
    """Name of a pair -> its records."""
    pairs: dict[str, list[PairRecord]] = {}
    for record in records:
        pairs.setdefault(record.name, []).append(record)
    return pairs


def upgrades(records: Iterable[PairRecord]) -> list[PairRecord]:
    """Cells whose new model is larger, and truly better."""
    return [r for r in records if r.forward and whole(r, REEMBED) > whole(r, KEEP)]


def kept(record: PairRecord, name: str, size: int | None = SIZE) -> float:
    """A strategy's score as a share of re-embedding's, what others call retention."""
    return whole(record, name, size) / whole(record, REEMBED)


def share(record: PairRecord, name: str, size: int | None = SIZE) -> float:
    """Share of the upgrade that a strategy keeps on all queries; NaN of none, or below 2 points."""
    old, new = whole(record, KEEP), whole(record, REEMBED)
    found = share_of_upgrade(whole(record, name, size), old, new, LEAST_UPGRADE)
    return math.nan if found is None else found


def _better(record: PairRecord, name: str, other: str, size: int | None = SIZE) -> bool | None:
    """True where a strategy is better than another one; None where a size lacks either."""
    both = whole(record, name, size), whole(record, other, size)
    return None if math.isnan(sum(both)) else both[0] > both[1]


def gain(record: PairRecord) -> float:
    """Re-embedding's score over the old model's."""
    return whole(record, REEMBED) / whole(record, KEEP)


def naive(record: PairRecord) -> float:
    """Share that new queries keep in the old index as it is, vectors cut to one length."""
    (name,) = set(NAIVE) & set(record.reports[0].strategies)
    return kept(record, name)


def mean(values: Iterable[float | None]) -> float:
    """The mean of the numbers that are known; NaN of none."""
    found = _known(values)
    return float(np.mean(found)) if found else math.nan


def median(values: Iterable[float | None]) -> float:
    """The median of the numbers that are known; NaN of none."""
    found = _known(values)
    return float(np.median(found)) if found else math.nan


def quantile(values: Iterable[float | None], q: float) -> float:
    """A quantile of the numbers that are known; NaN of none."""
    found = _known(values)
    return float(np.quantile(found, q)) if found else math.nan


def _known(values: Iterable[float | None]) -> list[float]:
    return [float(v) for v in values if v is not None and not math.isnan(v)]


def _correlation(records: Sequence[PairRecord]) -> float:
    both = [(gain(r), kept(r, ROTATION)) for r in upgrades(records)]
    known = [pair for pair in both if not math.isnan(sum(pair))]
    return math.nan if len(known) < 3 else float(np.corrcoef(np.transpose(known))[0, 1])


def _drift(records: Sequence[PairRecord]) -> float:
    its = [r for r in records if r.name == "minilm-l6:mpnet-base"]
    both = [_known([kept(r, ROTATION), kept(r, LINEAR)]) for r in its]
    return min((max(known) for known in both if known), default=math.nan)


def _cascade(records: Sequence[PairRecord]) -> float:
    some = [r for r in upgrades(records) if whole(r, ROTATION, SIZE) <= whole(r, KEEP)]
    return mean(_better(r, "cascade", KEEP, None) for r in some)


def _refused(records: Sequence[PairRecord]) -> float:
    worse = [r for r in records if whole(r, REEMBED) <= whole(r, KEEP)]
    return mean(decision(report) == KEEP for r in worse for report in r.reports)


VALUES: Mapping[str, Callable[[Sequence[PairRecord]], float]] = {
    "coverage": lambda records: mean(h.covered for h in held(records)),
    "coverage-gain": lambda records: mean(h.gain for h in held(records)),
    "regret-median": lambda records: median(regrets(records)),
    "regret-p90": lambda records: quantile(regrets(records), 0.9),
    "naive-kept": lambda records: median(naive(r) for r in upgrades(records)),
    "rotation-kept": lambda records: median(kept(r, ROTATION) for r in upgrades(records)),
    "gain-correlation": _correlation,
    "drift-adapter-kept": _drift,
    "cascade-wins": _cascade,
    "linear-beats-rotation": lambda records: mean(
        _better(r, LINEAR, ROTATION) for r in upgrades(records)
    ),
    "pairs-beyond-1000": lambda records: median(
        kept(r, LINEAR, 3000) - kept(r, LINEAR) for r in upgrades(records)
    ),
    "worse-refused": _refused,
}
"""Numbers of all records that claims are about; NaN where no record says."""
