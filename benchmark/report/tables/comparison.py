"""The table of a comparison of two methods: a line for each protocol, track, case and metric."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from benchmark.report import numbers
from benchmark.report.paired import By, Difference
from benchmark.report.text_table import TextTable, simple_table


def text_table(differences: Sequence[Difference], left: str, right: str, by: By) -> TextTable:
    """Differences of two methods, at least one, to be printed; ``by`` is what was drawn."""
    settings = list(dict.fromkeys((d.protocol, d.track) for d in differences))
    several = len(settings) > 1
    seeds = any(len(d.seeds) > 1 for d in differences)
    heads = [left, right, "difference", "95 %", "p", "p, Holm"]
    lines = []
    for d in differences:
        words = [d.protocol, d.track] if several else []
        words += [d.case, numbers.metric(d.metric).label]
        lines.append([*words, *_cells(d), *([f"{d.wins}/{len(d.seeds)}"] if seeds else [])])
    values = (asdict(d) | {"seeds": " ".join(map(str, d.seeds))} for d in differences)
    columns = [field.name for field in fields(Difference)]
    where = "" if several else f" on {settings[0][0]}, {settings[0][1]}"
    return simple_table(
        f"{left} against {right}{where}",
        f"compare-{left}-{right}",
        ["protocol", "track", "case", "metric"][0 if several else 2 :],
        [*heads, "seeds won"] if seeds else heads,
        lines,
        notes=tuple(_notes(differences, left, right, by)),
        columns=("left_method", "right_method", *columns),
        values=tuple([left, right, *line.values()] for line in values),
    )


def _cells(d: Difference) -> list[str]:
    # A digit more than in tables: differences are small.
    return [
        f"{100 * d.left:.2f}",
        f"{100 * d.right:.2f}",
        f"{100 * d.difference:+.2f}",
        f"{100 * d.low:+.2f} to {100 * d.high:+.2f}",
        *(f"{p:.4f}" if p >= 0.0001 else "<0.0001" for p in (d.p_value, d.adjusted)),
    ]


def _notes(differences: Sequence[Difference], left: str, right: str, by: By) -> list[str]:
    first = differences[0]
    same = len({(d.n_queries, d.n_identities) for d in differences}) == 1
    of = f"{first.n_queries} queries of {first.n_identities} identities" if same else "The queries"
    drawn = "whole identities are" if by == "identity" else "each query by itself is"
    seeds = f"; a query's value is its mean over {len(first.seeds)} seeds"
    return [
        f"Percent points, {left} minus {right}, on the same queries. {of}"
        f"{seeds if len(first.seeds) > 1 else ''}.",
        f"Interval: paired bootstrap, {drawn} drawn. p: two-sided, signs of the differences "
        f"flipped at random; Holm: corrected for the {len(differences)} lines.",
    ]
