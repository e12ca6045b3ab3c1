"""Learned maps from old to new embeddings: FCT's, with an uncertainty, residual bottlenecks.

Sources: Ramanujan et al., Forward Compatible Training (2022), Figure 4, appendix D.1; Jaeckle et
al., FastFill (2023), section 4.2, appendix A.2; Wang et al., Unified Representation Learning for
Cross Model Compatibility (2020), in the published code of Meng et al. (2021).
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable


class Transformation(Portable):
    """h(o, side): two branches of Linear-norm-ReLU twice to 256, joined by a mixer (D.1).

    ``width`` is the mixer's, ``branch`` that of a branch. With ``dim_side`` 0 the side-information
    is a vector of zeros. ``normalise`` is of the output, as where embeddings are normalised
    (D.7); ``norm`` stands between layers (D.5). ``inputs`` ``side`` hides the old embedding behind
    zeros (5.2). ``normalise_old`` is of the old embedding: in a chain some stored items are
    normalised outputs of the map before and others fresh, and only directions mean anything.
    """

    def __init__(
        self, dim_old: int, dim_side: int, dim_new: int, width: int, normalise: bool,
        branch: int = 256, norm: Literal["batch", "layer"] = "batch",
        inputs: Literal["both", "side"] = "both", normalise_old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if inputs == "side" and dim_side == 0:
            raise ValueError("side-information: the only input, but there is none")
        self.normalise, self.normalise_old, self.dim_side = normalise, normalise_old, dim_side
        self.side_only = inputs == "side"
        layer = nn.BatchNorm1d if norm == "batch" else nn.LayerNorm
        self.old = _layers(layer, dim_old, branch)
        self.side = _layers(layer, max(1, dim_side), branch)
        self.mixer = nn.Sequential(*_layers(layer, 2 * branch, width), nn.Linear(width, dim_new))

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored vectors ``[n, dim_old]`` to ``[n, dim_new]``; side-information is kept."""
        return self.estimates(vectors, side)[0], side

    def estimates(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Transformed vectors and their log variances, of which this map has none."""
        out = self.raw(vectors, side)
        return F.normalize(out) if self.normalise else out, None

    def raw(self, vectors: Tensor, side: Tensor | None) -> Tensor:
        """The mixer's output, ``[n, dim_new]`` float32, not normalised."""
        if (side is None) != (self.dim_side == 0):
            raise ValueError(f"side-information: fitted with {self.dim_side} dimensions of it")
        side = vectors.new_zeros(len(vectors), 1) if side is None else side
        if self.side_only:
            vectors = torch.zeros_like(vectors)
        elif self.normalise_old:
            vectors = F.normalize(vectors)
        return self.mixer(torch.cat([self.old(vectors), self.side(side)], dim=1)).float()


class WithSide(Portable):
    """h for vectors and g for side-information, each from both: the next gallery (FCT 4.4)."""

    def __init__(self, h: Transformation, g: Transformation) -> None:
        super().__init__()
        self.h, self.g = h, g

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor]:
        """New vectors ``[n, d_new]`` and new side-information ``[n, s_new]``."""
        return self.h(vectors, side)[0], self.g(vectors, side)[0]


def _layers(norm: type[nn.Module], inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), norm(width), nn.ReLU(),
        nn.Linear(width, width), norm(width), nn.ReLU(),
    )  # fmt: skip


class Uncertain(Portable):
    """h, and psi: the log variance of its error, a linear layer on the transformed embedding.

    Where h normalises its output, psi reads it before: on the unit sphere, where directions
    belong to classes, a linear layer can hardly tell a doubtful item.

    As a part of an update it is the priority: the largest expected error is backfilled first.
    ``dim`` is the transformed embedding's; ``diagonal`` gives each dimension a variance of its own.
    """

    def __init__(self, map: Transformation, dim: int, diagonal: bool = False) -> None:
        super().__init__()
        self.map, self.psi = map, nn.Linear(dim, dim if diagonal else 1)
        nn.init.zeros_(self.psi.bias)  # sigma^2 is about 1 before training

    def estimates(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor]:
        """Transformed vectors ``[n, dim]`` and log variances ``[n, 1]``, or ``[n, dim]``."""
        raw = self.map.raw(vectors, side)
        with torch.autocast(raw.device.type, enabled=False):  # it orders items: every bit counts
            return F.normalize(raw) if self.map.normalise else raw, self.psi(raw)

    def forward(self, vectors: Tensor, side: Tensor | None) -> Tensor:
        """Log of the expected squared error a dimension, ``[n]``."""
        logs = self.estimates(vectors, side)[1]
        return logs.logsumexp(dim=1) - math.log(logs.shape[1])


class ParallelBottlenecks(Portable):
    """``x`` plus the sum of ``paths`` bottlenecks of ``x``, side by side.

    A path is Linear without bias, BatchNorm and PReLU, three times, by way of ``width`` numbers;
    64 numbers, four paths and width 16 make 10,368 parameters. Between unequal dimensions a linear
    layer comes first. ``normalise`` is of the output, ``normalise_old`` of the input.

    Source:
        RBTBlock in the published code of LCE (models/trans.py), with its constants; between
        unequal dimensions that block cannot add.
    """

    def __init__(
        self, dim_old: int, dim_new: int, paths: int, width: int, normalise: bool,
        normalise_old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalise, self.normalise_old = normalise, normalise_old
        self.first = nn.Identity() if dim_old == dim_new else nn.Linear(dim_old, dim_new)
        sizes = [(dim_new, width), (width, width), (width, dim_new)]
        self.paths = nn.ModuleList(
            nn.Sequential(*(layer for size in sizes for layer in _narrow(*size)))
            for _ in range(paths)
        )

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored vectors ``[n, dim_old]`` to ``[n, dim_new]``; side-information is kept."""
        x = self.first(F.normalize(vectors) if self.normalise_old else vectors).float()
        out = x
        for path in self.paths:
            out = out + path(x).float()
        return (F.normalize(out) if self.normalise else out), side


def _narrow(inputs: int, outputs: int) -> list[nn.Module]:
    norm = nn.BatchNorm1d(outputs, eps=2e-5, momentum=0.9)
    return [nn.Linear(inputs, outputs, bias=False), norm, nn.PReLU(outputs)]


class Bottlenecks(Portable):
    """Blocks ``x + up(PReLU(BN(down x)))``, one after another: a design of our own.

    Each narrows its input to ``width``; between unequal dimensions a linear layer comes first.
    ``normalise`` is of the output, ``normalise_old`` of the input.
    """

    def __init__(
        self, dim_old: int, dim_new: int, blocks: int, width: int, normalise: bool,
        normalise_old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalise, self.normalise_old = normalise, normalise_old
        self.first = nn.Identity() if dim_old == dim_new else nn.Linear(dim_old, dim_new)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(dim_new, width), nn.BatchNorm1d(width), nn.PReLU(width),
                nn.Linear(width, dim_new),
            )
            for _ in range(blocks)
        )  # fmt: skip

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored vectors ``[n, dim_old]`` to ``[n, dim_new]``; side-information is kept."""
        x = self.first(F.normalize(vectors) if self.normalise_old else vectors).float()
        for block in self.blocks:
            x = x + block(x).float()
        return (F.normalize(x) if self.normalise else x), side
