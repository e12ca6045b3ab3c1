"""Linear layers of a training by oneDNN, where torch's own products leave half of a core idle.

On x86-64 torch multiplies matrices by MKL, which takes AVX-512 on Intel's processors alone; oneDNN,
which torch has within it as well, takes it on any. Sums run in another order: the last bits differ,
as between two processors. ``bench perf maps`` compares the two.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_LEAST = 1 << 22
"""Multiply-adds of a product from which on it is worth the call from Python."""


@cache
def helps() -> bool:
    """True on a processor with AVX-512 of another maker than Intel, if torch has oneDNN."""
    info = Path("/proc/cpuinfo")
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and info.exists()
        and "GenuineIntel" not in info.read_text()
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """``left right^T + bias`` of float32 ``[n, d]``, ``[m, d]`` and ``[m]``, without gradient."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return result


class Linear(torch.autograd.Function):
    """``x W^T + b`` and its gradients, each product by oneDNN; differentiable once.

    Operands are contiguous or the transpose of what is: of others, as of some columns of a wider
    table, oneDNN's product takes a thousand times as long.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """``[n, d_in]`` -> ``[n, d_out]``."""
        x, weight = x.contiguous(), weight.contiguous()
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Gradients of the input, the weight and the bias."""
        above, (x, weight) = above.contiguous(), ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            product(above, weight.T) if needed[0] else None,
            product(above.T, x.T) if needed[1] else None,
            above.sum(0) if needed[2] else None,
        )


class LinearByOneDNN(TorchFunctionMode):
    """Within it, large float32 linear layers on the CPU run by oneDNN where that :func:`helps`."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Run ``func``, or :class:`Linear` in its place."""
        if func is F.linear and not kwargs and helps() and _fits(*args):
            return Linear.apply(*args, *[None] * (3 - len(args)))
        return func(*args, **(kwargs or {}))


def _fits(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    return (
        x.ndim == weight.ndim == 2
        and len(x) * weight.numel() >= _LEAST
        and all(
            t is None or (t.dtype == torch.float32 and t.device.type == "cpu")
            for t in (x, weight, bias)
        )
        and not torch.is_autocast_enabled("cpu")
    )
