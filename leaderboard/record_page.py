"""The page of a record: full provenance, the command to repeat it, every number."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json, to_json

from benchmark.config.loading import load_track
from benchmark.errors import BenchError
from benchmark.records.details import Details
from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.notes import over_words, stage_name
from benchmark.report.tables import backfilling
from benchmark.report.text_table import TextCell, TextTable, simple_table
from leaderboard.words import words

Pair = tuple[str, str]
# A text longer than this is cut on the page; the file has all of it.
_LONGEST = 2000
_PACKAGES = ("python", "torch", "lightning-fabric", "timm", "numpy", "cpu", "system")


def record_page(record: Record, details: Details | None) -> dict[str, Any]:
    """What the template of a record shows of it and its details."""
    return {
        "record": record,
        "command": command([record]),
        "provenance": _provenance(record),
        "scores": _scores(record),
        "over": over_words([record]),
        "tables": [*_tables(record)],
        "sections": [*_sections(record)],
        "data": _charts(record, details),
    }


def command(records: Sequence[Record]) -> str:
    """The command that computes these records again."""
    first = records[0]
    methods = sorted({record.method for record in records}, key=lambda m: m.partition(":"))
    methods = [method for method in methods if method != "independent"] or methods
    seeds = sorted({record.seed for record in records})
    called = [
        "bench", "run", "--methods", ",".join(methods), "--protocol", first.protocol,
        "--track", first.track, "--seeds", ",".join(map(str, seeds)),
    ]  # fmt: skip
    for key, value in first.changed.items():
        own_option = key == "first_seed"
        called += ["--first-seed", str(value)] if own_option else ["--set", f"{key}={value}"]
    return shlex.join(called) + (" --data-root DIR" if _needs_root(first.track) else "")


@cache
def _needs_root(track: str) -> bool:
    try:
        return load_track(track).needs_root
    except BenchError:
        return False


def versions(records: Sequence[Record]) -> list[Pair]:
    """What computed the numbers; several values where records differ."""
    values = {
        "protocol version": {str(r.protocol_version) for r in records},
        "track version": {str(r.track_version) for r in records},
        "dataset": {_dataset(r) for r in records},
        **{name: {r.environment.get(name, "") for r in records} for name in _PACKAGES},
        "device": {stage.device or "" for r in records for stage in r.run.stages.values()},
    }
    texts = {name: ", ".join(sorted(filter(None, each))) for name, each in values.items()}
    return [(name, text) for name, text in texts.items() if text]


def _dataset(record: Record) -> str:
    fingerprint = record.dataset.fingerprint
    return f"{record.dataset.name} ({fingerprint[:12]})" if fingerprint else record.dataset.name


def _provenance(record: Record) -> list[Pair]:
    """When, by what, for how long."""
    run, code = record.run, record.run.code
    argv = " ".join(run.argv)
    seconds = sum(stage.seconds or 0.0 for stage in run.stages.values())
    pairs = {
        "finished": run.finished or "unknown",
        "code": f"{code.version or 'unknown'} {(code.commit or '')[:12]}".strip(),
        "unchanged code": "unknown" if code.dirty is None else _text(not code.dirty),
        "seconds, with shared stages": f"{seconds:.0f}",
        "as it was called": f"bench {argv}" if argv else "",
        "protocol and track version": f"{record.protocol_version}, {record.track_version}",
        "schema": str(record.schema_version),
        "seal": record.seal or "none",
        "key": record.key,
        "seed of the first generation": str(record.first_seed),
    }
    return [(key, value) for key, value in pairs.items() if value]


def _scores(record: Record) -> TextTable:
    """A metric a row, a case a column, then bounds and verdicts."""
    bounds = [name for name in ("lower", "upper", "upper-all") if name in record.bounds]
    keys = numbers.ordered(
        m for part in (record.scores, record.bounds) for each in part.values() for m in each
    )
    lines = []
    for key in keys:
        about = numbers.metric(key)
        spans = [record.intervals.get(case, {}).get(key) or () for case in record.scores]
        cells = [
            _cell(scores.get(key), about.unit, span)
            for scores, span in zip(record.scores.values(), spans, strict=True)
        ]
        cells += [_cell(record.bounds[name].get(key), about.unit) for name in bounds]
        answers = (record.compatible.get(key), record.not_hurting.get(key))
        cells += [TextCell("" if answer is None else _text(answer)) for answer in answers]
        lines.append([TextCell(about.label), *cells, _cell(record.update_gain.get(key))])
    verdicts = ("compatible", "not hurting", "gain")
    heads = (*record.scores, *(f"{name} bound" for name in bounds), *verdicts)
    return simple_table("Every score", "", ("metric",), heads, lines)


def _cell(value: float | None, unit: str = "share", span: Sequence[float] = ()) -> TextCell:
    """A score; blank where there is none. It has no sorting value, as nobody sorts this table."""
    if value is None:
        return TextCell()
    low, high = span or (None, None)
    return TextCell(numbers.number(value, unit), numbers.spread(value, low, high, unit))


def _tables(record: Record) -> Iterator[TextTable]:
    """Tables below the scores: backfilling, counts, times."""
    for table in backfilling.make_tables([record]):
        orders = (replace(table.labels[1], heading=True),)
        rows = tuple(replace(row, labels=row.labels[1:]) for row in table.rows)
        title = f"{table.title.rpartition(': ')[2].capitalize()}, percent"
        yield replace(table, title=title, labels=orders, rows=rows, grouped=False)
    if record.counts:
        cases = record.counts.values()
        lines = [
            [name.removeprefix("n_").replace("_", " ")]
            + [f"{counts[name]:,}" if name in counts else "" for counts in cases]
            for name in dict.fromkeys(name for counts in cases for name in counts)
        ]
        yield simple_table("Counts", "", ("number of",), list(record.counts), lines)
    if record.run.stages:
        lines = []
        for stage, run in record.run.stages.items():
            peak = run.peak_memory_bytes
            memory = "" if peak is None else f"{peak / 2**20:.0f}"
            lines.append([stage, _text(run.seconds), memory, _text(run.device)])
        heads = ("seconds", "peak memory, MiB", "device")
        yield simple_table("Stages", "", ("stage",), heads, lines)


def _sections(record: Record) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """Everything else that the record says, part by part."""
    omitted = record.backfilling and record.backfilling.omitted
    parts = {
        "Cost": to_json(record.cost, by_alias=True, exclude_none=True),
        "Parameters of the method": to_json(record.config),
        "Changed settings": to_json(record.changed),
        "Protocol and track": to_json(record.parameters, by_alias=True),
        "Models": to_json(record.models, by_alias=True),
        "Recipe": to_json(record.recipe, by_alias=True),
        "Dataset": to_json(record.dataset, by_alias=True),
        "Side-information": to_json(record.side, by_alias=True),
        "Left out of backfilling": to_json(omitted),
        "Adapter": to_json(record.adapter, by_alias=True),
        "Weights": to_json(record.checkpoints),
        "Environment": to_json(record.environment),
    }
    for title, part in parts.items():
        if lines := _lines(part):
            yield title, lines


# Recipes, models and environments are the same in hundreds of records.
@lru_cache(maxsize=4096)
def _lines(part: bytes) -> tuple[Pair, ...]:
    return tuple(_flat(from_json(part), ""))


def _flat(value: Any, name: str) -> Iterator[Pair]:
    """Nested mappings as lines: ``augment.rotate``."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif name:
        yield words(name), _text(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else f"{value:g}"
    if isinstance(value, str):
        text = value
    elif isinstance(value, list | tuple) and not any(isinstance(v, Mapping | list) for v in value):
        text = ", ".join(map(_text, value))
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _charts(record: Record, details: Details | None) -> dict[str, Any]:
    """What the charts of a record's page are drawn from; empty parts are not shown."""
    curves = {
        stage_name(title, part): [None if v is None else float(f"{v:.5g}") for v in curve.loss]
        for title, parts in record.curves.items()
        for part, curve in parts.items()
        if any(value is not None for value in curve.loss)
    }
    picture = None if details is None else details.picture
    order = None if details is None else details.ordering
    return {
        "curves": curves,
        "picture": picture and {
            "case": picture.case, "classes": list(picture.classes),
            "label": picture.label.tolist(),
            "old": _parts(picture.old), "new": _parts(picture.new),
        },
        "ordering": order and {
            "predicted": _parts(order.predicted), "true": _parts(order.true),
            "tau": order.tau, "items": order.n_items,
        },
    }  # fmt: skip


def _parts(shares: NDArray[np.float64]) -> Any:
    """Shares in ten-thousandths: whole numbers are shorter, and sooner written."""
    return np.rint(10_000 * shares).astype(int).tolist()
