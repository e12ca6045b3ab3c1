"""Files of vectors in the formats people have: found by ending, opened, written.

``gallery.npy``, a folder of parquet or Arrow files, or one array of several, ``sift.hdf5:train``.
Formats are imported when they are used: some of them need packages of the extra ``vectors``.
"""

import difflib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import cut
from benchmark.upgrade.formats.ids import Ids
from benchmark.upgrade.formats.sink import Sink
from benchmark.upgrade.formats.source import Source, files_of

_HERE = "benchmark.upgrade.formats"
_SOURCES = {
    ".npy": "numpy_files:NpySource", ".npz": "numpy_files:NpzSource",
    ".parquet": "parquet:ParquetSource", ".pq": "parquet:ParquetSource",
    ".arrow": "arrow:ArrowSource", ".feather": "arrow:ArrowSource",
    ".hdf5": "hdf5:Hdf5Source", ".h5": "hdf5:Hdf5Source", ".fvecs": "vecs:FvecsSource",
    ".bvecs": "vecs:BvecsSource", ".safetensors": "tensors:SafetensorsSource",
    ".jsonl": "records:JsonLinesSource", ".ndjson": "records:JsonLinesSource",
    ".json": "json_arrays:JsonSource", ".csv": "records:CsvSource", ".tsv": "records:TsvSource",
    ".copy": "records:CopySource", ".index": "faiss_files:FaissSource",
    ".faiss": "faiss_files:FaissSource", ".lance": "lance:LanceSource", ".vdf": "vdf:VdfSource",
    ".chroma": "chroma:ChromaSource",
}  # fmt: skip
_SINKS = {
    ".npy": "numpy_files:NpySink", ".npz": "numpy_files:NpzSink",
    ".parquet": "parquet:ParquetSink", ".pq": "parquet:ParquetSink",
    ".hdf5": "hdf5:Hdf5Sink", ".h5": "hdf5:Hdf5Sink", ".fvecs": "vecs:FvecsSink",
    ".safetensors": "tensors:SafetensorsSink",
}  # fmt: skip
_SINGLE = (".npy", ".fvecs", ".bvecs", ".index", ".faiss")
"""Endings of files that hold one array: ``:NAME`` after them names nothing."""
_PACKAGES = {
    "parquet": "pyarrow", "arrow": "pyarrow", "vdf": "pyarrow", "hdf5": "h5py",
    "json_arrays": "ijson", "lance": "lance",
}  # fmt: skip
"""Module of a format -> package that it imports."""
_EXTRAS = {"lance": ("pylance", "lance")}
"""Packages, and the extras that have them, where they are not the import and ``vectors``."""
_PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
_FOLDERS = {"VDF_META.json": ".vdf", "chroma.sqlite3": ".chroma"}
"""Files by which a folder is known."""


def open_vectors(name: str | Path, vector_column: str = "", id_column: str = "") -> Source:
    """Open vectors in any of the formats; what is in them is checked as it is read.

    Args:
        name: A file, a folder of parquet or Arrow files, of VDF, Chroma or LanceDB, or either with
            ``:NAME`` of an array or column, of a collection or table.
        vector_column: That name, too; a format of one array has none.
        id_column: Array or column of ids, where it has another name than the usual one; ``-`` for
            row numbers.

    Raises:
        BenchError: If nothing is there, the ending is unknown, a package is missing, or there are
            no vectors in it.
    """
    path, part = _split(str(name))
    ending = _ending(path)
    if vector_column and ending not in _SINGLE:
        if part and part != vector_column:
            raise BenchError(
                f"{name}: expected one name of vectors, got '{cut(vector_column)}', too"
            )
        part = vector_column
    if ending == ".ivecs":
        raise BenchError(f"{name}: .ivecs holds row numbers of neighbours, not vectors")
    if not ending and not path.exists():
        raise BenchError(f"{name}: there is no such file or folder")
    if ending in _PACKED:
        raise BenchError(
            f"{name}: expected a file of vectors, got a file compressed by {_PACKED[ending]}: "
            "unpack it first"
        )
    if ending not in _SOURCES:
        raise _unknown_ending(str(name), ending, _SOURCES)
    if part and ending in _SINGLE:
        raise BenchError(f"{name}: {ending} holds one array: expected no ':{cut(part)}'")
    source: Source = _load(_SOURCES[ending], str(name))(str(name), path, part, id_column)
    return source


def holds_one_array(name: str | Path) -> bool:
    """True of a format without names of arrays or columns."""
    return _ending(_split(str(name))[0]) in _SINGLE


def require_columns(names: Sequence[str | Path], *columns: str) -> None:
    """Raise a BenchError if a column is named, but every file holds one array."""
    named = [column for column in columns if column not in ("", "-")]
    if named and names and all(map(holds_one_array, names)):
        raise BenchError(f"{names[0]} holds one array: expected no column, got '{cut(named[0])}'")


def _ending(path: Path) -> str:
    """The ending of a file, or that of a folder's files or program."""
    if not path.is_dir():
        return path.suffix.lower()
    for name, ending in _FOLDERS.items():
        if (path / name).is_file():
            return ending
    if path.suffix == ".lance" or any(each.is_dir() for each in path.glob("*.lance")):
        return ".lance"
    endings = {
        each.suffix.lower() for each in path.iterdir() if not each.name.startswith((".", "_"))
    }
    return ".arrow" if ".arrow" in endings and not endings & {".parquet", ".pq"} else ".parquet"


def files_read(name: str | Path) -> list[Path]:
    """Files that :func:`open_vectors` would read, there or not; nothing is opened."""
    return files_of(_split(str(name))[0])


def sink_class(path: Path) -> type[Sink]:
    """The writer for a file's ending.

    Raises:
        BenchError: If the ending is unknown, is only read, or a package is missing.
    """
    ending = path.suffix.lower()
    if ending not in _SINKS:
        if ending in _SOURCES:
            raise BenchError(
                f"{path}: {ending} is read, not written; expected one of {', '.join(_SINKS)}"
            )
        raise _unknown_ending(str(path), ending, _SINKS)
    chosen: type[Sink] = _load(_SINKS[ending], str(path))
    return chosen


def _split(name: str) -> tuple[Path, str]:
    """Split a name into its path and the part after a colon, which may be part of a path."""
    path, _, part = name.rpartition(":")
    before = Path(path)
    is_source = before.suffix.lower() in _SOURCES or (path and before.is_dir())
    return (before, part) if is_source and not Path(name).exists() else (Path(name), "")


def _unknown_ending(name: str, ending: str, known: dict[str, str]) -> BenchError:
    got = f"ending '{cut(ending)}'" if ending else "no ending"
    close = difflib.get_close_matches(ending, known, n=1, cutoff=0.7)
    hint = f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(known)}"
    return BenchError(f"{name}: expected a file of vectors, got {got}{hint}")


def _load(place: str, name: str) -> Any:
    module, _, cls = place.partition(":")
    try:
        return getattr(importlib.import_module(f"{_HERE}.{module}"), cls)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(module)
        if package is None or (error.name or "").partition(".")[0] != package:
            raise
        package, extra = _EXTRAS.get(module, (package, "vectors"))
        raise BenchError(
            f"{name}: {module} needs the package {package}: pip install 'compatbench[{extra}]'"
        ) from error


__all__ = ["Ids", "Sink", "Source", "files_read", "open_vectors", "sink_class"]
