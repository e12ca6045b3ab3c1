"""Strict reading: YAML, JSON and ``--set`` values into typed objects, errors in one line."""

import contextlib
import copy
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from benchmark.config.files import read_bytes
from benchmark.config.yaml_files import MOST_BYTES, parse_yaml
from benchmark.errors import BenchError, located, nearest

T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown key, no conversion of types, no NaN; dataclasses set it as ``__pydantic_config__``."""


class Model(BaseModel):
    """Base of everything that is read from files: frozen and strict."""

    model_config = STRICT | ConfigDict(frozen=True, use_attribute_docstrings=True)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a file of plain YAML; BenchError if it cannot be read, or is anything else."""
    raw = read_bytes(path, MOST_BYTES)
    with located(str(path)):
        try:
            value = copy.deepcopy(_parsed(raw.decode()))
        except UnicodeDecodeError as error:
            raise BenchError(f"cannot be read: {error}") from error
        if not isinstance(value, dict):
            raise BenchError(f"expected a mapping, got {type(value).__name__}")
    return value


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """The value of a file's text: plans read the same few files thousands of times."""
    return parse_yaml(text)


def named_values(option: str, form: str, texts: Iterable[str]) -> dict[str, str]:
    """``["a=b"]`` as ``{"a": "b"}``; BenchError if one has no name, or comes twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BenchError(f"{option}: expected {form}, got '{text}'")
        if name in found:
            raise BenchError(f"{option}: '{name}' is given twice")
        found[name] = value
    return found


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """``["old.head=arcface"]`` as ``{"old.head": "arcface"}``; values are read as YAML.

    BenchError if a pair has no ``=``, a key comes twice, or a value is not YAML.
    """
    found = named_values("--set", "key=value", pairs)
    return {key: _value(text, key) for key, text in found.items()}


def _value(text: str, key: str) -> Any:
    try:
        value = parse_yaml(text)
    except BenchError as error:
        raise BenchError(f"--set {key}: cannot read the value '{text:.200}': {error}") from error
    if isinstance(value, str) and value == text and any(c.isdigit() for c in text):
        # YAML 1.1 reads 1e-3 as text; people mean a number, but not by a quoted one or by nan.
        with contextlib.suppress(ValueError):
            number = float(value)
            if math.isfinite(number):
                return number
    return value


def build(cls: type[T], values: Any, where: str) -> T:
    """A :class:`Model`, or a dataclass whose ``__pydantic_config__`` is ``STRICT``, from values.

    These are plain, objects of the same types may stand for mappings. A BenchError names ``where``
    (a file, an option) and the key that is unknown or missing, or whose type is wrong.
    """
    try:
        # JSON has lists only; strict Python values would have to be tuples where the type is one.
        text = json.dumps(values, default=_plain)
    except (TypeError, ValueError) as error:
        raise BenchError(f"{where}: expected plain values, got {values!r:.200}") from error
    value: T = parse(_adapter(cls), text.encode(), where)
    return value


def read_json(cls: type[T], path: Path, limit: int) -> T:
    """Read a file of JSON as a type; a BenchError as of :func:`read_bytes` and :func:`parse`."""
    value: T = parse(_adapter(cls), read_bytes(path, limit), str(path))
    return value


def parse(adapter: TypeAdapter[T], text: bytes, where: str) -> T:
    """Validate JSON as a type; BenchError with ``where``, key, what was expected and what came."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        # A misspelt key is also a missing one: the misspelling says more.
        details = min(error.errors(include_url=False), key=lambda e: e["type"] not in _UNKNOWN)
        raise BenchError(_line(adapter, details, where)) from error


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "mapping_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "too_long": "a list of {max_length}",
    "too_short": "a list of at least {min_length}",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}
"""Type of an error of pydantic -> what was expected, with the values of its context."""


def _line(adapter: TypeAdapter[Any], error: ErrorDetails, where: str) -> str:
    """An error of pydantic as one line in our words."""
    kind, got, context = error["type"], error["input"], error.get("ctx", {})
    # A key may be called as a branch is; the last part of such an error's place is a key.
    keyed = kind in (*_UNKNOWN, "missing") and bool(error["loc"])
    key = error["loc"][-1] if keyed else None
    parts = error["loc"][:-1] if keyed else error["loc"]
    path = [part for part in parts if not _branch(part)]
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")
    place = f"{where}: {text}" if text else where
    if kind in _UNKNOWN:
        return f"{place}: unknown key '{key}'{nearest(str(key), _fields(adapter._type, path))}"
    if kind == "missing" and not isinstance(key, int):
        return f"{place}: missing key '{key}'"
    if kind == "value_error":
        return f"{place}: {context['error']}"
    if kind == "missing":  # a value of a list of some length
        expected = f"expected a list of more than {key}"
    elif kind == "too_long" and isinstance(got, Mapping):
        return f"{place}: expected at most {context['max_length']} entries, got {len(got)}"
    elif kind in _EXPECTED:
        expected = "expected " + _EXPECTED[kind].format(**context)
    else:
        expected = " ".join(error["msg"].split()).replace("Input should be ", "expected ")
    return f"{place}: {expected}, got {got!r:.60}"


def _branch(part: Any) -> bool:
    """Tell whether a part of a location names a branch of a union, which no file has."""
    return isinstance(part, str) and (
        "[" in part
        or part.startswith("constrained-")
        or part in ("int", "float", "str", "bool", "none", "function-after")
    )


def _fields(kind: Any, path: Iterable[Any]) -> list[str]:
    """Names that are known at a place of a type."""
    for part in path:
        fields = getattr(kind, "model_fields", {})
        kind = _inner(fields[part].annotation if part in fields else kind)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(getattr(kind, "model_fields", ()))


def _inner(annotation: Any) -> Any:
    """The class that an annotation holds: ``tuple[GenerationSpec, ...]`` -> ``GenerationSpec``."""
    args = [a for a in get_args(annotation) if a not in (Ellipsis, type(None), str)]
    return _inner(args[-1]) if args else annotation
