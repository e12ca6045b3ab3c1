"""Tables of boards and of protocols with settings, on the one table model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmark.config.grouping import grouped
from benchmark.metrics.estimate import Estimate
from benchmark.report import notes, numbers
from benchmark.report.costs import cost_text, cost_words, hours_words, money_words
from benchmark.report.effects import Effect, Standing, percent
from benchmark.report.ranks import LEAST_MODELS, RankPlace
from benchmark.report.scenarios import scenario
from benchmark.report.scores import MethodScores
from benchmark.report.select import case_head
from benchmark.report.tables import backfilling, settings
from benchmark.report.tables.results import label
from benchmark.report.text_table import (
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    score_cell,
)
from leaderboard.names import file_name, method_href
from leaderboard.rank.answers import ASSUMED, query_words, update_hours, way
from leaderboard.rank.boards import RankedBoard
from leaderboard.read.methods import MethodInfo

OLDER = "older version"
"""Records whose trainings have no version."""


def method_cell(method: str, root: str = "", *words: str) -> TextCell:
    """A method with a link to its page, and further words; ``root`` leads to the site's root."""
    small = ", ".join(filter(None, words))
    return TextCell(method, small=small, href=f"{root}{method_href(method)}")


def paper_cells(info: MethodInfo, root: str = "") -> tuple[TextCell, ...]:
    """Venue and year of a method's paper, with a link to its numbers, and its authors' code."""
    if info.paper is None:
        return ()
    href = f"{root}published/{file_name(info.published)}.html" if info.published else ""
    hint = f"{info.paper.authors}, {info.paper.title}"
    code = (
        (TextCell("code", href=info.code, hint="the authors' code", look="paper"),)
        if info.code
        else ()
    )
    return TextCell(info.paper.place, href=href, hint=hint, look="paper"), *code


def models_cell(n: int) -> TextCell:
    """On how many pairs of models a method was measured; grey where these are few."""
    look = "few" if n < LEAST_MODELS else ""
    return TextCell(str(n), look=look)


def answer_cell(answer: tuple[int, int] | None, kept: Estimate) -> TextCell:
    """Yes or no, or on how many of the seeds; coloured where the interval of ``kept`` has no 0."""
    words = numbers.of_seeds(answer)
    sort = "" if answer is None else f"{answer[0] / answer[1]:.3g}"
    sure = kept.is_above(0.0) or kept.is_below(0.0)
    return TextCell(words, sort=sort, look=words if sure and words in ("yes", "no") else "few")


def rank_cell(place: RankPlace) -> TextCell:
    """Rank with its interval, where others cannot be told apart."""
    if place.rank is None:
        return TextCell(numbers.DASH, sort="")
    words = ""
    if place.span is not None and place.tied:
        words = "{} to {}".format(*place.span)
    return TextCell(str(place.rank), small=words, sort=str(place.rank))


def share_cell(effect: Effect | None) -> TextCell:
    """The share of the upgrade that is kept."""
    if effect is None or effect.share.value is None:
        return TextCell(numbers.DASH, sort="")
    return TextCell(
        percent(effect.share), sort=f"{effect.share.value:.6g}", look="" if effect.enough else "few"
    )


def ranking(board: RankedBoard, metric: str) -> TextTable:
    """The table of a metric: bounds, then methods, and the row of doing without any among them."""
    own = board.by_metric[metric]
    columns = [TextColumn("rank"), TextColumn("method", heading=True)]
    columns.append(TextColumn("keeps", "of the upgrade"))
    roles = dict(zip(board.table.cases, board.table.roles, strict=True))
    heads = [*_own_heads(own), *(TextColumn(case_head(c), roles[c]) for c in board.shown_cases)]
    heads += [TextColumn("compatible"), TextColumn("hurts")]
    heads += [TextColumn("update", "of 100 M items"), TextColumn("item", "bytes")]
    name = "independent" if own.criterion.kind == "area" else "lower"
    without = next((row for row in board.bounds if row.method == name), None)
    rows = [
        _bound_row(board, row, metric, own, row.label, TextCell())
        for row in board.bounds
        if row is not without
    ]
    rows += _method_rows(board, metric, own, without)
    block = TextBlock("", (*heads, TextColumn("models")))
    return TextTable(label(metric), metric, tuple(columns), (block,), tuple(rows))


