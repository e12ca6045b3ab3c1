"""Images that stay encoded in their files and are decoded when a batch needs them.

ImageNet at 224 x 224 is 180 GiB of pixels: such sets are kept as a list of files, and a batch is
decoded while the one before it is in use.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Ints, Pixels
from benchmark.data.decode import View, decode_view
from benchmark.data.files import Files
from benchmark.data.recordio import Records

HELD_BYTES = 2 * 2**30
"""Sets whose pixels are fewer are decoded once and kept as an array."""


class EncodedImages:
    """Random access to images that are decoded on demand: ``[n, c, h, w]`` uint8.

    Args:
        source: Where they lie.
        view: How a picture becomes ``[c, h, w]``.
        geometry: For each image its box ``[n, 4]`` or its landmarks ``[n, 10]``, if the view
            needs one.
    """

    def __init__(
        self, source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
    ) -> None:
        if geometry is not None and len(geometry) != len(source):
            raise ValueError(f"geometry: expected {len(source)} rows, got {len(geometry)}")
        self.source, self.view, self.geometry = source, view, geometry
        self._ahead: tuple[bytes, Future[Pixels]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, c, h, w)``."""
        return (len(self.source), self.view.channels, self.view.height, self.view.width)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Ints) -> Pixels:
        rows = np.asarray(rows, np.int64)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == rows.tobytes():
            return ahead[1].result()
        return self._decoded(rows)

    def prefetch(self, rows: Ints) -> None:
        """Begin to decode the rows that come next."""
        rows = np.asarray(rows, np.int64)
        # A pool of its own: a job that waits for others of the same pool could wait for ever.
        self._ahead = rows.tobytes(), _pool("prefetch", 1).submit(self._decoded, rows)

    def take_rows(self, rows: Ints) -> EncodedImages:
        """Some of the images, still in their files."""
        geometry = None if self.geometry is None else self.geometry[rows]
        return EncodedImages(self.source.take(rows), self.view, geometry)

    def decoded(self) -> Pixels:
        """All images as an array."""
        return self._decoded(np.arange(len(self)))

    def _decoded(self, rows: Ints) -> Pixels:
        out = np.empty((len(rows), *self.shape[1:]), np.uint8)

        def fill(place: int) -> None:
            row = int(rows[place])
            where, encoded = self.source.read(row)
            geometry = None if self.geometry is None else self.geometry[row]
            out[place] = decode_view(encoded, self.view, where, geometry)

        for _ in _pool("decode", min(32, os.cpu_count() or 1)).map(fill, range(len(rows))):
            pass
        return out

    def fingerprint(self) -> str:
        """Hash of the list of files, the view and the geometry; decodes nothing."""
        digest = hashlib.sha256(json.dumps(asdict(self.view), sort_keys=True).encode())
        digest.update(self.source.key())
        if self.geometry is not None:
            digest.update(np.ascontiguousarray(self.geometry).tobytes())
        return digest.hexdigest()


def images_of(
    source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
) -> EncodedImages | Pixels:
    """Images as an array where that is small, else left in their files."""
    images = EncodedImages(source, view, geometry)
    small = int(np.prod(images.shape, dtype=np.int64)) <= HELD_BYTES
    return images.decoded() if small else images


@cache
def _pool(name: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=name)
