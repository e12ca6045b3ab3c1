"""Texts as items: their UTF-8 bytes in place of pixels, one row each, filled with zeros."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.config.embedders import Modality
from benchmark.data.base import Pixels
from benchmark.data.readers import HeldOutDatasetReader
from benchmark.errors import BenchError

LONGEST = 4096
"""Bytes of a text, at most."""


def as_bytes(texts: Sequence[str]) -> Pixels:
    """Texts without a zero byte -> ``[n, 1, 1, longest]`` uint8.

    Raises:
        BenchError: If a text is too long, or holds a zero byte.

    Example:
        >>> as_bytes(["ab", "c"])[:, 0, 0].tolist()
        [[97, 98], [99, 0]]
    """
    coded = [text.encode() for text in texts]
    for text, each in zip(texts, coded, strict=True):
        if len(each) > LONGEST or 0 in each:
            raise BenchError(
                f"text: expected at most {LONGEST} bytes, none of them 0, got {text!r:.80}"
            )
    width = max([1, *map(len, coded)])
    whole = b"".join(each.ljust(width, b"\0") for each in coded)
    return np.frombuffer(whole, np.uint8).reshape(len(coded), 1, 1, width).copy()


def from_bytes(pixels: Pixels) -> list[str]:
    """The texts again.

    Example:
        >>> from_bytes(as_bytes(["Grüße", "c"]))
        ['Grüße', 'c']
    """
    return [row.tobytes().rstrip(b"\0").decode() for row in pixels]


@dataclass(frozen=True)
class TextDatasetReader(HeldOutDatasetReader):
    """Base of a dataset of texts; each is a template of its own."""

    columns: ClassVar = frozenset({"templates"})
    modality: ClassVar[Modality] = "text"
    decoder: ClassVar = ""
