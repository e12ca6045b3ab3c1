"""The page of a method: card, ranks and numbers everywhere, parameters, sensitivity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.report import numbers
from benchmark.report.scores import MethodScores
from leaderboard.blocks import Shown
from leaderboard.boards import Board
from leaderboard.entries import href
from leaderboard.facts import Facts, bibtex, cost_label, cost_text

# What of a card is shown elsewhere on the page, or not at all.
_ELSEWHERE = ("method", "summary", "idea", "parameters", "variants", "added parameters")


@dataclass(frozen=True)
class Standing:
    """A board's line on the page of a method."""

    board: Board
    label: str
    cells: tuple[Shown, ...]


def method_page(facts: Facts, boards: Sequence[Board], known: frozenset[str]) -> dict[str, Any]:
    """What the template of a method shows.

    Args:
        facts: Of the method.
        boards: All boards.
        known: Methods that have a page.
    """
    mine = [board for board in boards if facts.method in board.facts]
    plain = [board for board in mine if not board.changed]
    sweeps = sensitivity(facts.method, boards)
    name = facts.method.partition(":")[0]
    variants = [f"{name}:{variant}" for variant in facts.card.get("variants", {})]
    return {
        "facts": facts,
        "idea": paragraphs(str(facts.card.get("idea", ""))),
        "card": _card(facts, plain),
        "standings": [
            _standing(board, facts.method, key) for board in plain for key in _shown(board)
        ],
        "sensitivity": sweeps,
        "data": sweeps,
        "parameters": [_parameter(k, v) for k, v in facts.card.get("parameters", {}).items()],
        "variants": [(variant, variant in known) for variant in variants],
        "bibtex": bibtex(facts.method, str(facts.card.get("paper", ""))),
        "records": _records(facts.method, mine),
    }


