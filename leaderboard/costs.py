"""Costs of methods beside their scores, from records."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from benchmark.records.record import Record
from benchmark.report.model_size import added_parameters

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
    """What a method costs: the median over its records of each number known.

    Args:
        records: Its records.
        alone: Those of ``independent``, whose model says how many parameters are added.
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
            # Records of schema 1 do not say it themselves.
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


def cost_words(costs: Mapping[str, float], keys: Iterable[str] = COSTS) -> list[str]:
    """Some costs with their names, ``1.23x training cost``."""
    return [f"{cost_text(key, costs[key])} {COSTS[key]}" for key in keys if key in costs]
