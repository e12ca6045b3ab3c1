"""Objects with other fields, whatever they are made of."""

import dataclasses
from typing import Any

from benchmark.config.reading import Model, build


def changed(obj: Any, **fields: Any) -> Any:
    """A copy with other fields, validated again."""
    if isinstance(obj, Model):
        return build(type(obj), {**dict(obj), **fields}, "test")
    return dataclasses.replace(obj, **fields)
