"""Methods by boards: the share of the upgrade that each keeps, as shades."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.report.ranks import LEAST_MODELS
from leaderboard.boards import Board
from leaderboard.effects import Effect, keeps, models_words
from leaderboard.names import method_href
from leaderboard.scenarios import CLASSES, Scenario

_GROUPS = ("one update", "templates and cameras", "a chain of updates", "backfilling")
_SHADES = ((-0.1, "m2"), (0.0, "m1"), (0.2, "p1"), (0.4, "p2"), (0.6, "p3"), (0.8, "p4"))
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
    group: int  # place of its group


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
    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]


def heatmap(boards: Sequence[Board], root: str = "", methods: Sequence[str] = ()) -> Heatmap:
    """The heatmap of some boards; seen and unseen classes never share a group.

    Args:
        boards: Each a column.
        root: Leads to the site's root.
        methods: Rows; by default every method that may have a rank, by what it keeps on the first
            board, then by name.
    """
    ordered = sorted(boards, key=lambda board: _order(board.scenario))
    names = list(dict.fromkeys(_group_words(board.scenario) for board in ordered))
    rows = [*methods] or _methods(boards)
    return Heatmap(
        groups=tuple((n, sum(_group_words(b.scenario) == n for b in ordered)) for n in names),
        columns=tuple(_column(board, root, names) for board in ordered),
        rows=tuple(
            HeatRow(
                method, f"{root}{method_href(method)}", ":" in method,
                tuple(cell(board, method) for board in ordered),
            )
            for method in rows
        ),
    )  # fmt: skip


def _order(scenario: Scenario) -> tuple[bool, int]:
    return scenario.classes in ("seen", "both"), _GROUPS.index(scenario.group)


def _group_words(scenario: Scenario) -> str:
    also = CLASSES[scenario.classes] if scenario.classes in ("seen", "both") else ""
    return ", ".join(filter(None, (scenario.group, also)))


def _methods(boards: Sequence[Board]) -> list[str]:
    """Methods that may have a rank and were measured on some board."""
    first = boards[0].ranking.effects if boards else {}
    every = dict.fromkeys(
        m for b in boards for m in b.ranking.effects if b.info[m].ranked and m not in b.unsealed
    )

    def order(method: str) -> tuple[bool, bool, float, str]:
        effect = first.get(method)
        share = None if effect is None else effect.share.value
        few = effect is None or not effect.enough
        return share is None, few, -(share or 0.0), method

    return sorted(every, key=order)


def _column(board: Board, root: str, names: Sequence[str]) -> HeatColumn:
    about = board.scenario
    head = about.happens
    for words in _DROPPED:
        head = head.removeprefix(words)
    group = names.index(_group_words(about))
    href = f"{root}boards/{board.slug}.html"
    return HeatColumn(href, head, about.subject, f"{about.title} ({about.id})", group)


def cell(board: Board, method: str) -> HeatCell:
    """A method on a board: hatched where there are fewer than three models, grey where it cannot be
    applied, empty where it was not measured."""
    if method not in board.info:
        return HeatCell("", "unknown", "not measured")
    effect = board.ranking.effects.get(method)
    if effect is None:
        return HeatCell("n/a", "na", "not applicable")
    if effect.share.value is None:
        return HeatCell("n/a", "na", "no share: the new model alone is hardly better, or was not measured")
    few = "few" if effect.models < LEAST_MODELS else ""
    hurts = "hurts" if effect.hurts else ""
    look = " ".join(filter(None, (shade(effect), few, hurts)))
    return HeatCell(f"{100 * effect.share.value:z.0f}", look, _hint(effect))


def shade(effect: Effect) -> str:
    """Class of the shade of a share."""
    value = effect.share.value or 0.0
    return next((name for limit, name in _SHADES if value < limit), "p5")


def _hint(effect: Effect) -> str:
    more = "; new/new suffers" if effect.hurts else ""
    return (
        f"{keeps(effect)}, {models_words(effect.models)}{more}"
        if effect.enough
        else keeps(effect) + more
    )


def row_of(boards: Sequence[Board], method: str) -> Mapping[str, HeatCell]:
    """Slug of a board -> the cell of one method."""
    return {board.slug: cell(board, method) for board in boards if method in board.info}
