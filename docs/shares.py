"""Shares of the upgrade that methods keep on some boards, side by side."""

from collections.abc import Iterator
from pathlib import Path

from benchmark.records.files import read_selection
from benchmark.report.effects import criterion, effects, percent
from benchmark.report.scenarios import CLASSES, scenario


def rows(
    folder: str, protocol: str, metric: str, tracks: str, methods: str
) -> Iterator[tuple[str, ...]]:
    """Heads, then a row for each method with a column for each track."""
    heads, columns = ["method"], []
    for track in tracks.split(","):
        found = read_selection(
            [Path(folder)], protocol=[protocol], track=[track], method=methods.split(",")
        )
        records = [stored.record for stored in found]
        about, pairs = scenario(records[0]), len({record.seed for record in records})
        heads.append(f"{about.subject}, {CLASSES[about.classes]}, {pairs} pairs of models")
        columns.append(effects(records, criterion(records, metric)))
    yield tuple(heads)
    yield ("keep the old model", *("0 %" for _ in columns))
    for name in methods.split(","):
        yield (f"`{name}`", *(percent(column[name].share) for column in columns))
