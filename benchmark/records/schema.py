"""The JSON Schema of records, made from :class:`benchmark.records.record.Record`."""

from __future__ import annotations

import inspect
import re
from typing import Any

from benchmark.records.record import OLDEST, SCHEMA, Record


def json_schema() -> dict[str, Any]:
    """What ``bench schema`` prints: types, and in words what each field holds."""
    from pydantic import TypeAdapter

    made = TypeAdapter(Record).json_schema()
    made["additionalProperties"] = False
    made["description"] = "One result of CompatBench: a protocol, a track, a method, a seed."
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = f"CompatBench record, schema {SCHEMA}"
    for name, words in _described().items():
        made["properties"][name]["description"] = words
    made["properties"]["schema"] |= {"minimum": OLDEST, "maximum": SCHEMA}
    return made


def _described() -> dict[str, str]:
    """Words of the class's docstring about each attribute."""
    attributes = inspect.cleandoc(Record.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(text.replace("``", "").split()) for name, text in found}
