"""Monotone maps of one model's scores to another's, fitted on scores of the same pairs of items."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from benchmark.ranking.score_scale import Scale

ScaleKind = Literal["isotonic", "z-score", "min-max"]
Scores = NDArray[np.float64]

_KNOTS = 257
_SLOPE = 1e-3
"""Weight of the straight line in an isotonic map, so that items on a step keep their order."""


def scores_between(vectors: Tensor, *, cosine: bool) -> Scores:
    """Cosines, or negative squared distances, of all pairs of vectors ``[n, d]``, each once.

    They are ``[n (n - 1) / 2]`` float64.
    """
    unit = F.normalize(vectors.double()) if cosine else vectors.double()
    table = unit @ unit.T
    if not cosine:
        table = 2 * table - table.diag()[:, None] - table.diag()
    scores: Scores = table.numpy()[np.triu_indices(len(table), 1)]
    return scores


def fit_scale(kind: ScaleKind, old: Scores, new: Scores) -> Scale:
    """The map of old scores ``[n]`` to new ones of the same pairs, ``[n]``.

    ``z-score`` and ``min-max`` are the straight lines that make mean and deviation, or the ends,
    equal. ``isotonic`` is the regression of the new score on the old one at 257 places.
    """
    from sklearn.isotonic import isotonic_regression

    if kind == "min-max":
        low, goal, spread, rise = old.min(), new.min(), np.ptp(old), np.ptp(new)
    else:
        low, goal, spread, rise = old.mean(), new.mean(), old.std(), new.std()
    if not spread > 0:  # all old scores are one
        return Scale.checked(low, 1.0, [goal, goal + 1.0])
    line = Scale.checked(low, spread, [goal, goal + rise])
    if kind != "isotonic":
        return line
    order = np.argsort(old, kind="stable")
    places = np.linspace(old[order[0]], old[order[-1]], _KNOTS)
    steps = np.interp(places, old[order], isotonic_regression(new[order]))
    straight = goal + (places - low) / spread * rise
    values = np.maximum.accumulate((1 - _SLOPE) * steps + _SLOPE * straight)
    return Scale.checked(places[0], places[1] - places[0], values)
