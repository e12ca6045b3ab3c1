"""The page of a record: full provenance, the command to repeat it, every number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.records.details import Details, details_path
from benchmark.records.details import find_details as find
from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.notes import stage_name
from leaderboard.boards import Board
from leaderboard.names import file_name
from leaderboard.provenance import command, origins
from leaderboard.reading import Entry

Pair = tuple[str, str]
# A text longer than this is cut on the page; the file has all of it.
_LONGEST = 2000


def entry_name(entry: Entry) -> str:
    """Name of a record's page among those of its board."""
    return f"{file_name(entry.record.method)}-seed-{entry.record.seed}"


def href(board: Board, entry: Entry) -> str:
    """Address of a record's page from the site's root."""
    return f"records/{board.slug}/{entry_name(entry)}.html"


def find_details(entry: Entry) -> Details | None:
    """The details of a record that can be read; where they cannot, its page says so."""
    if entry.path is None:
        return None
    try:
        return find(entry.record, entry.path)
    except BenchError:
        return None


def entry_page(
    entry: Entry, board: Board, details: Details | None = None, damaged: str = ""
) -> dict[str, Any]:
    """What the template of a record shows.

    Args:
        entry: The record.
        board: Where it stands.
        details: Its pictures, if it has any.
        damaged: What is wrong with its details.
    """
    record = entry.record
    heads, rows = scores(record)
    data = pictures(record, details)
    packed = None if details is None or entry.path is None else details_path(entry.path)
    return {
        "record": record,
        "board": board,
        "command": command([record]),
        "provenance": provenance(record),
        "heads": heads,
        "rows": rows,
        "data": data,
        "has_charts": any(data.values()),
        "tables": list(tables(record)),
        "sections": list(sections(record)),
        "download": f"{entry_name(entry)}.json",
        "details_link": "" if packed is None else f"{entry_name(entry)}.details.gz",
        "details_size": "" if packed is None else f"{packed.stat().st_size / 1024:.0f} KiB",
        "damaged": damaged,
    }


def provenance(record: Record) -> list[Pair]:
    """When, by what, for how long."""
    origin = origins([record])[0]
    clean = {None: "unknown", True: "yes", False: "no"}[origin.clean]
    argv = " ".join(record.run.argv)
    found = [
        ("finished", origin.finished),
        ("code", f"{origin.version} {origin.commit}".strip()),
        ("unchanged code", clean),
        ("seconds, with shared stages", f"{origin.seconds:.0f}"),
        ("as it was called", f"bench {argv}" if argv else ""),
        ("protocol and track version", f"{record.protocol_version}, {record.track_version}"),
        ("schema", str(record.schema_version)),
        ("key", record.key),
        ("seed of the first generation", str(record.first_seed)),
    ]
    return [(key, value) for key, value in found if value]


def scores(record: Record) -> tuple[list[str], list[list[str | Pair]]]:
    """Headings and rows: a metric a row, a case a column, then bounds and verdicts."""
    names = list(record.scores)
    bounds = [name for name in ("lower", "upper", "upper-all") if name in record.bounds]
    keys = numbers.ordered(
        m for part in (record.scores, record.bounds) for each in part.values() for m in each
    )
    heads = [*names, *(f"{name} bound" for name in bounds), "compatible", "not hurting", "gain"]
    rows: list[list[str | Pair]] = []
    for key in keys:
        about = numbers.metric(key)
        cells = [_cell(record, name, key, about.unit) for name in names]
        cells += [(_number(record.bounds[name].get(key), about.unit), "") for name in bounds]
        cells += [(_answer(part.get(key)), "") for part in (record.compatible, record.not_hurting)]
        cells.append((_number(record.update_gain.get(key), "share"), ""))
        rows.append([about.label, *cells])
    return heads, rows


def _cell(record: Record, case: str, key: str, unit: str) -> Pair:
    value = record.scores[case].get(key)
    low, high = record.intervals.get(case, {}).get(key) or (None, None)
    if value is None:
        return "", ""
    return numbers.number(value, unit), numbers.spread(value, low, high, unit)


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else numbers.number(value, unit)


