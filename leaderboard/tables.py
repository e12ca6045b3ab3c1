"""Tables of boards and of protocols with settings, on the one table model."""

from collections.abc import Iterator, Mapping, Sequence
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
    """A method with a link to its page, and further words; ``root`` leads to the site's root."""
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
        place = board.place(metric, row.method)
        cells = tuple(_cells(board, row, metric, best, costs))
        if row.kind == "method":
            names = (*rank_cells(place), _name(board, row.method))
            rows.append(TextRow(names, (cells,), attributes={"data-method": row.method}))
        else:
            names = (*rank_cells(place, ""), TextCell(row.label, small=row.detail))
            rows.append(TextRow(names, (cells,), "bound", {"data-bound": row.full}))
    labels = (TextColumn("rank"), TextColumn("group"), TextColumn("method", heading=True))
    block = TextBlock("", (*columns, *map(TextColumn, heads)))
    return TextTable(label(metric), metric, labels, (block,), tuple(rows))


def _name(board: Board, method: str) -> TextCell:
    """A method; an older version is said once above the table where it is of all records."""
    older = method in board.older and len(board.older) < len(board.info)
    control = board.info[method].family == "control"
    words = ("control" * control, OLDER * older, "unsealed" * (method in board.unsealed))
    return method_cell(method, "../", *words)


def _cells(
    board: Board, row: MethodScores, metric: str, best: Mapping[str, set[str]], costs: Sequence[str]
) -> Iterator[TextCell]:
    """Scores, verdicts and costs; why there are none spans them."""
    if row.reason is not None:
        yield TextCell(f"not applicable: {row.reason}", look="left")
        return
    unit = numbers.metric(metric).unit
    for case in board.table.cases:
        score = row.cells.get((metric, case))
        blank = score is not None and score.value is None and row.kind != "method"
        yield score_cell(None if blank else score, unit, best=row.method in best[case])
    verdict = row.verdicts.get(metric)
    if verdict is None:
        yield from [TextCell()] * 3
    else:
        yield answer_cell(verdict.compatible)
        yield answer_cell(verdict.not_hurting)
        yield score_cell(Score(verdict.gain), best=row.method in best[GAIN])
    known = board.costs.get(row.method, {}) if row.kind in ("method", "independent") else {}
    empty = TextCell(numbers.DASH if row.kind == "method" else "", sort="")
    for key in costs:
        value = known.get(key)
        yield empty if value is None else TextCell(cost_text(key, value), sort=f"{value:.6g}")
    yield count_cell(len(row.seeds))


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
    """A protocol with settings on one track, as papers print them: a table a metric."""

    slug: str  # name of its page among those of boards
    title: str
    question: str
    note: str
    boards: Mapping[str, Board]  # settings' titles -> boards, in the protocol's order
    tables: tuple[TextTable, ...]

    def has(self, board: Board) -> bool:
        """Whether a board is that of one of its settings."""
        return any(own is board for own in self.boards.values())


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
    rows = []
    for row in table.rows:
        setting, method = row.labels
        linked = replace(setting, href=f"{boards[setting.text].slug}.html")
        rows.append(replace(row, labels=(linked, method_cell(method.text, "../"))))
    return replace(table, title=table.title.rpartition(": ")[2], rows=tuple(rows))