def paragraphs(text: str) -> list[list[tuple[str, bool]]]:
    r"""Paragraphs of a docstring, each as pieces, and whether a piece is code.

    Example:
        >>> paragraphs("As in the\npaper.\n\nSee ``side``.")
        [[('As in the paper.', False)], [('See ', False), ('side', True), ('.', False)]]
    """
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        pieces = re.split(r"``(.+?)``", " ".join(block.split()))
        found.append([(piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece])
    return [pieces for pieces in found if pieces]


def _shown(board: Board) -> Sequence[str]:
    """The main metrics: the first that a board shows."""
    return board.main[:4]


def _card(facts: Facts, boards: Sequence[Board]) -> list[tuple[str, str]]:
    lines = []
    for key, value in facts.card.items():
        if key in _ELSEWHERE or key == "training cost":
            continue
        words = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        lines.append((key, words or "nothing"))
    found: dict[str, list[float]] = {}
    for board in boards:
        for key, value in board.costs[facts.method].items():
            found.setdefault(key, []).append(value)
    for key, values in found.items():
        ends = [cost_text(key, value) for value in (min(values), max(values))]
        lines.append((cost_label(key), " to ".join(dict.fromkeys(ends))))
    return lines


def _parameter(name: str, text: str) -> tuple[str, str, str]:
    value, _, note = text.partition("  # ")
    return name, value, note


def _standing(board: Board, method: str, metric: str) -> Standing:
    row = next(row for row in board.table.rows if row.method == method)
    unit = numbers.metric(metric).unit
    place = board.places[metric].get(method)
    verdict = row.verdicts.get(metric)
    good = None if verdict is None else verdict.compatible
    words = "" if good is None else f"{good[0]} of {good[1]}"
    if good is not None and good[0] in (0, good[1]):
        words = "yes" if good[0] else "no"
    gain = None if verdict is None else verdict.gain
    rank = None if place is None else place.rank
    cells = (
        Shown("n/a" if row.reason else numbers.DASH if rank is None else str(rank),
              sort="" if rank is None else str(rank)),
        Shown("" if place is None else place.letters),
        _plain(board.bound("lower", metric), unit),
        _cell(row, metric, board.cross, unit),
        _cell(row, metric, board.own, unit),
        _plain(board.bound("upper", metric), unit),
        Shown(words, sort=words, look=words if words in ("yes", "no") else ""),
        Shown(numbers.number(gain), sort="" if gain is None else f"{gain:.6g}"),
        Shown(str(len(row.seeds)), sort=str(len(row.seeds))),
    )  # fmt: skip
    return Standing(board, numbers.metric(metric).label, cells)


def _cell(row: MethodScores, metric: str, case: str, unit: str) -> Shown:
    cell = row.cells.get((metric, case))
    if cell is None or cell.value is None:
        return Shown(numbers.DASH)
    spread = numbers.spread(cell.value, cell.low, cell.high, unit)
    return Shown(numbers.number(cell.value, unit), spread, f"{cell.value:.6g}")


def _plain(value: float | None, unit: str) -> Shown:
    return Shown(numbers.number(value, unit), sort="" if value is None else f"{value:.6g}")


def _records(method: str, boards: Sequence[Board]) -> list[tuple[str, list[tuple[str, int]]]]:
    found = []
    for board in boards:
        mine = [entry for entry in board.entries if entry.record.method == method]
        found.append((board.title, [(href(board, e), e.record.seed) for e in mine]))
    return found


def sensitivity(method: str, boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Score against value, for each field that was changed alone and concerns the method.

    The default's point comes from the unmodified track.
    """
    sweeps: dict[tuple[str, str, str], list[tuple[Any, Board]]] = {}
    for board in boards:
        changed = board.first.changed
        if len(changed) != 1 or method not in board.facts:
            continue
        key, value = next(iter(changed.items()))
        if key.rpartition(".")[0] in (method, method.partition(":")[0]):
            place = (board.first.protocol, board.first.track, key)
            sweeps.setdefault(place, []).append((value, board))
    found = []
    for (protocol, track, key), points in sweeps.items():
        default = _default(method, key, protocol, track, boards)
        found.append(_sweep(method, key, points, default))
    return found


def _default(
    method: str, key: str, protocol: str, track: str, boards: Sequence[Board]
) -> tuple[Any, Board] | None:
    field = key.rpartition(".")[2]
    for board in boards:
        same = (board.first.protocol, board.first.track) == (protocol, track)
        if same and not board.changed and board.latest and method in board.facts:
            record = next(r for r in board.records if r.method == method)
            if field in record.config:
                return record.config[field], board
    return None


def _sweep(
    method: str, key: str, points: list[tuple[Any, Board]], default: tuple[Any, Board] | None
) -> dict[str, Any]:
    marked = [(value, board, False) for value, board in points]
    if default is not None and default[0] not in [value for value, _, _ in marked]:
        marked.append((*default, True))
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v, _, _ in marked)
    marked.sort(key=lambda point: point[0] if numeric else str(point[0]))
    board = marked[0][1]
    unit = numbers.metric(board.metric).unit
    return {
        "key": key, "label": numbers.metric(board.metric).label, "numeric": numeric,
        "title": f"{key}: {board.protocol_title} on {board.track_title}",
        "lower": board.bound("lower", board.metric),
        "points": [_point(method, v, b, board.metric, unit, d) for v, b, d in marked],
    }  # fmt: skip


def _point(
    method: str, value: Any, board: Board, metric: str, unit: str, default: bool
) -> dict[str, Any]:
    row = next(row for row in board.table.rows if row.method == method)
    cells: Mapping[str, Any] = {
        name: row.cells.get((metric, case))
        for name, case in (("cross", board.cross), ("own", board.own))
    }
    found: dict[str, Any] = {"value": value, "text": str(value), "slug": board.slug}
    found["default"] = default
    for name, cell in cells.items():
        known = cell is not None and cell.value is not None
        found[name] = [cell.value, cell.low, cell.high] if known else None
        shown = _cell(row, metric, board.cross if name == "cross" else board.own, unit)
        found[f"{name}_text"] = f"{shown.text} {shown.spread}".strip()
    return found
