"""Cost of a strategy in hours, money and bytes, by the one cost model."""

from dataclasses import dataclass, replace

from benchmark.metrics.cost_model import Assumptions
from benchmark.upgrade.search.strategies import Strategy


@dataclass(frozen=True)
class StrategyCost:
    """Cost of a strategy.

    Attributes:
        hours: Until the gallery is ready: items embedded, or stored vectors converted as fast as
            on this machine.
        money: For these hours of one machine.
        index_bytes: Of all indexes that it keeps.
        runs: Model runs a query, as a multiple of one; items embedded meanwhile are runs too.
        money_per_1000_queries: For items that are embedded while queries wait.
        rebuild: The index is built anew.
        way_back: The old index is still there.
    """

    hours: float
    money: float
    index_bytes: int
    runs: int
    money_per_1000_queries: float
    rebuild: bool
    way_back: bool


def cost_of(strategy: Strategy, assumed: Assumptions, d_old: int, d_new: int) -> StrategyCost:
    """Count the cost of a strategy; dimensions are those of both models."""
    hours, fit = 0.0, strategy.fitted
    if strategy.effort == 3 and strategy.embeds_gallery:
        hours = assumed.embedding(assumed.items)
    elif fit is not None and fit.direction == "gallery":
        hours = replace(assumed, map_rate=fit.rows_per_s).converting(1.0)
    sizes = {"old": d_old, "new": d_new, "short": min(d_old, d_new)}
    numbers = sum(sizes[space] for space in strategy.stores)
    embedded = strategy.merge.new_embeddings if strategy.merge is not None else 0
    return StrategyCost(
        hours, assumed.money(hours), int(assumed.items) * numbers * assumed.number_bytes,
        strategy.runs, assumed.money(assumed.embedding(1000 * embedded)), strategy.rebuild,
        strategy.way_back,
    )  # fmt: skip
