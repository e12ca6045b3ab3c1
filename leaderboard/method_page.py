"""The page of a method: card, ranks and numbers everywhere, parameters, sensitivity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmark.report import notes, numbers
from benchmark.report.scores import Score
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextCell,
    TextColumn,
    TextTable,
    score_cell,
    simple_table,
)
from leaderboard.boards import Board
from leaderboard.cards import MethodInfo, bibtex
from leaderboard.costs import COSTS, cost_text
from leaderboard.names import record_address
from leaderboard.tables import answer_cell, count_cell, rank_cells

# What of a card is shown elsewhere on the page, or not at all.
_ELSEWHERE = (
    "method", "summary", "idea", "family", "parameters", "variants", "added parameters",
    "training cost",
)  # fmt: skip
# The metrics that a board shows first.
_SHOWN = 4


def method_page(info: MethodInfo, boards: Sequence[Board], known: frozenset[str]) -> dict[str, Any]:
    """What the template of a method shows.

    Args:
        info: Of the method.
        boards: All boards.
        known: Methods that have a page.
    """
    of_method = [board for board in boards if info.method in board.info]
    plain = [board for board in of_method if not board.first.changed]
    name = info.method.partition(":")[0]
    variants = [f"{name}:{variant}" for variant in info.card.get("variants", {})]
    parameters = [
        [TextCell(key, code=True), TextCell(value, code=True), note]
        for key, text in info.card.get("parameters", {}).items()
        for value, _, note in [text.partition("  # ")]
    ]
    return {
        "info": info,
        "idea": paragraphs(str(info.card.get("idea", ""))),
        "card": [*_card(info), *_costs(info.method, plain)],
        "standings": _standings(info.method, plain),
        "sensitivity": sensitivity(info.method, boards),
        "parameters": simple_table(
            "Parameters", "", ("name", "value", "where it is from"), (), parameters
        ),
        "variants": [(variant, variant in known) for variant in variants],
        "bibtex": bibtex(info.method, str(info.card.get("paper", ""))),
        "records": [(board.title, record_links(board, info.method)) for board in of_method],
    }


def record_links(board: Board, method: str) -> list[tuple[str, int]]:
    """Address and seed of each record of a method on a board."""
    return [
        (f"{record_address(board.slug, record)}.html", record.seed)
        for record in board.records
        if record.method == method
    ]


def paragraphs(text: str) -> list[list[tuple[str, bool]]]:
    r"""Paragraphs of a docstring, each as pieces, and whether a piece is code.

    Example:
        >>> paragraphs("As in the\npaper.\n\nSee ``side``.")
        [[('As in the paper.', False)], [('See ', False), ('side', True), ('.', False)]]
    """
    split = [
        re.split(r"``(.+?)``", " ".join(block.split()))
        for block in re.split(r"\n\s*\n", text.strip())
        if block
    ]
    return [[(piece, i % 2 == 1) for i, piece in enumerate(p) if piece] for p in split]


def _card(info: MethodInfo) -> list[tuple[str, str]]:
    lines = []
    for key, value in info.card.items():
        if key not in _ELSEWHERE:
            words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append((key, words or "nothing"))
    return lines


def _costs(method: str, boards: Sequence[Board]) -> list[tuple[str, str]]:
    """Costs, from the least to the most of the boards."""
    lines = []
    for key, label in COSTS.items():
        known = [board.costs[method][key] for board in boards if key in board.costs[method]]
        ends = [cost_text(key, end(known)) for end in (min, max) if known]
        lines += [(label, " to ".join(dict.fromkeys(ends)))] if ends else []
    return lines


def _standings(method: str, boards: Sequence[Board]) -> TextTable:
    lines = [_standing(board, method, key) for board in boards for key in board.metrics[:_SHOWN]]
    heads = (
        "rank", "group", TextColumn("old/old", "lower bound"), "cross-test", "self-test",
        "upper bound", "compatible", "gain", "seeds",
    )  # fmt: skip
    title = "Ranks and numbers everywhere"
    return simple_table(title, "", ("protocol and track", "metric"), heads, lines)


def _standing(board: Board, method: str, metric: str) -> list[TextCell]:
    row = board.row(method)
    about = numbers.metric(metric)
    rank, letters = rank_cells(board.place(metric, method))
    verdict = row.verdicts.get(metric)
    answer = None if verdict is None else verdict.compatible
    lower, upper = (Score(board.bound(kind, metric)) for kind in ("lower", "upper"))
    own = [row.cells.get((metric, case), Score(None)) for case in (board.cross, board.own)]
    return [
        TextCell(board.title, href=f"../boards/{board.slug}.html"),
        TextCell(about.label),
        TextCell(NOT_APPLICABLE, sort="") if row.reason else rank,
        letters,
        *(score_cell(score, about.unit) for score in (lower, *own, upper)),
        TextCell() if answer is None else answer_cell(answer),
        score_cell(Score(None if verdict is None else verdict.gain)),
        count_cell(len(row.seeds)),
    ]


def sensitivity(method: str, boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Score against value, for each field that was changed alone and concerns the method.

    The default's point comes from the unmodified track.
    """
    sweeps: dict[tuple[str, str, str], list[tuple[Any, Board]]] = {}
    for board in boards:
        changed = board.first.changed
        if len(changed) != 1 or method not in board.info:
            continue
        key, value = next(iter(changed.items()))
        if key.rpartition(".")[0] in (method, method.partition(":")[0]):
            place = (board.first.protocol, board.first.track, key)
            sweeps.setdefault(place, []).append((value, board))
    return [_sweep(method, key, points, boards) for (_, _, key), points in sweeps.items()]


