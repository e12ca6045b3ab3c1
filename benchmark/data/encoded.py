"""Images that stay in their files until they are asked for. Not a dataset itself.

ImageNet at 224 x 224 is 180 GiB of pixels: such sets are kept as a list of files, and a batch is
decoded when it is wanted, the next one meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.data.base import Ints
from benchmark.data.decode import View, decode_view
from benchmark.data.recordio import joined
from benchmark.errors import BenchError

HELD_BYTES = 2 * 2**30
"""Sets whose pixels are fewer are decoded once and kept as an array."""

_WORDS, _NAMES, _PLACES, _GEOMETRY = "encoded.json", "names.txt", "places.npy", "geometry.npy"


@dataclass(frozen=True)
class Files:
    """Encoded images, a file each.

    Attributes:
        root: Folder.
        names: Of the files, relative to it.
    """

    root: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def read(self, row: int) -> tuple[str, Path]:
        """What errors name, and the encoded image."""
        path = self.root / self.names[row]
        return str(path), path

    def take(self, rows: Ints) -> Files:
        """Some of them."""
        return Files(self.root, tuple(self.names[row] for row in rows.tolist()))

    def columns(self) -> dict[str, Any]:
        """Arrays that say which they are."""
        return {_NAMES: self.names}


@dataclass(frozen=True)
class Records:
    """Encoded images inside one file of records.

    Attributes:
        root: The file.
        places: First byte and number of bytes of each, ``[n, 2]`` int64.
    """

    root: Path
    places: Ints

    def __len__(self) -> int:
        return len(self.places)

    def read(self, row: int) -> tuple[str, bytes]:
        """What errors name, and the encoded image."""
        start, size = self.places[row].tolist()
        where = f"{self.root}: at byte {start}"
        try:
            with self.root.open("rb") as file:
                file.seek(start)
                found = file.read(size)
        except OSError as error:
            raise BenchError(f"{where}: cannot be read: {error.strerror}") from error
        if len(found) < size:
            raise BenchError(f"{where}: expected {size} bytes, got {len(found)}")
        return where, joined(found)

    def take(self, rows: Ints) -> Records:
        """Some of them."""
        return Records(self.root, self.places[rows])

    def columns(self) -> dict[str, Any]:
        """Arrays that say which they are."""
        return {_PLACES: self.places}


class EncodedImages:
    """Random access to images that are decoded on demand: ``[n, c, h, w]`` uint8.

    Args:
        source: Where they lie.
        view: How a picture becomes ``[c, h, w]``.
        geometry: For each image its box ``[n, 4]`` or its landmarks ``[n, 10]``, if the view
            asks for one.
    """

    def __init__(
        self, source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
    ) -> None:
        if geometry is not None and len(geometry) != len(source):
            raise ValueError(f"geometry: expected {len(source)} rows, got {len(geometry)}")
        self.source, self.view, self.geometry = source, view, geometry
        self._ahead: tuple[bytes, Future[NDArray[np.uint8]]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, c, h, w)``."""
        return (len(self.source), self.view.channels, self.view.height, self.view.width)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Ints) -> NDArray[np.uint8]:
        rows = np.asarray(rows, np.int64)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == rows.tobytes():
            return ahead[1].result()
        return self._decoded(rows)

    def prefetch(self, rows: Ints) -> None:
        """Begin to decode what will be asked for next."""
        rows = np.asarray(rows, np.int64)
        self._ahead = rows.tobytes(), _ahead_pool().submit(self._decoded, rows)

    def take_rows(self, rows: Ints) -> EncodedImages:
        """Some of the images, still in their files."""
        geometry = None if self.geometry is None else self.geometry[rows]
        return EncodedImages(self.source.take(rows), self.view, geometry)

    def _decoded(self, rows: Ints) -> NDArray[np.uint8]:
        out = np.empty((len(rows), *self.shape[1:]), np.uint8)

        def fill(place: int) -> None:
            row = int(rows[place])
            where, encoded = self.source.read(row)
            geometry = None if self.geometry is None else self.geometry[row]
            out[place] = decode_view(encoded, self.view, where, geometry)

        for _ in _pool().map(fill, range(len(rows))):
            pass
        return out

    def fingerprint(self) -> str:
        """Hash of which files, what of them, and how they are looked at; decodes nothing."""
        digest = hashlib.sha256(json.dumps(asdict(self.view), sort_keys=True).encode())
        for column in self._columns().values():
            if isinstance(column, np.ndarray):
                digest.update(np.ascontiguousarray(column).tobytes())
            else:
                digest.update("\0".join(column).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def _columns(self) -> dict[str, Any]:
        own = {} if self.geometry is None else {_GEOMETRY: self.geometry}
        return self.source.columns() | own

    def write(self, folder: Path, part: str) -> None:
        """Keep the list, not the pixels; see :func:`read_encoded`."""
        words = {"root": str(self.source.root.resolve()), "view": asdict(self.view)}
        (folder / f"{part}.{_WORDS}").write_text(json.dumps(words))
        for name, column in self._columns().items():
            path = folder / f"{part}.{name}"
            if isinstance(column, np.ndarray):
                np.save(path, column)
            else:
                path.write_text("\n".join(column), encoding="utf-8", errors="surrogateescape")


def read_encoded(folder: Path, part: str) -> EncodedImages | None:
    """What :meth:`EncodedImages.write` wrote; ``None`` where nothing was.

    Raises:
        OSError, ValueError, KeyError: If it is damaged.
    """
    path = folder / f"{part}.{_WORDS}"
    if not path.exists():
        return None
    words = json.loads(path.read_text())
    root = Path(words["root"])
    names, places = folder / f"{part}.{_NAMES}", folder / f"{part}.{_PLACES}"
    source: Files | Records
    if names.exists():
        text = names.read_text(encoding="utf-8", errors="surrogateescape")
        source = Files(root, tuple(text.split("\n")))
    else:
        source = Records(root, np.load(places, allow_pickle=False))
    found = folder / f"{part}.{_GEOMETRY}"
    geometry = np.load(found, allow_pickle=False) if found.exists() else None
    return EncodedImages(source, build(View, words["view"], str(path)), geometry)


def images_of(
    source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
) -> EncodedImages | NDArray[np.uint8]:
    """Images as an array where that is small, else left in their files."""
    made = EncodedImages(source, view, geometry)
    small = int(np.prod(made.shape, dtype=np.int64)) <= HELD_BYTES
    return made[np.arange(len(made))] if small else made


def listed(root: Path, names: Sequence[str]) -> Files:
    """Files of a folder, names checked: nothing above it, nothing that a list cannot hold.

    Raises:
        BenchError: Naming the first one that is wrong.
    """
    for name in names:
        if not name or name.startswith("/") or ".." in name.split("/") or "\n" in name:
            raise BenchError(f"{root}: unexpected file name {name!r}")
    return Files(root, tuple(names))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(32, os.cpu_count() or 1), thread_name_prefix="decode")


@cache
def _ahead_pool() -> ThreadPoolExecutor:
    # One of its own: a job that waits for others of the same pool could wait for ever.
    return ThreadPoolExecutor(1, thread_name_prefix="prefetch")
