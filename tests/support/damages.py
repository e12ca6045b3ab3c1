"""Ways in which a file comes to harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def put(path: Path, content: bytes) -> None:
    """Another file of this name; what was linked elsewhere stays as it was."""
    path.unlink()
    path.write_bytes(content)


def _truncated(path: Path, _: Path) -> None:
    put(path, path.read_bytes()[: path.stat().st_size // 2])


def _zeroed(path: Path, _: Path) -> None:
    put(path, bytes(path.stat().st_size))


def _flipped(path: Path, _: Path) -> None:
    # Two thirds in: past headers, among the values.
    content = bytearray(path.read_bytes())
    content[2 * len(content) // 3] ^= 4
    put(path, bytes(content))


def _emptied(path: Path, _: Path) -> None:
    put(path, b"")


def _deleted(path: Path, _: Path) -> None:
    path.unlink()


def _swapped(path: Path, other: Path) -> None:
    own, others = path.read_bytes(), other.read_bytes()
    put(path, others)
    put(other, own)


def _appended(path: Path, _: Path) -> None:
    put(path, path.read_bytes() + b"\0 and more")


DAMAGES: Mapping[str, Callable[[Path, Path], None]] = {
    "truncated": _truncated, "zeroed": _zeroed, "flipped": _flipped, "emptied": _emptied,
    "deleted": _deleted, "swapped": _swapped, "appended": _appended,
}  # fmt: skip
"""Name -> what it does to a file; ``swapped`` needs another one."""
