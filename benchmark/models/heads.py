"""Classifiers and their losses: softmax, norm-softmax, cosface, arcface.

Sources: norm-softmax, Wang et al., NormFace (2017); cosface, Wang et al. (2018), eq. 4;
arcface, Deng et al. (2019), eq. 3.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import HEADS, MARGINS
from benchmark.errors import unknown
from benchmark.models.module import Portable


class Head(Portable):
    """A classifier over embeddings, of a kind in ``HEADS``.

    ``classes`` has the class of each row, as indices into the dataset's names. ``scale`` is the
    logit scale of the normalised kinds, ``margin`` that of cosface and arcface, by default as in
    their papers, ``smoothing`` of the labels in the training loss.
    """

    classes: Tensor

    def __init__(
        self, kind: str, dim: int, classes: Sequence[int], scale: float = 64.0,
        margin: float | None = None, smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if kind not in HEADS:
            raise unknown("head", kind, HEADS)
        self.kind, self.scale, self.smoothing = kind, scale, smoothing
        self.margin = MARGINS.get(kind, 0.0) if margin is None else margin
        self.weight = nn.Parameter(torch.empty(len(classes), dim))
        nn.init.normal_(self.weight, std=dim**-0.5 if self.normalised else 0.01)
        self.bias = None if self.normalised else nn.Parameter(torch.zeros(len(classes)))
        self.register_buffer("classes", torch.as_tensor(classes, dtype=torch.long))

    @property
    def dim(self) -> int:
        """Embedding dimension."""
        return self.weight.shape[1]

    @property
    def normalised(self) -> bool:
        """Tell whether the logits depend on directions only."""
        return self.kind != "softmax"

    def logits(self, features: Tensor) -> Tensor:
        """Logits without margin: ``[n, d]`` -> ``[n, classes]`` float32."""
        scale = self.scale if self.normalised else None
        return class_logits(features, self.weight, self.bias, scale)

    def forward(
        self, features: Tensor, labels: Tensor, reduction: Literal["mean", "none"] = "mean"
    ) -> Tensor:
        """The training loss: cross-entropy of the logits with the margin at the target.

        Features ``[n, d]`` are raw embeddings, labels ``[n]`` int64 rows of the classifier. The
        loss is the mean, or with ``none`` that of each row, ``[n]``.
        """
        logits = self.logits(features)
        if self.kind in ("cosface", "arcface"):
            cosine = logits.gather(1, labels[:, None]) / self.scale
            arc = self.kind == "arcface"
            target = add_angle(cosine, self.margin) if arc else cosine - self.margin
            logits = logits.scatter(1, labels[:, None], self.scale * target)
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing, reduction=reduction)


class SimplexHead(Head):
    """A fixed classifier: its rows are the vertices of a regular simplex.

    Every generation that is trained with it has its classes at the same places. Of ``count``
    vertices class c has row c, and the dimension is one less; the other arguments are those of
    :class:`Head`, but ``softmax`` has no bias.
    """

    def __init__(
        self, kind: str, count: int, scale: float = 64.0, margin: float | None = None,
        smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(kind, count - 1, range(count), scale, margin, smoothing)
        self.weight = nn.Parameter(simplex(count).to(self.weight.dtype), requires_grad=False)
        self.bias = None


def simplex(count: int) -> Tensor:
    """Vertices of a regular simplex around the origin, ``[count, count - 1]`` float64.

    They are unit vectors with one cosine, ``-1 / (count - 1)``, between any two.

    Source:
        Pernici et al., Regular Polytope Networks (2021), the d-Simplex: the standard basis, one
        more point at the same distance from all of it, moved to the middle and normalised.

    Example:
        >>> simplex(3).square().sum(dim=1).round(decimals=12)
        tensor([1., 1., 1.], dtype=torch.float64)
    """
    if count < 2:
        raise ValueError(f"count: expected two vertices or more, got {count}")
    dim = count - 1
    apex = torch.full((1, dim), (1.0 - math.sqrt(count)) / dim, dtype=torch.float64)
    points = torch.cat([torch.eye(dim, dtype=torch.float64), apex])
    return F.normalize(points - points.mean(dim=0))


def cosine_scale(n_classes: int) -> float:
    """The scale of cosines to the rows of a classifier that has none: sqrt(2) log(C - 1).

    With it a softmax over C cosines falls and rises as one over plain logits does. At that of
    margin heads, 64, it is settled by the least difference; at 1 it teaches nothing.

    Source:
        Zhang et al., AdaCos: Adaptively Scaling Cosine Logits, CVPR 2019, section 4.1.

    Example:
        >>> round(cosine_scale(70), 2)
        5.99
    """
    return math.sqrt(2.0) * math.log(max(n_classes - 1, 2))


def class_logits(
    features: Tensor, weight: Tensor, bias: Tensor | None, scale: float | None
) -> Tensor:
    """``W f + b``, or ``s n(W) n(f)`` where a scale is given; always float32."""
    with torch.autocast(features.device.type, enabled=False):
        features, weight = features.float(), weight.float()
        if scale is None:
            return F.linear(features, weight, bias)
        return scale * F.linear(F.normalize(features), F.normalize(weight))


def add_angle(cosine: Tensor, margin: float) -> Tensor:
    """``cos(theta + m)`` while ``theta + m < pi``, else ``cos(theta) - m sin(pi - m)``.

    Deng et al., ArcFace (2019), eq. 3, with the authors' linear continuation, but without acos,
    whose gradient is infinite at cosine 1: the sine's root is kept off zero.
    """
    sine = (1.0 - cosine.square()).clamp_min(1e-7).sqrt()
    added = cosine * math.cos(margin) - sine * math.sin(margin)
    continued = cosine - margin * math.sin(math.pi - margin)
    return torch.where(cosine > math.cos(math.pi - margin), added, continued)
