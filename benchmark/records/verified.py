"""The badge of a record that was trained again: when, where, and how near the numbers came.

Two kinds of processors sum in another order: what a training makes of that is no fault of a record,
whose scores are held to the intervals of the repetition there.

It lies beside its record, ``seed-0.json`` and ``verified-seed-0.json``, has a seal, and is of one
record alone, whose seal it names: a record that changes loses it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from benchmark.config.files import SEAL, read_bytes, seal_of, write_sealed
from benchmark.config.reading import Model, build
from benchmark.errors import BenchError
from benchmark.records.limits import parse_json
from benchmark.records.record import CodeVersion, Record

TOLERANCE = 0.05
"""Points, of 100, that a score may differ by on the same kind of machine."""
_COUNTED = ("n_query", "n_probe", "n_mated_")
_LARGEST = 64 * 1024
Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Verified(Model):
    """Content of a badge."""

    format: Literal[1] = 1
    record: str
    """Seal of the record."""
    date: Date
    machine: Mapping[str, str]
    """Of the training again: processor, cores, threads, precision, packages."""
    bit_for_bit: bool
    """True if every number is the same, not just near."""
    points: float = Field(ge=0, le=100)
    """Largest difference of a score or interval's end; at most the tolerance on the same kind."""
    elsewhere: bool = False
    """True of a machine of another kind, where each score is within the interval found there."""
    code: CodeVersion = CodeVersion()

    @model_validator(mode="after")
    def _near(self) -> Self:
        if self.points > TOLERANCE and not self.elsewhere:
            raise ValueError(f"points: expected at most {TOLERANCE:g}, got {self.points:g}")
        return self

    @property
    def words(self) -> str:
        """The badge in one line."""
        near = "bit for bit" if self.bit_for_bit else f"within {TOLERANCE:g} points"
        if self.elsewhere:
            near = "within the intervals, by another kind of machine"
        return f"verified {self.date}, {near}, on {self.machine.get('cpu', 'an unnamed machine')}"


def verification_path(record: Path) -> Path:
    """``seed-0.json`` -> ``verified-seed-0.json``, beside it."""
    return record.with_name(f"verified-{record.name}")


def write_verification(path: Path, verification: Verified) -> Path:
    """Write the badge of the record at ``path`` beside it; gives where."""
    beside = verification_path(path)
    write_sealed(beside, verification.model_dump(mode="json"))
    return beside


def read_verification(record: Record, path: Path) -> Verified | None:
    """The badge of a record read from ``path``, if any; BenchError if damaged or another's."""
    beside = verification_path(path)
    if not beside.is_file():
        return None
    value = parse_json(read_bytes(beside, _LARGEST), beside)
    if not isinstance(value, dict) or value.pop(SEAL, None) != seal_of(value):
        raise BenchError(f"{beside}: edited since it was written: its seal does not fit")
    found = build(Verified, value, str(beside))
    if record.seal is None or found.record != record.seal:
        raise BenchError(f"{beside}: of another record than the one beside it")
    return found


def one_query(record: Record) -> float:
    """Points that one query or probe makes, where they are fewest, and a rounding; 0 without any.

    The last bits of another processor's vectors may move one of them across a cut-off.
    """
    counts = [
        n for case in record.counts.values() for name, n in case.items()
        if n and name.startswith(_COUNTED) and name != "n_query_without_match"
    ]  # fmt: skip
    return 100.0001 / min(counts) if counts else 0.0
