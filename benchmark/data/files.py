"""Files of datasets: the data root, lists of images, their names and their hash."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmark.config.files import file_size, read_bytes
from benchmark.data.base import Ints
from benchmark.errors import BenchError

IMAGES = frozenset((
    ".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".pbm",
    ".pnm", ".jfif", ".avif",
))  # fmt: skip
"""Endings of the names of images, in small letters."""

SMALL_BYTES = 2**30
"""Up to here the contents are hashed; beyond, names, sizes and times stand for them."""

_MOST_TABLE = 2**28
_MOST_LINES = 2**25
_LONGEST_LINE = 10_000
_LONGEST_NAME = 1000


@dataclass(frozen=True)
class Files:
    """Encoded images, a file each."""

    root: Path  # a folder
    names: tuple[str, ...]  # of the files, relative to it

    @classmethod
    def checked(cls, root: Path, names: Sequence[str]) -> Files:
        """Files; BenchError if a name leaves the folder or does not fit a list of lines."""
        for name in names:
            if not name or name.startswith("/") or ".." in name.split("/") or "\n" in name:
                raise BenchError(f"{root}: unexpected file name {name!r}")
        return cls(root, tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def paths(self) -> list[Path]:
        """Each file's path."""
        return [self.root / name for name in self.names]

    def read(self, row: int) -> tuple[str, Path]:
        """The name for errors, and the encoded image."""
        path = self.root / self.names[row]
        return str(path), path

    def take(self, rows: Ints) -> Files:
        """Some of them."""
        return Files(self.root, tuple(self.names[row] for row in rows.tolist()))

    def key(self) -> bytes:
        """Names that tell them from others below the same folder."""
        return "\0".join(self.names).encode("utf-8", "surrogateescape")


Labelled = tuple[Files, Ints]
"""Image files, and the class of each or a number that stands for it, ``[n]``."""


def data_root(root: Path | None, dataset: str) -> Path:
    """The data root; BenchError if it is not given, or no folder that can be listed."""
    where = f"dataset {dataset}: data root"
    if root is None:
        raise BenchError(f"{where}: expected one (--data-root DIR), got none")
    if not root.exists():
        raise BenchError(f"{where} does not exist: {root}")
    if not root.is_dir():
        raise BenchError(f"{where}: expected a folder, got a file: {root}")
    if not os.access(root, os.R_OK | os.X_OK):
        raise BenchError(f"{where} cannot be read: {root}")
    return root


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file or archive that cannot be read; ``path`` where the error names none.

    Of damaged bytes Python's readers make errors of many kinds.
    """
    try:
        yield
    except (
        OSError, EOFError, ValueError, LookupError, ArithmeticError, RuntimeError, MemoryError,
        struct.error, tarfile.TarError, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        place, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
        text = reason or " ".join(str(error).split())
        raise BenchError(f"{place or path}: cannot be read: {text:.300}") from error


def read_integers(path: Path, columns: int, expected: str) -> Ints:
    """Integers of each line of a text file, ``[n, columns]``; BenchError on any other line."""
    file_size(path, _MOST_TABLE)
    try:
        table = np.loadtxt(path, np.int64, ndmin=2, encoding="utf-8-sig")
    except (OSError, ValueError, ArithmeticError) as error:
        text = " ".join(str(error).split())
        raise BenchError(f"{path}: expected {expected} in each line: {text:.300}") from error
    if not len(table) or table.shape[1] != columns:
        raise BenchError(f"{path}: expected {expected} in each line, got {table.shape[1]} values")
    return table


def check_names(names: Iterable[str], where: str) -> None:
    """Raise a BenchError unless names of classes are text that can be printed and written."""
    for name in names:
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
            expected = f"at most {_LONGEST_NAME} printable letters in UTF-8"
            raise BenchError(f"{where}: expected a name of {expected}, got '{name:.80}'")


def first_of(root: Path, *names: str) -> Path:
    """The first of some files or folders that exists; BenchError if none does."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise BenchError(f"{root}: expected {' or '.join(names)}, found none")


