"""Several models in one index, told by what varies within its clusters.

Texts or pictures of another kind make clusters of their own, too. But within the clusters of one
model the same directions vary: the covariance of one is related to that of another, little where
they show very different things. Two models have no direction in common, so that covariances of
their clusters are unrelated, as random ones are. So groups of clusters are of several models where
they are less related than anything within a group, by far.
"""

from dataclasses import dataclass

import numpy as np

from benchmark.ranking.arrays import Floats, Ints, Values

GAP, APART = 0.45, 0.25
"""Relation of two models' groups, at most: as a part of the least one within a group, and of the
usual one. Chosen on Cranfield, Banking77 and Grocery, where these are 0.64 and 0.32 or more by one
model, 0.31 and 0.21 or less with a tenth by another; ``bench pairs mixed`` shows what they tell."""
USUAL = 0.18
"""Usual relation of two clusters, at least; of random ones it is less."""
_MODELS = 3  # groups that may be models, at most
_POWER = 0.25
"""Of covariances that are compared: a few directions would outweigh all others otherwise."""
_SIZE, _MOST = 120, 32  # vectors of a cluster, about; clusters at most
_FEW = 40  # vectors below which a cluster tells nothing
_SURE = 0.1  # least correlation of a cluster's two halves that says what varies within
_FEWEST = 32
"""Numbers of a vector, at least. On a sphere a cluster lacks the direction of its own centre, much
of what varies in few numbers, so that clusters of one model look unrelated: from 28 numbers down
texts of one real model are told as several, ever more often."""
_LEAST = 0.02  # share of the vectors that is told as another model, at least


@dataclass(frozen=True)
class Mixture:
    """Shares of models in an index."""

    share: float | None  # that is not of the largest model; None where that cannot be told
    why: str = ""  # it cannot be told

    @property
    def odd(self) -> bool:
        """True where there is more than one."""
        return self.share is not None and self.share >= _LEAST


def mixture(x: Floats) -> Mixture:
    """Tell whether directions ``[n, dim]`` are of one model."""
    if why := _too_little(x):
        return Mixture(None, why)
    members = _clusters(x)
    if len(members) < 3:
        return Mixture(None, "they make no clusters")
    relation = _relation([(_spectrum(x[m[::2]]), _spectrum(x[m[1::2]])) for m in members])
    if relation is None:
        return Mixture(None, "nothing in particular varies within clusters")
    group = _groups(relation)
    if group is None:
        return Mixture(None, "what varies within clusters is another thing in each")
    sizes = np.bincount(group, [len(rows) for rows in members])
    return Mixture(1 - float(sizes.max() / sizes.sum()))


def _too_little(x: Floats) -> str:
    """The reason why vectors cannot tell; nothing where they may."""
    if len(x) < 4 * _SIZE:
        return f"{len(x)} vectors of {x.shape[1]} numbers"
    if x.shape[1] < _FEWEST:
        return f"{x.shape[1]} numbers a vector, expected {_FEWEST} or more"
    return "all are the same" if np.ptp(x, axis=0).max() <= 1e-6 else ""


def _clusters(x: Floats) -> list[Ints]:
    """Rows of each cluster, in random order."""
    from sklearn.cluster import KMeans

    k = int(np.clip(len(x) // _SIZE, 2, _MOST))
    label = KMeans(k, n_init=1, random_state=0).fit_predict(x)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(label == c) for c in range(k)]
    return [rng.permutation(rows) for rows in members if len(rows) >= _FEW]


def _spectrum(x: Floats) -> tuple[Values, Values]:
    """A power of the covariance: its values ``[k]``, and their directions ``[k, dim]``."""
    centred = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    values, directions = np.linalg.svd(centred, full_matrices=False)[1:]
    there = values > 1e-5 * values[0]
    return values[there] ** (2 * _POWER), directions[there]


def _product(left: tuple[Values, Values], right: tuple[Values, Values]) -> float:
    """Inner product of two of them, without what varies evenly."""
    (a, u), (b, v) = left, right
    return float(a @ (u @ v.T) ** 2 @ b - a.sum() * b.sum() / u.shape[1])


def _relation(halves: list[tuple[tuple[Values, Values], tuple[Values, Values]]]) -> Values | None:
    """Correlation of clusters in what varies within, freed of its noise, ``[k, k]``.

    Two halves of a cluster have the same: their correlation says how much of it is noise. None
    where most of it is.
    """
    own = np.array([_product(a, b) for a, b in halves])
    norms = np.array([_product(a, a) * _product(b, b) for a, b in halves])
    noisy = own / np.sqrt(np.maximum(norms, 1e-300))
    if np.median(noisy) < _SURE:
        return None
    scale = np.sqrt(np.maximum(own, 1e-3 * np.median(own)))
    out = np.eye(len(halves))
    for i, left in enumerate(halves):
        for j, right in enumerate(halves[:i]):
            mean = np.mean([_product(a, b) for a in left for b in right])
            out[i, j] = out[j, i] = mean / (scale[i] * scale[j])
    # What tells nothing of itself stays with the largest.
    unsure = noisy < _SURE / 2
    out[unsure], out[:, unsure] = 1.0, 1.0
    return out


def _groups(relation: Values) -> Ints | None:
    """The model of each cluster, ``[k]``, from 0; None where nothing is common to them.

    Clusters are joined by the average of their relations, as one that has some of both models is
    related to either. The last joints are those of models where a gap lies before them.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    k = len(relation)
    apart = np.clip(1 - relation, 0, None)[np.triu_indices(k, 1)]
    tree = linkage(apart, "average")
    joined = 1 - tree[::-1, 2]
    others = relation[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    usual = float(np.median(np.quantile(others, 0.75, axis=1)))
    if usual < USUAL:
        return None
    for models in range(min(_MODELS, k - 1), 1, -1):
        between, within = joined[models - 2], joined[models - 1]
        if between < min(GAP * within, APART * usual):
            return np.asarray(fcluster(tree, models, "maxclust") - 1, np.int64)
    return np.zeros(k, np.int64)
