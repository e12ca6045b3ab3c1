"""Which old models a board's numbers are of, for readers who filter by their quality.

The records of one protocol and track have an old model for each seed. Where there are several, the
page carries the rows of some of them beside those of all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmark.report import notes, numbers, select
from benchmark.report.scores import make_table
from leaderboard.boards import Board, number_rows
from leaderboard.charts import metric_data

_MOST = 3
"""At most so many parts: each single model, or the worse, the middle and the better ones."""
_MOST_ROWS = 200
"""With more methods and metrics than this the main metrics must do: pages are to stay small."""


def old_models_data(board: Board) -> list[dict[str, Any]]:
    """Name, seeds, metrics and rows of the worst old models, the next, ...; of one none."""
    quality: dict[int, float] = {}
    # The bound of a seed is the same in all its records; the independent model's comes first.
    for record in sorted(board.records, key=lambda record: record.method != "independent"):
        value = record.bounds.get("lower", {}).get(board.metric)
        if value is not None:
            quality.setdefault(record.seed, value)
    seeds = sorted(quality, key=lambda seed: (quality[seed], seed))
    n = min(len(seeds), _MOST) if len(seeds) > 1 else 0
    parts = [seeds[len(seeds) * i // n : len(seeds) * (i + 1) // n] for i in range(n)]
    return [_part(board, part, (quality[part[0]], quality[part[-1]])) for part in parts]


def _part(board: Board, seeds: Sequence[int], quality: tuple[float, float]) -> dict[str, Any]:
    unit = numbers.metric(board.metric).unit
    ends = dict.fromkeys(numbers.number(value, unit) for value in quality)
    some = _some(board, seeds)
    metrics = {key: metric_data(some, key) for key in some.metrics}
    return {
        "label": f"{' to '.join(ends)} ({notes.seed_words(sorted(seeds))})",
        "metrics": {
            key: {name: about[name] for name in ("lower", "upper", "front")}
            for key, about in metrics.items()
        },
        "rows": number_rows(some),
    }


def _some(board: Board, seeds: Sequence[int]) -> Board:
    """The board of the records of some seeds; with fewer than three nothing has a rank."""
    entries = tuple(entry for entry in board.entries if entry.record.seed in seeds)
    records = [entry.record for entry in entries]
    many = len(board.methods) * len(board.metrics) > _MOST_ROWS
    shown = set(select.metrics(board.records)) if many else set(board.metrics)
    known = shown & set(select.metrics(records, "all"))
    metrics = tuple(key for key in board.metrics if key in known)
    # The columns of the whole board, whichever cases these records have.
    table = replace(make_table(records, metrics), cases=board.table.cases)
    return replace(board, entries=entries, table=table, metrics=metrics)