def matches(path: Path, pattern: re.Pattern[str], expected: str) -> Iterator[re.Match[str]]:
    """A match for every line that is not empty; BenchError naming one that does not match."""
    file_size(path, _MOST_TABLE)
    with readable(path), path.open(encoding="utf-8-sig", newline=None) as file:
        for number, line in enumerate(file, 1):
            if number > _MOST_LINES:
                raise BenchError(f"{path}: expected at most {_MOST_LINES} lines")
            text = line.strip()
            match = pattern.fullmatch(text) if len(text) <= _LONGEST_LINE else None
            if match is not None:
                yield match
            elif text:
                raise BenchError(f"{path}:{number}: expected {expected}, got '{text[:80]}'")


def read_text(path: Path, limit: int, expected: str = "text") -> str:
    """The text of a file; BenchError as of :func:`read_bytes`, and if it is not UTF-8."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BenchError(f"{path}: expected {expected} in UTF-8: {error}") from error


def csv_lines(path: Path, limit: int) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line of a CSV table in UTF-8; BenchError if it is none."""
    text = read_text(path, limit, "a CSV table")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((lines.line_num, cells) for cells in lines)
    except csv.Error as error:
        raise BenchError(f"{path}: expected a CSV table in UTF-8: {error}") from error


def images_by_class(root: Path, folder: str, pattern: re.Pattern[str], expected: str) -> Labelled:
    """Images in folders named by the number of their class, in the order of these numbers.

    The first group of ``pattern``, in words ``expected``, is the number; BenchError if a folder is
    missing, empty or named otherwise.
    """
    classes = []
    for entry in _listed(first_of(root, folder)):
        if entry.is_dir():
            match = pattern.fullmatch(entry.name)
            if match is None:
                raise BenchError(f"{entry.path}: expected a folder named as {expected}")
            classes.append((int(match[1]), entry.name))
    if not classes:
        raise BenchError(f"{root / folder}: expected folders named as {expected}, found none")
    names, numbers = [], []
    for number, class_folder in sorted(classes):
        images = names_in(root / folder / class_folder)
        if not images:
            raise BenchError(f"{root / folder / class_folder}: class without an image")
        names += [f"{folder}/{class_folder}/{name}" for name in images]
        numbers += [number] * len(images)
    return Files.checked(root, names), np.array(numbers, np.int64)


_MADE = frozenset({"@eadir", "__macosx", "thumbs", "thumbnails", "#recycle", "lost+found"})
"""Folders that systems make beside photographs, their own small copies in them; small letters."""


def is_made(name: str) -> bool:
    """Tell whether a folder is hidden, or of those that a system makes."""
    return name.startswith(".") or name.lower() in _MADE


def names_in(folder: Path, suffixes: Collection[str] = IMAGES) -> list[str]:
    """Names of a folder's files with these endings, by natural order of their numbers."""
    names = [e.name for e in _listed(folder) if Path(e.name).suffix.lower() in suffixes]
    return sorted(names, key=natural)


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which ``img10`` comes after ``img9``.

    Example:
        >>> sorted(["10.jpg", "9.jpg", "1_10.jpg", "1_9.jpg"], key=natural)
        ['1_9.jpg', '1_10.jpg', '9.jpg', '10.jpg']
    """
    parts = re.split(r"(\d+)", name)
    return [(1, int(p), p) if i % 2 else (0, 0, p) for i, p in enumerate(parts)]


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """Contents of a folder, without hidden files and what systems make."""
    with readable(folder), os.scandir(folder) as entries:
        return [entry for entry in entries if not is_made(entry.name)]


def content_hash(root: Path, files: Sequence[Path]) -> str:
    """SHA-256 over names relative to ``root``, sizes and contents of files in any order.

    Times stand for contents of more than ``SMALL_BYTES`` in all.
    """
    with readable(root):
        stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
        facts = sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
        return _content_hash(root, tuple(facts))


@lru_cache(maxsize=2)
def _content_hash(root: Path, facts: tuple[tuple[str, int, int], ...]) -> str:
    """Hash of what lies there, for as long as names, sizes and times stay as they are."""
    if sum(size for _, size, _ in facts) <= SMALL_BYTES:
        return contents_hash((name, read_bytes(root / name, SMALL_BYTES)) for name, _, _ in facts)
    digest = hashlib.sha256()
    for name, size, changed in facts:
        digest.update(f"{name}\0{size}\0{changed}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def contents_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256 over names, sizes and contents, in this order of the files."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()
