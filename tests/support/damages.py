"""Ways in which a file comes to harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def put(path: Path, content: bytes) -> None:
    """Another file of this name; what was linked elsewhere stays as it was."""
    path.unlink()
    path.write_bytes(content)


def _as(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    return lambda path, other: put(path, change(path.read_bytes()))


def _flipped(content: bytes) -> bytes:
    place = 2 * len(content) // 3  # past headers, among the values
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def _swapped(path: Path, other: Path) -> None:
    own, others = path.read_bytes(), other.read_bytes()
    put(path, others)
    put(other, own)


DAMAGES: Mapping[str, Callable[[Path, Path], None]] = {
    "truncated": _as(lambda content: content[: len(content) // 2]),
    "zeroed": _as(lambda content: bytes(len(content))),
    "flipped": _as(_flipped),
    "emptied": _as(lambda content: b""),
    "deleted": lambda path, other: path.unlink(),
    "swapped": _swapped,
    "appended": _as(lambda content: content + b"\0 and more"),
}
"""Name -> what it does to a file; ``swapped`` needs another one."""
