"""A saved conversion applied to vectors in any format, from disk to disk."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.config.places import require_apart
from benchmark.contract.conversion import Conversion
from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.formats import Sink, Source, open_vectors, require_columns, sink_class
from benchmark.upgrade.formats.joining import Join, join_all, pairs
from benchmark.upgrade.formats.rows import new_number_bytes, require_directions, stored_bytes
from benchmark.upgrade.formats.sink import writing
from benchmark.upgrade.formats.source import BATCH, files_of

Batch = tuple[Floats, Floats | None]


@dataclass(frozen=True)
class Converted:
    """Numbers of a finished conversion."""

    rows: int
    dims: tuple[int, int]  # numbers of a vector before and after
    seconds: float  # from the first batch read to the last file in its place
    read_bytes: int  # of the vectors as stored, side-information among them
    written_bytes: int
    joined: Join | None  # rows of side-information that belong to vectors; None without
    told: tuple[str, ...]  # lines about ids under another name than the usual one

    def __str__(self) -> str:
        """One line for a person."""
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.rows:,} rows of {self.dims[0]} to {self.dims[1]} numbers in {seconds:.1f} s: "
            f"{self.rows / seconds:,.0f} rows/s, read {_rate(self.read_bytes, seconds)}, "
            f"written {_rate(self.written_bytes, seconds)}"
        )


def convert(
    conversion: Conversion | str | Path, source: str | Path, target: str | Path, *,
    side: str | Path | None = None, side_target: str | Path | None = None,
    id_column: str = "", vector_column: str = "", dtype: str = "",
    batch: int = BATCH, force: bool = False, engine: str = "local",
    progress: Callable[[float], object] = lambda share: None,
) -> Converted:  # fmt: skip
    """Convert stored vectors of any format into a file of any format; ids come along.

    Args:
        conversion: A fitted map, or the folder of a saved one.
        source: Vectors ``[n, d_old]`` as :func:`open_vectors` takes them.
        target: File ``[n, d]``; its ending says the format.
        side: Side-information ``[n, s]``, for a map that was fitted with it; joined by ids.
        side_target: File of the new side-information, for a map that gives it.
        id_column: Column or array of ids of both, ``-`` for row numbers; by default ``id`` or the
            like, else the only one that may hold some.
        vector_column: As it, of vectors.
        dtype: Of the files written, ``float32`` or ``float16``; by default that of vectors of two
            bytes a number where the format holds it, and float32 of others.
        batch: Rows at a time: memory grows with it, not with the number of rows.
        force: Write over files that exist.
        engine: ``local``, or ``ray``: batches are read and written here and converted on a cluster.
        progress: Called with the share that is done.

    Returns:
        Its numbers. The files are there whole, or the call raised and none is.

    Raises:
        BenchError: If something is missing, damaged, in the way, of another size, not a finite
            number, or zero where embeddings are compared by their cosine, or the map is of queries.
    """
    own = [] if isinstance(conversion, Conversion) else files_of(Path(conversion))
    if not isinstance(conversion, Conversion):
        conversion = Conversion.load(conversion)
    require_columns([source] if side is None else [source, side], vector_column, id_column)
    vectors = open_vectors(source, vector_column, id_column)
    beside = None if side is None else open_vectors(side, vector_column, id_column)
    _check_map(conversion, own)
    _check_dims(conversion, vectors, beside, side_target)
    sources = [each for each in (vectors, beside) if each is not None]
    targets = [Path(each) for each in (target, side_target) if each is not None]
    sinks = [
        kind(path, vectors.rows, dtype or _default(kind, vectors), vectors.ids)
        for path, kind in zip(targets, map(sink_class, targets), strict=True)
    ]
    _check_targets(sinks, sources, own, force)
    wanted = "side-information of each vector"
    joined = None if beside is None else join_all(vectors, beside, wanted)
    started, done = time.perf_counter(), 0
    with writing(sinks):
        batches = _batches(conversion, vectors, beside, joined, batch, targets[0].parent)
        for new in _converted(conversion, batches, engine):
            parts = new if conversion.maps_side else (new,)
            for sink, part in zip(sinks, parts, strict=True):
                sink.write(part)
            done += len(parts[0])
            progress(done / vectors.rows)
    return Converted(
        rows=done,
        dims=(vectors.dim, parts[0].shape[1]),
        seconds=time.perf_counter() - started,
        read_bytes=sum(each.rows * each.dim * stored_bytes(each) for each in sources),
        written_bytes=sum(path.stat().st_size for sink in sinks for path in sink.targets),
        joined=joined,
        told=tuple(line for each in sources for line in each.told),
    )


def _default(kind: type[Sink], vectors: Source) -> str:
    return "float16" if new_number_bytes(vectors) == 2 and "float16" in kind.dtypes else "float32"


def _check_map(conversion: Conversion, files: list[Path]) -> None:
    """Raise a BenchError if stored vectors would be copied as they are."""
    if "convert" in conversion.parts:
        return
    name = str(files[0]) if files else conversion.method
    call = conversion.view_call
    use = f'benchmark.Conversion.load("{name}").{call}' if files else f"its {call}"
    raise BenchError(
        f"{name}: expected a map of stored vectors, got one of queries: stored vectors stay as "
        f"they are, {use} brings new queries to them"
    )


def _check_dims(
    conversion: Conversion, vectors: Source, side: Source | None, side_target: object
) -> None:
    dims = conversion.dims
    if vectors.dim != dims.old:
        raise BenchError(
            f"{vectors.name}: expected vectors of {dims.old} numbers, as the conversion was fitted "
            f"with, got {vectors.dim}"
        )
    if bool(dims.side) != (side is not None):
        expected = f"side-information of {dims.side} numbers" if dims.side else "none"
        raise BenchError(f"--side: expected {expected}, as the conversion was fitted with")
    if side is not None and side.dim != dims.side:
        raise BenchError(f"{side.name}: expected rows of {dims.side} numbers, got {side.dim}")
    if conversion.maps_side != (side_target is not None):
        expected = "a file for the new side-information" if conversion.maps_side else "none"
        raise BenchError(f"--side-output: expected {expected}: the conversion decides")


def _check_targets(sinks: list[Sink], sources: list[Source], own: list[Path], force: bool) -> None:
    """Raise a BenchError if a target is read, comes twice, or is a file nobody agreed to lose."""
    written = [(str(path), path) for sink in sinks for path in sink.replaced]
    require_apart(written, [*(path for each in sources for path in each.paths), *own])
    for _, path in written:
        if path.exists() and not path.is_file():
            raise BenchError(f"{path}: there is something else than a file")
        if (path.exists() or path.is_symlink()) and not force:
            raise BenchError(f"{path}: exists already; --force writes over it")


def _batches(
    conversion: Conversion, vectors: Source, side: Source | None, joined: Join | None, size: int,
    folder: Path,
) -> Iterator[Batch]:  # fmt: skip
    """Vectors and their side-information; a BenchError where a vector has no direction."""
    done = 0
    if side is None or joined is None:
        batches: Iterator[Batch] = ((old, None) for old in vectors.vectors(size))
    else:
        batches = pairs(vectors, side, joined, size, folder)
    for old, beside in batches:
        if conversion.distance == "cosine":
            require_directions(vectors, old, "cosine", first=done)
        done += len(old)
        yield old, beside


def _converted(conversion: Conversion, batches: Iterator[Batch], engine: str) -> Iterator[Any]:
    """Each batch after the conversion, in order."""
    if engine == "ray":
        from benchmark.harness.ray import in_order

        return in_order(_convert_one, conversion, batches)
    return (conversion.convert(*each) for each in batches)


def _convert_one(conversion: Conversion, batch: Batch) -> Any:
    return conversion.convert(*batch)


def _rate(n_bytes: int, seconds: float) -> str:
    return f"{n_bytes / 1e6:,.1f} MB ({n_bytes / 1e6 / seconds:,.1f} MB/s)"