def _bound_row(
    board: RankedBoard, row: MethodScores, metric: str, own: Standing, name: str, kept: TextCell
) -> TextRow:
    names = (TextCell(), TextCell(name, small=row.detail), kept)
    cells = tuple(_bound_cells(board, row, metric, own))
    return TextRow(names, (cells,), "bound", {"data-bound": row.full})


def _method_rows(
    board: RankedBoard, metric: str, own: Standing, without: MethodScores | None
) -> list[TextRow]:
    """Rows of methods; that of doing without any stands where its score puts it."""
    rows = []
    for row in board.rows(metric):
        effect = own.effects.get(row.method)
        few = effect is not None and not effect.enough
        kept = TextCell() if row.reason else share_cell(effect)
        names = (rank_cell(own.place(row.method)), _name(board, row.method), kept)
        cells = tuple(_cells(board, row, metric, own))
        kind = "few" if few else ""
        rows.append(TextRow(names, (cells,), kind, {"data-method": row.method}))
    if without is None:
        return rows
    area = own.criterion.kind == "area"
    name = "no method, random order" if area else "keep the old model"
    kept = share_cell(own.effects.get("independent")) if area else TextCell("0 %", sort="0")
    at = _place_of_reference(own, rows)
    kind = rows[max(at - 1, 0)].kind if rows else ""
    made = _bound_row(board, without, metric, own, name, kept)
    made = replace(made, kind=kind, attributes={**made.attributes, "class": "without"})
    return [*rows[:at], made, *rows[at:]]


def _place_of_reference(own: Standing, rows: Sequence[TextRow]) -> int:
    """Before which row doing without any method stands, among those that come first."""
    higher = numbers.metric(own.criterion.metric).higher_is_better is not False
    for i, row in enumerate(rows):
        effect = own.effects.get(row.attributes["data-method"])
        value = None if effect is None else effect.value.value
        if row.kind != rows[0].kind or value is None or own.without is None:
            return i
        if value <= own.without if higher else value >= own.without:
            return i
    return len(rows)


def _own_heads(own: Standing) -> list[TextColumn]:
    """Columns of what a board ranks by, where that is no case."""
    if own.criterion.kind == "area":
        heads = (("area", ""), ("worst", "point"), ("above old/old", "from"))
        return [TextColumn(*words) for words in heads]
    return [TextColumn("average", "compatibility")] if own.criterion.kind == "chain" else []


def _name(board: RankedBoard, method: str) -> TextCell:
    """A method; an older version is said once above the table where it is of all records."""
    older = method in board.older and len(board.older) < len(board.info)
    control = board.info[method].family == "control"
    words = (
        "control" * control, board.info[method].second_hand, OLDER * older,
        board.unranked.get(method, ""),
    )  # fmt: skip
    parts = paper_cells(board.info[method], "../")
    return method_cell(method, "../", *words)._replace(parts=parts)


def _bound_cells(
    board: RankedBoard, row: MethodScores, metric: str, own: Standing
) -> Iterator[TextCell]:
    """Scores of a bound or of the independent model."""
    unit = numbers.metric(metric).unit
    effect = own.effects.get(row.method) if row.kind == "independent" else None
    for part in own.criterion.own_parts:
        yield TextCell() if effect is None else _own_cell(effect, unit, part)
    for case in board.shown_cases:
        score = row.cells.get((metric, case))
        blank = score is None or score.value is None
        yield TextCell() if blank else _plain(score, unit, len(row.seeds))
    yield from [TextCell()] * 4
    yield models_cell(len(row.seeds)) if row.seeds else TextCell()


