"""Protocols with settings: boards of one protocol and track side by side, as papers print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.records.record import Record
from benchmark.report import notes
from benchmark.report.tables import settings
from benchmark.report.text_table import TextTable
from leaderboard.boards import Board
from leaderboard.names import file_name
from leaderboard.sections import Line, line


@dataclass(frozen=True)
class Table:
    """One metric.

    Attributes:
        groups: Title and board of each setting, and its lines: a method, then printed cells and
            whether each is the best of its column.
    """

    label: str
    heads: tuple[str, ...]
    groups: tuple[tuple[str, Board, tuple[Line, ...]], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """A protocol with settings on one track.

    Attributes:
        slug: Name of its page among those of boards.
        boards: Titles and boards of its settings, in the protocol's order.
    """

    slug: str
    title: str
    question: str
    note: str
    boards: tuple[tuple[str, Board], ...]
    tables: tuple[Table, ...]

    def has(self, board: Board) -> bool:
        """Is it the board of one of its settings?"""
        return any(mine is board for _, mine in self.boards)


def make_families(boards: Sequence[Board]) -> list[Family]:
    """Protocols with settings, by name; of newest versions and unchanged tracks."""
    mine = [board for board in boards if board.of_setting and board.latest and not board.changed]
    homes = {id(record): board for board in mine for record in board.records}
    records = [record for board in mine for record in board.records]
    return [_family(members, homes) for members in settings.setting_groups(records)]


def _family(members: Sequence[Record], homes: Mapping[int, Board]) -> Family:
    first = members[0]
    by_title = {t: homes[id(own[0])] for t, own in settings.by_setting(members).items()}
    return Family(
        slug=file_name(first.protocol.partition(":")[0], first.track),
        title=settings.title(members),
        question=notes.question(first),
        note=notes.track_note(first),
        boards=tuple(by_title.items()),
        tables=tuple(_table(each, by_title) for each in settings.make_tables(members)),
    )


def _table(table: TextTable, boards: Mapping[str, Board]) -> Table:
    heads = [column.head for column in (*table.labels, *table.blocks[0].columns)]
    lines = [(row.labels[0].text, line(row, len(heads))[1:]) for row in table.rows]
    return Table(
        label=table.title.rpartition(": ")[2],
        heads=tuple(heads[1:]),
        groups=tuple(
            (title, board, tuple(cells for setting, cells in lines if setting == title))
            for title, board in boards.items()
        ),
        notes=tuple(table.bold_notes()),
    )
