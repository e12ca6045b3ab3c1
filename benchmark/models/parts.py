"""Small modules that conversions, query views and losses are composed of."""

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable


class Affine(Portable):
    """``x W^T + b``: vectors ``[n, dim_in]`` -> ``[n, dim_out]``."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim_in, dim_out)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None = None) -> Self:
        """Build the map from a weight ``[d_out, d_in]`` and a bias ``[d_out]``, by default 0."""
        dim_out, dim_in = weight.shape
        affine = cls(dim_in, dim_out)
        with torch.no_grad():
            affine.linear.weight.copy_(weight)
            affine.linear.bias.copy_(torch.zeros(dim_out) if bias is None else bias)
        return affine

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        return self.linear(vectors)


class FirstDims(Portable):
    """The first dimensions of a vector: the view of a longer query on a shorter gallery."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, d]`` -> ``[n, dim]``."""
        return vectors[:, : self.dim]


class Directions(Portable):
    """A map of vectors that normalises its input where only directions are compared."""

    def __init__(self, map: Portable, normalise: bool) -> None:
        super().__init__()
        self.map, self.normalise = map, normalise

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, dim_in]`` -> ``[n, dim_out]``."""
        return self.map(F.normalize(vectors) if self.normalise else vectors)


class OldQuery(Portable):
    """The query by the old model, of both models' vectors."""

    def forward(self, new: Tensor, old: Tensor) -> Tensor:  # noqa: ARG002
        """``[n, d_new]`` and ``[n, d_old]`` -> ``[n, d_old]``."""
        return old


class KeepSide(Portable):
    """A map of vectors as a conversion of the gallery; side-information stays as it is."""

    def __init__(self, map: Portable) -> None:
        super().__init__()
        self.map = map

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Vectors ``[n, dim_in]`` and side-information -> ``[n, dim_out]`` and the same."""
        return self.map(vectors), side


class Frozen(nn.Module):
    """A trained module inside one in training: in evaluation mode, without gradients.

    It moves along to a device, and is in no checkpoint: whoever resumes a training passes it again.
    """

    module: nn.Module

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        # Not registered: neither ``train()`` nor ``state_dict()`` may reach it.
        self.__dict__["module"] = module.eval().requires_grad_(False)

    def forward(self, *args: Any) -> Any:
        """Call the module."""
        return self.module(*args)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self.module._apply(fn, recurse)  # type: ignore[no-untyped-call]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self
