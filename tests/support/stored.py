"""Records and their details files, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.files import SEAL, file_digest, read_bytes, seal_of
from benchmark.records.details import Details, QueryResults, unpack_details
from benchmark.records.details_files import details_path
from benchmark.records.files import StoredRecord, read_record
from benchmark.records.limits import MOST_PACKED
from benchmark.records.record import record_path
from benchmark.records.slim import pack
from support.records import make_record

Values = Mapping[tuple[str, str], Any]


def read_details(path: Path) -> Details:
    """A details file by itself."""
    return unpack_details(path, read_bytes(path, MOST_PACKED))


def plain() -> dict[str, Any]:
    """A complete record, without its seal."""
    value = make_record(
        cross={"cmc_at_1": 0.6, "map": 0.5, "tar_at_far_1e-2": 0.7},
        own={"cmc_at_1": 0.8, "map": 0.7, "tar_at_far_1e-2": 0.9},
    ).as_json()
    del value[SEAL]
    return value


def sealed(value: dict[str, Any]) -> dict[str, Any]:
    """A record with the seal that fits."""
    return value | {SEAL: seal_of(value)}


def write(path: Path, value: dict[str, Any]) -> Path:
    """Write a record with the seal that fits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sealed(value)))
    return path


def stored(
    root: Path, method: str, values: Values, identity: Any, seed: int = 0,
    draws: Values | None = None, **fields: Any,
) -> StoredRecord:  # fmt: skip
    """A record with results by query, and draws of some, read back from disk."""
    value = plain() | {"method": method, "seed": seed} | fields
    path = record_path(root, value["protocol"], value["track"], method, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    identity, drawn = np.asarray(identity), draws or {}
    about = identity, np.arange(len(identity)), len(identity)
    answers = {
        key: QueryResults(np.asarray(x, float), *about, draws=drawn.get(key))
        for key, x in values.items()
    }
    details_path(path).write_bytes(pack(Details(answers)))
    write(path, value | {"details": file_digest(details_path(path))})
    return StoredRecord(read_record(path), path)
