"""Seeds by name: every random choice has its own stream, so adding one moves no other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmark.errors import BenchError

if TYPE_CHECKING:
    import torch


_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_MOST = 10_000


def parse_seeds(text: str) -> list[int]:
    """``"0"``, ``"0,1,2"`` or ``"0-4"`` as numbers; BenchError if it is anything else.

    Example:
        >>> parse_seeds("0-2,7")
        [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if high < low:
            raise BenchError(f"--seeds: expected numbers such as 0, 0,1,2 or 0-4, got '{text:.60}'")
        if high - low >= _MOST - len(seeds):
            raise BenchError(f"--seeds: expected at most {_MOST} seeds, got '{text:.60}'")
        seeds.extend(range(low, high + 1))
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
        torch.default_generator.manual_seed(derive(seed, *names))
        yield
