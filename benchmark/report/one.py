"""One record as text: every number of it, where it comes from, and the command to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.records.details import Details
from benchmark.records.record import Record, Run
from benchmark.report import notes, numbers, select
from benchmark.report.listing import Listing

_COST = {
    "parameters": "parameters of the new model",
    "added_parameters": "parameters of what it adds to it",
    "old_multiply_adds": "multiply-adds of an image, old model",
    "multiply_adds": "multiply-adds of an image, new model",
    "convert_multiply_adds": "multiply-adds of converting an item",
    "query_multiply_adds": "multiply-adds of a query's view",
    "bytes_before": "bytes an item, before",
    "bytes_after": "bytes an item, converted",
    "bytes_new": "bytes an item, embedded anew",
}


def scores(record: Record) -> Listing:
    """Every score of a record."""
    lines, values = [], []
    for case in select.cases([record], "all"):
        found = record.scores.get(case, {})
        for key in numbers.ordered(found):
            low, high = record.intervals.get(case, {}).get(key) or (None, None)
            about = numbers.metric(key)
            ends = [numbers.number(end, about.unit) for end in (low, high)]
            span = "" if low is None else " to ".join(ends)
            lines.append([case, about.label, numbers.number(found[key], about.unit), span])
            values.append([case, key, found[key], low, high])
    return Listing(
        title=f"{record.method}: {notes.title([record])}",
        heads=("case", "metric", "score", "95 %"),
        lines=lines,
        words=2,
        notes=[],
        slug=f"{record.protocol.replace(':', '+')}-{record.track}-{record.method}-{record.seed}",
        columns=("case", "metric", "value", "low", "high"),
        values=values,
    )


def words(record: Record, details: Details | None) -> Iterator[str]:
    """What stands below the scores."""
    if record.reason:
        yield f"not applicable: {record.reason}"
    yield from _verdicts(record)
    yield from _block(
        "cost", {_COST[k]: _count(v) for k, v in record.cost if k in _COST and v is not None}
    )
    yield from _block("side-information", _side(record))
    yield from _block("areas under backfilling curves", _areas(record))
    yield from _block("data", _data(record))
    yield from _block("models", {k: _inline(v.model_dump()) for k, v in record.models.items()})
    yield from _block("parameters of the method", record.config)
    yield from _block("recipe", {k: _inline(v) for k, v in record.recipe.model_dump().items()})
    yield from _block("changed", record.changed)
    yield from _block("seconds", _seconds(record.run))
    yield from _block("provenance", _provenance(record))
    yield from _block("details", _details(record, details))


def _verdicts(record: Record) -> Iterator[str]:
    found = {}
    for key in numbers.ordered(record.compatible):
        good, unhurt = record.compatible[key], record.not_hurting.get(key)
        gain = record.update_gain.get(key)
        said = ["compatible" if good else "not compatible"] if good is not None else []
        said += [f"gain {numbers.number(gain)}"] if gain is not None else []
        said += ["not hurting" if unhurt else "hurting"] if unhurt is not None else []
        found[numbers.metric(key).label] = ", ".join(said)
    yield from _block("verdicts", found)


def _side(record: Record) -> dict[str, str]:
    if record.side is None:
        return {}
    sizes = {k: f"{s.dim} numbers, {s.bytes} bytes" for k, s in record.side.generations.items()}
    return {"kind": record.side.kind} | sizes


def _areas(record: Record) -> dict[str, str]:
    return {
        order: ", ".join(
            f"{numbers.metric(k).label} {numbers.number(v)}" for k, v in each.area.items()
        )
        for order, each in record.orders.items()
    }


def _data(record: Record) -> dict[str, str]:
    about = record.dataset.model_dump()
    generations = about.pop("generations")
    found = {k: _inline(v) for k, v in about.items()}
    for name, counts in generations.items():
        found[f"{name} is trained on"] = _inline(counts)
    return found


def _seconds(run: Run) -> dict[str, str]:
    stages = {k: f"{s.seconds or 0.0:.1f}" for k, s in run.stages.items()}
    memory = run.peak_memory_bytes
    return stages | ({} if memory is None else {"peak memory": f"{memory / 2**20:.0f} MiB"})


def _provenance(record: Record) -> dict[str, str]:
    code = record.run.code
    dirty = code.dirty
    state = "with changes" if dirty is True else "clean" if dirty is False else "unknown"
    found = {
        "protocol": f"{record.protocol}, version {record.protocol_version}",
        "track": f"{record.track}, version {record.track_version}",
        "seed": f"{record.seed}, of the first generation {record.first_seed}",
        "command": "bench " + " ".join(record.run.argv),
        "code": f"{code.version}, commit {code.commit}, {state}",
        "finished": str(record.run.finished),
        "key": record.key,
        "schema": str(record.schema_version),
    }
    adapter = {} if record.adapter is None else dict(record.adapter)
    return found | adapter | dict(record.environment) | dict(record.checkpoints)


def _details(record: Record, details: Details | None) -> dict[str, str]:
    if details is None:
        return {}
    cases = ", ".join(dict.fromkeys(case for case, _ in details.answers))
    found = {"file": str(record.details), "results by query": cases or "none"}
    if details.picture is not None:
        found["t-SNE"] = ", ".join(details.picture.classes)
    if details.ordering is not None:
        found["priority, Kendall's tau"] = numbers.number(details.ordering.tau, "coefficient")
    return found | ({"left out": "; ".join(details.left_out)} if details.left_out else {})


def _block(title: str, found: Mapping[str, Any]) -> Iterator[str]:
    found = {key: value for key, value in found.items() if value not in ("", None)}
    if not found:
        return
    yield ""
    yield title
    width = max(len(str(key)) for key in found)
    for key, value in found.items():
        yield _line(f"  {key!s:<{width}}  {value}")


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_inline(v)}" for k, v in value.items() if v not in ({}, None))
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def _count(value: float | None) -> str:
    return numbers.DASH if value is None else f"{value:,.0f}"
