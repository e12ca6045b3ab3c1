"""The JSON Schema of records, made from :class:`benchmark.records.record.Record`."""

from __future__ import annotations

from typing import Any

from benchmark.records.record import SCHEMA, Record


def json_schema() -> dict[str, Any]:
    """What ``bench schema`` prints: types, limits, and in words what each field holds."""
    schema = Record.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = f"CompatBench record, schema {SCHEMA}"
    return schema
