"""Methods by boards: the share of the upgrade that each keeps, as shades."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmark.metrics.estimate import Estimate
from benchmark.report.effects import Effect, keeps, models_words
from benchmark.report.ranks import LEAST_MODELS
from benchmark.report.scenarios import CLASSES, Scenario
from benchmark.report.text_table import TextCell
from leaderboard.rank.boards import RankedBoard

_GROUPS = ("one update", "templates and cameras", "a chain of updates", "backfilling")
_SHADES = ((0.2, "p1"), (0.4, "p2"), (0.6, "p3"), (0.8, "p4"))
_FAR_BELOW = 0.1
_WIDEST = 6
"""At most so many columns stand side by side where there is little room."""
_DROPPED = ("the new model ", "the gallery is ", "templates of several pictures ", "a chain of ")


class HeatColumn(NamedTuple):
    """A board."""

    href: str
    head: str
    below: str
    title: str
    part: int  # with which others it stands if there is little room


@dataclass(frozen=True)
class Heatmap:
    """Boards as columns by group, methods as rows; cells are whole percent.

    Attributes:
        root: Leads to the site's root.
        groups: Words and number of columns of each group.
        parts: Words and group of columns that stand side by side if there is little room.
        rows: Method -> its cells.
        without: Cells of doing without any method.
    """

    root: str
    groups: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, str], ...]
    columns: tuple[HeatColumn, ...]
    rows: Mapping[str, tuple[TextCell, ...]]
    without: tuple[TextCell, ...]


def heatmap(
    boards: Sequence[RankedBoard], root: str = "", methods: Sequence[str] = (),
    heads: Mapping[str, str] | None = None,
) -> Heatmap:  # fmt: skip
    """The heatmap of some boards; seen and unseen classes never share a group.

    Tracks on which the same happens stand side by side.

    Args:
        boards: Each a column.
        root: Leads to the site's root.
        methods: Rows; by default every method that may have a rank, by what it keeps on the first
            board, then by name.
        heads: Headings by the names of boards, where these differ in one thing alone.
    """
    shown = [board for board in boards if _says(board)]
    first = {board.scenario.happens: i for i, board in reversed([*enumerate(shown)])}
    groups: dict[str, list[RankedBoard]] = {}
    for board in sorted(shown, key=lambda b: (*_order(b.scenario), first[b.scenario.happens])):
        about = board.scenario
        apart = about.classes in ("seen", "both")
        groups.setdefault(CLASSES[about.classes] if apart else about.group, []).append(board)
    parts: list[tuple[str, str]] = []
    columns = []
    for name, of in groups.items():
        n = -(-len(of) // _WIDEST)  # parts of nearly one size
        for i in range(n):
            part = of[len(of) * i // n : len(of) * (i + 1) // n]
            columns += [_column(board, root, len(parts), heads or {}) for board in part]
            parts.append((f"{name}, {i + 1} of {n}" if n > 1 else name, name))
    ordered = [board for of in groups.values() for board in of]
    counts = tuple((name, len(of)) for name, of in groups.items())
    return _made(ordered, methods or _methods(shown), root, counts, parts, columns)


def side_by_side(boards: Sequence[RankedBoard], protocol: str) -> Heatmap | None:
    """One protocol on every track with enough models, and the methods that all of them have.

    Photographs first; heads tell seen classes and unseen ones apart. None of fewer than two tracks.
    """
    of = [b for b in boards if b.first.protocol == protocol and b.enough and _says(b)]
    shown = sorted(of, key=lambda board: (board.scenario.place, board.scenario.classes))
    methods = [m for m in _methods(shown) if all(m in b.standing.effects for b in shown)]
    if len(shown) < 2 or not methods:
        return None
    columns = [
        HeatColumn(
            f"boards/{b.slug}.html", b.scenario.subject, CLASSES[b.scenario.classes],
            f"{b.scenario.title} ({b.scenario.id})", 0,
        )
        for b in shown
    ]  # fmt: skip
    return _made(shown, methods, "", (), [("", "")], columns)


def _made(
    boards: Sequence[RankedBoard], methods: Iterable[str], root: str,
    groups: tuple[tuple[str, int], ...], parts: Iterable[tuple[str, str]],
    columns: Iterable[HeatColumn],
) -> Heatmap:  # fmt: skip
    rows = {method: tuple(cell(board, method) for board in boards) for method in methods}
    shares = [f"{100 * board.without:z.0f}" for board in boards]
    without = (TextCell(n, hint=f"no method: {n} % of the upgrade") for n in shares)
    return Heatmap(root, groups, tuple(parts), tuple(columns), rows, tuple(without))


def _says(board: RankedBoard) -> bool:
    """Tell boards on which some method's share is known."""
    return any(e.share.value is not None for e in board.standing.effects.values())


