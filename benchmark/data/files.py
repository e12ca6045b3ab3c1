"""What datasets that are read from disk share. Not a dataset itself."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmark.errors import BenchError

SMALL_BYTES = 64 * 2**20
"""Up to here the contents are hashed; beyond, names, sizes and times stand for them."""


def root_of(data_root: Path | None, dataset: str) -> Path:
    """The data root, known to be a folder that can be listed.

    Raises:
        BenchError: If it is not given, missing, not a folder, or not readable.
    """
    if data_root is None:
        raise BenchError(f"dataset {dataset}: needs a data root (--data-root DIR), got none")
    root = Path(data_root)
    if not root.exists():
        raise BenchError(f"dataset {dataset}: data root does not exist: {root}")
    if not root.is_dir():
        raise BenchError(f"dataset {dataset}: data root: expected a folder, got a file: {root}")
    if not os.access(root, os.R_OK | os.X_OK):
        raise BenchError(f"dataset {dataset}: data root cannot be read: {root}")
    return root


def first_of(root: Path, names: Sequence[str], dataset: str) -> Path:
    """The first of some files or folders that is there.

    Raises:
        BenchError: If none is.
    """
    for name in names:
        if (root / name).exists():
            return root / name
    known = " or ".join(names)
    raise BenchError(f"dataset {dataset}: {root}: expected {known}, found neither")


def matches(path: Path, pattern: re.Pattern[str], expected: str) -> Iterator[re.Match[str]]:
    """A match for every line of a text file that is not empty.

    Args:
        path: The file.
        pattern: What each line must be, end to end.
        expected: The same in words.

    Raises:
        BenchError: Naming the line that is something else.
    """
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            for number, line in enumerate(file, 1):
                text = line.strip()
                found = pattern.fullmatch(text)
                if found is not None:
                    yield found
                elif text:
                    raise BenchError(f"{path}:{number}: expected {expected}, got '{text[:80]}'")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error


def numbered(folder: Path, pattern: re.Pattern[str], expected: str) -> list[tuple[int, Path]]:
    """Class folders by their numbers, ascending as numbers: 10 comes after 9.

    Args:
        folder: Holds them.
        pattern: Of their names, with the number as its first group.
        expected: The same in words.

    Raises:
        BenchError: If the folder cannot be listed, is empty, or a name is something else.
    """
    found = []
    for entry in _listed(folder):
        if not entry.is_dir() or entry.name.startswith("."):
            continue
        match = pattern.fullmatch(entry.name)
        if match is None:
            raise BenchError(f"{entry.path}: expected a folder named as {expected}")
        found.append((int(match[1]), folder / entry.name))
    if not found:
        raise BenchError(f"{folder}: expected folders named as {expected}, found none")
    return sorted(found)


def names_in(folder: Path, keep: Callable[[str], bool]) -> list[str]:
    """Names of the files of a folder that ``keep`` takes, by natural order of their numbers."""
    names = [e.name for e in _listed(folder) if not e.name.startswith(".") and keep(e.name)]
    return sorted(names, key=natural)


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which ``img10`` comes after ``img9``.

    Example:
        >>> sorted(["b10", "b9", "a11"], key=natural)
        ['a11', 'b9', 'b10']
    """
    parts = re.split(r"(\d+)", name)
    return [(1, int(p), p) if i % 2 else (0, 0, p) for i, p in enumerate(parts)]


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise BenchError(f"{folder}: cannot be listed: {error.strerror}") from error


def content_hash(root: Path, files: Sequence[Path]) -> str:
    """SHA-256 over relative names, sizes and contents; times in place of contents when large.

    Args:
        root: What the names are relative to.
        files: Files below it, in any order.

    Raises:
        BenchError: If a file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        found = sorted((path.relative_to(root).as_posix(), path, path.stat()) for path in files)
        small = sum(stat.st_size for _, _, stat in found) <= SMALL_BYTES
        for name, path, stat in found:
            digest.update(f"{name}\0{stat.st_size}\0".encode("utf-8", "surrogateescape"))
            if small:
                digest.update(hashlib.sha256(path.read_bytes()).digest())
            else:
                digest.update(f"{stat.st_mtime_ns}\0".encode())
    except OSError as error:
        raise BenchError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def decoder() -> str:
    """The library that decodes and resizes, which may move a pixel between releases."""
    from PIL import __version__

    return f"pillow {__version__}"
