"""Plain baselines beside the best method of a board: what hardly any work already gives."""

from benchmark.report import numbers
from benchmark.report.ranks import LEAST_MODELS
from benchmark.report.scores import mean_score
from leaderboard.boards import Board

PLAIN = {
    "keep-old": "keeping the old model",
    "class-mean": "relabelling the gallery by class means",
    "linear-500": "a linear map from 500 pairs",
}
"""Methods that train nothing -> in words."""


def plain_words(board: Board, best: str | None) -> str:
    """A sentence on the baselines that the best method is not above, beyond the interval.

    The interval is of the difference over the seeds of both; fewer than three say nothing. Empty
    where the best method is above all that were measured.
    """
    values = _values(board)
    matched = [PLAIN[name] for name in PLAIN if best and _not_above(board, values, best, name)]
    if not matched:
        return ""
    *others, last = matched
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"{best}, the best method, is not above {listed}, beyond the interval."


def _not_above(board: Board, values: dict[str, dict[int, float]], best: str, baseline: str) -> bool:
    mine, plain = values.get(best, {}), values.get(baseline, {})
    sign = -1 if numbers.metric(board.metric).higher_is_better is False else 1
    margins = [sign * (mine[seed] - plain[seed]) for seed in mine if seed in plain]
    low = mean_score(margins).low if len(margins) >= LEAST_MODELS else None
    return low is not None and low <= 0


def _values(board: Board) -> dict[str, dict[int, float]]:
    """Method -> seed -> score; where no gallery is backfilled, keeping the old one is old/old."""
    of, found = board.ranking.criterion, {}
    if of.kind != "area":
        found["keep-old"] = dict(board.ranking.reference)
    for record in board.records:
        value = of.value(record)
        if value is not None and record.method not in board.unsealed:
            found.setdefault(record.method, {})[record.seed] = value
    return found