def _own_cell(effect: Effect, unit: str, part: str) -> TextCell:
    score: Estimate = getattr(effect, part)
    if score.value is None:
        known = part == "above" and effect.value.value is not None
        words = f"{effect.reached} of {effect.models}" if effect.reached else "never"
        return TextCell(words if known else numbers.DASH, sort="")
    if part in ("above", "average"):
        return TextCell(percent(score), sort=f"{score.value:.6g}")
    return score_cell(score, unit)


def _plain(score: Estimate | None, unit: str, models: int, *, best: bool = False) -> TextCell:
    """A score; of fewer models than three without an interval, which would look sure."""
    if score is not None and models < LEAST_MODELS:
        score = Estimate(score.value)
    return score_cell(score, unit, best=best)


def _cells(board: RankedBoard, row: MethodScores, metric: str, own: Standing) -> Iterator[TextCell]:
    """Scores, verdicts and costs; why there are none spans them."""
    if row.reason is not None:
        yield TextCell(f"not applicable: {row.reason}", look="left")
        return
    effect = own.effects[row.method]
    unit = numbers.metric(metric).unit
    for part in own.criterion.own_parts:
        yield _own_cell(effect, unit, part)
    for case in board.shown_cases:
        best = effect.enough and row.method in board.table.best(metric, case)
        yield _plain(row.cells.get((metric, case)), unit, effect.models, best=best)
    verdict = row.verdicts.get(metric)
    yield answer_cell(verdict.compatible, effect.first_day) if verdict else TextCell()
    yield hurts_cell(effect)
    yield from _cost_cells(board, row.method)
    yield models_cell(effect.models)


def hurts_cell(effect: Effect) -> TextCell:
    """A mark where new/new suffers beyond the interval; in grey where few models say so."""
    words = "yes" if effect.hurts else "no"
    return TextCell(words, look="few" if not effect.enough else "no" if effect.hurts else "")


def _cost_cells(board: RankedBoard, method: str) -> Iterator[TextCell]:
    """Hours and money of an update under the chooser's defaults, and bytes of an item."""
    if way(board.info[method]) is None:
        yield TextCell()
    else:
        hours = update_hours(board, method)
        money = money_words(ASSUMED.money(hours))
        words = f"{hours_words(hours)}, {money}" if hours else "nothing"
        waiting = query_words(board.info[method]).partition(", ")[0]
        yield TextCell(words, small=waiting, sort=f"{hours:.6g}")
    size = board.costs.get(method, {}).get("bytes_before")
    yield (
        TextCell() if size is None else TextCell(cost_text("bytes_before", size), sort=f"{size:g}")
    )


def ranking_notes(board: RankedBoard) -> list[str]:
    """Notes below the tables of a board; what is said above them is left out."""
    above = list(notes.track_lines(board.first))
    lines = [n for n in notes.notes(board.records, board.table.metrics) if n and n not in above]
    if board.shared_costs:
        lines.append(f"The same for every method: {', '.join(cost_words(board.shared_costs))}.")
    return lines + seeds_note(board.standing)


def seeds_note(standing: Standing) -> list[str]:
    """A note on seeds that ranks leave out, as most methods lack them; scores have them."""
    values = standing.values
    ranked = [place for place in standing.places.values() if place.rank is not None]
    more = [place for place in ranked if place.seeds < values[place.method].keys()]
    if not more:
        return []
    counted = notes.seed_words(sorted(frozenset.union(*(place.seeds for place in more))))
    return [
        f"Ranks are by the old models that most methods have ({counted}); scores and shares are "
        f"means over all of a method's own, which {len(more)} of {len(ranked)} have more of: rows "
        "may have another order by score."
    ]


def bounds(board: RankedBoard) -> list[tuple[str, str, str]]:
    """Name, words and value of the bounds, in the metric that gives the rank."""
    about = numbers.metric(board.metric)
    return [
        (row.label, f"{row.detail}, {about.label}", _plain(score, about.unit, len(row.seeds)).whole)
        for row in board.bounds
        for (key, _), score in row.cells.items()
        if key == board.metric and score.value is not None and row.kind != "independent"
    ]


