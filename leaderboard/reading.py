"""Records from a folder; one that cannot be shown is passed over, and said so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.records.files import Attempt, find_records
from benchmark.records.record import Record
from leaderboard.processes import MANY, spread


@dataclass(frozen=True)
class Entry:
    """A record, and the file that it was read from, if any."""

    record: Record
    path: Path | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that is not shown, and why, in one line."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"skipped {self.file}: {self.reason}"


def read_folder(root: Path) -> tuple[list[Entry], list[Skipped]]:
    """Every record below a folder, in the order of their paths, and what is no record.

    Raises:
        BenchError: If there is no record.
    """
    entries: list[Entry] = []
    skipped: list[Skipped] = []
    seen: set[tuple[object, ...]] = set()
    for found in find_records(root, lambda error: skipped.append(skip(error, root)), _each):
        mark = _mark(found.record)
        if mark in seen:
            skipped.append(skip(_twice(found.record, found.path), root))
        else:
            seen.add(mark)
            entries.append(Entry(found.record, found.path))
    return entries, sorted(skipped, key=lambda each: each.file)


def _each(read: Callable[[Path], Attempt], paths: Sequence[Path]) -> list[Attempt]:
    return spread(read, paths, enough=len(paths) >= MANY)


def _mark(record: Record) -> tuple[object, ...]:
    """What only one record may have."""
    return (
        record.protocol, record.protocol_version, record.track, record.track_version,
        record.method, record.seed, record.first_seed, repr(sorted(record.changed.items())),
    )  # fmt: skip


def _twice(record: Record, path: Path) -> BenchError:
    return BenchError(
        f"{path}: a record of {record.method}, seed {record.seed}, on {record.protocol} and "
        f"{record.track} was read before"
    )


def skip(error: BenchError, root: Path) -> Skipped:
    """What an error that begins with a file says of it; the file as it is called below ``root``."""
    text = " ".join(str(error).split())
    file, _, reason = text.removeprefix(f"{root}/").partition(": ")
    return Skipped(_printable(file), _printable(reason.replace(f"{root}/", "")))


def _printable(text: str, longest: int = 300) -> str:
    """Text that a terminal shows on one line as it is."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."


def entries_of(records: Iterable[Record], root: Path | None) -> list[Entry]:
    """Records at hand, with their files below ``root`` where these are."""
    found = []
    for record in records:
        path = None if root is None else record.path(root)
        found.append(Entry(record, path if path is not None and path.is_file() else None))
    return found
