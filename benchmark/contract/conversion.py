"""A fitted conversion of a stored gallery, on plain arrays, and kept on disk."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, NonNegativeInt, PositiveInt

from benchmark.config.files import clear_parts, file_digest, file_size, part_of, plain_io_errors
from benchmark.config.places import real
from benchmark.config.reading import Model, read_json
from benchmark.contract.arrays import (
    Vectors,
    apply,
    as_ids,
    as_vectors,
    require_direction,
    require_finite,
)
from benchmark.contract.lists import TwoLists
from benchmark.errors import BenchError, located
from benchmark.metrics.backfill_orders import by_score
from benchmark.models.module import Portable, load_module, save_module
from benchmark.training.loop import Curve

PartName = Literal["convert", "query_view", "joint_view", "merge", "priority"]
PARTS: tuple[str, ...] = get_args(PartName)
META = "conversion.json"
_MOST_META = 2**20
_MOST_PART = 2**30
_MOST_DIM = 2**20


class Dims(Model):
    """Dimensions of stored vectors, new vectors and side-information (0: none) of a fit."""

    old: Annotated[PositiveInt, Field(le=_MOST_DIM)]
    new: Annotated[PositiveInt, Field(le=_MOST_DIM)]
    side: Annotated[NonNegativeInt, Field(le=_MOST_DIM)] = 0


class _Meta(Model):
    """The file beside the parts of a stored conversion; ``parts`` has the digest of each."""

    format: Literal[1]
    method: str
    params: dict[str, Any]
    distance: Literal["cosine", "l2"]
    dims: Dims
    maps_side: bool
    parts: dict[PartName, str]


def require_place(folder: str | Path) -> None:
    """BenchError if a conversion saved there would take the place of something else."""
    place = Path(folder)
    if place.exists() and not (place / META).is_file():
        raise BenchError(f"{folder}: there is something else than a conversion")
    for each in place.iterdir() if place.exists() else ():
        if each.name != META and each.suffix != ".safetensors":
            raise BenchError(f"{folder}: there is more than a conversion: {each.name}")


@dataclass(frozen=True)
class Conversion:
    """A fitted map, as a deployment needs it at update time, without the harness."""

    method: str  # id of the method that fitted it, with ``params``
    params: Mapping[str, Any]
    distance: str  # how the deployment compares embeddings, ``cosine`` or ``l2``
    dims: Dims
    maps_side: bool  # whether it brings side-information to the new generation too
    # ``convert``, ``query_view``, ``joint_view``, ``merge``, ``priority``: those that it has
    parts: Mapping[str, Portable]
    # training curves by name; they are not saved
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def convert(self, vectors: ArrayLike, side: ArrayLike | None = None) -> Any:
        """Convert stored vectors ``[n, d_old]`` and side-information ``[n, s]``, if fitted with it.

        Gives ``[n, d]`` float32; with ``maps_side`` a pair of them and the new side-information.

        Raises:
            BenchError: If something is missing, of another size, not a finite number, or, where
                cosine compares, a vector of zeros.
        """
        converted, new_side = self._convert(*self._stored(vectors, side))
        for name, rows in (("vectors", converted), ("side-information", new_side)):
            if rows is not None:
                require_finite(f"{name} after {self.method}", rows)
        return (converted, new_side) if self.maps_side else converted

    def view(self, queries: ArrayLike, old_queries: ArrayLike | None = None) -> Vectors:
        """New queries ``[n, d_new]`` in the space of the converted gallery, ``[n, d]``.

        Methods that run the old model too need the same queries by it, ``[n, d_old]``; a BenchError
        says so.
        """
        seen = self._view(queries, old_queries)
        require_finite(f"queries after {self.method}", seen)
        return seen

    @property
    def view_call(self) -> str:
        """The call of :meth:`view` with what this conversion needs, for a person."""
        return f"view(queries{', old_queries' if 'joint_view' in self.parts else ''})"

    def _view(self, queries: ArrayLike, old_queries: ArrayLike | None) -> Vectors:
        vectors = self._queries("queries", queries, self.dims.new)
        if "joint_view" not in self.parts:
            return (
                apply(self.parts["query_view"], vectors) if "query_view" in self.parts else vectors
            )
        if old_queries is None:
            raise BenchError(f"old_queries: {self.method} needs queries by the old model, got none")
        old = self._queries("old_queries", old_queries, self.dims.old)
        if len(old) != len(vectors):
            raise BenchError(f"old_queries: expected {len(vectors)} as queries, got {len(old)}")
        return apply(self.parts["joint_view"], vectors, old)

    def _queries(self, name: str, queries: ArrayLike, dim: int) -> Vectors:
        vectors = as_vectors(name, queries, dim)
        require_direction(name, vectors, self.distance)
        return vectors

    @property
    def merge(self) -> TwoLists | None:
        """Merge of results by :meth:`view` and by new queries into one ranking; None: by score."""
        part = self.parts.get("merge")
        return part if isinstance(part, TwoLists) else None

    def priority(self, vectors: ArrayLike, side: ArrayLike | None = None) -> Vectors:
        """Priority of stored items in backfilling, ``[n]``; a BenchError if there is none."""
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

        Vectors and side-information are as of :meth:`convert`, ids by default the rows.

        Raises:
            BenchError: As :meth:`priority`; if ids are not one an item, or one comes twice.
        """
        priority = self.priority(vectors, side)
        try:
            return by_score(priority, range(len(priority)) if ids is None else as_ids("ids", ids))
        except ValueError as error:
            raise BenchError(" ".join(str(error).split())) from error

    def save(self, folder: str | Path) -> None:
        """Write a folder, whole or not at all: safetensors and a JSON file, no pickle.

        Raises:
            BenchError: If it cannot be written, or holds something else than a conversion.
        """
        folder = real(Path(folder))
        require_place(folder)
        clear_parts(folder)
        part = part_of(folder)
        try:
            part.mkdir(parents=True)
            with plain_io_errors(part):
                files = {name: part / f"{name}.safetensors" for name in self.parts}
                for name, path in files.items():
                    save_module(self.parts[name], path)
                meta = {
                    "format": 1, "method": self.method, "params": dict(self.params),
                    "distance": self.distance, "dims": self.dims.model_dump(),
                    "maps_side": self.maps_side,
                    "parts": {name: file_digest(path) for name, path in files.items()},
                }  # fmt: skip
                (part / META).write_text(json.dumps(meta, indent=1) + "\n")
                shutil.rmtree(folder, ignore_errors=True)
                part.replace(folder)
        except OSError as error:
            raise BenchError(f"{folder}: cannot be written: {error.strerror}") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder of :meth:`save`.

        It may come from anyone: nothing but its JSON file is looked at before the digests fit, and
        its parts are tried on one row.

        Raises:
            BenchError: If there is no conversion, it is damaged, its parts do not fit its
                dimensions, or it is of a later format.
        """
        folder = Path(folder)
        meta = read_json(_Meta, folder / META, _MOST_META)
        files = {name: folder / f"{name}.safetensors" for name in meta.parts}
        for name, path in files.items():
            file_size(path, _MOST_PART)
            try:
                found = file_digest(path)
            except OSError as error:
                raise BenchError(f"{path}: cannot be read: {error.strerror}") from error
            if found != meta.parts[name]:
                raise BenchError(f"{path}: damaged, its digest is another")
        parts = {str(name): load_module(path).eval() for name, path in files.items()}
        loaded = cls(meta.method, meta.params, meta.distance, meta.dims, meta.maps_side, parts)
        with located(str(folder)):
            loaded._try()
        return loaded

    def _try(self) -> None:
        """Convert one row of ones; BenchError unless every part takes and gives what it should."""
        dims = self.dims
        old, new = np.ones((1, dims.old), np.float32), np.ones((1, dims.new), np.float32)
        side = np.ones((1, dims.side), np.float32) if dims.side else None
        view = "joint_view" if "joint_view" in self.parts else "query_view"
        queries = _shape(_tried(view, self._view, new, old))
        if "merge" in self.parts:
            self._try_merge()
        converted = _tried("convert", self._convert, old, side)
        if not isinstance(converted, tuple) or len(converted) != 2:
            raise BenchError("convert: expected vectors and side-information")
        if len(queries) != 2 or _shape(converted[0]) != queries:
            raise BenchError(f"convert: expected {queries}, got {_shape(converted[0])}")
        if self.maps_side and len(_shape(converted[1])) != 2:
            raise BenchError("convert: expected side-information of the new generation, got none")
        if "priority" in self.parts:
            priority = _shape(_tried("priority", apply, self.parts["priority"], old, side))
            if priority != (1,):
                raise BenchError(f"priority: expected a number an item, got {priority}")

    def _try_merge(self) -> None:
        block = np.ones((1, 2), np.float32)
        if self.merge is None:
            raise BenchError("merge: expected a merge of two lists")
        merged = _tried("merge", self.merge.merge, block, block)
        if _shape(merged) != block.shape or not np.isfinite(merged).all():
            raise BenchError(f"merge: expected a number an item, got {_shape(merged)}")

    def _convert(self, vectors: Vectors, side: Vectors | None) -> tuple[Vectors, Vectors | None]:
        part = self.parts.get("convert")
        return (vectors, side) if part is None else apply(part, vectors, side)

    def _stored(self, vectors: ArrayLike, side: ArrayLike | None) -> tuple[Vectors, Vectors | None]:
        stored = as_vectors("vectors", vectors), None if side is None else as_vectors("side", side)
        sizes = ("vectors", self.dims.old), ("side", self.dims.side)
        for (name, dim), rows in zip(sizes, stored, strict=True):
            expected = [len(stored[0]), dim] if dim else "no side-information"
            got = "no side-information" if rows is None else list(rows.shape)
            if got != expected:
                raise BenchError(f"{name}: expected {expected}, got {got}")
        require_direction("vectors", stored[0], self.distance)
        return stored


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array; ``()`` of anything else."""
    return value.shape if isinstance(value, np.ndarray) else ()


def _tried(name: str, function: Callable[..., Any], *arrays: Any) -> Any:
    """The value of a part of a file; BenchError for whatever it raises."""
    try:
        return function(*arrays)
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise BenchError(f"{name}: cannot be applied: {text:.300}") from error
