"""Shares of the upgrade by length of training, whether they order methods otherwise, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmark.config.registry import is_control
from benchmark.errors import AbsentError
from benchmark.metrics.compatibility import LEAST_UPGRADE, share_of_upgrade
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import group_sums, weights
from benchmark.records.details import QueryResults
from benchmark.records.details_files import find_details
from benchmark.records.files import StoredRecord
from benchmark.report import numbers, select
from benchmark.report.text_table import TextTable, simple_table
from benchmark.studies.transfer.statistics import taus

FIELD = "recipe.length"
_DRAWS = 2000

Floats = NDArray[np.float64]
_Place = tuple[str, str, int, tuple[int, int, int | None]]


@dataclass(frozen=True)
class Lengths:
    """One protocol, track, seed and metric.

    Attributes:
        shares: By method, then by length: how much of the upgrade is kept, over classes; no value
            where there is no upgrade, or no cross-test.
        tau: Of the orders at the shortest and at the longest length, and its interval.
        reversed: Pairs of methods, the better one when short first, whose order is the other way
            when long, both differences beyond their intervals.
        of_several: Whether other seeds are there, so that names of files have the seed.
    """

    protocol: str
    track: str
    seed: int
    metric: str
    lengths: tuple[int, ...]
    shares: dict[str, dict[int, Estimate]]
    tau: Estimate
    reversed: tuple[tuple[str, str], ...]
    of_several: bool = False

    @property
    def slug(self) -> str:
        """A name for files."""
        name = f"lengths-{self.protocol.replace(':', '+')}-{self.track}-{self.metric}"
        return f"{name}-seed-{self.seed}" if self.of_several else name


def compare_lengths(stored: Sequence[StoredRecord], metrics: Sequence[str]) -> list[Lengths]:
    """Line up records that differ in ``recipe.length`` alone; those of the usual one count as 1.

    Estimates are taken against the models of the same length, in draws of classes that are the same
    for every method and length.

    Raises:
        AbsentError: If no protocol and track has two lengths.
        BenchError: If details are damaged.
    """
    places: dict[_Place, dict[tuple[int, str], StoredRecord]] = {}
    for each in stored:
        r = each.record
        if r.status == "done" and not r.diverged and set(r.changed) <= {FIELD}:
            length = r.changed.get(FIELD, 1)
            # Another version has other networks, or other data.
            versions = (r.protocol_version, r.track_version, r.training)
            place = places.setdefault((r.protocol, r.track, r.seed, versions), {})
            if isinstance(length, int):
                place[length, r.method] = each
    found = [
        compared
        for place in sorted(places, key=repr)
        for metric in metrics
        for compared in _compare(place[:3], places[place], metric)
    ]
    if not found:
        raise AbsentError(f"lengths: expected records of two values of {FIELD}, and their details")
    return [replace(each, of_several=len({each.seed for each in found}) > 1) for each in found]


def with_usual(
    longer: Sequence[StoredRecord], stored: Iterable[StoredRecord]
) -> list[StoredRecord]:
    """Records of a study behind those of the usual length on the same boards and seeds."""
    places = {(s.record.protocol, s.record.track, s.record.seed) for s in longer}
    usual = [s for s in stored if (s.record.protocol, s.record.track, s.record.seed) in places]
    return [*usual, *longer]


def _compare(
    place: tuple[str, str, int], records: dict[tuple[int, str], StoredRecord], metric: str
) -> Iterator[Lengths]:
    """Of the methods that were run at several lengths."""
    draws: dict[str, dict[int, Floats]] = {}
    n_lengths = Counter(method for _, method in records)
    for length in sorted({length for length, _ in records}):
        own = {m: s for (at, m), s in records.items() if at == length and n_lengths[m] > 1}
        for method, drawn in _shares(own, metric):
            draws.setdefault(method, {})[length] = drawn
    lengths = tuple(sorted({length for of in draws.values() for length in of}))
    if len(lengths) > 1:
        shares = {m: {n: _interval(d) for n, d in of.items()} for m, of in sorted(draws.items())}
        yield Lengths(*place, metric, lengths, shares, *_orders(draws, lengths))


def _shares(records: dict[str, StoredRecord], metric: str) -> Iterator[tuple[str, Floats]]:
    """Methods and their shares: the score itself, then those of draws, ``[1 + n]``."""
    if "independent" not in records:
        return
    bounds = _means(records["independent"], metric)
    old, new = (bounds.get(end) for end in ("first", "last"))
    if old is None or new is None:
        return
    for method, stored in records.items():
        cross = _means(stored, metric).get("cross")
        if cross is not None and cross.shape == old.shape:
            share = share_of_upgrade(cross, old, new, LEAST_UPGRADE)
            if share is not None:
                yield method, share


def _means(stored: StoredRecord, metric: str) -> dict[str, Floats]:
    """Old/old, cross-test and new/new: the score and its draws."""
    details = find_details(stored.record, stored.path)
    if details is None:
        return {}
    one = [stored.record]
    cases = {
        "first": select.lower_case(one), "cross": select.cross_case(one),
        "last": select.self_case(one),
    }  # fmt: skip
    return {
        place: _drawn(details.results[case, metric])
        for place, case in cases.items()
        if (case, metric) in details.results
    }


def _drawn(results: QueryResults) -> Floats:
    sums, counts = group_sums(results.values, results.identity)
    every = [sums.sum() / counts.sum()]
    drawn = [(w @ sums) / (w @ counts) for w in weights(len(sums), _DRAWS)]
    return np.concatenate([every, *drawn])


def _interval(drawn: Floats) -> Estimate:
    known = drawn[1:][np.isfinite(drawn[1:])]
    if not np.isfinite(drawn[0]) or not len(known):
        return Estimate(None)
    return Estimate.of_draws(float(drawn[0]), known)


def _orders(
    draws: dict[str, dict[int, Floats]], lengths: Sequence[int]
) -> tuple[Estimate, tuple[tuple[str, str], ...]]:
    """Agreement of the orders at both ends, and the pairs that are surely reversed."""
    ends = lengths[0], lengths[-1]
    both = [m for m in sorted(draws) if not is_control(m) and all(e in draws[m] for e in ends)]
    if len(both) < 2:
        return Estimate(None), ()
    short, long = (np.stack([draws[m][end] for m in both], axis=1) for end in ends)
    tau = _interval(taus(short, long))
    turned = []
    for i, j in combinations(range(len(both)), 2):
        before, after = (_interval(side[:, i] - side[:, j]) for side in (short, long))
        if before.is_above(0) and after.is_below(0):
            turned.append((both[i], both[j]))
        elif before.is_below(0) and after.is_above(0):
            turned.append((both[j], both[i]))
    return tau, tuple(turned)


def tables(found: Sequence[Lengths]) -> list[TextTable]:
    """One for each protocol, track, seed and metric."""
    return [_table(each) for each in found]


def _table(found: Lengths) -> TextTable:
    label = numbers.metric(found.metric).label
    title = f"{label}, {found.protocol} on {found.track}, seed {found.seed}"
    lines = [
        [method, *(numbers.with_ends(of.get(n, Estimate(None)), 100, 0) for n in found.lengths)]
        for method, of in found.shares.items()
    ]
    place = {name: getattr(found, name) for name in ("protocol", "track", "seed", "metric")}
    data = [
        place | {"method": method, "length": n, "share": s.value, "low": s.low, "high": s.high}
        for method, of in found.shares.items()
        for n, s in of.items()
    ]
    return simple_table(
        title, found.slug, ["method"], [f"length {n}" for n in found.lengths], lines, data,
        notes=(*_notes(found),),
    )  # fmt: skip


def _notes(found: Lengths) -> list[str]:
    first, last = found.lengths[0], found.lengths[-1]
    pairs = ", ".join(f"{better} above {worse}" for better, worse in found.reversed)
    turned = (
        f"The order changes beyond its intervals: at length {first} {pairs}, at length {last} the "
        "other way."
        if pairs
        else "No pair changes its order beyond the intervals."
    )
    return [
        "Percent of the way from old/old to new/new of the models of the same length, which "
        "new/old goes; intervals of 95 % over classes, the same draws for all.",
        f"Orders at lengths {first} and {last}, without controls: tau-b "
        f"{numbers.with_ends(found.tau)}. {turned}",
    ]