def _sweep(
    method: str, key: str, changed: list[tuple[Any, Board]], boards: Sequence[Board]
) -> dict[str, Any]:
    marked = [(value, board, False) for value, board in changed]
    default = _default(method, key, changed[0][1], boards)
    if default is not None and default[0] not in [value for value, _ in changed]:
        marked.append((*default, True))
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v, _, _ in marked)
    marked.sort(key=lambda point: point[0] if numeric else str(point[0]))
    board = marked[0][1]
    about = numbers.metric(board.metric)
    track = notes.track_title(board.first)
    title = f"{key}: {notes.protocol_title(board.first)} on {track}"
    points, lines = [], []
    for value, other, is_default in marked:
        cells = other.row(method).cells
        cross, own = (
            cells.get((board.metric, case), Score(None)) for case in (other.cross, other.own)
        )
        points.append({
            "value": value, "text": str(value), "cross": _ends(cross), "own": _ends(own),
        })  # fmt: skip
        small = "default" if is_default else ""
        name = TextCell(str(value), small=small, href=f"../boards/{other.slug}.html")
        lines.append([name, *(score_cell(score, about.unit) for score in (cross, own))])
    heads = (f"{about.label}, cross-test", "self-test")
    return {
        "table": simple_table(title, "", (key,), heads, lines),
        "data": {
            "key": key, "label": about.label, "numeric": numeric, "title": title,
            "lower": board.bound("lower", board.metric), "points": points,
        },
    }  # fmt: skip


def _default(
    method: str, key: str, changed: Board, boards: Sequence[Board]
) -> tuple[Any, Board] | None:
    """The value of a parameter on the unmodified track, and its board."""
    field = key.rpartition(".")[2]
    place = (changed.first.protocol, changed.first.track)
    for board in boards:
        same = (board.first.protocol, board.first.track) == place
        if same and board.current and method in board.info:
            record = next(r for r in board.records if r.method == method)
            if field in record.config:
                return record.config[field], board
    return None


def _ends(score: Score) -> list[float | None] | None:
    return None if score.value is None else [score.value, score.low, score.high]
