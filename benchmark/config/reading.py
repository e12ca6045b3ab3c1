"""Strict reading: mappings from YAML or the command line into frozen dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from benchmark.errors import BenchError, nearest

T = TypeVar("T")


class _Strict(yaml.SafeLoader):
    """Safe YAML in which a key comes once; plain YAML would take the last and say nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        keys = [k.value for k, _ in node.value if isinstance(k, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(problem=f"'{key}' is given twice")
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        BenchError: If the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), _Strict)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise BenchError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise BenchError(f"{path}: expected a mapping, got {type(value).__name__}")
    return value


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    """Of one class once: thousands of records have the same."""
    return typing.get_type_hints(cls)


@functools.cache
def _fields(cls: type) -> dict[str, bool]:
    """The fields that may be given, and whether each must be."""
    missing = dataclasses.MISSING
    return {
        f.name: f.default is missing and f.default_factory is missing
        for f in dataclasses.fields(cls)
        if f.init
    }


@functools.cache
def _quick(cls: type) -> dict[str, frozenset[Any]]:
    """Of each field the types whose values are taken as they are."""
    return {name: _exact(hint) or frozenset() for name, hint in _hints(cls).items()}


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(hint), typing.get_args(hint)


@functools.cache
def _exact(hint: Any) -> frozenset[Any] | None:
    """Types whose values are taken as they are, without a look; None where all are."""
    if hint is typing.Any or hint is object:
        return None
    origin, args = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        return frozenset(arg for arg in args if isinstance(arg, type))
    return frozenset({hint} if origin is None and isinstance(hint, type) else ())


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make the dataclass ``cls`` from ``values``: no unknown key, no wrong type.

    Args:
        cls: A dataclass; its annotations say what is expected.
        values: Keys and values as read.
        where: What an error names first (a file, an option).

    Raises:
        BenchError: On an unknown or missing key, or a value of the wrong type.
    """
    hints = _hints(cls)  # type: ignore[arg-type]
    fields = _fields(cls)  # type: ignore[arg-type]
    quick = _quick(cls)  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise BenchError(f"{where}: unknown key '{key}'{nearest(str(key), fields)}")
    given = {
        k: v if type(v) in quick[k] else coerce(hints[k], v, f"{where}: {k}")
        for k, v in values.items()
    }
    for name, required in fields.items():
        if required and name not in given:
            raise BenchError(f"{where}: missing key '{name}'")
    try:
        return cls(**given)
    except ValueError as error:
        raise BenchError(f"{where}: {error}") from error


def coerce(hint: Any, value: Any, where: str) -> Any:  # noqa: PLR0911 - one return a kind of type
    """``value`` as ``hint`` asks, or a BenchError that names ``where``."""
    if type(value) is hint:
        return value
    origin, args = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        # Exact types: true is no number.
        if type(value) in args:
            return value
        return coerce(next(a for a in args if a is not type(None)), value, where)
    if origin is typing.Literal:
        if value not in args:
            raise BenchError(f"{where}: expected {' or '.join(map(repr, args))}, got {value!r}")
        return value
    if origin is tuple:
        return _tuple(args, value, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, hint):
            return value
        return build(hint, _expect(dict, value, where), where)
    if origin is not None and issubclass(origin, Mapping):
        exact = _exact(args[1])
        return {
            k: v if exact is None or type(v) in exact else coerce(args[1], v, f"{where}.{k}")
            for k, v in _expect(dict, value, where).items()
        }
    if hint is typing.Any or hint is object:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(hint, value, where)


def _expect(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BenchError(f"{where}: expected {_PLAIN.get(kind, kind.__name__)}, got {value!r}")
    return value


_PLAIN = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "a mapping",
}


def _tuple(args: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise BenchError(f"{where}: expected a list, got {value!r}")
    if len(args) == 2 and args[1] is Ellipsis:
        exact = _exact(args[0])
        return tuple(
            v if exact is None or type(v) in exact else coerce(args[0], v, f"{where}[{i}]")
            for i, v in enumerate(value)
        )
    if len(value) != len(args):
        raise BenchError(f"{where}: expected {len(args)} values, got {len(value)}")
    return tuple(
        v if type(v) is a else coerce(a, v, f"{where}[{i}]")
        for i, (a, v) in enumerate(zip(args, value, strict=True))
    )


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
        settings[key] = _scalar(text, key)
    return settings


def _scalar(text: str, key: str) -> Any:
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
