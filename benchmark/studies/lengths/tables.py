"""Tables of lengths: the share of the upgrade that each method keeps, by length of training."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.text_table import TextTable, simple_table
from benchmark.studies.lengths.shares import Lengths


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
