"""Three sentences on a method, from its records by rules: good for, bad for, what it costs."""

from collections.abc import Sequence

from benchmark.metrics.cost_model import Assumptions
from leaderboard.answers import HELD, held, way
from leaderboard.boards import Board
from leaderboard.cards import MethodInfo
from leaderboard.costs import cost_text
from leaderboard.effects import Effect, models_words, percent
from leaderboard.heatmap import share_without
from leaderboard.money import bill, bill_words

_MOST = 2
_GOOD = 0.05
"""Of the upgrade beyond what no method keeps: from here on it is said to be good for something."""


def sentences(info: MethodInfo, boards: Sequence[Board]) -> list[tuple[str, str]]:
    """``Good for``, ``Bad for`` and ``Costs`` with their words; none of a method without scores."""
    found = [
        (board, effect)
        for board in boards
        if (effect := board.ranking.effects.get(info.method)) is not None
        if effect.share.value is not None
    ]
    if not found:
        return []
    return [("Good for", _good(found)), ("Bad for", _bad(found)), ("Costs", _costs(info, boards))]


def _more(board: Board, effect: Effect) -> float:
    """What it keeps beyond what is kept without any method."""
    return (effect.share.value or 0.0) - share_without(board)


def _is_good(board: Board, effect: Effect) -> bool:
    """Whether it keeps more than doing without, beyond the interval where there is one."""
    low = effect.share.low
    sure = not effect.enough or low is None or low > share_without(board)
    return sure and not effect.hurts and _more(board, effect) >= _GOOD


def _good(found: Sequence[tuple[Board, Effect]]) -> str:
    """The boards on which it keeps most beyond doing without, those of enough models first."""
    kept = [each for each in found if _is_good(*each)]
    best = sorted(kept, key=lambda each: (not each[1].enough, -_more(*each)))
    if not best:
        return (
            f"nothing that was measured here: nowhere does it keep {100 * _GOOD:.0f} % of the "
            "upgrade more than no method, beyond its interval and without hurting new/new."
        )
    return "; ".join(_on(*each) for each in best[:_MOST]) + "."


def _bad(found: Sequence[tuple[Board, Effect]]) -> str:
    """The boards on which doing without is better, or new/new suffers; otherwise the least good."""
    hurting = [(b, e) for b, e in found if e.hurts]
    losing = sorted((each for each in found if _more(*each) <= 0), key=lambda each: _more(*each))
    parts = []
    if hurting:
        parts.append(f"new/new, which it lowers on {len(hurting)} of {len(found)} boards")
    parts += [_on(*each) for each in losing[: _MOST - bool(hurting)]]
    if not parts:
        least = min(found, key=lambda each: _more(*each))
        return f"nothing that was measured here; least for {_on(*least)}."
    return "; ".join(parts) + "."


def _on(board: Board, effect: Effect) -> str:
    title = board.scenario.title
    without = share_without(board)
    beside = f", {100 * without:.0f} % without any method" if without else ""
    few = "" if effect.enough else f", {models_words(effect.models)}"
    below = "keeps" if (effect.share.value or 0.0) >= 0 else "is below the old model by"
    share = percent(effect.share).removeprefix("-")
    return f"{title[:1].lower()}{title[1:]} ({below} {share} of the upgrade{beside}{few})"


def _costs(info: MethodInfo, boards: Sequence[Board]) -> str:
    """Training, conversion and storage, as the first of its boards counted them."""
    known = next((b.costs[info.method] for b in boards if b.costs.get(info.method)), {})
    if not known or way(info) is None:
        return "what the new model costs."
    assumed = Assumptions()
    hours = bill(known, assumed, trains=way(info) == "train").hours
    items = f"{assumed.items / 1e6:g} million items"
    parts = [f"{bill_words(hours, assumed)} beside the new model, for {items}"]
    if "training_cost" in known:
        parts.append(f"{cost_text('training_cost', known['training_cost'])} of a plain training")
    if "bytes_before" in known:
        parts.append(f"{cost_text('bytes_before', known['bytes_before'])} bytes an item")
    needs = [HELD[need] for need in held(info)]
    words = ", ".join(parts) + "."
    return words + (f" It needs {', '.join(needs)}." if needs else "")
