"""Orders of methods in papers beside measured ones, counted by pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from benchmark.config import registry
from benchmark.records.published import Number, Published
from benchmark.studies.transfer.statistics import same_order

_CASES = ("new/old", "v2/v1")


@dataclass(frozen=True)
class Agreement:
    """One table of a paper, one metric of the day of the update, and scores of ours.

    Attributes:
        says: Methods as the paper has them, best first, with its numbers.
        measured: The same methods as measured, best first.
        same: Pairs in the same order, which a measured tie is not; ``pairs`` are all that the paper
            puts in an order.
    """

    paper: str
    table: str
    metric: str
    says: tuple[tuple[str, str], ...]
    measured: tuple[tuple[str, float], ...]
    same: int
    pairs: int

    @property
    def verdict(self) -> str:
        """The same order, or in so many pairs."""
        if self.same == self.pairs:
            return "yes"
        return "no" if not self.same else f"{self.same} of {self.pairs} pairs"


def paper_tables(published: Published) -> dict[tuple[str, ...], dict[str, Number]]:
    """Cross-tests by paper, table, data, protocol and metric: method -> number.

    Controls, and rows of other models than the first of a table are left out.
    """
    found: dict[tuple[str, ...], dict[str, Number]] = {}
    models: dict[tuple[str, ...], tuple[str, str]] = {}
    for number in published.numbers:
        if number.case not in _CASES or registry.is_control(number.method):
            continue
        key = (number.paper, number.table, number.dataset, number.protocol, number.metric)
        pair = models.setdefault(key, (number.old_model, number.new_model))
        if pair == (number.old_model, number.new_model):
            found.setdefault(key, {}).setdefault(number.method, number)
    return found


def agree(mine: Mapping[str, Number], measured: Mapping[str, float]) -> Agreement | None:
    """Compare one table with scores of methods; None where they order no two methods of both."""
    scores = {m: score for m, score in measured.items() if m in mine}
    said = {method: mine[method].value for method in scores}
    pairs = [(a, b) for a, b in combinations(scores, 2) if said[a] != said[b]]
    if not pairs:
        return None
    first = next(iter(mine.values()))
    return Agreement(
        first.paper, f"{first.table}, {first.dataset}", first.metric,
        tuple((m, mine[m].printed) for m in sorted(said, key=lambda m: (-said[m], m))),
        tuple((m, scores[m]) for m in sorted(scores, key=lambda m: (-scores[m], m))),
        sum(same_order(said[a] - said[b], scores[a] - scores[b]) for a, b in pairs), len(pairs),
    )  # fmt: skip
