"""A comparison of two methods, to be printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from benchmark.report import numbers
from benchmark.report.listing import Listing
from benchmark.report.paired import By, Line


def listing(lines: Sequence[Line], left: str, right: str, by: By) -> Listing:
    """Lines of :func:`benchmark.report.paired.compare`.

    Args:
        lines: At least one.
        left: Name of the first method.
        right: Name of the second.
        by: What the bootstrap drew.
    """
    settings = list(dict.fromkeys((line.protocol, line.track) for line in lines))
    several = len(settings) > 1
    where = [] if several else [f" on {settings[0][0]}, {settings[0][1]}"]
    heads = ["case", "metric", left, right, "difference", "95 %", "p", "p, Holm"]
    printed = [_cells(line) for line in lines]
    if several:
        heads = ["protocol", "track", *heads]
        printed = [[a.protocol, a.track, *p] for a, p in zip(lines, printed, strict=True)]
    if any(len(line.seeds) > 1 for line in lines):
        heads.append("seeds won")
        for line, cells in zip(lines, printed, strict=True):
            cells.append(f"{line.wins}/{len(line.seeds)}")
    values = [_values(line, left, right) for line in lines]
    return Listing(
        title=f"{left} against {right}{''.join(where)}",
        heads=heads,
        lines=printed,
        words=4 if several else 2,
        notes=_notes(lines, left, right, by),
        slug=f"compare-{left}-{right}",
        columns=("left_method", "right_method", *_COLUMNS),
        values=values,
    )


_COLUMNS = (
    "protocol", "track", "case", "metric", "left", "right", "difference", "low", "high",
    "p_value", "adjusted", "n_queries", "n_identities", "seeds", "wins",
)  # fmt: skip


def _values(line: Line, left: str, right: str) -> list[object]:
    values = asdict(line) | {"seeds": " ".join(map(str, line.seeds))}
    return [left, right, *(values[column] for column in _COLUMNS)]


def _cells(line: Line) -> list[str]:
    return [
        line.case,
        numbers.metric(line.metric).label,
        _percent(line.left),
        _percent(line.right),
        f"{100 * line.difference:+.2f}",
        f"{100 * line.low:+.2f} to {100 * line.high:+.2f}",
        _p(line.p_value),
        _p(line.adjusted),
    ]


def _percent(value: float) -> str:
    # A digit more than in tables: differences are small.
    return f"{100 * value:.2f}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def _notes(lines: Sequence[Line], left: str, right: str, by: By) -> list[str]:
    first = lines[0]
    same = len({(line.n_queries, line.n_identities) for line in lines}) == 1
    of = f"{first.n_queries} queries of {first.n_identities} identities" if same else "The queries"
    drawn = "whole identities are" if by == "identity" else "each query by itself is"
    seeds = f"; a query's value is its mean over {len(first.seeds)} seeds"
    return [
        f"Percent points, {left} minus {right}, on the same queries. {of}"
        f"{seeds if len(first.seeds) > 1 else ''}.",
        f"Interval: paired bootstrap, {drawn} drawn. p: two-sided, signs of the differences "
        f"flipped at random; Holm: corrected for the {len(lines)} lines.",
    ]
