"""What charts are drawn from, as plain values that a page carries with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from benchmark.metrics.backfill_orders import is_oracle
from benchmark.records.record import Record
from benchmark.report import numbers, select
from benchmark.report.ranks import front
from benchmark.report.scores import by_method, case_score
from benchmark.report.tables import backfilling, sequence
from leaderboard.boards import Board, flat_rows, number_columns
from leaderboard.facts import cost_label

_DIGITS = 5
_GROUPS = 40
"""At most so many groups have a share shown: a chart of more says nothing."""


def board_data(board: Board, boards: Sequence[Board]) -> dict[str, Any]:
    """Everything that the charts and filters of a board's page read."""
    return {
        "slug": board.slug,
        "title": board.title,
        "columns": number_columns(board),
        "rows": flat_rows(board),
        "metrics": [metric_data(board, key) for key in board.main],
        "cross": board.cross,
        "own": board.own,
        "costs": [{"key": key, "label": cost_label(key)} for key in board.cost_keys],
        "methods": methods_data(board),
        "quality": quality(board, boards),
        "refill": refill_data(board.records),
        "sequence": sequence_data(board.records),
    }


def metric_data(board: Board, key: str) -> dict[str, Any]:
    """A metric: how it is printed, its bounds, and the methods on the Pareto front."""
    about = numbers.metric(key)
    higher = about.higher_is_better is not False
    points = {}
    for row in board.methods:
        x, y = row.cells.get((key, board.own)), row.cells.get((key, board.cross))
        shown = x is not None and y is not None and board.facts[row.method].ranked
        if shown and x is not None and y is not None and None not in (x.value, y.value):
            points[row.method] = float(x.value or 0.0), float(y.value or 0.0)
    return {
        "key": key,
        "label": about.label,
        "share": about.unit == "share",
        "unit": about.unit,
        "higher": higher,
        "lower": board.bound("lower", key),
        "upper": board.bound("upper", key),
        "front": front(points, higher=higher),
    }


def methods_data(board: Board) -> dict[str, Any]:
    """Method -> what filters ask about it."""
    return {
        method: {"family": about.family, "needs": about.needs, "changes": about.changes}
        for method, about in board.facts.items()
    }


def quality(board: Board, boards: Iterable[Board]) -> list[dict[str, Any]]:
    """Cross-tests under the same protocol on every track: score against the old model's quality."""
    found = []
    for other in boards:
        # A method's own parameters do not change the old model.
        same = other.first.protocol == board.first.protocol and other.unmodified
        if not same or other.cross != board.cross:
            continue
        rows = [row for row in other.methods if other.facts[row.method].ranked]
        metrics = {}
        for key in (key for key in other.main if key in board.main):
            cells = {row.method: row.cells.get((key, other.cross)) for row in rows}
            scores = {m: _short(c.value) for m, c in cells.items() if c and c.value is not None}
            metrics[key] = {"lower": _short(other.bound("lower", key)), "scores": scores}
        label = f"{other.track_title} ({other.setting})" if other.changed else other.track_title
        data = other.first.dataset.name
        found.append(
            {"slug": other.slug, "label": label, "data": data, "metrics": metrics,
             "mine": other is board}
        )  # fmt: skip
    return found if len(found) > 1 else []


def refill_data(records: Sequence[Record]) -> dict[str, Any] | None:
    """Backfilling curves: metric -> method -> order -> percent at even points."""
    keys = backfilling.curve_metrics(records)
    if not keys:
        return None
    offline = next(r.backfilling.offline for r in records if r.backfilling and r.orders)
    return {
        "metrics": [{"key": key, "label": numbers.metric(key).label} for key in keys],
        "curves": {key: _rounded(backfilling.curves(records, key), 2) for key in keys},
        "offline": {
            key: {end: _short(value) for end, value in ends} for key, ends in offline.items()
        },
        "areas": {
            row.method + "\n" + row.order: {
                key: _short(score.value) for key, score in row.areas.items()
            }
            for row in backfilling.order_scores(records)
        },
        "cheating": [o for o in backfilling.orders(records) if is_oracle(o)],
        "groups": _groups(records),
    }  # fmt: skip


def _groups(records: Sequence[Record]) -> dict[str, Any] | None:
    """How early each group's items are refilled and how its queries fare, of the first seed."""
    shares: dict[str, Any] = {}
    names: list[str] = []
    for record in records:
        found = record.backfilling
        if found is None or not found.orders or record.method in shares:
            continue
        names = names or list(found.groups)[:_GROUPS]
        mine = {}
        for order, each in found.orders.items():
            parts = [each.groups.share, each.groups.cmc_at_1]
            if all(len(part) >= len(names) for part in parts):
                mine[order] = [[_short(v) for v in part[: len(names)]] for part in parts]
        if names and mine and list(found.groups)[:_GROUPS] == names:
            shares[record.method] = mine
    return {"names": names, "methods": shares} if shares else None


def sequence_data(records: Sequence[Record]) -> dict[str, Any] | None:
    """Scores of every pair of generations: metric -> method -> [asking, stored, value, direct]."""
    done = by_method(records)
    if len(records[0].models) < 3 or not done:
        return None
    found: dict[str, dict[str, list[Any]]] = {}
    for case, key, method in product(sequence.cases(records), select.metrics(records, "all"), done):
        asking, _, stored = case.partition("/")
        score = case_score(done[method], case, key)
        direct = stored.endswith(" direct")
        place = [asking, stored.removesuffix(" direct"), _short(score.value), direct]
        found.setdefault(key, {}).setdefault(method, []).append(place)
    return {"generations": list(records[0].models), "scores": found}


def _short(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)


def _rounded(
    curves: Mapping[str, Mapping[str, Sequence[float]]], digits: int
) -> dict[str, dict[str, list[float]]]:
    return {
        method: {order: [round(v, digits) for v in line] for order, line in orders.items()}
        for method, orders in curves.items()
    }