@dataclass(frozen=True)
class SettingsFamily:
    """A protocol with settings on one track, as papers print them: a table a metric."""

    slug: str  # name of its page among those of boards
    title: str
    id: str
    question: str
    note: str
    kind: str  # of the track's pictures
    boards: Mapping[str, RankedBoard]  # settings' titles -> boards, in the protocol's order
    tables: tuple[TextTable, ...]

    def has(self, board: RankedBoard) -> bool:
        """Tell the boards of its settings."""
        return any(own is board for own in self.boards.values())


def make_families(boards: Sequence[RankedBoard]) -> list[SettingsFamily]:
    """Protocols with settings, by name; of each setting's newest version and unchanged tracks."""
    shown = (board for board in boards if board.of_setting and board.current)
    families = grouped(((b.first.protocol.partition(":")[0], b.first.track), b) for b in shown)
    return [_family(families[key]) for key in sorted(families)]


def _family(boards: Sequence[RankedBoard]) -> SettingsFamily:
    homes = {id(record): board for board in boards for record in board.records}
    members = [record for board in boards for record in board.records]
    by_title = {t: homes[id(own[0])] for t, own in settings.by_setting(members).items()}
    first = next(iter(by_title.values())).first
    about = scenario(first)
    happens = about.happens.rpartition(": ")[0] or about.happens
    family = first.protocol.partition(":")[0]
    return SettingsFamily(
        slug=file_name(family, first.track),
        title=f"{happens[:1].upper()}{happens[1:]}, on {about.subject}",
        id=f"{family} · {first.track}",
        question=notes.question(first),
        note=notes.track_note(first),
        kind=about.kind,
        boards=by_title,
        tables=tuple(_linked(table, by_title) for table in settings.group_tables(members)),
    )


def _linked(table: TextTable, boards: Mapping[str, RankedBoard]) -> TextTable:
    """A table of settings with links to their boards and to methods, titled by its metric."""
    rows = []
    for row in table.rows:
        setting, method = row.labels
        linked = setting._replace(href=f"{boards[setting.text].slug}.html")
        few = len(boards[setting.text].table.seeds) < LEAST_MODELS
        shown = _without_spread(row) if few else row
        name, _, words = method.text.partition(" ")  # ``bct (diverged)``
        rows.append(replace(shown, labels=(linked, method_cell(name, "../", words.strip("()")))))
    return replace(table, title=table.title.rpartition(": ")[2], rows=tuple(rows))


def curve_tables(board: RankedBoard) -> list[TextTable]:
    """The tables of a board whose records have curves, those of parts first; else none."""
    tables = backfilling.make_tables(board.records)
    if not tables:
        return []
    few = len(board.table.seeds) < LEAST_MODELS
    shown = []
    for table in (_parts(board), *tables):
        words = table.title.rpartition(": ")[2]
        rows = tuple(
            # It begins with a method, which filters hide with it.
            replace(row, attributes={"data-method": row.labels[0].text})
            for row in (map(_without_spread, table.rows) if few else table.rows)
        )
        shown.append(replace(table, title=words[:1].upper() + words[1:], rows=rows))
    return shown


def _without_spread(row: TextRow) -> TextRow:
    """An interval of one pair of models would look sure."""
    cells = tuple(tuple(c._replace(spread="") for c in part) for part in row.cells)
    return replace(row, cells=cells)


def _parts(board: RankedBoard) -> TextTable:
    """Each method when a part of the gallery is backfilled, in the order of the ranking."""
    place = {m: i for i, m in enumerate(board.standing.in_order)}
    table = backfilling.part_table(board.records, board.metric)
    names = [row.labels[0].text for row in table.rows]
    order = sorted(range(len(names)), key=lambda i: (place.get(names[i], -1), names[i]))
    return replace(table, rows=tuple(table.rows[i] for i in order))
