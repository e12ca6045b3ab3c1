"""What the overview shows: which method for which update, and its ranks on every board."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from benchmark.report import notes, numbers
from benchmark.report.ranks import Place, mean_ranks
from benchmark.report.scores import MethodScores, Score
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    simple_table,
)
from leaderboard.boards import Board
from leaderboard.cards import MethodInfo
from leaderboard.costs import cost_words
from leaderboard.tables import method_cell

ROUTES = {
    "train": ("Train the new model to be compatible", "the gallery stays as it is"),
    "longer": ("Train it with a longer embedding", "the gallery stays as it is"),
    "convert": ("Train freely, convert the gallery", "one pass over its vectors, no image"),
    "side": ("Store side-information before, then convert", "planned before the update"),
}
"""Ways to update: id -> words, what happens to the gallery."""
_COSTS = ("training_cost", "added_parameters", "bytes_before")
_MOST_EQUALS = 4
_HEAD = "The new model is trained on …"


def route(info: MethodInfo) -> str | None:
    """Which of the ways a method is; None for bounds, controls and what is not installed."""
    if info.family == "compatible training":
        return "longer" if "dimension" in info.changes else "train"
    if info.family == "transformation":
        return "side" if "side-information" in info.needs else "convert"
    return None


def advice(boards: Sequence[Board]) -> tuple[TextTable | None, TextTable | None]:
    """The best method of each way to update, a board a row.

    Returns:
        The table of protocols, and that of settings; None where nothing is measured.
    """
    best = {}
    for board in (board for board in boards if board.current):
        of_board = {name: _best(board, name) for name in ROUTES}
        if any(of_board.values()):
            best[board.slug] = board, of_board
    ways = [name for name in ROUTES if any(of_board[name] for _, of_board in best.values())]
    heads = [TextColumn(*ROUTES[name], words=True) for name in ways]
    empty = TextCell("not measured", look="none")

    def table(title: str, *, settings: bool) -> TextTable | None:
        lines = [
            [_board_cell(board), *(of_board[name] or empty for name in ways)]
            for board, of_board in best.values()
            if board.of_setting == settings
        ]
        return simple_table(title, "", [_HEAD], heads, lines) if lines else None

    return (
        table("The best of each way to upgrade", settings=False),
        table("The best of each way to upgrade, by settings", settings=True),
    )


def _board_cell(board: Board) -> TextCell:
    about = numbers.metric(board.metric)
    lower, upper = (
        numbers.number(board.bound(kind, board.metric), about.unit) for kind in ("lower", "upper")
    )
    words = f"{about.label}: today {lower}, upper bound {upper}"
    return TextCell(board.title, small=words, href=f"boards/{board.slug}.html")


def _best(board: Board, way: str) -> TextCell | None:
    """The best method of a way; others of this way that cannot be told apart; what it costs."""
    ranks = board.places[board.metric]
    places = [p for m, p in ranks.items() if p.rank is not None and route(board.info[m]) == way]
    if not places:
        return None
    best = places[0]
    row = board.row(best.method)
    unit = numbers.metric(board.metric).unit
    verdict = row.verdicts.get(board.metric)
    own = row.cells.get((board.metric, board.own), Score(None))
    parts = [TextCell(numbers.number(best.score, unit), look="score")]
    if verdict is not None and verdict.compatible is not None:
        parts.append(_compatible(numbers.of_seeds(verdict.compatible)))
    if verdict is not None and verdict.gain is not None:
        gain = numbers.number(verdict.gain)
        parts.append(_line(f"{gain} % of the way to the upper bound"))
    equals = [p.method for p in places[1:] if set(_letters(p)) & set(_letters(best))]
    if equals:
        listed = [
            TextCell(name, href=method_cell(name).href, look="listed")
            for name in equals[:_MOST_EQUALS]
        ]
        more = len(equals) - _MOST_EQUALS
        listed += [TextCell(f"and {more} more")] if more > 0 else []
        parts.append(TextCell("not told apart:", look="line", parts=tuple(listed)))
    parts.append(_line(f"self-test {numbers.number(own.value, unit)}"))
    parts.append(_line(", ".join(cost_words(board.costs[best.method], _COSTS))))
    return TextCell(best.method, href=method_cell(best.method).href, parts=tuple(parts))


def _line(words: str) -> TextCell:
    return TextCell(words, look="line")


def _compatible(answer: str) -> TextCell:
    """``yes``, ``no`` or ``2 of 3`` seeds, in a reader's words."""
    words = {"yes": "compatible", "no": "not compatible"}.get(answer, f"compatible on {answer}")
    return TextCell(words, look=f"verdict {answer}" if answer in ("yes", "no") else "verdict")


