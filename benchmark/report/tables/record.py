"""One record: every number of it, where it comes from, and the command to repeat it."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.records.details import Details
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.text_table import TextTable, simple_table

_COST = {
    "parameters": "parameters of the new model",
    "added_parameters": "parameters of what it adds to it",
    "multiply_adds": "multiply-adds of an image, new model",
    "old_multiply_adds": "multiply-adds of an image, old model",
    "convert_multiply_adds": "multiply-adds of converting an item",
    "query_multiply_adds": "multiply-adds of a query's view",
    "model_runs": "model runs a query",
    "indexes": "indexes kept",
    "new_embeddings": "new embeddings a query",
    "bytes_before": "bytes an item, before",
    "bytes_after": "bytes an item, converted",
    "bytes_new": "bytes an item, embedded anew",
}


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
    costs = {label: getattr(record.cost, key) for key, label in _COST.items()}
    stages = {k: f"{s.seconds or 0.0:.1f}" for k, s in record.run.stages.items()}
    memory = record.run.peak_memory_bytes
    data = record.dataset.model_dump()
    generations = data.pop("generations")
    parts: dict[str, Mapping[str, Any]] = {
        "verdicts": {
            numbers.metric(key).label: _verdict(record, key)
            for key in numbers.ordered(record.compatible)
        },
        "cost": {label: f"{cost:,.0f}" for label, cost in costs.items() if cost is not None},
        "side-information": _side(record),
        "areas under backfilling curves": {
            order: ", ".join(
                f"{numbers.metric(k).label} {numbers.number(v)}" for k, v in each.area.items()
            )
            for order, each in record.orders.items()
        },
        "data": data | {f"{k} is trained on": counts for k, counts in generations.items()},
        "models": {k: v.model_dump() for k, v in record.models.items()},
        "parameters of the method": record.config,
        "recipe": record.recipe.model_dump(),
        "changed": record.changed,
        "seconds": stages | ({"peak memory": f"{memory / 2**20:.0f} MiB"} if memory else {}),
        "provenance": _provenance(record),
        "details": {} if details is None else _details(record, details),
    }
    for title, part in parts.items():
        known = {key: _inline(value) for key, value in part.items() if value not in ("", None)}
        if any(known.values()):
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


def _side(record: Record) -> dict[str, str]:
    if record.side is None:
        return {}
    sizes = {k: f"{s.dim} numbers, {s.bytes} bytes" for k, s in record.side.generations.items()}
    return {"kind": record.side.kind} | sizes


def _provenance(record: Record) -> dict[str, Any]:
    code = record.run.code
    state = {True: "with changes", False: "clean", None: "unknown"}[code.dirty]
    return {
        "protocol": f"{record.protocol}, version {record.protocol_version}",
        "track": f"{record.track}, version {record.track_version}",
        "seed": f"{record.seed}, of the first generation {record.first_seed}",
        "command": "bench " + " ".join(record.run.argv),
        "code": f"{code.version}, commit {code.commit}, {state}",
        "finished": str(record.run.finished),
        "key": record.key,
        "schema": f"{record.schema_version}, {'sealed' if record.seal else 'unsealed'}",
        **(dict(record.adapter) if record.adapter else {}),
        **record.environment,
        **record.checkpoints,
    }


def _details(record: Record, details: Details) -> dict[str, str]:
    cases = ", ".join(dict.fromkeys(case for case, _ in details.results))
    facts = {"file": str(record.details), "results by query": cases or "none"}
    if details.picture is not None:
        facts["t-SNE"] = ", ".join(details.picture.classes)
    if details.ordering is not None:
        facts["priority, Kendall's tau"] = numbers.number(details.ordering.tau, "coefficient")
    return facts | ({"left out": "; ".join(details.left_out)} if details.left_out else {})


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_inline(v)}" for k, v in value.items() if v not in ({}, None))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