def _order(scenario: Scenario) -> tuple[int, int]:
    kinds = ("", "seen", "both")
    classes = scenario.classes if scenario.classes in kinds else ""
    return kinds.index(classes), _GROUPS.index(scenario.group)


def _methods(boards: Sequence[RankedBoard]) -> list[str]:
    """Methods that may have a rank and were measured on some board."""
    first = boards[0].standing.effects if boards else {}
    every = dict.fromkeys(m for b in boards for m in b.standing.effects if b.info[m].ranked)

    def order(method: str) -> tuple[bool, bool, float, str]:
        effect = first.get(method)
        share = None if effect is None else effect.share.value
        few = effect is None or not effect.enough
        return share is None, few, -(share or 0.0), method

    return sorted(every, key=order)


def _column(board: RankedBoard, root: str, part: int, heads: Mapping[str, str]) -> HeatColumn:
    about = board.scenario
    href, title = f"{root}boards/{board.slug}.html", f"{about.title} ({about.id})"
    if board.slug in heads:
        return HeatColumn(href, heads[board.slug], "", title, part)
    head = about.happens
    for words in _DROPPED:
        head = head.removeprefix(words)
    return HeatColumn(href, head, about.subject, title, part)


def cell(board: RankedBoard, method: str) -> TextCell:
    """A method on a board.

    Hatched where there are fewer than three models, or other ones than the other methods have;
    grey where it cannot be applied, a grey dot where it was not measured.
    """
    if method not in board.info:
        return TextCell("·", look="unknown", hint="not measured")
    effect = board.standing.effects.get(method)
    if effect is None:
        return TextCell("n/a", look="na", hint="not applicable")
    if effect.share.value is None:
        scored = effect.value.value is not None
        why = "the new model alone is hardly better" if scored else "no such score"
        return TextCell("n/a", look="na", hint=why)
    why = board.unranked.get(method, "")
    few = "few" if effect.models < LEAST_MODELS or why else ""
    hurts = "hurts" if effect.hurts else ""
    look = " ".join(filter(None, (shade(effect.share, board.beyond(method)), few, hurts)))
    hint = _hint(effect, why)
    return TextCell(f"{100 * effect.share.value:z.0f}", look=look, hint=hint)


def shade(share: Estimate, beyond: Estimate) -> str:
    """Class of the shade of a share; none where the share beyond doing without a method may be 0.

    Shares of one or two models have no interval, and no shade.

    Example:
        >>> shade(Estimate(0.7, 0.6, 0.74), Estimate(0.25, 0.1, 0.4))
        'p4'
        >>> shade(Estimate(0.7, 0.6, 0.74), Estimate(-0.05, -0.1, -0.01))
        'm1'
    """
    if beyond.is_below(0):
        return "m2" if beyond.known < -_FAR_BELOW else "m1"
    if not beyond.is_above(0):
        return "open"
    return next((name for limit, name in _SHADES if share.known < limit), "p5")


def _hint(effect: Effect, why: str) -> str:
    words = f"{keeps(effect)}, {models_words(effect.models)}" if effect.enough else keeps(effect)
    return "; ".join([words, *["new/new suffers"] * effect.hurts, *filter(None, [why])])
