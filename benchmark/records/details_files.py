"""Details beside records: where they lie, whether they are those of the record, reading them."""

from pathlib import Path
from typing import Any

from benchmark.config.files import bytes_digest, read_bytes
from benchmark.errors import BenchError
from benchmark.records.details import (
    Details,
    details_base_path,
    named_base,
    read_base,
    unpack_details,
)
from benchmark.records.limits import MOST_PACKED, metadata, parse_json
from benchmark.records.record import Record


def details_path(record: Path) -> Path:
    """``seed-0.json`` -> ``seed-0.details.xz``, beside it."""
    return record.with_name(f"{record.stem}.details.xz")


def queries_path(record: Path) -> Path:
    """``seed-0.json`` -> ``seed-0.queries.gz``, beside it."""
    return record.with_name(f"{record.stem}.queries.gz")


def find_details(record: Record, path: Path, with_results: bool = True) -> Details | None:
    """The details of a record read from ``path``, if any; BenchError if missing or damaged.

    With results they are of all metrics where the file of these lies beside the record.
    """
    if record.details is None:
        return None
    every = queries_path(path)
    if with_results and record.queries is not None and every.is_file():
        return unpack_details(every, checked(every, record.queries))
    return unpack_details(details_path(path), check_digest(record, path), with_results)


def check_digest(record: Record, path: Path) -> bytes:
    """Bytes of a record's details file, none without one; BenchError if missing or another's."""
    if record.details is None:
        return b""
    beside = details_path(path)
    if not beside.is_file():
        raise BenchError(f"{beside}: missing, though {path.name} has its hash")
    return checked(beside, record.details)


def check_beside(record: Record, path: Path) -> None:
    """Look at the files beside a record; BenchError if one is missing, damaged or another's.

    They are its details and the base that these name; all results by query, if they are there.
    """
    packed = check_digest(record, path)
    if packed and (name := named_base(details_path(path), packed)) is not None:
        read_base(details_base_path(path, name))
    every = queries_path(path)
    if record.queries is not None and every.is_file():
        checked(every, record.queries)


def checked(beside: Path, expected: str) -> bytes:
    """The bytes of a file; BenchError if it cannot be read, is too large, or has another hash."""
    packed = read_bytes(beside, MOST_PACKED)
    if bytes_digest(packed) != expected:
        raise BenchError(f"{beside}: of another record than the one beside it (hashes differ)")
    return packed


def read_kept(path: Path, digest: object) -> dict[str, Any]:
    """Parts of a record that its details file keeps, if it fits; BenchError if damaged."""
    beside = details_path(path)
    if not isinstance(digest, str) or not beside.is_file():
        return {}
    try:
        packed = checked(beside, digest)
    except BenchError:  # told by who reads the details themselves
        return {}
    text = metadata(beside, packed).get("record")
    value = {} if text is None else parse_json(text.encode(), beside)
    if not isinstance(value, dict):
        raise BenchError(f"{beside}: record: expected a mapping, got {type(value).__name__}")
    return value
