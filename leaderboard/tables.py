"""Tables of boards and of protocols with settings, on the one table model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmark.records.record import Record
from benchmark.report import notes, numbers
from benchmark.report.ranks import Place
from benchmark.report.scores import GAIN, MethodScores, Score
from benchmark.report.tables import settings
from benchmark.report.tables.results import label
from benchmark.report.text_table import (
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    score_cell,
)
from leaderboard.boards import Board
from leaderboard.costs import COSTS, cost_text, cost_words
from leaderboard.names import file_name, method_href

OLDER = "older version"
"""Records whose trainings have no version."""


def method_cell(method: str, root: str = "", *words: str) -> TextCell:
    """A method with a link to its page.

    Args:
        method: Its name.
        root: Way to the site's root.
        *words: Further words, small; empty ones are left out.
    """
    small = ", ".join(filter(None, words))
    return TextCell(method, small=small, href=f"{root}{method_href(method)}")


def count_cell(n: int | None, empty: str = numbers.DASH) -> TextCell:
    """A whole number, or a word where there is none."""
    return TextCell(empty if n is None else str(n), sort="" if n is None else str(n))


def answer_cell(answer: tuple[int, int] | None) -> TextCell:
    """Yes or no, or on how many of the seeds."""
    words = numbers.of_seeds(answer)
    sort = "" if answer is None else f"{answer[0] / answer[1]:.3g}"
    return TextCell(words, sort=sort, look=words if words in ("yes", "no") else "")


def rank_cells(place: Place, empty: str = numbers.DASH) -> tuple[TextCell, TextCell]:
    """Rank, and the letters of the methods that cannot be told apart."""
    return count_cell(place.rank, empty), TextCell(place.letters, sort=place.letters)


def ranking(board: Board, metric: str) -> TextTable:
    """The table of a metric: bounds, then methods by rank."""
    costs = [key for key in board.cost_keys if key not in board.shared_costs]
    columns = [TextColumn(c, r) for c, r in zip(board.table.cases, board.table.roles, strict=True)]
    heads = ("compatible", "not hurting", GAIN, *(COSTS[key] for key in costs), "seeds")
    best = {case: board.table.best(metric, case) for case in (*board.table.cases, GAIN)}
    rows = []
    for row in (*board.bounds, *board.rows(metric)):
        if row.reason is not None:
            cells = [TextCell(f"not applicable: {row.reason}", look="left")]
        else:
            cells = [*_score_cells(board, row, metric, best), *_cost_cells(board, row, costs)]
            cells.append(count_cell(len(row.seeds)))
        method = row.kind == "method"
        place = board.place(metric, row.method)
        name = _name(board, row.method) if method else TextCell(row.label, small=row.detail)
        rows.append(
            TextRow(
                (*rank_cells(place, numbers.DASH if method else ""), name),
                (tuple(cells),),
                kind="" if method else "bound",
                attributes={"data-method": row.method} if method else {"data-bound": row.full},
            )
        )
    return TextTable(
        label(metric),
        metric,
        (TextColumn("rank"), TextColumn("group"), TextColumn("method", heading=True)),
        (TextBlock("", (*columns, *map(TextColumn, heads))),),
        tuple(rows),
    )


def _name(board: Board, method: str) -> TextCell:
    """A method; an older version is said once above the table where it is of all records."""
    older = method in board.older and len(board.older) < len(board.info)
    control = board.info[method].family == "control"
    return method_cell(method, "../", "control" * control, OLDER * older)


def _score_cells(
    board: Board, row: MethodScores, metric: str, best: Mapping[str, set[str]]
) -> list[TextCell]:
    unit = numbers.metric(metric).unit
    cells = []
    for case in board.table.cases:
        score = row.cells.get((metric, case))
        blank = score is not None and score.value is None and row.kind != "method"
        cells.append(score_cell(None if blank else score, unit, best=row.method in best[case]))
    verdict = row.verdicts.get(metric)
    if verdict is None:
        return [*cells, *[TextCell()] * 3]
    return [
        *cells,
        answer_cell(verdict.compatible),
        answer_cell(verdict.not_hurting),
        score_cell(Score(verdict.gain), best=row.method in best[GAIN]),
    ]


def _cost_cells(board: Board, row: MethodScores, keys: Sequence[str]) -> list[TextCell]:
    costs = board.costs.get(row.method, {}) if row.kind in ("method", "independent") else {}
    empty = TextCell(numbers.DASH, sort="") if row.kind == "method" else TextCell()
    return [
        TextCell(cost_text(key, costs[key]), sort=f"{costs[key]:.6g}") if key in costs else empty
        for key in keys
    ]


def ranking_notes(board: Board) -> list[str]:
    """Notes below the tables of a board; what is said above them is left out."""
    above = list(notes.track_lines(board.first))
    lines = [n for n in notes.notes(board.records, board.table.metrics) if n and n not in above]
    if board.shared_costs:
        lines.append(f"The same for every method: {', '.join(cost_words(board.shared_costs))}.")
    return lines


def bounds(board: Board) -> list[tuple[str, str, str]]:
    """Name, words and value of the bounds, in the metric that gives the rank."""
    about = numbers.metric(board.metric)
    return [
        (row.label, f"{row.detail}, {about.label}", score_cell(score, about.unit).whole)
        for row in board.bounds
        for (key, _), score in row.cells.items()
        if key == board.metric and score.value is not None and row.kind != "independent"
    ]


def with_methods(table: TextTable) -> TextTable:
    """A table whose rows begin with a method, which filters hide with it."""
    rows = (replace(r, attributes={"data-method": r.labels[0].text}) for r in table.rows)
    return replace(table, rows=tuple(rows))


@dataclass(frozen=True)
class Family:
    """A protocol with settings on one track, as papers print them.

    Attributes:
        slug: Name of its page among those of boards.
        boards: Titles and boards of its settings, in the protocol's order.
        tables: One a metric.
    """

    slug: str
    title: str
    question: str
    note: str
    boards: Mapping[str, Board]
    tables: tuple[TextTable, ...]


def make_families(boards: Sequence[Board]) -> list[Family]:
    """Protocols with settings, by name; of newest versions and unchanged tracks."""
    of_settings = [board for board in boards if board.of_setting and board.current]
    homes = {id(record): board for board in of_settings for record in board.records}
    records = [record for board in of_settings for record in board.records]
    return [_family(members, homes) for members in settings.setting_groups(records)]


def _family(members: Sequence[Record], homes: Mapping[int, Board]) -> Family:
    first = members[0]
    by_title = {t: homes[id(own[0])] for t, own in settings.by_setting(members).items()}
    return Family(
        slug=file_name(first.protocol.partition(":")[0], first.track),
        title=settings.title(members),
        question=notes.question(first),
        note=notes.track_note(first),
        boards=by_title,
        tables=tuple(_linked(table, by_title) for table in settings.make_tables(members)),
    )


def _linked(table: TextTable, boards: Mapping[str, Board]) -> TextTable:
    """A table of settings with links to their boards and to methods, titled by its metric."""
    rows = (
        replace(
            row,
            labels=(
                replace(row.labels[0], href=f"{boards[row.labels[0].text].slug}.html"),
                method_cell(row.labels[1].text, "../"),
            ),
        )
        for row in table.rows
    )
    return replace(table, title=table.title.rpartition(": ")[2], rows=tuple(rows))
