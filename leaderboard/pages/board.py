"""The page of a board, and its rows as files."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmark.records import published
from benchmark.report import notes, numbers
from benchmark.report.renderers import csv
from benchmark.report.tables import sequence, side_information
from benchmark.report.text_table import TextColumn, TextTable
from leaderboard.pages import tables
from leaderboard.pages.charts import Rows, board_data, old_models_data, pack
from leaderboard.pages.method import record_links
from leaderboard.pages.published import make_tables as published_tables
from leaderboard.pages.record import command, versions
from leaderboard.rank import answers
from leaderboard.rank.boards import RankedBoard
from leaderboard.read.methods import method_bibtex


def downloads(board: RankedBoard, rows: Rows) -> dict[str, bytes]:
    """The rows of every metric's table as JSON and CSV, and BibTeX: ending -> content."""
    lines = (json.dumps(row, allow_nan=False) for row in rows)
    columns = tuple(rows[0])
    values = tuple([_safe(value) for value in row.values()] for row in rows)
    table = TextTable("", "", (), (), (), columns=columns, values=values)
    texts = {
        "json": "[\n" + ",\n".join(lines) + "\n]\n",
        "csv": csv.render([table]),
        "bib": method_bibtex(board.info.values()),
    }
    return {ending: text.encode("utf-8", "replace") for ending, text in texts.items()}


def _safe(value: Any) -> Any:
    """A text that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def board_page(
    board: RankedBoard, rows: Rows, boards: Sequence[RankedBoard],
    families: Sequence[tables.Family], numbers_of_papers: published.Published,
) -> dict[str, Any]:  # fmt: skip
    """Values of the template of a board; ``rows`` are those of ``number_rows``."""
    records = board.records
    beside = published.beside(numbers_of_papers, records)
    labels = (TextColumn("case", heading=True),)
    old_models = old_models_data(board)
    shared, lines = pack([rows, *(part["rows"] for part in old_models)], board.cost_keys)
    data = board_data(board, boards) | shared | {"rows": lines[0]}
    data["old_models"] = [
        part | {"rows": own} for part, own in zip(old_models, lines[1:], strict=True)
    ]
    return {
        "board": board,
        "answer": answers.board_answer(board),
        "question": notes.question(board.first),
        "sizes": notes.training_sizes(board.first),
        "note": next(notes.track_lines(board.first), ""),
        "rendered": board.scenario.kind == "rendered",
        "rankings": [tables.ranking(board, key) for key in board.metrics],
        "bounds": tables.bounds(board),
        "siblings": _siblings(board, boards),
        "family": next((f for f in families if f.has(board)), None),
        "notes": tables.ranking_notes(board),
        "backfilling": tables.curve_tables(board),
        "sequence": [replace(table, labels=labels) for table in sequence.make_tables(records)],
        "sides": side_information.make_tables(records),
        "published": published_tables(beside, paper=True),
        "command": command(records),
        "records": [(method, record_links(board, method)) for method in board.info],
        "versions": versions(records),
        "bibtex": method_bibtex(board.info.values()),
        "data": data,
    }


def _siblings(board: RankedBoard, boards: Sequence[RankedBoard]) -> list[tuple[RankedBoard, str]]:
    """Boards of the same protocol with other old models, and the quality of these."""
    same = [
        (other, numbers.number(other.bound("lower", board.metric)))
        for other in boards
        if other.first.protocol == board.first.protocol and other.comparable
        if other.scenario.classes == board.scenario.classes
    ]
    return same if len(same) > 1 and any(other is board for other, _ in same) else []
