"""What it takes to put a method on the board, from the records of those that are on it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.metrics.cost_model import Assumptions
from benchmark.records.record import Record
from benchmark.report.ranks import LEAST_MODELS
from leaderboard.boards import Board
from leaderboard.money import hours_words, money_words


@dataclass(frozen=True)
class Effort:
    """Hours of running one method under some protocols with three seeds."""

    protocols: int
    hours: float
    most: float

    @property
    def words(self) -> str:
        """``3.2 h, at most 5.0 h``."""
        return f"{hours_words(self.hours)}, of the slowest {hours_words(self.most)}"

    @property
    def money(self) -> str:
        """At the chooser's price of an hour."""
        return money_words(Assumptions().money(self.hours))


def effort(boards: Sequence[Board]) -> Effort | None:
    """Median and most over the methods of the hours that their own stages took; None if unknown.

    Stages that all methods share (data, the old model, the independent one) are counted once more
    for each, as somebody who begins with an empty store runs them.
    """
    of_board = [[_hours(r) for r in b.records if r.status == "done"] for b in boards]
    known = [hours for hours in of_board if any(hours)]
    if not known:
        return None
    middle = sum(statistics.median(h for h in hours if h) for hours in known)
    most = sum(map(max, known))
    return Effort(len(known), LEAST_MODELS * middle, LEAST_MODELS * most)


def _hours(record: Record) -> float:
    return sum(stage.seconds or 0.0 for stage in record.run.stages.values()) / 3600
