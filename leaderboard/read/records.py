"""Records and what lies beside them; what cannot be shown is passed over, and said so."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.records.details import Details, unpack_details
from benchmark.records.details_files import check_digest, details_path
from benchmark.records.files import Attempt, StoredRecord, find_records, once
from benchmark.records.record import Record
from benchmark.records.verified import Verified, read_verification
from leaderboard.read.processes import MANY, working

_LONGEST = 300


@dataclass(frozen=True)
class Skipped:
    """A file that is not shown, and the reason in one line."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"skipped {self.file}: {self.reason}"


def read_folders(roots: Sequence[Path]) -> tuple[list[StoredRecord], list[Skipped]]:
    """Every record below some folders, each in the order of its paths, and what is no record.

    Of two records of one run the first is read; a file that is reached twice counts once. A
    BenchError if one has no record.
    """

    def read_all(read: Callable[[Path], Attempt], paths: Sequence[Path]) -> list[Attempt]:
        with working(read, paths, enough=len(paths) >= MANY) as results:
            return results()

    errors: list[BenchError] = []
    records, again = once(r for root in roots for r in find_records(root, errors.append, read_all))
    skipped = sorted((skip(error, roots) for error in errors + again), key=lambda each: each.file)
    return records, list(dict.fromkeys(skipped))


def read_details(stored: StoredRecord) -> tuple[Details | None, bytes]:
    """The parts of a record's details that a page shows, and the bytes of their file, if any.

    Raises:
        BenchError: If they are damaged.
    """
    packed = check_details(stored)
    if not packed:
        return None, b""
    return unpack_details(details_path(stored.path), packed, with_results=False), packed


def check_details(stored: StoredRecord) -> bytes:
    """Bytes of a record's details file, none without; BenchError if missing, or of another hash."""
    return check_digest(stored.record, stored.path) if stored.path.is_file() else b""


def skip(error: BenchError, roots: Sequence[Path]) -> Skipped:
    """An error that begins with a file; the file as it is called below its root.

    Of several roots the last folder's name stands before it.
    """
    text = " ".join(str(error).split())
    for root in roots:
        text = text.replace(f"{root}/", f"{root.name}/" if len(roots) > 1 else "")
    file, _, reason = text.partition(": ")
    return Skipped(_printable(file), _printable(reason))


def _printable(text: str) -> str:
    """Text that a terminal shows on one line as it is."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."


@dataclass(frozen=True)
class ShownRecord:
    """A record, and what lies beside it."""

    stored: StoredRecord
    packed: bytes = b""  # its details file; empty without
    damaged: str = ""  # why the details are left out
    badge: str = ""  # that it was trained again, and with what outcome

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.stored.record


@dataclass(frozen=True)
class MethodRecords:
    """A method's records on a board, one a seed."""

    seeds: tuple[ShownRecord, ...]
    # the one whose pictures are shown: the first that the method could be applied to
    drawn: StoredRecord
    details: Details | None  # of that one
    skipped: tuple[Skipped, ...]  # damaged details and badges


def read_seeds(every: Iterable[StoredRecord], roots: Sequence[Path]) -> MethodRecords:
    """Everything that a page shows of some records; details not drawn are checked alone."""
    known = list(every)
    drawn = next((stored for stored in known if stored.record.status == "done"), known[0])
    details, seeds, skipped = None, [], []
    for stored in known:
        packed, damaged, words = b"", "", ""
        try:
            if stored is drawn:
                details, packed = read_details(stored)
            else:
                packed = check_details(stored)
        except BenchError as error:
            skipped.append(skip(error, roots))
            damaged = skipped[-1].reason
        try:
            words = found.words if (found := _badge(stored)) else ""
        except BenchError as error:
            skipped.append(skip(error, roots))
        seeds.append(ShownRecord(stored, packed, damaged, words))
    return MethodRecords(tuple(seeds), drawn, details, tuple(skipped))


def badge(stored: StoredRecord) -> Verified | None:
    """The badge of a record that was trained again; a damaged one, told by its page, is none."""
    try:
        return _badge(stored)
    except BenchError:
        return None


def _badge(stored: StoredRecord) -> Verified | None:
    there = stored.path.is_file()
    return read_verification(stored.record, stored.path) if there else None
