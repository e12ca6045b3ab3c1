"""A fitted conversion of a stored gallery, on plain arrays and on files."""

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmark.config.files import file_digest, plain_io_errors
from benchmark.contract.arrays import BLOCK, Vectors, apply, as_ids, as_vectors, require_finite
from benchmark.data.row_files import RowFile, writing
from benchmark.errors import BenchError
from benchmark.metrics.backfill_orders import by_score
from benchmark.models.module import Portable, load_module, save_module
from benchmark.training.loop import Curve

PARTS = ("convert", "query_view", "priority")
META = "conversion.json"
FORMAT = 1


@dataclass(frozen=True)
class Dims:
    """Dimensions that a conversion was fitted with.

    Attributes:
        old: Dimension of stored vectors.
        new: Dimension of new vectors.
        side: Dimension of side-information; 0 is none.
    """

    old: int
    new: int
    side: int = 0

    def __post_init__(self) -> None:
        for name, least in (("old", 1), ("new", 1), ("side", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"dims: expected {name} as a number from {least}, got {value!r}")


@dataclass(frozen=True)
class Conversion:
    """A fitted map, as a deployment needs it at update time, without the harness.

    Attributes:
        method: Id of the method that fitted it.
        params: Its parameters.
        distance: How the deployment compares embeddings, ``cosine`` or ``l2``.
        dims: Dimensions that it was fitted with.
        maps_side: Whether it brings side-information to the new generation too.
        parts: ``convert``, ``query_view``, ``priority``: those that the method has.
        curves: Training curves by name; they are not saved.
    """

    method: str
    params: Mapping[str, Any]
    distance: str
    dims: Dims
    maps_side: bool
    parts: Mapping[str, Portable]
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def convert(self, vectors: ArrayLike, side: ArrayLike | None = None) -> Any:
        """Stored vectors after the update.

        Args:
            vectors: ``[n, d_old]``, by the old model.
            side: ``[n, s]``, where the map was fitted with side-information.

        Returns:
            ``[n, d]`` float32; with ``maps_side`` a pair of them and the new side-information.

        Raises:
            BenchError: If something is missing, of another size, or not a finite number.
        """
        converted, new_side = self._convert(*self._stored(vectors, side))
        return (converted, new_side) if self.maps_side else converted

    def view(self, queries: ArrayLike) -> Vectors:
        """New queries ``[n, d_new]`` in the space of the converted gallery, ``[n, d]``."""
        vectors = as_vectors("queries", queries, self.dims.new)
        part = self.parts.get("query_view")
        return vectors if part is None else apply(part, vectors)

    def priority(self, vectors: ArrayLike, side: ArrayLike | None = None) -> Vectors:
        """Priority of stored items in backfilling: ``[n]``, larger first.

        Raises:
            BenchError: Also where the method gives no priority.
        """
        if "priority" not in self.parts:
            raise BenchError(
                f"priority: method {self.method} gives none; benchmark.metrics.backfill_orders "
                "has orders for any method"
            )
        priority: Vectors = apply(self.parts["priority"], *self._stored(vectors, side))
        require_finite(f"priority of {self.method}", priority[:, None])
        return priority

    def order(
        self, vectors: ArrayLike, side: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Rows in the order of backfilling: largest priority first, ties by id.

        Args:
            vectors: ``[n, d_old]``.
            side: ``[n, s]``, where the map was fitted with side-information.
            ids: ``[n]``, each once; by default the row.

        Raises:
            BenchError: As :meth:`priority`; if ids are not one an item, or one comes twice.
        """
        priority = self.priority(vectors, side)
        try:
            return by_score(priority, range(len(priority)) if ids is None else as_ids("ids", ids))
        except ValueError as error:
            raise BenchError(" ".join(str(error).split())) from error

    def convert_file(
        self, source: str | Path, target: str | Path, *, side: str | Path | None = None,
        target_side: str | Path | None = None,
    ) -> int:  # fmt: skip
        """Convert a stored gallery from disk to disk, in blocks: memory does not grow with it.

        The same bytes as ``np.save`` of :meth:`convert`; what is half written is never seen
        under the name of a target.

        Args:
            source: npy file, ``[n, d_old]``.
            target: npy file to write, ``[n, d]`` float32.
            side: npy file, ``[n, s]``, where the map was fitted with side-information.
            target_side: npy file of the side-information after the update; needed where the map
                gives new side-information, without which the next update cannot be made.

        Returns:
            Number of items.

        Raises:
            BenchError: As :meth:`convert`; if a file cannot be read or written, or one would be
                written over what is read: a gallery converted twice is lost.
        """
        rows = RowFile.open("source", source)
        sides = None if side is None else RowFile.open("side", side)
        self._check_sizes("source", rows.shape, None if sides is None else sides.shape)
        if target_side is not None and sides is None:
            raise BenchError("target_side: the map was fitted without side-information")
        if self.maps_side and target_side is None:
            raise BenchError("target_side: expected a file for the map's new side-information")
        targets = [Path(t) for t in (target, target_side) if t is not None]
        taken = {Path(p).resolve() for p in (source, side) if p is not None}
        for path in targets:
            if path.resolve() in taken:
                raise BenchError(f"{path}: expected another file than is read or written already")
            taken.add(path.resolve())
        with writing(targets, rows.n) as writers:
            side_blocks = None if sides is None else sides.blocks(BLOCK)
            for start, block in enumerate(rows.blocks(BLOCK)):
                require_finite(str(source), block, start * BLOCK)
                side_block = None if side_blocks is None else next(side_blocks)
                if side_block is not None:
                    require_finite(str(side), side_block, start * BLOCK)
                for write, part in zip(writers, self._convert(block, side_block), strict=False):
                    if part is not None:
                        write(part)
        return rows.n

    def save(self, folder: str | Path) -> None:
        """Write a folder, whole or not at all: safetensors and a JSON file, no pickle.

        Raises:
            BenchError: If it cannot be written, or holds something else than a conversion.
        """
        folder = Path(folder).resolve()
        if folder.exists() and not (folder / META).is_file():
            raise BenchError(f"{folder}: there is something else than a conversion")
        part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        try:
            part.mkdir(parents=True)
            with plain_io_errors(part):
                self._write(part)
                shutil.rmtree(folder, ignore_errors=True)
                part.replace(folder)
        except OSError as error:
            raise BenchError(f"{folder}: cannot be written: {error.strerror}") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        for name, part in self.parts.items():
            save_module(part, folder / f"{name}.safetensors")
        meta = {
            "format": FORMAT,
            "method": self.method,
            "params": dict(self.params),
            "distance": self.distance,
            "dims": dataclasses.asdict(self.dims),
            "maps_side": self.maps_side,
            "parts": {n: file_digest(folder / f"{n}.safetensors") for n in self.parts},
        }
        (folder / META).write_text(json.dumps(meta, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder of :meth:`save`.

        Raises:
            BenchError: If there is no conversion, or it is damaged or of a later format.
        """
        folder = Path(folder)
        try:
            meta = json.loads((folder / META).read_text())
            if meta["format"] != FORMAT:
                raise BenchError(f"{folder}: expected format {FORMAT}, got {meta['format']}")
            if set(meta["parts"]) - set(PARTS):
                raise BenchError(f"{folder}: expected parts {', '.join(PARTS)}")
            files = {name: folder / f"{name}.safetensors" for name in meta["parts"]}
            for name, path in files.items():
                if file_digest(path) != meta["parts"][name]:
                    raise BenchError(f"{path}: damaged, its digest is another")
            parts = {name: load_module(path).eval() for name, path in files.items()}
            if not isinstance(meta["params"], dict):
                raise BenchError(f"{folder}: expected params by name, got {meta['params']!r}")
            return cls(
                meta["method"], meta["params"], meta["distance"], Dims(**meta["dims"]),
                meta["maps_side"], parts,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError) as error:
            text = " ".join(str(error).split())
            raise BenchError(f"{folder}: not a stored conversion: {text}") from error

    def _convert(self, vectors: Vectors, side: Vectors | None) -> tuple[Vectors, Vectors | None]:
        part = self.parts.get("convert")
        return (vectors, side) if part is None else apply(part, vectors, side)

    def _stored(self, vectors: ArrayLike, side: ArrayLike | None) -> tuple[Vectors, Vectors | None]:
        stored = as_vectors("vectors", vectors)
        stored_side = None if side is None else as_vectors("side", side)
        side_shape = None if stored_side is None else stored_side.shape
        self._check_sizes("vectors", stored.shape, side_shape)
        return stored, stored_side

    def _check_sizes(self, name: str, shape: tuple[int, ...], side: tuple[int, ...] | None) -> None:
        expected_side = (shape[0], self.dims.side) if self.dims.side else None
        for label, got, expected in (
            (name, shape, (shape[0], self.dims.old)), ("side", side, expected_side)
        ):  # fmt: skip
            if got != expected:
                fitted, given = (list(x) if x else "no side-information" for x in (expected, got))
                raise BenchError(f"{label}: expected {fitted}, got {given}")
