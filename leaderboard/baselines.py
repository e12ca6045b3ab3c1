"""Plain baselines beside the best method of a board: what hardly any work already gives."""

from collections.abc import Mapping

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

    The interval is of the difference in shares of the upgrade, over the seeds of both; fewer than
    three say nothing. Empty where the best method is above all that were measured.
    """
    shares = _shares(board)
    matched = [words for name, words in PLAIN.items() if best and _matches(shares, name, best)]
    if not matched:
        return ""
    *others, last = matched
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"{best}, the best method, is not above {listed}, beyond the interval."


def _matches(shares: Mapping[str, Mapping[int, float]], baseline: str, best: str) -> bool:
    mine = shares.get(best, {})
    # Keeping the old model keeps nothing of the upgrade, with any models.
    plain = dict.fromkeys(mine, 0.0) if baseline == "keep-old" else shares.get(baseline, {})
    margins = [mine[seed] - plain[seed] for seed in mine if seed in plain]
    low = mean_score(margins).low if len(margins) >= LEAST_MODELS else None
    return low is not None and low <= 0


def _shares(board: Board) -> Mapping[str, Mapping[int, float]]:
    """Method -> seed -> share of the upgrade that it keeps; none of methods without a rank."""
    found: dict[str, dict[int, float]] = {}
    for record in board.records:
        share = board.ranking.criterion.share(record)
        if share is not None and record.method not in board.unranked:
            found.setdefault(record.method, {})[record.seed] = share
    return found
