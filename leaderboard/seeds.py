"""The records of a method on a board with what lies beside them: details and badges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.records.details import Details
from benchmark.records.record import Record
from benchmark.records.verified import Verification, read_verification
from leaderboard.reading import Entry, Skipped, check_details, read_details, skip


@dataclass(frozen=True)
class Seed:
    """A record, and what lies beside it."""

    entry: Entry
    packed: bytes = b""  # its details file; empty without
    damaged: str = ""  # why the details are left out
    badge: str = ""  # that it was trained again, and with what outcome

    @property
    def record(self) -> Record:
        """The record itself."""
        return self.entry.record


@dataclass(frozen=True)
class Seeds:
    """A method's records on a board, one a seed."""

    seeds: tuple[Seed, ...]
    drawn: Entry  # the one whose pictures are shown: the first that the method could be applied to
    details: Details | None  # of that one
    skipped: tuple[Skipped, ...]  # damaged details and badges


def read_seeds(entries: Iterable[Entry], roots: Sequence[Path]) -> Seeds:
    """What a page shows of some records; only details that are drawn are more than compared."""
    known = list(entries)
    drawn = next((entry for entry in known if entry.record.status == "done"), known[0])
    details, seeds, skipped = None, [], []
    for entry in known:
        packed, damaged = b"", ""
        try:
            if entry is drawn:
                details, packed = read_details(entry)
            else:
                packed = check_details(entry)
        except BenchError as error:
            skipped.append(skip(error, roots))
            damaged = skipped[-1].reason
        found = None
        try:
            found = _badge(entry)
        except BenchError as error:
            skipped.append(skip(error, roots))
        seeds.append(Seed(entry, packed, damaged, found.words if found else ""))
    return Seeds(tuple(seeds), drawn, details, tuple(skipped))


def badge(entry: Entry) -> Verification | None:
    """The badge of a record that was trained again; a damaged one, told by its page, is none."""
    try:
        return _badge(entry)
    except BenchError:
        return None


def _badge(entry: Entry) -> Verification | None:
    return None if entry.path is None else read_verification(entry.record, entry.path)
