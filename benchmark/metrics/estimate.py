"""A number with its interval: the one type that reports, tables and pages take."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its 95 % interval.

    Attributes:
        value: The number; None where it is undefined.
        low: Lower end; None where nothing bounds the number below.
        high: Upper end, likewise.
        sampling: 1.96 standard errors of what a sample of the gallery adds to the error of the
            number; None where nothing is estimated from a sample.

    Example:
        >>> gain = Estimate.of(0.3, (0.1, 0.5))
        >>> gain.ends, gain.is_above(0.0), gain.is_above(0.2)
        ((0.1, 0.5), True, False)
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    sampling: float | None = None

    @classmethod
    def of(
        cls,
        value: float | None,
        ends: Sequence[float | None] | None = None,
        sampling: float | None = None,
    ) -> "Estimate":
        """Build one from both ends together, None for neither."""
        low, high = ends or (None, None)
        return cls(value, low, high, sampling)

    @classmethod
    def of_draws(cls, value: float, draws: NDArray[np.float64]) -> "Estimate":
        """A value with the middle 95 % of its draws; without an interval where there are none."""
        return cls.of(value, np.quantile(draws, [0.025, 0.975]).tolist() if len(draws) else None)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends of the interval; None where one is missing."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def known(self) -> float:
        """The value where it is defined; a ValueError where it is not."""
        if self.value is None:
            raise ValueError("value: expected a number, got none")
        return self.value

    def is_above(self, least: float) -> bool:
        """Compare the whole interval with a number; False where it has no lower end."""
        return self.low is not None and self.low > least

    def is_below(self, most: float) -> bool:
        """Compare the whole interval with a number; False where it has no upper end."""
        return self.high is not None and self.high < most
