"""One record: every number of it, where it comes from, and the command to repeat it."""

from collections.abc import Iterable, Iterator

from benchmark.records.details import Details
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.record_facts import sections
from benchmark.report.text_table import TextTable, simple_table


def text_table(record: Record) -> TextTable:
    """Every score of a record."""
    lines, values = [], []
    for case in select.cases([record], "all"):
        scores = record.scores.get(case, {})
        for key in numbers.ordered(scores):
            about, value = numbers.metric(key), scores[key]
            span = record.intervals.get(case, {}).get(key)
            ends = " to ".join(numbers.number(end, about.unit) for end in span or ())
            lines.append([case, about.label, numbers.number(value, about.unit), ends])
            values.append([case, key, value, *(span or (None, None))])
    return simple_table(
        f"{record.method}: {notes.title([record])}",
        f"{record.protocol.replace(':', '+')}-{record.track}-{record.method}-{record.seed}",
        ("case", "metric"),
        ("score", "95 %"),
        lines,
        notes=(f"Intervals of 95 %: {over}.",) if (over := notes.over_words([record])) else (),
        columns=("case", "metric", "value", "low", "high"),
        values=tuple(values),
    )


def facts(record: Record, details: Details | None) -> Iterator[str]:
    """Lines that stand below the scores."""
    if record.reason:
        yield f"not applicable: {record.reason}"
    keys = numbers.ordered(record.compatible)
    areas = {
        order: ", ".join(
            f"{numbers.metric(k).label} {numbers.number(v)}" for k, v in each.area.items()
        )
        for order, each in record.orders.items()
    }
    memory = record.run.peak_memory_bytes
    seconds = {title: f"{run.seconds or 0.0:.1f}" for title, run in record.run.stages.items()}
    seconds |= {"peak memory": f"{memory / 2**20:.0f} MiB"} if memory else {}
    parts: list[tuple[str, Iterable[tuple[str, str]]]] = [
        ("Verdicts", [(numbers.metric(k).label, _verdict(record, k)) for k in keys]),
        ("Areas under backfilling curves", areas.items()),
        *((title or "Provenance", pairs) for title, pairs in sections(record)),
        ("Seconds", seconds.items()),
        ("Details", [] if details is None else _details(record, details).items()),
    ]
    for title, pairs in parts:
        known = {name: value for name, value in pairs if value}
        if known:
            yield from ("", title)
            width = max(map(len, known))
            lines = (f"  {key:<{width}}  {value}" for key, value in known.items())
            yield from ("".join(c if c.isprintable() else " " for c in line) for line in lines)


def _verdict(record: Record, key: str) -> str:
    good, unhurt = record.compatible[key], record.not_hurting.get(key)
    gain = record.update_gain.get(key)
    words = [
        None if good is None else "compatible" if good else "not compatible",
        None if gain is None else f"gain {numbers.number(gain)}",
        None if unhurt is None else "not hurting" if unhurt else "hurting",
    ]
    return ", ".join(filter(None, words))


def _details(record: Record, details: Details) -> dict[str, str]:
    cases = ", ".join(dict.fromkeys(case for case, _ in details.results))
    facts = {"file": str(record.details), "results by query": cases or "none"}
    if details.picture is not None:
        facts["t-SNE"] = ", ".join(details.picture.classes)
    if details.ordering is not None:
        facts["priority, Kendall's tau"] = numbers.number(details.ordering.tau, "coefficient")
    return facts | ({"left out": "; ".join(details.left_out)} if details.left_out else {})