def _letters(place: Place) -> list[str]:
    """Letters of a place: ``ab2`` is ``a`` and ``b2``."""
    split: list[str] = []
    for char in place.letters:
        if char.isdigit():
            split[-1] += char
        else:
            split.append(char)
    return split


def matrix(boards: Sequence[Board]) -> tuple[list[Board], TextTable, list[Board]]:
    """Methods as rows by mean rank, boards as columns.

    Settings of protocols have no column: they stand beside each other on pages of their own.

    Returns:
        Boards of the columns, the table, and the boards that the mean rank is over.
    """
    current = [board for board in boards if board.current]
    columns = [board for board in current if not board.of_setting] or current
    general = [board for board in columns if board.general]
    info = {
        method: about
        for board in columns
        for method, about in board.info.items()
        if about.family != "baseline"
    }
    ranks = {method: {b.slug: b.place(b.metric, method).rank for b in columns} for method in info}
    means = mean_ranks(ranks, [board.slug for board in general])
    families = {"compatible training": 0, "transformation": 1}

    def order(method: str) -> tuple[Any, ...]:
        mean = means[method]
        family = families.get(info[method].family, 9)
        return float("inf") if mean is None else mean, family, method.partition(":")

    rows = []
    for method in sorted(info, key=order):
        mean = means[method]
        rank = (
            TextCell("-", sort="") if mean is None else TextCell(f"{mean:.1f}", sort=f"{mean:.3f}")
        )
        rows.append(
            TextRow(
                (method_cell(method, "", info[method].family),),
                ((rank, *(_standing(board, method) for board in columns)),),
                attributes={"data-method": method},
            )
        )
    heads = [TextColumn(notes.protocol_title(board.first), board.track) for board in columns]
    table = TextTable(
        "Rank and cross-test of each method",
        "matrix",
        (TextColumn("method", heading=True),),
        (TextBlock("", (TextColumn("mean rank"), *heads)),),
        tuple(rows),
    )
    return columns, table, general


def _standing(board: Board, method: str) -> TextCell:
    """Rank, cross-test and letters; green or red where it is compatible or not."""
    row = next((row for row in board.methods if row.method == method), None)
    if row is None:
        return TextCell(sort="")
    if row.reason is not None:
        return TextCell(NOT_APPLICABLE, sort="")
    place = board.place(board.metric, method)
    score = row.cells.get((board.metric, board.cross), Score(None))
    verdict = row.verdicts.get(board.metric)
    text = numbers.number(score.value, numbers.metric(board.metric).unit)
    # Not compatible is what is not so on every seed.
    answer = None if verdict is None else verdict.compatible
    look = "" if answer is None else "yes" if answer[0] == answer[1] else "no"
    if place.rank is None:
        return TextCell(text, sort="", look=look)
    hint = "cannot be told apart from others with the letter" if place.letters else ""
    beside = TextCell(text, small=place.letters, hint=hint)
    return TextCell(str(place.rank), best=True, sort=str(place.rank), look=look, parts=(beside,))


def chooser_data(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Per board its methods with what they need and give: what the chooser filters."""
    chosen = []
    for board in (board for board in boards if board.current):
        rows = []
        unranked = []
        for row in board.methods:
            place = board.place(board.metric, row.method)
            if route(board.info[row.method]) is None:
                continue
            if place.rank is not None:
                rows.append(_option(board, row, place))
            elif row.reason is None:
                unranked.append(row.method)
        if rows:
            metric = numbers.metric(board.metric)
            chosen.append({
                "slug": board.slug, "title": board.title, "metric": metric.label,
                "share": metric.unit == "share", "higher": metric.higher_is_better is not False,
                "seeds": len(board.table.seeds),
                "upper": board.bound("upper", board.metric), "rows": rows,
                "unranked": unranked,
            })  # fmt: skip
    return chosen


def _option(board: Board, row: MethodScores, place: Place) -> dict[str, Any]:
    cross, own = (
        row.cells.get((board.metric, case), Score(None)) for case in (board.cross, board.own)
    )
    info = board.info[row.method]
    verdict = row.verdicts.get(board.metric)
    # Of its own seeds: another old model may be better or worse than the mean of all.
    lower = [
        value
        for record in board.records
        if record.method == row.method and record.seed in row.seeds
        if (value := record.bounds.get("lower", {}).get(board.metric)) is not None
    ]
    return {
        "lower": fmean(lower) if lower else None, "seeds": len(row.seeds),
        "method": row.method, "way": route(info), "needs": info.needs, "rank": place.rank,
        "letters": _letters(place), "cross": cross.value, "low": cross.low, "high": cross.high,
        "own": own.value, "gain": None if verdict is None else verdict.gain,
        "costs": cost_words(board.costs[row.method], _COSTS),
    }  # fmt: skip
