"""The printed tables of a board: a block for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.records.record import Record
from benchmark.report import notes, numbers
from benchmark.report.scores import GAIN, MethodScores
from leaderboard.boards import Board, share
from leaderboard.facts import cost_label, cost_text


@dataclass(frozen=True)
class Shown:
    """A printed cell.

    Attributes:
        sort: What the column sorts by; empty where there is nothing, which comes last.
        look: A class of the style sheet.
    """

    text: str
    spread: str = ""
    sort: str = ""
    look: str = ""


@dataclass(frozen=True)
class Line:
    """A printed row."""

    row: MethodScores
    rank: Shown
    letters: Shown
    cells: tuple[Shown, ...]


@dataclass(frozen=True)
class Block:
    """The table of one metric."""

    metric: str
    label: str
    heads: tuple[tuple[str, str], ...]
    bounds: tuple[Line, ...]
    lines: tuple[Line, ...]


def block(board: Board, metric: str) -> Block:
    """The printed table of a metric."""
    about = numbers.metric(metric)
    heads = [(case, role) for case, role in zip(board.table.cases, board.table.roles, strict=True)]
    heads += [("compatible", ""), ("not hurting", ""), ("gain", "")]
    heads += [(cost_label(key), "") for key in board.shown_costs] + [("seeds", "")]
    arrow = " (lower is better)" if about.higher_is_better is False else ""
    return Block(
        metric, about.label + arrow, tuple(heads),
        tuple(_line(board, row, metric) for row in board.bounds),
        tuple(_line(board, row, metric) for row in board.rows(metric)),
    )  # fmt: skip


def _line(board: Board, row: MethodScores, metric: str) -> Line:
    place = board.places[metric].get(row.method)
    rank = Shown(numbers.DASH) if row.kind == "method" else Shown("")
    letters = Shown("")
    if place is not None and place.rank is not None:
        rank = Shown(str(place.rank), sort=str(place.rank))
        letters = Shown(place.letters, sort=place.letters)
    if row.reason is not None:
        return Line(row, rank, letters, ())
    cells = [*_scores(board, row, metric), *_judged(board, row, metric)]
    cells += _costs(board, row)
    return Line(row, rank, letters, (*cells, Shown(str(len(row.seeds)), sort=str(len(row.seeds)))))


def _scores(board: Board, row: MethodScores, metric: str) -> list[Shown]:
    unit = numbers.metric(metric).unit
    found = []
    for case in board.table.cases:
        cell = row.cells.get((metric, case))
        if cell is None or cell.value is None:
            found.append(Shown("" if cell is None or row.kind != "method" else numbers.DASH))
            continue
        best = row.method in board.table.best(metric, case)
        spread = numbers.spread(cell.value, cell.low, cell.high, unit)
        text = numbers.number(cell.value, unit)
        found.append(Shown(text, spread, f"{cell.value:.6g}", "best" if best else ""))
    return found


def _judged(board: Board, row: MethodScores, metric: str) -> list[Shown]:
    verdict = row.verdicts.get(metric)
    if verdict is None:
        return [Shown("")] * 3
    found = []
    for answers in (verdict.compatible, verdict.not_hurting):
        words = share(answers)
        part = "" if answers is None else f"{answers[0] / answers[1]:.3g}"
        look = words if words in ("yes", "no") else ""
        found.append(Shown(words or numbers.DASH, sort=part, look=look))
    if verdict.gain is None:
        return [*found, Shown(numbers.DASH)]
    look = "best" if row.method in board.table.best(metric, GAIN) else ""
    return [*found, Shown(numbers.number(verdict.gain), sort=f"{verdict.gain:.6g}", look=look)]


def _costs(board: Board, row: MethodScores) -> list[Shown]:
    mine = board.costs.get(row.method, {}) if row.kind in ("method", "independent") else {}
    return [
        Shown(cost_text(key, mine[key]), sort=f"{mine[key]:.6g}") if key in mine
        else Shown(numbers.DASH if row.kind == "method" else "")
        for key in board.shown_costs
    ]  # fmt: skip


def worded(board: Board, records: Sequence[Record]) -> list[str]:
    """Notes below a table; what is said above it is left out."""
    above = f"{board.track_title}: {notes.track_note(board.first)}"
    found = [note for note in notes.notes(records, board.table.metrics) if note and note != above]
    if board.shared_costs:
        costs = [f"{cost_text(k, v)} {cost_label(k)}" for k, v in board.shared_costs.items()]
        found.append(f"The same for every method: {', '.join(costs)}.")
    return found
