"""Share of the upgrade that methods keep on every track of the core board, side by side."""

from collections.abc import Iterator
from pathlib import Path

from benchmark.harness.core_board import read_core_board
from benchmark.records.files import find_records
from benchmark.records.record import Record
from benchmark.report import render, select
from benchmark.report.comparable import of_another_old_model
from benchmark.report.effects import Effect, criterion, effects, models_words, percent
from benchmark.report.ranks import LEAST_MODELS
from benchmark.report.scenarios import CLASSES, KINDS, scenario
from benchmark.report.text_table import simple_table
from benchmark.studies.transfer.orders import read_rules

_LIST = "wide"
"""The methods of the core board that every track has."""


def lines(folder: str, protocol: str, metric: str = "cmc_at_1") -> Iterator[str]:
    """A table of methods by tracks.

    Args:
        folder: Of records.
        protocol: One that every track of the core board has.
        metric: Whose share of the upgrade is shown.
    """
    board = read_core_board()
    tracks = list(dict.fromkeys(unit.track for unit in board.units if unit.protocol == protocol))
    records = [
        stored.record for stored in find_records(Path(folder))
        if stored.record.protocol == protocol and stored.record.status == "done"
        and not stored.record.changed
    ]  # fmt: skip
    found: dict[str, dict[str, str]] = {}
    heads = ["method"]
    for track in tracks:
        of = _newest([record for record in records if record.track == track])
        found[track] = _cells(of, metric) if of else {}
        heads.append(f"`{track}`" + (f" ({_about(of[0])})" if of else ""))
    methods = [m for m in board.lists[_LIST] if m not in read_rules().left_out]
    rows = [[f"`{m}`", *(found[track].get(m, "not measured") for track in tracks)] for m in methods]
    yield render(simple_table("", "", heads, (), rows), "markdown").strip()


def _newest(records: list[Record]) -> list[Record]:
    """Those of the newest versions of protocol and track."""
    versions = [(r.protocol_version, r.track_version) for r in records]
    return [r for r, v in zip(records, versions, strict=True) if v == max(versions)]


def _about(record: Record) -> str:
    about = scenario(record)
    return f"{KINDS[about.kind]}, {CLASSES[about.classes]}"


def _cells(records: list[Record], metric: str) -> dict[str, str]:
    """Share that each method keeps, in words."""
    elsewhere = {record.method for record in of_another_old_model(records)}
    found = effects(records, criterion(records, metric))
    return {method: _cell(effect, method in elsewhere) for method, effect in found.items()}


def _cell(effect: Effect, elsewhere: bool) -> str:
    if effect.share.value is None:
        return "no upgrade to keep"
    few = models_words(effect.models) if effect.models < LEAST_MODELS else ""
    words = ", ".join(filter(None, (few, select.ELSEWHERE if elsewhere else "")))
    return percent(effect.share) + (f" ({words})" if words else "")