def _answer(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def tables(record: Record) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Tables below the scores: backfilling, side-information, counts, times."""
    yield from _refills(record)
    if record.counts:
        names = list(dict.fromkeys(n for counts in record.counts.values() for n in counts))
        lines = [
            [
                name.removeprefix("n_").replace("_", " "),
                *(f"{c[name]:,}" if name in c else "" for c in record.counts.values()),
            ]
            for name in names
        ]
        yield "Counts", ["number of", *record.counts], lines
    if record.run.stages:
        lines = [
            [title, _text(stage.seconds), _mebi(stage.peak_memory_bytes), _text(stage.device)]
            for title, stage in record.run.stages.items()
        ]
        yield "Stages", ["stage", "seconds", "peak memory, MiB", "device"], lines


def _refills(record: Record) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    orders = record.orders
    keys = numbers.ordered(m for each in orders.values() for m in each.area)
    if not keys or record.backfilling is None:
        return
    truths = list(dict.fromkeys(t for each in orders.values() for t in each.tau))
    offline = {k: end.area for k, end in record.backfilling.offline.items()}
    lines = [["offline", *(_area(offline.get(k)) for k in keys), *("" for _ in truths)]]
    for name, each in orders.items():
        areas = [_area(each.area.get(k), each.intervals.get(k)) for k in keys]
        taus = [_number(each.tau.get(t), "coefficient") for t in truths]
        lines.append([name, *areas, *taus])
    labels = [numbers.metric(k).label for k in keys]
    yield "Areas under the backfilling curves, percent", [
        "order", *labels, *(f"tau {t}" for t in truths),
    ], lines  # fmt: skip


def _area(value: float | None, span: Any = None) -> str:
    low, high = span or (None, None)
    words = f"{_number(value, 'share')} {numbers.spread(value, low, high)}"
    return words.strip()


def _mebi(value: Any) -> str:
    return "" if value is None else f"{value / 2**20:.0f}"


def sections(record: Record) -> Iterator[tuple[str, list[Pair]]]:
    """Everything else that the record says, part by part."""
    plain = record.as_json()
    cost = {key: value for key, value in plain["cost"].items() if value is not None}
    omitted = {} if record.backfilling is None else record.backfilling.omitted
    parts = {
        "Cost": cost,
        "Parameters of the method": plain["config"],
        "Changed settings": plain["changed"],
        "Protocol and track": plain["parameters"],
        "Models": plain["models"],
        "Recipe": plain["recipe"],
        "Dataset": plain["dataset"],
        "Side-information": plain["side"],
        "Left out of backfilling": omitted,
        "Adapter": plain["adapter"],
        "Weights": plain["checkpoints"],
        "Environment": plain["environment"],
    }
    for title, part in parts.items():
        lines = list(_flat(part, ""))
        if lines:
            yield title, lines


def _flat(value: Any, name: str) -> Iterator[Pair]:
    """Nested mappings as lines: ``augment.rotate``."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif name:
        yield name.replace("_", " "), _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        text = value
    elif isinstance(value, list | tuple) and not any(isinstance(v, Mapping | list) for v in value):
        text = ", ".join(map(_text, value))
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def pictures(record: Record, details: Details | None) -> dict[str, Any]:
    """What the charts of a record's page are drawn from; empty parts are not shown."""
    lines = {}
    for title, parts in record.curves.items():
        for part, curve in parts.items():
            if any(value is not None for value in curve.loss):
                lines[stage_name(title, part)] = [
                    None if v is None else float(f"{v:.5g}") for v in curve.loss
                ]
    found: dict[str, Any] = {"curves": lines, "picture": None, "ordering": None}
    if details is not None and details.picture is not None:
        shown = details.picture
        found["picture"] = {
            "case": shown.case, "classes": list(shown.classes), "label": shown.label.tolist(),
            "old": _parts(shown.old), "new": _parts(shown.new),
        }  # fmt: skip
    if details is not None and details.ordering is not None:
        order = details.ordering
        found["ordering"] = {
            "predicted": _parts(order.predicted), "true": _parts(order.true),
            "tau": order.tau, "items": order.n_items,
        }  # fmt: skip
    return found


def _parts(shares: NDArray[np.float64]) -> Any:
    """Shares in ten-thousandths: whole numbers are shorter, and sooner written."""
    return np.rint(10_000 * shares).astype(int).tolist()


def download(entry: Entry) -> bytes:
    """The record's file, byte for byte; made anew where it has none."""
    if entry.path is not None:
        return Path(entry.path).read_bytes()
    return (json.dumps(entry.record.as_json(), indent=1) + "\n").encode()
