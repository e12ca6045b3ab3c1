"""Counts of rivals in one gallery, told from those in a sample of it: an empirical Bayes estimate.

A model expects so many sample items to score above each relevant item; so many do. Queries differ
in how the two compare, as some have crowds of near items that no model foresees. The number of
unseen items above a relevant one is the expected number times a factor of its own, which is drawn
from a gamma distribution fitted on all of them, given what the sample shows for it. Without these
factors a mean score comes out too low: scores fall steeply where few rivals stand above, so that
what some queries lose is less than what others gain.
"""

from dataclasses import dataclass

import numpy as np

from benchmark.ranking.arrays import Values

_MIDDLES = np.array([0.0, 0.0, 0.0, 0.0, np.log(4.0), 0.7, np.log(0.05)])
_DEVIATIONS = np.array([0.5, 0.3, 0.25, 0.2, 1.0, 0.3, 1.5])
"""Of the normal distributions that the parameters are drawn to, where the sample says little.

Chosen by hand, while looking at reports on NPL, Cranfield and CISI.
"""
_REDRAWN = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
"""Parameters of one kind of item that a sample of the other does not tell: drawn anew each time."""
_LEAST, _MOST, _MIDDLE = 0.2, 200.0, 10.0
"""Expected numbers between which the parameters change, and where they have their plain value."""
_SHAPES = (0.2, 1e4)
_ROUNDS = 40


@dataclass(frozen=True)
class Counts:
    """For each relevant item, ``[n]``, rivals above it, by kind of item."""

    expected: Values  # in the sample, [n, 2]: items relevant to no query, to some
    seen: Values  # found there, [n, 2]
    all: Values  # expected in the whole gallery, [n]


@dataclass(frozen=True)
class Calibration:
    """A distribution of the numbers of rivals, against those that are expected.

    The factor has the mean ``exp(p0 + p1 x)`` and the shape ``exp(p4 + p5 x)``, x being the
    logarithm of the number expected in the whole gallery; that of items relevant to other queries
    is ``exp(p2 + p3 x)`` times as large. Of the others there are ``exp(p6)`` more than expected,
    wherever a relevant item stands: the unforeseen that come out on top of everything.
    """

    parameters: Values

    @classmethod
    def fitted(
        cls, counts: Counts, rng: np.random.Generator | None = None, start: Values | None = None
    ) -> "Calibration":
        """The most likely one; with ``rng`` one of those that the sample leaves possible."""
        from scipy.optimize import minimize

        middles = _MIDDLES
        if rng is not None:
            middles = middles + _REDRAWN * _DEVIATIONS * rng.standard_normal(len(middles))
        use = counts.all < _MOST
        some = Counts(counts.expected[use], counts.seen[use], counts.all[use])

        def loss(parameters: Values) -> tuple[float, Values]:
            far = (parameters - middles) / _DEVIATIONS
            value, slope = cls(parameters)._likelihood(some)
            return 0.5 * float(far @ far) - value, far / _DEVIATIONS - slope

        found = minimize(
            loss, middles if start is None else start, jac=True, method="L-BFGS-B",
            options={"maxiter": _ROUNDS},
        )  # fmt: skip
        return cls(found.x)

    def parts(self, everywhere: Values) -> tuple[Values, Values, Values, Values]:
        """Mean factor, that of the second kind beside it, shape, the floor's factor, ``[n]``."""
        p, x = self.parameters, _position(everywhere)
        shape = np.clip(np.exp(p[4] + p[5] * x), *_SHAPES)
        floor = (everywhere + np.exp(p[6])) / everywhere
        return np.exp(p[0] + p[1] * x), np.exp(p[2] + p[3] * x), shape, floor

    def _likelihood(self, counts: Counts) -> tuple[float, Values]:
        """Logarithm of the likelihood but for what no parameter changes, and its gradient."""
        from scipy.special import gammaln, psi

        factor, kind, shape, floor = self.parts(counts.all)
        plain, of_kind = counts.expected.T
        few, many = counts.seen.T
        seen = few + many
        rate = shape / factor + plain * floor + of_kind * kind
        value = gammaln(shape + seen) - gammaln(shape) + shape * np.log(shape / factor)
        value += many * np.log(kind) + few * np.log(floor) - (shape + seen) * np.log(rate)
        share = (shape + seen) / rate
        by_factor = share * shape / factor - shape
        by_kind = many - share * of_kind * kind
        by_shape = psi(shape + seen) - psi(shape) + np.log(shape / factor / rate)
        inside = (shape > _SHAPES[0]) & (shape < _SHAPES[1])
        by_shape = np.where(inside, shape * (by_shape + 1 - share / factor), 0.0)
        by_floor = (few / floor - share * plain) * (floor - 1.0)
        x = _position(counts.all)
        rows = [by_factor, x * by_factor, by_kind, x * by_kind, by_shape, x * by_shape, by_floor]
        return float(value.sum()), np.array([row.sum() for row in rows])

    def unseen(self, counts: Counts, expected: Values) -> tuple[Values, Values, Values]:
        """Mean number of unseen rivals given the sample, the shape of its distribution, the factor.

        ``expected`` are rivals among what is not in the sample, ``[n, 2]`` by kind. The factor is
        the mean one of what is foreseen, without the floor; ``[n]`` each.
        """
        factor, kind, shape, floor = self.parts(counts.all)
        seen = counts.seen.sum(axis=1)
        held = counts.expected[:, 0] * floor + counts.expected[:, 1] * kind
        mean = (shape + seen) / (shape / factor + held)
        unseen = expected[:, 0] * floor + expected[:, 1] * kind
        foreseen = expected[:, 0] + expected[:, 1] * kind
        share = foreseen / np.maximum(expected.sum(axis=1), 1e-12)
        return mean * unseen, shape + seen, mean * share


def _position(everywhere: Values) -> Values:
    """Place between the fewest and the most rivals at which parameters are taken."""
    return np.log(np.clip(everywhere, _LEAST, _MOST) / _MIDDLE)


def log_normal(mean: Values, shape: Values, normal: Values) -> Values:
    """Draws of a positive number of this mean whose relative variance is 1 / shape.

    ``normal`` are standard normal draws: the same for related numbers, which then rise together.
    """
    variance = np.log1p(1.0 / shape)
    return np.asarray(mean * np.exp(np.sqrt(variance) * normal - variance / 2))
