"""Cost of a strategy in hours, money and bytes, from the user's own numbers."""

from dataclasses import asdict, dataclass
from typing import Any

from benchmark.upgrade.strategies import BACKFILL, Strategy


@dataclass(frozen=True)
class Prices:
    """What the user's deployment is like.

    Attributes:
        items: Of the deployed gallery, which may be larger than the one in files.
        throughput: Items that the new model embeds in a second.
        price: Money for a thousand of these, in any currency.
        number_bytes: Of a number as the index stores it.
    """

    items: int
    throughput: float = 200.0
    price: float = 0.01
    number_bytes: int = 4


@dataclass(frozen=True)
class Cost:
    """Cost of a strategy.

    Attributes:
        hours: Until the gallery is ready: items embedded, or stored vectors converted as fast as
            on this machine.
        money: For embedding the gallery.
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

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def cost_of(strategy: Strategy, prices: Prices, d_old: int, d_new: int) -> Cost:
    """The cost of a strategy; dimensions are those of both models."""
    hours = money = 0.0
    if strategy.name == BACKFILL or (strategy.effort == 3 and strategy.embeds_gallery):
        hours, money = prices.items / prices.throughput / 3600, prices.items / 1000 * prices.price
    elif strategy.fitted is not None and strategy.fitted.direction == "gallery":
        hours = prices.items / strategy.fitted.rows_per_s / 3600
    sizes = {"old": d_old, "new": d_new, "short": min(d_old, d_new)}
    numbers = sum(sizes[space] for space in strategy.stores)
    embedded = strategy.merge.new_embeddings if strategy.merge is not None else 0
    return Cost(
        hours, money, prices.items * numbers * prices.number_bytes, strategy.runs,
        embedded * prices.price, strategy.rebuild, strategy.way_back,
    )  # fmt: skip
