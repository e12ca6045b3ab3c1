"""What the overview shows: which method for which update, and its ranks on every board."""

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from benchmark.report import notes, numbers
from benchmark.report.ranks import Place, mean_ranks
from benchmark.report.scores import MethodScores
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextCell,
    TextColumn,
    TextTable,
    simple_table,
)
from leaderboard.boards import NO_SCORE, NO_VERDICT, Board
from leaderboard.cards import MethodInfo
from leaderboard.costs import cost_words
from leaderboard.names import method_href
from leaderboard.tables import method_cell, with_methods

ROUTES = {
    "train": ("Train the new model to be compatible", "the gallery stays as it is"),
    "longer": ("Train it with a longer embedding", "the gallery stays as it is"),
    "convert": ("Train freely, convert the gallery", "one pass over its vectors, no image"),
    "side": ("Store side-information before, then convert", "planned before the update"),
}
"""Ways to update: id -> words, what happens to the gallery."""
_COSTS = ("training_cost", "added_parameters", "bytes_before")
_MOST_EQUALS = 4


def route(info: MethodInfo) -> str | None:
    """Which of the ways a method is; None for bounds, controls and what is not installed."""
    if info.family == "compatible training":
        return "longer" if "dimension" in info.changes else "train"
    if info.family == "transformation":
        return "side" if "side-information" in info.needs else "convert"
    return None


def advice(boards: Sequence[Board]) -> TextTable:
    """The best method of each way to update that some method goes, a board a row."""
    best = {board.slug: {way: _best(board, way) for way in ROUTES} for board in boards}
    ways = [way for way in ROUTES if any(of_board[way] for of_board in best.values())]
    lines = []
    for board in (board for board in boards if any(best[board.slug].values())):
        about = numbers.metric(board.metric)
        ends = [board.bound(kind, board.metric) for kind in ("lower", "upper")]
        lower, upper = (numbers.number(end, about.unit) for end in ends)
        words = f"{about.label}: today {lower}, upper bound {upper}"
        words += "; below today" if board.upper_is_lower else ""
        words += ". No method beats keeping the old model" if board.old_is_best else ""
        cell = TextCell(board.title, small=words, href=f"boards/{board.slug}.html")
        empty = TextCell("not measured", look="none")
        lines.append([cell, *(best[board.slug][way] or empty for way in ways)])
    heads = [TextColumn(*ROUTES[way], words=True) for way in ways]
    title = "The best of each way to upgrade"
    return simple_table(title, "", ["The new model is trained on …"], heads, lines)


def _best(board: Board, way: str) -> TextCell | None:
    """The best method of a way; others of this way that cannot be told apart; what it costs."""
    ranks = board.places[board.metric]
    places = [p for m, p in ranks.items() if p.rank is not None and route(board.info[m]) == way]
    if not places:
        return None
    best = places[0]
    row = board.row(best.method)
    unit = numbers.metric(board.metric).unit
    verdict = row.verdicts.get(board.metric, NO_VERDICT)
    own = row.cells.get((board.metric, board.own), NO_SCORE)
    parts = [TextCell(numbers.number(best.score, unit), look="score")]
    if verdict.compatible is not None:
        answer = numbers.of_seeds(verdict.compatible)
        words = {"yes": "compatible", "no": "not compatible"}.get(answer, f"compatible on {answer}")
        parts.append(TextCell(words, look=f"verdict {answer if answer in ('yes', 'no') else ''}"))
    if verdict.gain is not None:
        words = f"{numbers.number(verdict.gain)} % of the way to the upper bound"
        parts.append(TextCell(words, look="line"))
    equals = [p.method for p in places[1:] if set(_letters(p)) & set(_letters(best))]
    if equals:
        shown = equals[:_MOST_EQUALS]
        listed = [TextCell(name, href=method_href(name), look="listed") for name in shown]
        if len(equals) > _MOST_EQUALS:
            listed.append(TextCell(f"and {len(equals) - _MOST_EQUALS} more"))
        parts.append(TextCell("not told apart:", look="line", parts=tuple(listed)))
    costs = ", ".join(cost_words(board.costs[best.method], _COSTS))
    for words in (f"self-test {numbers.number(own.value, unit)}", costs):
        parts.append(TextCell(words, look="line"))
    return TextCell(best.method, href=method_href(best.method), parts=tuple(parts))


def _letters(place: Place) -> list[str]:
    """``ab2`` is ``a`` and ``b2``."""
    return re.findall(r"\D\d*", place.letters)


def matrix(columns: Sequence[Board], general: Sequence[Board]) -> TextTable:
    """Methods as rows by mean rank, which is over the general boards; boards as columns."""
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

    lines = []
    for method in sorted(info, key=order):
        mean = means[method]
        words, sort = (numbers.DASH, "") if mean is None else (f"{mean:.1f}", f"{mean:.3f}")
        names = [method_cell(method, "", info[method].family), TextCell(words, sort=sort)]
        lines.append([*names, *(_standing(board, method) for board in columns)])
    boards = [TextColumn(notes.protocol_title(board.first), board.track) for board in columns]
    title = "Rank and cross-test of each method"
    return with_methods(simple_table(title, "", ["method"], ["mean rank", *boards], lines))


def _standing(board: Board, method: str) -> TextCell:
    """Rank, cross-test and letters; marked where it is compatible on every seed, or is not."""
    row = next((row for row in board.methods if row.method == method), None)
    if row is None or row.reason is not None:
        return TextCell("" if row is None else NOT_APPLICABLE, sort="")
    place = board.place(board.metric, method)
    score = row.cells.get((board.metric, board.cross), NO_SCORE)
    text = numbers.number(score.value, numbers.metric(board.metric).unit)
    answer = row.verdicts.get(board.metric, NO_VERDICT).compatible
    look = "" if answer is None else "yes" if answer[0] == answer[1] else "no"
    if place.rank is None:
        small = "unsealed" if method in board.unsealed else ""
        return TextCell(text, sort="", look=look, small=small)
    hint = "cannot be told apart from others with the letter" if place.letters else ""
    beside = TextCell(text, small=place.letters, hint=hint)
    return TextCell(str(place.rank), best=True, sort=str(place.rank), look=look, parts=(beside,))


def chooser_data(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Per board its methods with what they need and give: what the chooser filters."""
    chosen = []
    for board in boards:
        rivals = [
            (row, board.place(board.metric, row.method))
            for row in board.methods
            if route(board.info[row.method]) is not None
        ]
        rows = [_option(board, row, place) for row, place in rivals if place.rank is not None]
        metric = numbers.metric(board.metric)
        if rows:
            chosen.append({
                "slug": board.slug, "title": board.title, "metric": metric.label,
                "share": metric.unit == "share", "higher": metric.higher_is_better is not False,
                "seeds": len(board.table.seeds),
                "upper": board.bound("upper", board.metric), "rows": rows,
                "worse": board.upper_is_lower,
                "unranked": [
                    row.method for row, p in rivals if p.rank is None and row.reason is None
                ],
            })  # fmt: skip
    return chosen


def _option(board: Board, row: MethodScores, place: Place) -> dict[str, Any]:
    cells = [row.cells.get((board.metric, case), NO_SCORE) for case in (board.cross, board.own)]
    cross, own = cells
    info = board.info[row.method]
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
        "own": own.value, "gain": row.verdicts.get(board.metric, NO_VERDICT).gain,
        "costs": cost_words(board.costs[row.method], _COSTS),
    }  # fmt: skip
