"""What datasets that are read from disk share. Not a dataset itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
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
