"""Mixed adapter: local-drift as it was published, rotations about the origin for each cluster."""

from dataclasses import dataclass
from typing import Literal

import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmark.contract import FittedMap, Trainer, VectorMap, drawing_from
from benchmark.models.closed_form import Routed
from benchmark.training.closed_form import rotation


@dataclass(frozen=True)
class MixedAdapter(VectorMap):
    """A(x) = sum_k w_k A_k x, w = softmax(cos(x, mu_k) / tau), mu_k by k-means.

    A_k is Procrustes of the pairs of cluster k, not centred, however few they are: of fewer than
    dimensions it is one of many. ``local-drift`` rotates about each cluster's means, and gives a
    small cluster the map of all. Read as there.
    """

    paper = "Politzki, Local drift adapters, preprint, 2026"
    fidelity = "paper"
    variant_of = "local-drift"
    reads_old_head = False
    variants = {"query": {"direction": "query"}}
    ranges = {"clusters": "[1, inf)", "tau": "(0, inf)"}

    direction: Literal["gallery", "query"] = "gallery"  # published code: stored vectors are mapped
    clusters: int = 32  # published configuration, base.yaml; 2 to 64 were tried
    tau: float = 0.1  # published configuration, base.yaml

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """K-means of the sources and a rotation for each cluster, in float64."""
        with drawing_from(trainer.seed, "mixed-adapter"):
            seed = int(torch.randint(2**31, ()))
        means = KMeans(min(self.clusters, len(source)), n_init=4, random_state=seed)
        with threadpool_limits(1):  # sums would depend on the number of threads
            label = torch.from_numpy(means.fit_predict(source.double().numpy()))
        turns = []
        for k in range(means.n_clusters):
            own = label == k
            rows = own if own.any() else own | True  # of equal sources some clusters have none
            turns.append(rotation(source[rows], target[rows], centred=False))
        weights, biases = (torch.stack(part).float() for part in zip(*turns, strict=True))
        return Routed.of(torch.from_numpy(means.cluster_centers_), weights, biases, self.tau), {}
