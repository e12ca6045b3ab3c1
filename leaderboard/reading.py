"""Records from a folder; one that cannot be shown is passed over, and said so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.records.details import Details, check_digest, details_path, unpack_details
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


def read_folders(roots: Sequence[Path]) -> tuple[list[Entry], list[Skipped]]:
    """Every record below some folders, each in the order of its paths, and what is no record.

    Of two records of one run the first is read; a file that is reached twice counts once.

    Raises:
        BenchError: If one has no record.
    """

    def read_all(read: Callable[[Path], Attempt], paths: Sequence[Path]) -> list[Attempt]:
        return spread(read, paths, enough=len(paths) >= MANY)

    errors: list[BenchError] = []
    entries: dict[tuple[object, ...], Entry] = {}
    reached: set[Path] = set()
    for stored in (each for root in roots for each in find_records(root, errors.append, read_all)):
        record = stored.record
        identity = (
            record.protocol, record.protocol_version, record.track, record.track_version,
            record.method, record.seed, record.first_seed, repr(sorted(record.changed.items())),
        )  # fmt: skip
        place = stored.path.resolve() if len(roots) > 1 else stored.path
        if place in reached:
            continue
        reached.add(place)
        if identity in entries:
            errors.append(BenchError(
                f"{stored.path}: a record of {record.method}, seed {record.seed}, on "
                f"{record.protocol} and {record.track} was read before"
            ))  # fmt: skip
        else:
            entries[identity] = Entry(record, stored.path)
    skipped = sorted((skip(error, roots) for error in errors), key=lambda each: each.file)
    return list(entries.values()), list(dict.fromkeys(skipped))


def read_details(entry: Entry) -> tuple[Details | None, bytes]:
    """What a page shows of a record's details, and the bytes of their file; nothing without.

    Raises:
        BenchError: If they are damaged.
    """
    packed = check_details(entry)
    if entry.path is None or not packed:
        return None, b""
    return unpack_details(details_path(entry.path), packed, with_results=False), packed


def check_details(entry: Entry) -> bytes:
    """The bytes of the file of a record's details, which its hash fits; none without.

    Raises:
        BenchError: If the hash does not fit, or there is no file.
    """
    return b"" if entry.path is None else check_digest(entry.record, entry.path)


def skip(error: BenchError, roots: Sequence[Path]) -> Skipped:
    """What an error that begins with a file says of it; the file as it is called below its root.

    Of several roots the last folder's name stands before it.
    """
    text = " ".join(str(error).split())
    for root in roots:
        text = text.replace(f"{root}/", f"{root.name}/" if len(roots) > 1 else "")
    file, _, reason = text.partition(": ")
    return Skipped(_printable(file), _printable(reason))


def _printable(text: str, longest: int = 300) -> str:
    """Text that a terminal shows on one line as it is."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."
