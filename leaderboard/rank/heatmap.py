"""Methods by boards: the share of the upgrade that each keeps, as shades."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.report.effects import Effect, keeps, models_words
from benchmark.report.ranks import LEAST_MODELS
from leaderboard.names import method_href
from leaderboard.rank.boards import RankedBoard
from leaderboard.rank.scenarios import CLASSES, Scenario

_GROUPS = ("one update", "templates and cameras", "a chain of updates", "backfilling")
_SHADES = ((0.2, "p1"), (0.4, "p2"), (0.6, "p3"), (0.8, "p4"))
_FAR_BELOW = 0.1
_WIDEST = 6
"""At most so many columns stand side by side where there is little room."""
NO_METHOD = "no method"
_DROPPED = ("the new model ", "the gallery is ", "templates of several pictures ", "a chain of ")


@dataclass(frozen=True)
class HeatCell:
    """A method on a board."""

    text: str  # whole percent
    look: str  # classes of the style sheet
    hint: str  # the effect in words


@dataclass(frozen=True)
class HeatColumn:
    """A board."""

    href: str
    head: str
    below: str
    title: str
    part: int  # with which others it stands where there is little room


@dataclass(frozen=True)
class HeatPart:
    """Columns that stand side by side where there is little room."""

    words: str
    group: str


@dataclass(frozen=True)
class HeatRow:
    """A method."""

    method: str
    href: str
    variant: bool
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True)
class Heatmap:
    """Boards as columns by group, methods as rows."""

    groups: tuple[tuple[str, int], ...]  # words, number of columns
    parts: tuple[HeatPart, ...]
    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]
    without: tuple[HeatCell, ...]  # doing without any method


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
    ordered = sorted(
        shown, key=lambda board: (*_order(board.scenario), first[board.scenario.happens])
    )
    names = list(dict.fromkeys(_group_words(board.scenario) for board in ordered))
    parts = [_parts([b for b in ordered if _group_words(b.scenario) == name]) for name in names]
    labels = [
        HeatPart(f"{name}, {i + 1} of {len(of)}" if len(of) > 1 else name, name)
        for name, of in zip(names, parts, strict=True)
        for i in range(len(of))
    ]
    places = {b.slug: i for i, of in enumerate(part for of in parts for part in of) for b in of}
    rows = [*methods] or _methods(shown)
    return Heatmap(
        groups=tuple((n, sum(map(len, of))) for n, of in zip(names, parts, strict=True)),
        parts=tuple(labels),
        columns=tuple(_column(b, root, places[b.slug], heads or {}) for b in ordered),
        rows=tuple(
            HeatRow(
                method, f"{root}{method_href(method)}", ":" in method,
                tuple(cell(board, method) for board in ordered),
            )
            for method in rows
        ),
        without=tuple(_without(board) for board in ordered),
    )  # fmt: skip


def side_by_side(boards: Sequence[RankedBoard], protocol: str) -> Heatmap | None:
    """One protocol on every track with enough models, and the methods that all of them have.

    Photographs first, seen classes and unseen ones in one table whose heads tell them apart; None
    where fewer than two tracks have it.
    """
    of = [b for b in boards if b.first.protocol == protocol and b.enough and _says(b)]
    shown = sorted(of, key=lambda board: (board.scenario.place, board.scenario.classes))
    methods = [m for m in _methods(shown) if all(m in b.standing.effects for b in shown)]
    if len(shown) < 2 or not methods:
        return None
    return Heatmap(
        groups=(),
        parts=(HeatPart("", ""),),
        columns=tuple(
            HeatColumn(
                f"boards/{b.slug}.html", b.scenario.subject, CLASSES[b.scenario.classes],
                f"{b.scenario.title} ({b.scenario.id})", 0,
            )
            for b in shown
        ),
        rows=tuple(
            HeatRow(m, method_href(m), variant=False, cells=tuple(cell(b, m) for b in shown))
            for m in methods
        ),
        without=tuple(_without(board) for board in shown),
    )  # fmt: skip


def _says(board: RankedBoard) -> bool:
    """Tell boards on which some method's share is known."""
    return any(e.share.value is not None for e in board.standing.effects.values())


def _parts(boards: Sequence[RankedBoard]) -> list[list[RankedBoard]]:
    """Boards in parts of nearly one size that fit beside each other."""
    n = -(-len(boards) // _WIDEST)
    return [[*boards[len(boards) * i // n : len(boards) * (i + 1) // n]] for i in range(n)]


def _without(board: RankedBoard) -> HeatCell:
    """Doing without any method."""
    share = board.without
    return HeatCell(f"{100 * share:z.0f}", "", f"no method: {100 * share:z.0f} % of the upgrade")


def _order(scenario: Scenario) -> tuple[int, int]:
    kinds = ("", "seen", "both")
    classes = scenario.classes if scenario.classes in kinds else ""
    return kinds.index(classes), _GROUPS.index(scenario.group)


def _group_words(scenario: Scenario) -> str:
    return CLASSES[scenario.classes] if scenario.classes in ("seen", "both") else scenario.group


def _methods(boards: Sequence[RankedBoard]) -> list[str]:
    """Methods that may have a rank and were measured on some board."""
    first = boards[0].standing.effects if boards else {}
    every = dict.fromkeys(
        m for b in boards for m in b.standing.effects if b.info[m].ranked and m not in b.unsealed
    )

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


def cell(board: RankedBoard, method: str) -> HeatCell:
    """A method on a board.

    Hatched where there are fewer than three models, or other ones than the other methods have;
    grey where it cannot be applied, a grey dot where it was not measured.
    """
    if method not in board.info:
        return HeatCell("·", "unknown", "not measured")
    effect = board.standing.effects.get(method)
    if effect is None:
        return HeatCell("n/a", "na", "not applicable")
    if effect.share.value is None:
        return HeatCell("n/a", "na", "the new model alone is hardly better")
    elsewhere = method in board.elsewhere
    few = "few" if effect.models < LEAST_MODELS or elsewhere else ""
    hurts = "hurts" if effect.hurts else ""
    look = " ".join(filter(None, (shade(effect.share.value, board.without), few, hurts)))
    return HeatCell(f"{100 * effect.share.value:z.0f}", look, _hint(effect, elsewhere=elsewhere))


def shade(share: float, without: float = 0.0) -> str:
    """Class of the shade of a share; red is what is no better than doing without any method.

    Example:
        >>> shade(0.25), shade(0.7, 0.75), shade(-0.3)
        ('p2', 'm1', 'm2')
    """
    if share <= without:
        return "m2" if share < without - _FAR_BELOW else "m1"
    return next((name for limit, name in _SHADES if share < limit), "p5")


def _hint(effect: Effect, *, elsewhere: bool) -> str:
    more = "; new/new suffers" if effect.hurts else ""
    more += "; another old model" if elsewhere else ""
    return (
        f"{keeps(effect)}, {models_words(effect.models)}{more}"
        if effect.enough
        else keeps(effect) + more
    )
