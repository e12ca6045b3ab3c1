"""Several models in one index, told by what varies within its clusters.

Texts or pictures of another kind make clusters of their own, too. But within the clusters of one
model the same directions vary: the covariance of one is much like that of another. Two models have
no direction in common, so that covariances of their clusters are unrelated, as random ones are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking.arrays import Floats, Ints

RELATED = 0.17
"""Least mean relation of groups of clusters of one model. On Cranfield, CISI and NPL by four models
clusters of one model are related by 0.3 to 0.5 in the middle, and by two models by 0.09 at most."""
_MODELS = 3
"""Groups that may be models; where there are more, what clusters are about makes them."""
_SIZE, _MOST = 120, 24
"""Vectors of a cluster, about; clusters at most."""
_FEW = 40
"""Vectors below which a cluster tells nothing."""
_SURE = 0.1
"""Least correlation of a cluster's two halves that says what varies within."""
_LEAST = 0.02
"""Share of the vectors that is told as another model, at least."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """Shares of models in an index.

    Attributes:
        share: Of vectors that are not of the largest model; None where that cannot be told.
        why: The reason in that case.
        other: Rows that are not of the largest model, ascending.
    """

    share: float | None
    why: str = ""
    other: Ints | None = None

    @property
    def odd(self) -> bool:
        """True where there is more than one."""
        return self.share is not None and self.share >= _LEAST


def mixture(x: Floats) -> Mixture:
    """Tell whether directions ``[n, dim]`` are of one model."""
    if len(x) < 4 * _SIZE or x.shape[1] < 8:
        return Mixture(None, f"{len(x)} vectors of {x.shape[1]} numbers")
    if np.ptp(x, axis=0).max() <= 1e-6:
        return Mixture(None, "all are the same")
    members, covariances = _clusters(x)
    if len(members) < 3:
        return Mixture(None, "they make no clusters")
    relation = _relation(covariances)
    if relation is None:
        return Mixture(None, "nothing in particular varies within clusters")
    from scipy.cluster.hierarchy import fcluster, linkage

    # By the average, as a cluster that has some of both models is related to either.
    apart = np.clip(1 - relation, 0, None)[np.triu_indices(len(members), 1)]
    group = fcluster(linkage(apart, "average"), 1 - RELATED, "distance")
    if group.max() > _MODELS:
        return Mixture(None, "what varies within clusters is another thing in many of them")
    sizes = np.bincount(group, [len(rows) for rows in members])
    other = [rows for rows, its in zip(members, group, strict=True) if its != sizes.argmax()]
    share = 1 - float(sizes.max() / sizes.sum())
    return Mixture(share, other=np.sort(np.concatenate(other)) if other else np.empty(0, np.int64))


def _clusters(x: Floats) -> tuple[list[Ints], list[tuple[Values, Values]]]:
    """Rows of each cluster, and the covariances of its halves without what varies evenly."""
    from sklearn.cluster import KMeans

    k = int(np.clip(len(x) // _SIZE, 2, _MOST))
    label = KMeans(k, n_init=1, random_state=0).fit_predict(x)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(label == c) for c in range(k)]
    members = [rng.permutation(rows) for rows in members if len(rows) >= _FEW]
    return members, [(_shape(x[rows[::2]]), _shape(x[rows[1::2]])) for rows in members]


def _shape(x: Floats) -> Values:
    covariance = np.cov(x.T.astype(np.float64))
    return np.asarray(covariance - np.trace(covariance) / len(covariance) * np.eye(len(covariance)))


def _relation(covariances: list[tuple[Values, Values]]) -> Values | None:
    """Correlation of the covariances of clusters, freed of their noise, ``[k, k]``.

    Two halves of a cluster have the same one: their correlation says how much of it is noise. None
    where most of it is.
    """
    halves = np.array([[half.ravel() for half in pair] for pair in covariances])
    own = (halves[:, 0] * halves[:, 1]).sum(axis=1)
    noisy = own / np.linalg.norm(halves, axis=2).prod(axis=1)
    if np.median(noisy) < _SURE:
        return None
    whole = halves.mean(axis=1)
    scale = np.sqrt(np.maximum(own, 1e-3 * np.median(own)))
    out = whole @ whole.T / np.outer(scale, scale)
    # What tells nothing of itself stays with the largest.
    unsure = noisy < _SURE / 2
    out[unsure], out[:, unsure] = 1.0, 1.0
    return np.asarray(out)
