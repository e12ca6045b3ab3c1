"""Does the order of methods change when everything trains longer? Tables of ``results/studies``."""

from collections.abc import Iterator
from pathlib import Path

from benchmark.errors import AbsentError
from benchmark.records.files import StoredRecord, find_records
from benchmark.report import render
from benchmark.studies.lengths.shares import compare_lengths, tables, with_usual

RESULTS = Path("results")
STUDY = RESULTS / "studies" / "lengths"
FIGURES = RESULTS / "figures"


def lines(study: Path = STUDY, board: Path = RESULTS) -> Iterator[str]:
    """Tables and plots of what is kept of the upgrade by length of training.

    Args:
        study: Folder of the longer runs.
        board: Folder of the runs of the usual length.
    """
    longer = _records(study)
    if not longer:
        yield "No record yet."
        return
    try:
        found = compare_lengths(with_usual(longer, _records(board)), ["cmc_at_1", "map"])
    except AbsentError:
        yield "Records of one length only so far."
        return
    for each, table in zip(found, tables(found), strict=True):
        yield render(table, "markdown")
        name = f"lengths-{each.protocol}-{each.track}-{each.metric}.png"
        if (FIGURES / name).is_file():
            yield f"![{table.title}](../figures/{name})\n"


def _records(folder: Path) -> list[StoredRecord]:
    try:
        return find_records(folder)
    except AbsentError:
        return []
