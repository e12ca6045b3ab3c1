"""Strict reading: YAML, JSON and ``--set`` values into typed objects, errors in one line."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from benchmark.errors import BenchError, nearest

T = TypeVar("T")

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown key, no conversion of types, no NaN; dataclasses set it as ``__pydantic_config__``."""


class Model(BaseModel):
    """Base of everything that is read from files: frozen and strict."""

    model_config = STRICT | ConfigDict(frozen=True, use_attribute_docstrings=True)


class _UniqueKeys(yaml.SafeLoader):
    """Safe YAML in which a key comes once; plain YAML would take the last and say nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        keys = [k.value for k, _ in node.value if isinstance(k, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(problem=f"'{key}' is given twice")
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the mapping in a YAML file.

    Raises:
        BenchError: If the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise BenchError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise BenchError(f"{path}: expected a mapping, got {type(value).__name__}")
    return value


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """``["old.head=arcface"]`` as ``{"old.head": "arcface"}``; values are read as YAML.

    Raises:
        BenchError: If a pair has no ``=``, a key comes twice, or a value is not YAML.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise BenchError(f"--set: expected key=value, got '{pair}'")
        if key in settings:
            raise BenchError(f"--set: '{key}' is given twice")
        settings[key] = _value(text, key)
    return settings


def _value(text: str, key: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BenchError(f"--set {key}: cannot read the value '{text}'") from error
    if isinstance(value, str) and value == text and any(c.isdigit() for c in text):
        # YAML 1.1 reads 1e-3 as text; people mean a number, but not by a quoted one or by nan.
        try:
            return float(value)
        except ValueError:
            return value
    return value


def build(cls: type[T], values: Any, where: str) -> T:
    """Make an object from a mapping of plain values: no unknown key, no wrong type.

    Args:
        cls: A :class:`Model`, or a dataclass whose ``__pydantic_config__`` is ``STRICT``.
        values: Keys and values as read; objects of the same types may stand for mappings.
        where: What an error names first (a file, an option).

    Raises:
        BenchError: On an unknown or missing key, or a value of the wrong type.
    """
    adapter: TypeAdapter[T] = _adapter(cls)  # type: ignore[arg-type]
    try:
        # JSON has lists only; strict Python values would have to be tuples where the type is one.
        text = json.dumps(values, default=_plain)
    except (TypeError, ValueError) as error:
        raise BenchError(f"{where}: expected plain values, got {values!r:.200}") from error
    return parse(adapter, text.encode(), where)


def parse(adapter: TypeAdapter[T], text: bytes, where: str) -> T:
    """Validate JSON as a type.

    Raises:
        BenchError: Naming ``where``, the key, what was expected and what came.
    """
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        # A misspelt key is also a missing one: the misspelling says more.
        details = min(error.errors(include_url=False), key=lambda e: e["type"] not in _UNKNOWN)
        raise BenchError(_line(adapter, details, where)) from error


@functools.cache
def _adapter(cls: Any) -> Any:
    return TypeAdapter(cls)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "mapping_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}


def _line(adapter: TypeAdapter[Any], error: ErrorDetails, where: str) -> str:  # noqa: PLR0911
    """An error of pydantic as one line in our words."""
    path = [part for part in error["loc"] if not _branch(part)]
    kind, got = error["type"], error["input"]
    if kind in (*_UNKNOWN, "missing"):
        *above, key = path
        if isinstance(key, int):  # a fixed number of values
            return (
                f"{_place(where, above)}: expected more than {len(got)} values, got {_shown(got)}"
            )
        if kind == "missing":
            return f"{_place(where, above)}: missing key '{key}'"
        known = _fields(adapter, above)
        return f"{_place(where, above)}: unknown key '{key}'{nearest(str(key), known)}"
    place = _place(where, path)
    if kind == "value_error":
        return f"{place}: {error['ctx']['error']}"
    if kind == "literal_error":
        return f"{place}: expected {error['ctx']['expected']}, got {_shown(got)}"
    if kind in ("too_long", "too_short"):
        limits = error["ctx"]
        n = limits.get("max_length", limits.get("min_length"))
        return f"{place}: expected {n} values, got {limits['actual_length']}"
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"{place}: expected {words} {error['ctx'][limit]}, got {_shown(got)}"
    if kind in _EXPECTED:
        return f"{place}: expected {_EXPECTED[kind]}, got {_shown(got)}"
    message = " ".join(error["msg"].split()).replace("Input should be ", "expected ")
    return f"{place}: {message}, got {_shown(got)}"


def _shown(value: Any) -> str:
    return f"{value!r:.60}"


def _branch(part: Any) -> bool:
    """Is a part of a location the name of a branch of a union, which no file has?"""
    return isinstance(part, str) and (
        "[" in part or part in ("int", "float", "str", "bool", "none", "function-after")
    )


def _place(where: str, path: Iterable[Any]) -> str:
    """``file: a.b[0]``."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")
    return f"{where}: {text}" if text else where


def _fields(adapter: TypeAdapter[Any], path: list[Any]) -> list[str]:
    """Names that are known at a place of a type."""
    kind: Any = adapter._type
    for part in path:
        fields = getattr(kind, "model_fields", None)
        annotation = fields[part].annotation if fields and part in fields else None
        kind = _inner(annotation if annotation is not None else kind)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(getattr(kind, "model_fields", ()))


def _inner(annotation: Any) -> Any:
    """The class that an annotation holds: ``tuple[GenerationSpec, ...]`` -> ``GenerationSpec``."""
    args = [a for a in get_args(annotation) if a not in (Ellipsis, type(None), str)]
    return _inner(args[-1]) if args else annotation
