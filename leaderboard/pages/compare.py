"""Two methods beside each other on every board, and all of them as a matrix of wins."""

from collections.abc import Sequence
from typing import Any

from benchmark.metrics.estimate import Estimate
from benchmark.report.effects import Effect, percent
from benchmark.report.text_table import TextCell
from leaderboard.names import method_href
from leaderboard.rank.boards import RankedBoard, compared

_NARROW = 5
"""Columns at a time on a narrow screen."""
_WIDEST = 16
"""At most so many methods have a row and a column: more have no room."""


def compare(boards: Sequence[RankedBoard]) -> dict[str, Any]:
    """Values of the page: boards with ranks, methods by the boards they are on, the matrix."""
    shown = [b for b in compared(boards) if b.enough and not b.of_setting]
    every = dict.fromkeys(m for b in shown for m in b.standing.effects if _takes_part(b, m))
    methods = sorted(every, key=lambda m: (-sum(_takes_part(b, m) for b in shown), m))
    main = [m for m in methods if ":" not in m][:_WIDEST]
    pairs = {(a, b): _pair(shown, a, b) for a in methods for b in methods if a < b}
    return {
        "main": main, "width": _NARROW,
        "parts_of": [", ".join(main[i : i + _NARROW]) for i in range(0, len(main), _NARROW)],
        "matrix": [(a, method_href(a), [_cell(pairs, a, b) for b in main]) for a in main],
        "data": {
            "methods": methods, "pages": {m: method_href(m) for m in methods},
            "boards": [[b.slug, b.scenario.title] for b in shown],
            "shares": {m: [_share(b, m) for b in shown] for m in methods},
            "differences": {
                f"{a} {b}": [None if d is None else _ends(d) for d in of]
                for (a, b), of in pairs.items()
            },
        },
    }  # fmt: skip


def _takes_part(board: RankedBoard, method: str) -> bool:
    """Tell a method that may have a rank there, on enough models, with a share that is known."""
    effect: Effect | None = board.standing.effects.get(method)
    ranked = board.info[method].ranked if method in board.info else False
    known = effect is not None and effect.enough and effect.share.value is not None
    return ranked and method not in board.unranked and known


def _share(board: RankedBoard, method: str) -> str:
    return percent(board.standing.effects[method].share) if _takes_part(board, method) else ""


def _pair(boards: Sequence[RankedBoard], left: str, right: str) -> list[Estimate | None]:
    """Share of the upgrade of one method minus that of another, over the seeds of both."""
    return [
        b.standing.margin(left, b.standing.shares[right])
        if _takes_part(b, left) and _takes_part(b, right)
        else None
        for b in boards
    ]


def _cell(pairs: dict[tuple[str, str], list[Estimate | None]], left: str, right: str) -> TextCell:
    """Wins and losses of a row's method against a column's, beyond the intervals."""
    if left == right:
        return TextCell("", look="na")
    known = [d for d in pairs[min(left, right), max(left, right)] if d is not None]
    above, below = sum(d.is_above(0.0) for d in known), sum(d.is_below(0.0) for d in known)
    wins, losses = (above, below) if left < right else (below, above)
    if not known:
        return TextCell("·", look="unknown", hint="no board has both")
    look = "p2" if wins > losses else "m1" if losses > wins else "open"
    hint = f"{left} is above {right} on {wins} of {len(known)} boards, below on {losses}"
    return TextCell(f"{wins}:{losses}", look=look, hint=hint)


def _ends(difference: Estimate) -> list[int | None]:
    """Whole percent: the difference and the ends of its interval."""
    ends = (difference.value, difference.low, difference.high)
    return [None if end is None else round(100 * end) for end in ends]
