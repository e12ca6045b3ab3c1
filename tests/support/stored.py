"""Records and their details files, made by hand from one of an older schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.files import SEAL, file_digest, seal_of
from benchmark.records.details import Details, QueryResults, details_path
from benchmark.records.details_writer import pack
from benchmark.records.files import StoredRecord, read_record, upgraded
from benchmark.records.record import SCHEMA, SEALED_SINCE, record_path

OLDER = Path(__file__).parent / "records_of_older_schemas"
Values = Mapping[tuple[str, str], Any]


def older(name: str = "schema-1-bct") -> dict[str, Any]:
    """What a record of an older schema says."""
    value: dict[str, Any] = json.loads((OLDER / f"{name}.json").read_text())
    return value


def sealed(value: dict[str, Any]) -> dict[str, Any]:
    """A record with the seal that fits; of the present schema, if its own has none."""
    value = value | {} if _has_seal(value) else value | {"schema": SCHEMA}
    return value | {SEAL: seal_of(value)}


def write(path: Path, value: dict[str, Any]) -> Path:
    """Write JSON; what is of a schema with a seal has the one that fits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sealed(value) if _has_seal(value) else value))
    return path


def _has_seal(value: dict[str, Any]) -> bool:
    return value.get("schema", 0) in range(SEALED_SINCE, SCHEMA + 1)


def stored(
    root: Path, method: str, values: Values, identity: Any, seed: int = 0,
    draws: Values | None = None, **fields: Any,
) -> StoredRecord:  # fmt: skip
    """A record with results by query, and draws of some, read back from disk."""
    value = upgraded(older()) | {"schema": SCHEMA, "method": method, "seed": seed} | fields
    path = record_path(root, value["protocol"], value["track"], method, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    n = len(identity)
    answers = {
        key: QueryResults(
            np.asarray(x, float),
            np.asarray(identity),
            np.arange(n),
            n,
            draws=(draws or {}).get(key),
        )
        for key, x in values.items()
    }
    details_path(path).write_bytes(pack(Details(answers)))
    write(path, value | {"details": file_digest(details_path(path))})
    return StoredRecord(read_record(path), path)
