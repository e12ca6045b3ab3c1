"""Seeds by name: every random choice has its own stream, so adding one moves no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmark.errors import BenchError

if TYPE_CHECKING:
    import torch


def parse_seeds(text: str) -> list[int]:
    """``"0"``, ``"0,1,2"`` or ``"0-4"`` as numbers; BenchError if it is anything else.

    Example:
        >>> parse_seeds("0-2,7")
        [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdigit() or (dash and not (high.isdigit() and int(high) >= int(low))):
            raise BenchError(f"--seeds: expected numbers such as 0, 0,1,2 or 0-4, got '{text}'")
        seeds.extend(range(int(low), int(high or low) + 1))
    return seeds


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

    For initial weights, which torch draws globally: no other draw moves them, nor they another.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, *names))
        yield
