"""Seeds by name: every random choice has its own stream, so adding one moves no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def derive(seed: int, *names: str | int) -> int:
    """A seed for the stream ``names`` of ``seed``: a 63-bit number."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int) -> torch.Generator:
    """A torch generator on the CPU for the stream ``names`` of ``seed``."""
    import torch

    return torch.Generator().manual_seed(derive(seed, *names))


@contextmanager
def drawing_from(seed: int, *names: str | int) -> Iterator[None]:
    """Torch's global generator stands at the stream ``names`` of ``seed`` inside the block.

    For initial weights, which torch draws globally: they neither depend on nor move what
    anybody else draws.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, *names))
        yield
