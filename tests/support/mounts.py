"""Small disks and disks that cannot be written, where the system lets a test have them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def _mount(*words: str) -> None:
    try:
        subprocess.run(["mount", *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {getattr(error, 'stderr', error)!s:.200}")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


@contextlib.contextmanager
def small_disk(folder: Path, n_bytes: int) -> Iterator[Path]:
    """A disk of some bytes, in memory."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        _unmount(folder)


def grow(folder: Path, n_bytes: int) -> None:
    """Another size of a :func:`small_disk`."""
    _mount("-o", f"remount,size={n_bytes}", str(folder))


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder as if its disk could not be written; root is held to it too."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield folder
    finally:
        _unmount(folder)
