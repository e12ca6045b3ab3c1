"""What the overview shows: which method for which update, and who stands where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmark.report import numbers
from benchmark.report.ranks import Place, mean_ranks
from leaderboard.boards import Board
from leaderboard.facts import Facts, cost_label, cost_text
from leaderboard.reading import Entry

ROUTES = (
    ("train", "Train the new model to be compatible", "what is stored stays as it is"),
    ("longer", "Train it with a longer embedding", "what is stored stays as it is"),
    ("convert", "Train freely, convert what is stored", "one pass over stored vectors, no image"),
    ("side", "Store side-information before, then convert", "planned before the update"),
)
"""Ways to update: id, words, what happens to the gallery."""


def route(facts: Facts) -> str | None:
    """Which of the ways a method is; None for bounds, controls and what is not installed."""
    if facts.family == "compatible training":
        return "longer" if "dimension" in facts.changes else "train"
    if facts.family == "transformation":
        return "side" if "side-information" in facts.needs else "convert"
    return None


@dataclass(frozen=True)
class Choice:
    """The best of one way to update.

    Attributes:
        method: The best one.
        equals: Others of this way that cannot be told apart from it.
        score: Its cross-test in print.
        compatible: ``yes``, ``no`` or ``2 of 3``; empty where unknown.
        gain: In print.
        costs: In words.
    """

    method: str
    equals: tuple[str, ...]
    score: str
    compatible: str
    gain: str
    own: str
    costs: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """A line of "which method should I use": one protocol on one track."""

    board: Board
    lower: str
    upper: str
    choices: tuple[Choice | None, ...]


def advice(boards: Sequence[Board]) -> tuple[list[int], list[Advice]]:
    """Ways that some method goes, as places in ``ROUTES``, and the best of each on each board.

    Settings of protocols come last.
    """
    found = []
    for board in (b for b in boards if b.latest and not b.changed):
        choices = tuple(_choice(board, name) for name, _, _ in ROUTES)
        if any(choices):
            unit = numbers.metric(board.metric).unit
            low, high = (
                numbers.number(board.bound(k, board.metric), unit) for k in ("lower", "upper")
            )
            found.append(Advice(board, low, high, choices))
    used = [i for i in range(len(ROUTES)) if any(line.choices[i] for line in found)]
    return used, sorted(found, key=lambda line: line.board.of_setting)


def _choice(board: Board, way: str) -> Choice | None:
    places = board.places[board.metric]
    mine = [p for m, p in places.items() if p.rank is not None and route(board.facts[m]) == way]
    if not mine:
        return None
    best = mine[0]
    row = next(row for row in board.methods if row.method == best.method)
    equals = tuple(p.method for p in mine[1:] if not _apart(p, best))
    verdict = row.verdicts.get(board.metric)
    about = numbers.metric(board.metric)
    own = row.cells.get((board.metric, board.own))
    good = None if verdict is None else verdict.compatible
    words = "" if good is None else "yes" if good[0] == good[1] else "no"
    if good is not None and 0 < good[0] < good[1]:
        words = f"{good[0]} of {good[1]}"
    return Choice(
        method=best.method,
        equals=equals,
        score=numbers.number(best.score, about.unit),
        compatible=words,
        gain="" if verdict is None or verdict.gain is None else numbers.number(verdict.gain),
        own=numbers.number(None if own is None else own.value, about.unit),
        costs=tuple(
            f"{cost_text(key, value)} {cost_label(key)}"
            for key, value in board.costs[best.method].items()
            if key in ("training_cost", "added_parameters", "bytes_before")
        ),
    )


def _apart(a: Place, b: Place) -> bool:
    return not set(_letters(a.letters)) & set(_letters(b.letters))


def _letters(text: str) -> list[str]:
    """``ab2`` is ``a`` and ``b2``."""
    found: list[str] = []
    for char in text:
        if char.isdigit():
            found[-1] += char
        else:
            found.append(char)
    return found


@dataclass(frozen=True)
class Standing:
    """A row of the matrix: a method's place on every board.

    Attributes:
        cells: Board by board: place, score in print, compatible; None where it has no record.
    """

    facts: Facts
    mean: float | None
    cells: tuple[tuple[Place, str, str] | None, ...]


def matrix(boards: Sequence[Board]) -> tuple[list[Board], list[Standing], list[Board]]:
    """Boards as columns, methods as rows by mean rank, and the boards that the mean is over.

    Settings of protocols have no column: they stand beside each other on pages of their own.
    """
    unmodified = [board for board in boards if board.latest and not board.changed]
    columns = [board for board in unmodified if not board.of_setting] or unmodified
    general = [board for board in columns if board.general]
    facts: dict[str, Facts] = {}
    for board in columns:
        facts |= {m: f for m, f in board.facts.items() if f.family != "baseline"}
    ranks = {
        method: {
            b.slug: b.places[b.metric][method].rank for b in columns if method in b.places[b.metric]
        }
        for method in facts
    }
    means = mean_ranks(ranks, [board.slug for board in general])
    rows = [
        Standing(facts[m], means[m], tuple(_standing(board, m) for board in columns)) for m in facts
    ]
    order = {name: i for i, name in enumerate(("compatible training", "transformation"))}

    def key(row: Standing) -> tuple[Any, ...]:
        alone = row.mean if row.mean is not None else float("inf")
        return alone, order.get(row.facts.family, 9), row.facts.method.partition(":")

    return columns, sorted(rows, key=key), general


def _standing(board: Board, method: str) -> tuple[Place, str, str] | None:
    row = next((row for row in board.table.rows if row.method == method), None)
    if row is None or row.kind != "method":
        return None
    place = board.places[board.metric].get(method) or Place(method, None, None, "")
    if row.reason is not None:
        return place, "n/a", ""
    cell = row.cells.get((board.metric, board.cross))
    verdict = row.verdicts.get(board.metric)
    good = None if verdict is None else verdict.compatible
    unit = numbers.metric(board.metric).unit
    words = "" if good is None else "yes" if good[0] == good[1] else "no"
    return place, numbers.number(None if cell is None else cell.value, unit), words


def newest(entries: Sequence[Entry], n: int = 12) -> list[Entry]:
    """The records that were finished last."""
    return sorted(
        entries,
        key=lambda e: (e.record.run.finished or "", e.record.method, e.record.seed),
        reverse=True,
    )[:n]


def chooser_data(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Per board its methods with what they ask for and give: what the chooser filters."""
    found = []
    for board in (b for b in boards if b.latest and not b.changed):
        rows = []
        unranked = []
        for row in board.methods:
            about = board.facts[row.method]
            way = route(about)
            place = board.places[board.metric].get(row.method)
            if way is None or place is None:
                continue
            if place.rank is None:
                unranked += [row.method] if row.reason is None else []
                continue
            rows.append(_option(board, row, about, way, place))
        if rows:
            metric = numbers.metric(board.metric)
            found.append({
                "slug": board.slug, "title": board.title, "metric": metric.label,
                "share": metric.unit == "share", "higher": metric.higher_is_better is not False,
                "seeds": len(board.table.seeds),
                "upper": board.bound("upper", board.metric), "rows": rows,
                "unranked": unranked,
            })  # fmt: skip
    return found


def _option(board: Board, row: Any, about: Facts, way: str, place: Place) -> dict[str, Any]:
    cells = {case: row.cells.get((board.metric, case)) for case in (board.cross, board.own)}
    cross, own = cells[board.cross], cells[board.own]
    costs: Mapping[str, float] = board.costs[row.method]
    verdict = row.verdicts.get(board.metric)
    # Of its own seeds: another old model may be better or worse than the mean of all.
    lower = [
        record.bounds["lower"].get(board.metric) for record in board.records
        if record.method == row.method and record.seed in row.seeds and "lower" in record.bounds
    ]  # fmt: skip
    known = [value for value in lower if value is not None]
    return {
        "lower": fmean(known) if known else None, "seeds": len(row.seeds),
        "method": row.method, "way": way, "needs": about.needs, "rank": place.rank,
        "letters": _letters(place.letters), "cross": cross.value if cross else None,
        "low": cross.low if cross else None, "high": cross.high if cross else None,
        "own": own.value if own else None,
        "gain": None if verdict is None else verdict.gain,
        "costs": [
            f"{cost_text(key, costs[key])} {cost_label(key)}"
            for key in ("training_cost", "added_parameters", "bytes_before") if key in costs
        ],
    }  # fmt: skip
