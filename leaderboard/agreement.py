"""What papers say beside what was measured here: is the order of the methods the same?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmark.config import registry
from benchmark.records.published import Number, Published
from benchmark.report import numbers
from benchmark.report.text_table import TextCell, TextTable, simple_table
from benchmark.studies.transfer.statistics import same_order
from leaderboard.boards import Board
from leaderboard.effects import models_words
from leaderboard.names import file_name
from leaderboard.scenarios import KINDS


@dataclass(frozen=True)
class Agreement:
    """One table of a paper, one metric of the day of the update, and one board.

    Attributes:
        says: Methods as the paper has them, best first, with its numbers.
        measured: The same methods as measured, best first.
        same: Pairs in the same order, which a measured tie is not; ``pairs`` are all that the paper
            puts in an order.
    """

    paper: str
    title: str
    table: str
    metric: str
    says: tuple[tuple[str, str], ...]
    measured: tuple[tuple[str, str], ...]
    same: int
    pairs: int
    slug: str
    board: str
    kind: str
    on: str

    @property
    def verdict(self) -> str:
        """Whether the order is the same."""
        if self.same == self.pairs:
            return "yes"
        return "no" if not self.same else f"{self.same} of {self.pairs} pairs"


def agreements(published: Published, boards: Sequence[Board]) -> list[Agreement]:
    """Every table of cross-tests with at least two methods that a board of its protocol has too."""
    found = []
    for (paper, table, dataset, protocol, metric), mine in _tables(published).items():
        for board in boards:
            if board.current and board.first.protocol == protocol:
                made = _compare(published, (paper, table, dataset, metric), mine, board)
                found += [made] if made is not None else []
    return found


def summary(found: Sequence[Agreement]) -> TextTable:
    """How many pairs of methods stand in each paper's order, by what our pictures are."""
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in found)]
    lines: list[list[str | TextCell]] = []
    for paper, title in dict.fromkeys((each.paper, each.title) for each in found):
        of = [each for each in found if each.paper == paper]
        name = TextCell(title, href=f"published/{file_name(paper)}.html")
        lines.append([name, *(_counted([e for e in of if e.kind == kind]) for kind in kinds)])
    heads = [f"on {KINDS[kind]}" for kind in kinds]
    return simple_table("Pairs of methods in the paper's order", "", ("paper",), heads, lines)


def _counted(found: Sequence[Agreement]) -> str:
    same, pairs = sum(each.same for each in found), sum(each.pairs for each in found)
    return f"{same} of {pairs}" if pairs else ""


def _tables(published: Published) -> dict[tuple[str, ...], dict[str, Number]]:
    """Cross-tests by table: method -> number; rows of other models than the first are left out."""
    found: dict[tuple[str, ...], dict[str, Number]] = {}
    models: dict[tuple[str, ...], tuple[str, str]] = {}
    for number in published.numbers:
        if number.case not in ("new/old", "v2/v1") or registry.is_control(number.method):
            continue
        key = (number.paper, number.table, number.dataset, number.protocol, number.metric)
        pair = models.setdefault(key, (number.old_model, number.new_model))
        if pair == (number.old_model, number.new_model):
            found.setdefault(key, {}).setdefault(number.method, number)
    return found


def _compare(
    published: Published, key: tuple[str, str, str, str], mine: Mapping[str, Number], board: Board
) -> Agreement | None:
    paper, table, dataset, metric = key
    if metric not in board.metrics:
        return None
    scores = {
        row.method: score.value
        for row in board.rows(metric)
        if row.method in mine
        if (score := row.cells.get((metric, board.cross))) is not None and score.value is not None
    }
    if len(scores) < 2:
        return None
    said = {method: mine[method].value for method in scores}
    pairs = [(a, b) for a, b in combinations(scores, 2) if said[a] != said[b]]
    same = sum(same_order(said[a] - said[b], scores[a] - scores[b]) for a, b in pairs)
    unit = numbers.metric(metric).unit
    about = board.scenario
    return Agreement(
        paper=paper,
        title=published.papers[paper].title,
        table=f"{table}, {dataset}",
        metric=numbers.metric(metric).label,
        says=tuple((m, mine[m].printed) for m in sorted(said, key=lambda m: (-said[m], m))),
        measured=tuple(
            (m, numbers.number(scores[m], unit))
            for m in sorted(scores, key=lambda m: (-scores[m], m))
        ),
        same=same,
        pairs=len(pairs),
        slug=board.slug,
        board=about.title,
        kind=about.kind,
        on=f"{KINDS[about.kind]}, {models_words(board.models)}",
    ) if pairs else None  # fmt: skip
