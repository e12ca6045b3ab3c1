"""What an update does to vectors that are stored or ask, on plain arrays and on files."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from benchmark.config.files import file_digest, plain_io_errors
from benchmark.data.array_files import open_rows, row_blocks, writing
from benchmark.errors import BenchError
from benchmark.metrics.backfill_orders import by_score
from benchmark.models.module import Portable, load_module, save_module

if TYPE_CHECKING:
    from benchmark.training.loop import Curve

BLOCK = 512
PARTS = ("convert", "query_view", "priority")
META = "conversion.json"
FORMAT = 1

Vectors = NDArray[np.float32]


def apply_part(folder: Path, name: str, *arrays: Any) -> Any:
    """Call a stored part of an update (``convert``, ``query_view``, ``priority``) on arrays.

    Returns:
        As :func:`apply`; ``None`` if the update has no such part.
    """
    path = folder / f"{name}.safetensors"
    return apply(load_module(path), *arrays) if path.exists() else None


def apply(module: Portable, *arrays: Any) -> Any:
    """Call a module on arrays, in blocks of one size.

    What becomes of an item depends neither on its neighbours nor on its place.

    Args:
        module: Rows of tensors -> rows, or a tuple of them.
        arrays: ``[n, ...]`` each; ``None`` is handed on as it is.

    Returns:
        Its output as float32 arrays ``[n, ...]``; ``None`` where it gives none.

    Raises:
        BenchError: If there is no row, or the module refuses what it is given.
    """
    module.eval()
    n = next(len(a) for a in arrays if a is not None)
    if n == 0:
        raise BenchError("expected at least one vector, got none")
    blocks = [
        _apply_block(module, *(None if a is None else a[start : start + BLOCK] for a in arrays))
        for start in range(0, n, BLOCK)
    ]
    return _joined(blocks)


def _apply_block(module: Portable, *arrays: Any) -> Any:
    """One block, filled up with zeros: a smaller product sums in another order."""
    n = next(len(a) for a in arrays if a is not None)
    tensors: list[Tensor | None] = []
    for rows in arrays:
        if rows is None:
            tensors.append(None)
            continue
        block = torch.from_numpy(np.array(rows))  # a copy: what is mapped from a file is read-only
        missing = BLOCK - n
        rest = block.new_zeros(missing, *block.shape[1:])
        tensors.append(torch.cat([block, rest]) if missing else block)
    try:
        with torch.inference_mode():
            out = module(*tensors)
    except ValueError as error:
        raise BenchError(str(error)) from error
    return tuple(_cut(part, n) for part in out) if isinstance(out, tuple) else _cut(out, n)


def _cut(rows: Tensor | None, n: int) -> Any:
    return None if rows is None else rows[:n].float().numpy()


def _joined(blocks: list[Any]) -> Any:
    def join(parts: list[Any]) -> Any:
        return None if parts[0] is None else np.concatenate(parts)

    if isinstance(blocks[0], tuple):
        return tuple(join([b[i] for b in blocks]) for i in range(len(blocks[0])))
    return join(blocks)


@dataclass(frozen=True)
class Dims:
    """Dimensions that a conversion was fitted with.

    Attributes:
        old: Of stored vectors.
        new: Of new vectors.
        side: Of side-information; 0 is none.
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
    """A fitted map: what a deployment needs at update time, without the harness.

    Attributes:
        method: Which method fitted it.
        params: Its parameters.
        distance: How the deployment compares embeddings, ``cosine`` or ``l2``.
        dims: What it was fitted with.
        maps_side: Does it bring side-information to the new generation too?
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
            vectors: ``[n, d_old]``, as the old model gave them.
            side: ``[n, s]``, where the map was fitted with side-information.

        Returns:
            ``[n, d]`` float32; with ``maps_side`` a pair of them and the new side-information.

        Raises:
            BenchError: If something is missing, of another size, or not a finite number.
        """
        made, kept = self._convert(*self._stored(vectors, side))
        return (made, kept) if self.maps_side else made

    def view(self, queries: ArrayLike) -> Vectors:
        """New queries ``[n, d_new]`` in the space of the converted gallery, ``[n, d]``."""
        given = checked("queries", queries, self.dims.new)
        made: Vectors = apply(self.parts["query_view"], given) if self._has("query_view") else given
        return made

    def priority(self, vectors: ArrayLike, side: ArrayLike | None = None) -> Vectors:
        """Which stored items gain most from backfilling: ``[n]``, larger first.

        Raises:
            BenchError: Also where the method gives no priority.
        """
        if not self._has("priority"):
            raise BenchError(
                f"priority: method {self.method} gives none; benchmark.metrics.backfill_orders "
                "has orders for any method"
            )
        made: Vectors = apply(self.parts["priority"], *self._stored(vectors, side))
        if not np.isfinite(made).all():
            raise BenchError(f"priority: {_bad_row(made[:, None])} of what {self.method} gives")
        return made

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
            return by_score(priority, range(len(priority)) if ids is None else ids_of("ids", ids))
        except ValueError as error:
            raise BenchError(" ".join(str(error).split())) from error

    def convert_file(
        self,
        source: str | Path,
        target: str | Path,
        *,
        side: str | Path | None = None,
        target_side: str | Path | None = None,
    ) -> int:
        """Convert a stored gallery from disk to disk, in blocks: memory does not grow with it.

        The same bytes as ``np.save`` of :meth:`convert`; what is half written is never seen
        under the name of a target.

        Args:
            source: npy file, ``[n, d_old]``.
            target: npy file to write, ``[n, d]`` float32.
            side: npy file, ``[n, s]``, where the map was fitted with side-information.
            target_side: npy file of the side-information after the update; needed where the map
                makes new side-information, without which the next update cannot be made.

        Returns:
            How many items.

        Raises:
            BenchError: As :meth:`convert`; if a file cannot be read or written, or one would be
                written over what is read: a gallery converted twice is lost.
        """
        rows = open_rows("source", source)
        sides = None if side is None else open_rows("side", side)
        self._check_sizes("source", rows.shape, None if sides is None else sides.shape)
        if target_side is not None and sides is None:
            raise BenchError("target_side: the map was fitted without side-information")
        if self.maps_side and target_side is None:
            raise BenchError("target_side: the map makes new side-information, which would be lost")
        targets = [Path(t) for t in (target, target_side) if t is not None]
        read = {Path(p).resolve() for p in (source, side) if p is not None}
        for i, path in enumerate(targets):
            if path.resolve() in read | {p.resolve() for p in targets[:i]}:
                raise BenchError(f"{path}: expected another file than is read or written already")
        with writing(targets, len(rows)) as writers:
            more = row_blocks(sides, BLOCK) if sides is not None else None
            for start, block in enumerate(row_blocks(rows, BLOCK)):
                _finite(str(source), block, start * BLOCK)
                beside = None if more is None else next(more)
                if beside is not None:
                    _finite(str(side), beside, start * BLOCK)
                for write, made in zip(writers, self._convert(block, beside), strict=False):
                    if made is not None:
                        write(made)
        return len(rows)

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

    @classmethod
    def load(cls, folder: str | Path) -> Conversion:
        """Read what :meth:`save` wrote.

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

    def _write(self, folder: Path) -> None:
        for name, part in self.parts.items():
            save_module(part, folder / f"{name}.safetensors")
        kept = {
            "format": FORMAT,
            "method": self.method,
            "params": dict(self.params),
            "distance": self.distance,
            "dims": dataclasses.asdict(self.dims),
            "maps_side": self.maps_side,
            "parts": {n: file_digest(folder / f"{n}.safetensors") for n in self.parts},
        }
        (folder / META).write_text(json.dumps(kept, indent=1) + "\n")

    def _has(self, part: str) -> bool:
        return part in self.parts

    def _convert(self, vectors: Vectors, side: Vectors | None) -> tuple[Vectors, Vectors | None]:
        if not self._has("convert"):
            return vectors, side
        made: tuple[Vectors, Vectors | None] = apply(self.parts["convert"], vectors, side)
        return made

    def _stored(self, vectors: ArrayLike, side: ArrayLike | None) -> tuple[Vectors, Vectors | None]:
        given = checked("vectors", vectors)
        beside = None if side is None else checked("side", side)
        self._check_sizes("vectors", given.shape, None if beside is None else beside.shape)
        return given, beside

    def _check_sizes(self, name: str, shape: tuple[int, ...], side: tuple[int, ...] | None) -> None:
        n, dim = shape
        if dim != self.dims.old:
            raise BenchError(f"{name}: expected [n, {self.dims.old}] as fitted, got {list(shape)}")
        if side is None and self.dims.side:
            raise BenchError(
                f"side: fitted with {self.dims.side} dimensions of side-information, got none"
            )
        if side is not None and not self.dims.side:
            raise BenchError(f"side: fitted without side-information, got {list(side)}")
        if side is not None and side != (n, self.dims.side):
            raise BenchError(f"side: expected [{n}, {self.dims.side}], got {list(side)}")


def checked(name: str, values: Any, dim: int | None = None) -> Vectors:
    """Numbers as a float32 array ``[n, dim]``.

    Args:
        name: What an error names first.
        values: An array or tensor.
        dim: Its dimension, if known.

    Raises:
        BenchError: If the shape is another, or a value is not a finite number.
    """
    if isinstance(values, Tensor):
        values = values.detach().cpu().float().numpy()
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
            made = np.asarray(values).astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise BenchError(f"{name}: expected numbers [n, {dim or 'dim'}], got others") from error
    wanted = "dim" if dim is None else dim
    if made.ndim != 2 or 0 in made.shape or (dim is not None and made.shape[1] != dim):
        raise BenchError(f"{name}: expected [n, {wanted}], got {list(made.shape)}")
    _finite(name, made, 0)
    return made


def ids_of(name: str, values: Any) -> list[Any]:
    """Ids of items, as they were given.

    Raises:
        BenchError: If they are not one an item.
    """
    plain = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    try:
        shape = np.asarray(plain).shape
    except ValueError as error:  # ragged
        raise BenchError(f"{name}: expected one id an item, got lists of them") from error
    if len(shape) != 1:
        raise BenchError(f"{name}: expected one id an item, [n], got {list(shape)}")
    return list(plain)


def _finite(name: str, block: Vectors, first: int) -> None:
    if not np.isfinite(block).all():
        raise BenchError(f"{name}: {_bad_row(block, first)}")


def _bad_row(rows: Vectors, first: int = 0) -> str:
    row = first + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
    return f"expected finite numbers, got NaN or infinity in row {row}"
