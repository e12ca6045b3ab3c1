"""Local-drift: a rotation for each cluster of vectors, mixed by nearness."""

from dataclasses import dataclass
from typing import Literal

import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.contract import FittedMap, Portable, Trainer, VectorMap, drawing_from
from benchmark.training.closed_form import rotation


class Routed(Portable):
    """sum_k w_k(x) (A_k x + b_k), w = softmax of the cosines with the centres over ``tau``."""

    def __init__(self, clusters: int, dim_in: int, dim_out: int, tau: float) -> None:
        super().__init__()
        self.tau = tau
        self.centre = nn.Parameter(torch.zeros(clusters, dim_in), requires_grad=False)
        self.weight = nn.Parameter(torch.zeros(clusters, dim_out, dim_in), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(clusters, dim_out), requires_grad=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        cosine = F.normalize(vectors) @ F.normalize(self.centre).T
        share = (cosine / self.tau).softmax(dim=1)  # [n, clusters]
        out = share @ self.bias
        for k in range(len(self.weight)):
            out = out + share[:, k : k + 1] * F.linear(vectors, self.weight[k])
        return out


@dataclass(frozen=True)
class LocalDrift(VectorMap):
    """A(x) = sum_k w_k A_k(x), w = softmax(cos(x, mu_k) / tau), mu_k by k-means.

    A_k is Procrustes about the means of cluster k; with one cluster this is ``procrustes``. Read:
    jonathan-politzki/mixed-adapter at 9c9228f, src/ and configs/base.yaml, and the paper at
    3ab4d7f. There A_k may also be affine maps and networks that are trained; the stored vectors are
    mapped, our ``gallery``. A cluster with fewer pairs than dimensions has the map of all.
    """

    paper = "Politzki, Local drift adapters, preprint, 2026"
    reads_old_head = False
    variants = {"gallery": {"direction": "gallery"}}
    ranges = {"clusters": "[1, inf)", "tau": "(0, inf)"}

    direction: Literal["gallery", "query"] = "query"  # ours: the gallery is not touched
    clusters: int = 32  # published configuration, base.yaml; 2 to 64 were tried
    tau: float = 0.1  # published configuration, base.yaml

    def fit_vectors(self, source: Tensor, target: Tensor, trainer: Trainer) -> FittedMap:
        """K-means of the sources and a rotation for each cluster, in float64."""
        n, d_in = source.shape
        clusters = min(self.clusters, n)
        with drawing_from(trainer.seed, "local-drift"):
            seed = int(torch.randint(2**31, ()))
        with threadpool_limits(1):  # sums would depend on the number of threads
            found = KMeans(clusters, n_init=4, random_state=seed).fit(source.double().numpy())
        label = torch.from_numpy(found.labels_)
        routed = Routed(clusters, d_in, target.shape[1], self.tau)
        routed.centre.copy_(torch.from_numpy(found.cluster_centers_))
        for k in range(clusters):
            own = label == k
            rows = own if own.sum() >= max(d_in, target.shape[1]) else torch.ones_like(own)
            weight, bias = rotation(source[rows], target[rows])
            routed.weight[k], routed.bias[k] = weight.float(), bias.float()
        return routed, {}
