"""Vectors written batch by batch to a file that appears whole or not at all."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import clear_parts, part_of, plain_io_errors
from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.formats.flat import sidecar, write_flat
from benchmark.upgrade.formats.ids import Ids


class Sink(ABC):
    """A file of ``rows`` vectors, written in order; :func:`writing` opens and finishes it."""

    has_sidecar: ClassVar[bool] = False  # ids may stand in a file beside, NAME.ids.npy
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float16")  # that it can hold

    def __init__(self, path: Path, rows: int, dtype: str, ids: Ids | None) -> None:
        """Write nothing yet; a BenchError if the format cannot hold the type."""
        if dtype not in self.dtypes:
            raise BenchError(f"{path}: expected --dtype {' or '.join(self.dtypes)}, got {dtype}")
        self.path, self.rows, self.ids = path, rows, ids
        self.dtype: np.dtype[Any] = np.dtype(dtype).newbyteorder("<")
        self.part = part_of(path)
        self.written = 0
        self._stack = ExitStack()

    @property
    def beside(self) -> Path | None:
        """The file of ids that is written too."""
        return sidecar(self.path) if self.has_sidecar and self.ids is not None else None

    @abstractmethod
    def _begin(self, dim: int) -> None:
        """Open the file ``part``; ``_stack`` closes it."""

    @abstractmethod
    def _append(self, vectors: NDArray[Any]) -> None:
        """Write the rows after those ``written``, ``[k, dim]`` of the sink's type, in C order."""

    def write(self, vectors: Floats) -> None:
        """Append rows ``[k, dim]``.

        Raises:
            BenchError: If the type cannot hold a number, or it is NaN or infinite.
        """
        if not self.written:
            self._begin(vectors.shape[1])
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(vectors, self.dtype)
        if not (fits := np.isfinite(stored).all(axis=1)).all():
            row = self.written + int(np.argmin(fits))
            hint = "" if self.dtype.itemsize == 4 else "; expected --dtype float32"
            raise BenchError(
                f"{self.path}: row {row} has numbers that {self.dtype} cannot hold{hint}"
            )
        self._append(stored)
        self.written += len(stored)

    def finish(self) -> None:
        """Close the file, which is complete then."""
        if self.written != self.rows:
            raise BenchError(f"{self.path}: expected {self.rows} rows, got {self.written}")
        self._stack.close()
        if self.beside is not None and self.ids is not None:
            with part_of(self.beside).open("wb") as file:
                write_flat(file, self.ids)

    def abandon(self) -> None:
        """Close the file, whatever is in it."""
        with suppress(Exception):  # a library may miss what was not written
            self._stack.close()

    @property
    def targets(self) -> list[Path]:
        """Every file that appears."""
        return [self.path] if self.beside is None else [self.path, self.beside]

    @property
    def replaced(self) -> list[Path]:
        """Every file that does not stay as it is, ids of earlier vectors among them."""
        return [self.path, sidecar(self.path)] if self.has_sidecar else [self.path]


class FileSink(Sink):
    """A sink that writes its rows one after another to a stream."""

    @abstractmethod
    def _opened(self, dim: int) -> IO[bytes]:
        """Open the stream, at the place of the first row; ``_stack`` closes it."""

    def _begin(self, dim: int) -> None:
        self._file = self._opened(dim)

    def _append(self, vectors: NDArray[Any]) -> None:
        self._file.write(vectors.data)


@contextmanager
def writing(sinks: Sequence[Sink]) -> Iterator[None]:
    """Write within; then all files appear, or none if anything went wrong.

    A file of ids of earlier vectors of the same name goes.

    Raises:
        BenchError: If a folder is missing, a file cannot be written or the disk is full.
    """
    for sink in sinks:
        if not sink.path.parent.is_dir():
            raise BenchError(f"{sink.path}: its folder does not exist")
    targets = [path for sink in sinks for path in sink.targets]
    for path in targets:
        clear_parts(path)
    try:
        with plain_io_errors(sinks[0].path.parent):
            try:
                yield
                for sink in sinks:
                    sink.finish()
            finally:
                for sink in sinks:
                    sink.abandon()
            # Earlier ids first, later ones last: no vectors are ever seen with those of others.
            for path in (path for sink in sinks for path in sink.replaced[1:]):
                path.unlink(missing_ok=True)
            for path in targets:
                part_of(path).replace(path)
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise BenchError(f"{sinks[0].path}: cannot be written: {reason}") from error
    finally:
        for path in targets:
            part_of(path).unlink(missing_ok=True)
