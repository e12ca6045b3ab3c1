"""Costs of methods beside their scores, in hours and money too, and of putting one on the board."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.metrics.cost_model import Assumptions
from benchmark.records.record import Record
from benchmark.report.ranks import LEAST_MODELS

COSTS = {
    "training_cost": "training cost",
    "added_parameters": "added parameters",
    "bytes_before": "bytes an item",
    "bytes_after": "bytes after the update",
    "convert_multiply_adds": "multiply-adds to convert",
    "query_multiply_adds": "added multiply-adds a query",
    "multiply_adds": "multiply-adds an image",
    "model_runs": "model runs a query",
    "indexes": "indexes kept",
    "new_embeddings": "new embeddings a query",
}
"""Costs in words, in reading order."""


def method_costs(records: Sequence[Record], alone: Sequence[Record] = ()) -> dict[str, float]:
    """Costs of a method: the median over its records of each number known.

    ``alone`` are those of ``independent``, whose model says how many parameters are added.
    """
    beside = {(r.seed, str(r.changed)): r for r in alone if r.status == "done"}
    values: dict[str, list[float]] = {}
    for record in records:
        if record.status != "done":
            continue
        name, model = next(iter(record.models.items()))
        side = record.side.generations.get(name) if record.side else None
        known = {
            "training_cost": record.run.training_cost,
            "bytes_before": 4.0 * model.dim + (side.bytes if side else 0),
            **record.cost.model_dump(exclude_none=True),
        }
        if "added_parameters" in known:
            same = beside.get((record.seed, str(record.changed)))
            known["added_parameters"] = added_parameters(record, same)
        for key, value in known.items():
            if value is not None:
                values.setdefault(key, []).append(float(value))
    return {key: statistics.median(values[key]) for key in COSTS if key in values}


def fit_multiply_adds(record: Record) -> float:
    """Multiply-adds of fitting a record's map: a forward and a backward pass, which is two more.

    Steps of the recipe are counted, which is more than a map in closed form takes.
    """
    cost, recipe = record.cost, record.recipe
    pairs = [size.images for size in record.dataset.generations.values()]
    if not pairs:
        return 0.0
    one = max(cost.convert_multiply_adds or 0.0, cost.query_multiply_adds or 0.0)
    return 3.0 * one * recipe.map_steps(pairs[-1]) * min(recipe.transform_batch, pairs[-1])


def typical_training_costs(records: Iterable[Record]) -> dict[str, float]:
    """Method -> the median of its training costs over all boards.

    On one board it differs by as much as the processor's load makes it.
    """
    found: dict[str, list[float]] = {}
    for record in records:
        if record.status == "done" and record.run.training_cost is not None and not record.changed:
            found.setdefault(record.method, []).append(record.run.training_cost)
    return {method: statistics.median(values) for method, values in found.items()}


def cost_text(key: str, value: float) -> str:
    """A cost as people read it.

    Example:
        >>> cost_text("training_cost", 1.234), cost_text("added_parameters", 5553216.0)
        ('1.23x', '5.6 M')
    """
    if key == "training_cost":
        return f"{value:.2f}x"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size or (abs(value) >= size and unit != "k"):
            return f"{value / size:.1f} {unit}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def cost_words(costs: Mapping[str, float]) -> list[str]:
    """Costs with their names, ``1.23x training cost``."""
    return [f"{cost_text(key, costs[key])} {COSTS[key]}" for key in COSTS if key in costs]


def hours_words(hours: float) -> str:
    """Hours as people read them.

    Example:
        >>> hours_words(0.004), hours_words(0.5), hours_words(3.24), hours_words(55.6)
        ('under a minute', '30 min', '3.2 h', '56 h')
    """
    if hours < 1 / 60:
        return "under a minute" if hours > 0 else "no time"
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.1f} h" if hours < 10 else f"{hours:,.0f} h"


def money_words(money: float) -> str:
    """Money as people read it.

    Example:
        >>> money_words(6.48), money_words(0.002), money_words(2000)
        ('$6.48', 'under $0.01', '$2,000')
    """
    if money < 0.01:
        return "under $0.01" if money > 0 else "$0"
    return f"${money:,.0f}" if money >= 100 else f"${money:,.2f}"


def bill_words(hours: float, assumed: Assumptions) -> str:
    """Hours and money.

    Example:
        >>> bill_words(3.24, Assumptions(price=2.0)), bill_words(0.0, Assumptions())
        ('3.2 h of one machine, $6.48', 'no extra machine time')
    """
    if not hours:
        return "no extra machine time"
    return f"{hours_words(hours)} of one machine, {money_words(assumed.money(hours))}"


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


def effort(boards: Iterable[Sequence[Record]]) -> Effort | None:
    """Median and most over the methods of the hours that their own stages took; None if unknown.

    Stages that all methods share (data, the old model, the independent one) are counted once more
    for each, as somebody who begins with an empty store runs them.
    """
    of_board = [
        [
            sum(stage.seconds or 0.0 for stage in record.run.stages.values()) / 3600
            for record in records
            if record.status == "done"
        ]
        for records in boards
    ]
    known = [hours for hours in of_board if any(hours)]
    if not known:
        return None
    middle = sum(statistics.median(h for h in hours if h) for hours in known)
    most = sum(map(max, known))
    return Effort(len(known), LEAST_MODELS * middle, LEAST_MODELS * most)


def added_parameters(record: Record, alone: Record | None) -> int | None:
    """Parameters that a method adds: its parts', and its model's beyond the independent one's.

    ``alone`` is the record of ``independent`` beside it; without one, models count as alike. A
    negative result means that the method's model is the smaller one. None where the other record
    has other backbones: one of an earlier version may stand beside a newer one.
    """
    if alone is not None and _backbones(alone) != _backbones(record):
        return None
    parts = record.cost.added_parameters or 0
    independent = None if alone is None else alone.cost.parameters
    return parts if independent is None else parts + (record.cost.parameters or 0) - independent


def _backbones(record: Record) -> dict[str, str | None]:
    return {name: model.backbone for name, model in record.models.items()}
