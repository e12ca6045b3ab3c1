"""The first page, and the list of all scenarios."""

from collections.abc import Iterable, Sequence
from typing import Any

from benchmark.metrics.cost_model import LEAST_EXTRA, Assumptions
from benchmark.records.record import Record
from benchmark.report import notes
from benchmark.report.effects import models_words
from benchmark.report.text_table import TextCell, TextTable, simple_table
from leaderboard.names import method_href, record_href
from leaderboard.pages.tables import SettingsFamily
from leaderboard.rank import answers
from leaderboard.rank.boards import RankedBoard, compared
from leaderboard.rank.heatmap import heatmap, side_by_side

_QUESTIONS = (
    ("Faces, 1:1", "ijbc-1v1"),
    ("A chain of five updates", "sequential-six"),
    ("Half of the gallery is backfilled", "backfill"),
)
"""Questions of readers that a board answers, and its protocol."""
_VENDOR: tuple[answers.Way, ...] = ("convert", "query", "lists")
"""Ways of those who did not train the new model."""


def index(boards: Sequence[RankedBoard], methods: Iterable[str]) -> dict[str, Any]:
    """Values of the first page: the answer for the commonest upgrade, the heatmap, the chooser."""
    current = compared(boards)
    single = [board for board in current if not board.of_setting]
    board = answers.commonest(boards)
    # The commonest upgrade comes first: rows are in its order.
    columns = [b for b in single if b is board] + [b for b in single if b is not board]
    return {
        "board": board,
        "advice": [] if board is None else _advice(board),
        "costly": "" if board is None else answers.costly(board, _VENDOR),
        "heat": heatmap(columns or current),
        "tracks": None if board is None else side_by_side(single, board.first.protocol),
        "questions": _questions(single),
        "assumed": Assumptions(),
        "data": {
            "chooser": answers.chooser_data(columns or current),
            "ways": answers.WAYS, "held": answers.HELD, "least_extra": LEAST_EXTRA,
            "pages": {method: method_href(method) for method in methods},
        },
    }  # fmt: skip


def _advice(board: RankedBoard) -> list[dict[str, Any]]:
    found = (
        answers.advice(board, _VENDOR, "You use a model that you did not train"),
        answers.advice(board, ("train",), "You train the new model yourself"),
    )
    return [each for each in found if each is not None]


def _questions(boards: Sequence[RankedBoard]) -> list[tuple[str, str, str]]:
    """Questions of readers: words, address, what the chooser is set to."""
    found = [
        ("My vendor retires a model", "#which", "vendor"),
        ("I train my own and cannot touch the index", "#which", "own"),
    ]
    for words, protocol in _QUESTIONS:
        of = [board for board in boards if board.first.protocol == protocol]
        found += [(_asked(words, board), f"boards/{board.slug}.html", "") for board in of[:1]]
    return found


def _asked(words: str, board: RankedBoard) -> str:
    """A question of readers, with what it was measured on where that is no photograph."""
    models = "" if board.enough else f", {models_words(board.models)}"
    subject = board.scenario.subject
    return words if board.scenario.kind == "photographs" else f"{words} (on {subject}{models})"


def scenarios(boards: Sequence[RankedBoard], families: Sequence[SettingsFamily]) -> dict[str, Any]:
    """Every board: those of three models or more, the others apart, and what was changed."""
    current = [board for board in compared(boards) if not board.of_setting]
    of_families = [board for family in families for board in family.boards.values()]
    shown = {board.slug for board in (*current, *of_families)}
    lines = [(board, notes.question(board.first)) for board in current]
    return {
        "several": [line for line in lines if line[0].enough],
        "single": [line for line in lines if not line[0].enough],
        "families": families,
        "changed": [board for board in boards if board.slug not in shown],
    }


def newest(records: Sequence[Record], boards: Sequence[RankedBoard]) -> TextTable:
    """The newest records."""
    homes = {id(record): board for board in boards for record in board.records}
    lines = []
    for record in records:
        board = homes[id(record)]
        href = record_href(board.slug, record)
        words = (board.scenario.title, str(record.seed), record.run.finished or "unknown")
        lines.append([TextCell(record.method, href=href), *map(TextCell, words)])
    return simple_table("Newest records", "", ("method", "scenario", "seed", "finished"), (), lines)
