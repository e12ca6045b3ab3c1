"""Small modules that updates are put together from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable


class Affine(Portable):
    """``x W^T + b`` on vectors.

    Args:
        dim_in: Dimension of what goes in.
        dim_out: Dimension of what comes out.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim_in, dim_out)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None = None) -> Affine:
        """The map with a given weight ``[d_out, d_in]`` and bias ``[d_out]``."""
        dim_out, dim_in = weight.shape
        made = cls(dim_in, dim_out)
        with torch.no_grad():
            made.linear.weight.copy_(weight)
            made.linear.bias.copy_(torch.zeros(dim_out) if bias is None else bias)
        return made

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        out: Tensor = self.linear(vectors)
        return out


class FirstDims(Portable):
    """The first dimensions of a vector: the view of a longer query on a shorter gallery."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, d]`` -> ``[n, dim]``."""
        return vectors[:, : self.dim]


class Directions(Portable):
    """A map of unit vectors: what it is given is normalised first, where only directions matter."""

    def __init__(self, map: Portable, normalise: bool) -> None:
        super().__init__()
        self.map, self.normalise = map, normalise

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        out: Tensor = self.map(F.normalize(vectors) if self.normalise else vectors)
        return out


class KeepSide(Portable):
    """A map of vectors as a conversion of the stored gallery; side-information stays as it is."""

    def __init__(self, map: Portable) -> None:
        super().__init__()
        self.map = map

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored gallery -> gallery after the map."""
        return self.map(vectors), side


class Frozen(nn.Module):
    """A finished module inside one that is trained: never in training mode, in no checkpoint.

    It moves to the device with the module that holds it, and its weights get no gradient; a
    resumed training is given it anew.
    """

    module: nn.Module

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        # Not registered: neither ``train()`` nor ``state_dict()`` shall find it.
        self.__dict__["module"] = module.eval().requires_grad_(False)

    def forward(self, *args: Any) -> Any:
        """What the module gives."""
        return self.module(*args)

    def _apply(self, fn: Any, recurse: bool = True) -> Frozen:
        self.module._apply(fn, recurse)  # type: ignore[no-untyped-call]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self
