"""The one cost model: what a deployment is assumed to be like, and what work takes there.

The board, its chooser and ``bench upgrade`` count by it; ``chooser.js`` has the same arithmetic for
values that a reader changes. It imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_HOUR = 3600.0
LEAST_EXTRA = 0.05
"""Share of a plain training's time that repeats differ by: less than this more counts nothing."""


@dataclass(frozen=True)
class Assumptions:
    """A deployment; every value is a default that whoever knows better changes."""

    items: float = 100e6  # of the stored index
    throughput: float = 500.0  # items that one machine embeds by the new model in a second
    price: float = 2.0  # money for an hour of such a machine, in any currency
    training_hours: float = 24.0  # of training the new model once, without any constraint
    pairs: float = 1e6  # items embedded by both models, that a map is fitted on
    map_rate: float = 20e9  # multiply-adds of a map that one machine does in a second

    def embedding(self, items: float) -> float:
        """Hours in which one machine embeds so many items by the new model.

        Example:
            >>> Assumptions(throughput=100.0).embedding(36e4)
            1.0
        """
        return items / self.throughput / _HOUR

    def converting(self, multiply_adds: float) -> float:
        """Hours in which one machine converts the stored index, by a map's multiply-adds an item.

        Who has measured how many items a second a map converts passes 1 and that as ``map_rate``.
        """
        return self.items * multiply_adds / self.map_rate / _HOUR

    def money(self, hours: float) -> float:
        """Money for so many hours of one machine."""
        return hours * self.price

    def updating(self, costs: Mapping[str, float], *, trains: bool, fitted: bool = True) -> float:
        """Hours that an update by a measured method takes beside the new model itself.

        Args:
            costs: ``training_cost``, the processor time of training over one without constraint,
                ``fit_multiply_adds`` of all steps that fit a map, and ``convert_multiply_adds`` of
                an item; what is unknown counts nothing.
            trains: Is the new model trained by the method? Then only what that takes beyond a
                training without constraint counts, and no pairs are embedded.
            fitted: Something is fitted on pairs of vectors; else none are embedded.

        Example:
            >>> fct = {"fit_multiply_adds": 36e7, "convert_multiply_adds": 720.0}
            >>> assumed = Assumptions(items=1e6, throughput=100, pairs=36e4, map_rate=1e5)
            >>> assumed.updating(fct, trains=False)  # 1 of fitting, 1 of embedding, 2
            4.0
            >>> assumed.updating({"training_cost": 1.5}, trains=True)
            12.0
        """
        converting = self.converting(costs.get("convert_multiply_adds", 0.0))
        if trains:
            extra = costs.get("training_cost", 1.0) - 1.0
            return (extra * self.training_hours if extra >= LEAST_EXTRA else 0.0) + converting
        pairs = min(self.pairs, self.items) if fitted else 0.0
        fitting = costs.get("fit_multiply_adds", 0.0) / self.map_rate / _HOUR
        return fitting + self.embedding(pairs) + converting
