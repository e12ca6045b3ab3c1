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
        runs: Model runs a query.
        embedded: Items that are embedded while a query waits.
        money_per_1000_queries: For these items.
        rebuild: The index is built anew.
        old_bytes: Of the old index, which is the way back as long as it is kept beside; 0 where
            it is one of those in use.
    """

    hours: float
    money: float
    index_bytes: int
    runs: int
    embedded: int
    money_per_1000_queries: float
    rebuild: bool
    old_bytes: int


def cost_of(strategy: Strategy, assumed: Assumptions, d_old: int, d_new: int) -> StrategyCost:
    """Count the cost of a strategy; dimensions are those of both models."""
    hours, fit = 0.0, strategy.fitted
    if strategy.effort == 3 and strategy.embeds_gallery:
        hours = assumed.embedding(assumed.items)
    elif fit is not None and fit.direction == "gallery":
        hours = replace(assumed, map_rate=fit.rows_per_s).converting(1.0)
    sizes = {"old": d_old, "new": d_new, "short": min(d_old, d_new)}
    number = int(assumed.items) * assumed.number_bytes
    embedded = strategy.merge.new_embeddings if strategy.merge is not None else 0
    return StrategyCost(
        hours, assumed.money(hours), number * sum(sizes[space] for space in strategy.stores),
        strategy.runs, embedded, assumed.money(assumed.embedding(1000 * embedded)),
        strategy.rebuild, 0 if "old" in strategy.stores else number * d_old,
    )  # fmt: skip
