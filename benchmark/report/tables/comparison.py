"""The table of a comparison of two methods: a line for each protocol, track, case and metric."""

from collections.abc import Iterator, Sequence

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import LEAST_GROUPS
from benchmark.report import numbers
from benchmark.report.paired import By, Difference
from benchmark.report.text_table import TextTable, simple_table


def text_table(
    differences: Sequence[Difference], left: str, right: str, by: By, doubts: Sequence[str] = ()
) -> TextTable:
    """Differences of two methods, at least one, to be printed; ``by`` is what was drawn."""
    settings = list(dict.fromkeys((d.protocol, d.track) for d in differences))
    several = len(settings) > 1
    seeds = any(len(d.seeds) > 1 for d in differences)
    heads = [left, right, "difference", "95 %", "p", "p, Holm"]
    lines = []
    for d in differences:
        words = [d.protocol, d.track] if several else []
        words += [d.case, numbers.metric(d.metric).label]
        lines.append([*words, *_cells(d), *(_of_seeds(d) if seeds else [])])
    where = "" if several else f" on {settings[0][0]}, {settings[0][1]}"
    return simple_table(
        f"{left} against {right}{where}",
        f"compare-{left}-{right}",
        ["protocol", "track", "case", "metric"][0 if several else 2 :],
        [*heads, "seeds won", "p, seeds"] if seeds else heads,
        lines,
        [{"left_method": left, "right_method": right} | _data(d) for d in differences],
        notes=(*_notes(differences, left, right, by), *doubts),
    )


def _data(d: Difference) -> dict[str, object]:
    """Columns of CSV: the fields, the difference with its interval as three."""
    found: dict[str, object] = {}
    for name, value in vars(d).items():
        ends = isinstance(value, Estimate)
        found |= (
            {name: value.value, "low": value.low, "high": value.high} if ends else {name: value}
        )
    return found | {"seeds": " ".join(map(str, d.seeds))}


_ONE = "one model"


def _cells(d: Difference) -> list[str]:
    # A digit more than in tables: differences are small.
    ends = d.difference.ends
    return [
        f"{100 * d.left:.2f}",
        f"{100 * d.right:.2f}",
        f"{100 * d.difference.known:+z.2f}",
        " to ".join(f"{100 * end:+z.2f}" for end in ends)
        if ends
        else _ONE
        if d.one_model
        else numbers.DASH,
        *map(_p_value, (d.p_value, d.adjusted)),
    ]


def _of_seeds(d: Difference) -> list[str]:
    won = numbers.DASH if d.one_model else f"{d.wins}/{len(d.seeds)}"
    return [won, _p_value(d.seeds_p)]


def _p_value(p: float | None) -> str:
    if p is None:
        return numbers.DASH
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _notes(differences: Sequence[Difference], left: str, right: str, by: By) -> Iterator[str]:
    first = differences[0]
    words = [f"Percent points, {left} minus {right}, on the same queries."]
    if len({(d.n_queries, d.n_identities) for d in differences}) == 1:
        queries = "query" if first.n_queries == 1 else "queries"
        identities = "identity" if first.n_identities == 1 else "identities"
        words.append(f"{first.n_queries} {queries} of {first.n_identities} {identities}.")
    counts = sorted({len(d.seeds) for d in differences})
    if counts[-1] > 1:
        n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
        words.append(f"A query's value is its mean over the {n} seeds that both have.")
    yield " ".join(words)
    over = "identities (or classes)" if by == "identity" else "queries, each by itself"
    tested = len({d.tested for d in differences} - {None})
    if tested:
        lines = f"the {tested} lines"
        if tested < sum(d.tested is not None for d in differences):
            lines = f"{tested} results, which several protocols may share"
        yield (
            f"Interval: 95 %, over {over}. p: two-sided, by Student's t, below 0.05 just where "
            f"the interval is off 0; Holm: corrected for {lines}."
        )
    if any(d.one_model for d in differences):
        yield f"{_ONE}: both search by the same one, in embeddings that neither changes."
    if counts[-1] > 1:
        yield (
            "Interval and p are of these trained models; p, seeds: two-sided, by Student's t over "
            "three seeds or more, is of other ones, and is not corrected for the lines."
        )
    unit = "identities" if by == "identity" else "queries"
    if any(getattr(d, f"n_{unit}") < LEAST_GROUPS for d in differences):
        yield f"No interval where there are fewer than {LEAST_GROUPS} {unit}."
    at_threshold = [d for d in differences if numbers.metric(d.metric).threshold]
    if at_threshold:
        yield (
            "TAR and TPIR: over identities, impostors among them, the threshold found anew in each "
            "draw; their intervals are corrected for skewness, their p are not."
        )
    if any(d.difference.low is None for d in at_threshold):
        yield (
            "No interval where fewer than 30 impostors decide a threshold, nor from results by "
            "query that keep no draws (older ones)."
        )
