"""Which old models a board's numbers are of: what a reader filters by their quality.

The records of one protocol and track have an old model for each seed. Where there are several, the
page carries the rows of some of them beside those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark.report import notes, numbers, select
from benchmark.report.ranks import places
from benchmark.report.scores import MethodScores, make_table
from leaderboard.boards import Board, share, short
from leaderboard.charts import metric_data

_MOST = 3
"""At most so many parts: each single model, or the worse, the middle and the better ones."""
_MOST_ROWS = 200
"""With more methods and metrics than this the main metrics must do: pages are to stay small."""


@dataclass(frozen=True)
class Part:
    """Old models of like quality.

    Attributes:
        seeds: Theirs.
        low: The worst one's old/old, in the metric that gives the rank.
        high: The best one's.
    """

    seeds: tuple[int, ...]
    low: float
    high: float


def parts(board: Board) -> list[Part]:
    """Old models of a board by their quality, the worst first; none where there is but one."""
    quality: dict[int, float] = {}
    # The bound of a seed is the same in all its records; the independent model's comes first.
    for record in sorted(board.records, key=lambda record: record.method != "independent"):
        value = record.bounds.get("lower", {}).get(board.metric)
        if value is not None:
            quality.setdefault(record.seed, value)
    seeds = sorted(quality, key=lambda seed: (quality[seed], seed))
    n = min(len(seeds), _MOST) if len(seeds) > 1 else 0
    chunks = [seeds[len(seeds) * i // n : len(seeds) * (i + 1) // n] for i in range(n)]
    return [Part(tuple(sorted(c)), quality[c[0]], quality[c[-1]]) for c in chunks]


def label(part: Part, unit: str) -> str:
    """``48.2 (seed 1)``, ``48.2 to 50.1 (seeds 0, 4)``."""
    ends = [numbers.number(value, unit) for value in (part.low, part.high)]
    return f"{' to '.join(dict.fromkeys(ends))} ({notes.seed_words(part.seeds)})"


def olds_data(board: Board) -> list[dict[str, Any]]:
    """For each part its name, and its rows as the page's script reads them, metric by metric."""
    unit = numbers.metric(board.metric).unit
    many = len(board.methods) * len(board.main) > _MOST_ROWS
    keys = tuple(select.metrics(board.records)) if many else board.main
    found = []
    for part in parts(board):
        some = _some(board, part, keys)
        found.append({
            "label": label(part, unit),
            "seeds": " ".join(map(str, part.seeds)),
            "metrics": {key: _ends(some, key) for key in some.main},
            "rows": {
                key: [_compact(some, board, row, key) for row in (*some.bounds, *some.rows(key))]
                for key in some.main
            },
        })  # fmt: skip
    return found


def _some(board: Board, part: Part, keys: Sequence[str]) -> Board:
    """The board of the records of some seeds, ranked among themselves.

    Who can be told apart is said over all seeds only.
    """
    entries = tuple(entry for entry in board.entries if entry.record.seed in part.seeds)
    records = [entry.record for entry in entries]
    known = set(select.metrics(records, "all"))
    main = tuple(key for key in board.main if key in known and key in keys)
    unranked = frozenset(m for m, about in board.facts.items() if not about.ranked)
    found = {key: places(records, key, board.cross, unranked, groups=False) for key in main}
    table = make_table(records, main)
    return replace(board, entries=entries, table=table, main=main, places=found)


def _ends(board: Board, key: str) -> dict[str, Any]:
    found = metric_data(board, key)
    return {name: found[name] for name in ("lower", "upper", "front")}


def _compact(some: Board, board: Board, row: MethodScores, metric: str) -> list[Any]:
    """Kind, name, rank, cells with their intervals, verdicts, gain, seeds unless they are all."""
    place = some.places[metric].get(row.method)
    verdict = row.verdicts.get(metric)
    cells: list[float | None] = []
    for case in board.table.cases:
        cell = row.cells.get((metric, case))
        cells += [None] * 3 if cell is None else map(short, (cell.value, cell.low, cell.high))
    return [
        row.kind, row.full, None if place is None else place.rank, cells,
        None if verdict is None else share(verdict.compatible),
        None if verdict is None else share(verdict.not_hurting),
        None if verdict is None else short(verdict.gain),
        None if row.seeds == some.table.seeds else " ".join(map(str, row.seeds)),
    ]  # fmt: skip
