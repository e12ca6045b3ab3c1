"""Tables of a backfilled gallery: areas, worst points, and scores when a part is backfilled."""

from dataclasses import replace

from benchmark.metrics.backfill_orders import is_oracle
from benchmark.report import numbers
from benchmark.report.ranks import LEAST_MODELS
from benchmark.report.tables import backfilling
from benchmark.report.text_table import TextCell, TextTable, score_cell, simple_table
from leaderboard.boards import Board
from leaderboard.effects import order_name
from leaderboard.tables import method_cell, with_methods


def curve_tables(board: Board) -> list[TextTable]:
    """The tables of a board whose records have curves, those of parts first; else none."""
    tables = backfilling.make_tables(board.records)
    if not tables:
        return []
    few = len(board.table.seeds) < LEAST_MODELS
    shown = [_titled(table) for table in (_parts(board), *tables)]
    return [with_methods(_without_spread(table) if few else table) for table in shown]


def _titled(table: TextTable) -> TextTable:
    words = table.title.rpartition(": ")[2]
    return replace(table, title=words[:1].upper() + words[1:])


def _without_spread(table: TextTable) -> TextTable:
    """An interval of one pair of models would look sure."""
    rows = (
        replace(row, cells=tuple(tuple(c._replace(spread="") for c in part) for part in row.cells))
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _parts(board: Board) -> TextTable:
    """Each method in its own order when 10 to 75 % of the gallery are backfilled."""
    names = {record.method: order_name(record) for record in board.records if record.orders}
    unit = numbers.metric(board.metric).unit
    place = {m: i for i, m in enumerate(board.ranking.in_order)}
    rows = [
        row
        for row in backfilling.order_scores(board.records)
        if names.get(row.method) == row.order and not is_oracle(row.order)
    ]
    lines: list[list[str | TextCell]] = []
    for row in sorted(rows, key=lambda row: (place.get(row.method, -1), row.method)):
        cells = [score_cell(row.budgets.get((b, board.metric)), unit) for b in backfilling.BUDGETS]
        lines.append([method_cell(row.method, "../"), row.order, *cells])
    label = numbers.metric(board.metric).label
    return simple_table(
        f"{label} when a part of the gallery is backfilled, in the order that each method brings",
        "parts",
        ("method", "order"),
        [f"{budget} %" for budget in backfilling.BUDGETS],
        lines,
    )
