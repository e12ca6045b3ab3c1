"""The device of rankings, scores and curves: the CPU's exact path, unless a caller chooses one.

A context, as ``with torch.device(...)`` is, so that no task or metric hands it on::

    with on_device("cuda"):
        ranks.rank(...)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

CPU = "cpu"
_chosen: ContextVar[str] = ContextVar("device", default=CPU)


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Compute on ``cpu``, or on a torch device such as ``cuda`` or ``torch:cpu``.

    A ValueError says that there is no such device.
    """
    if name != CPU:
        torch_device(name)
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def current() -> str:
    """The device that was chosen."""
    return _chosen.get()


def torch_device(name: str) -> Any:
    """The torch device of ``cuda`` or ``torch:cpu``; a ValueError if there is none."""
    import torch

    try:
        where = torch.device(name.removeprefix("torch:"))
    except RuntimeError as error:
        raise ValueError(f"device: expected 'cpu' or a torch device, got {name!r}") from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: expected one that is present, got 'cuda' without CUDA")
    return where
