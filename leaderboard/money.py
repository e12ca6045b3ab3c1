"""Hours and money of an update by a measured method, by the cost model of ``bench upgrade``."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmark.metrics.cost_model import Assumptions


@dataclass(frozen=True)
class Bill:
    """Hours of one machine, part by part."""

    training: float  # of the new model, or of the map
    embedding: float  # of the pairs by the new model
    converting: float  # of the stored index

    @property
    def hours(self) -> float:
        """All of them."""
        return self.training + self.embedding + self.converting


def bill(costs: Mapping[str, float], assumed: Assumptions, *, trains: bool) -> Bill:
    """What an update takes beside the new model itself.

    Args:
        costs: See :func:`leaderboard.costs.method_costs`; what is unknown counts nothing.
        assumed: The deployment.
        trains: Is the new model trained by the method? Then only what that takes beyond a training
            without constraint counts, and no pairs are embedded.

    Example:
        >>> fct = {"training_cost": 1.5, "convert_multiply_adds": 720.0}
        >>> assumed = Assumptions(items=1e6, throughput=100, pairs=36e4, map_rate=1e5)
        >>> bill(fct, assumed, trains=False)
        Bill(training=12.0, embedding=1.0, converting=2.0)
    """
    training = max(costs.get("training_cost", 1.0) - 1.0, 0.0) * assumed.training_hours
    pairs = 0.0 if trains else min(assumed.pairs, assumed.items)
    converting = assumed.converting(costs.get("convert_multiply_adds", 0.0))
    return Bill(training, assumed.embedding(pairs), converting)


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
