"""Names of an adapter's parameters, as its source shows them: nothing is imported, torch least."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path

_EMPTY = ("ABC", "Generic", "object")
"""Bases without fields."""


@cache
def parameters_of(module: str) -> frozenset[str] | None:
    """Fields of the dataclasses of a method's module, those of their bases among them.

    Returns:
        ``None`` where a base is not written in this project: it may have any field.

    Example:
        >>> sorted(parameters_of("methods.mixbct"))
        ['drop', 'ratio']
        >>> sorted(parameters_of("methods.bct"))
        ['temperature', 'unknown', 'weight']
    """
    classes = [node for node in _body(module) if isinstance(node, ast.ClassDef)]
    return _joined([_fields(module, c.name) for c in classes if c.decorator_list])


@cache
def _body(module: str) -> tuple[ast.stmt, ...]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ()
    return tuple(ast.parse(Path(spec.origin).read_bytes()).body)


@cache
def _fields(module: str, name: str) -> frozenset[str] | None:
    """Fields of one class, found where it is written."""
    for node in _body(module):
        if isinstance(node, ast.ClassDef) and node.name == name:
            bases = [_base(module, base) for base in node.bases]
            return _joined([_own(node), *bases])
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    ours = node.module.partition(".")[0] in ("benchmark", "methods")
                    return _fields(node.module, alias.name) if ours else None
    return None


def _base(module: str, node: ast.expr) -> frozenset[str] | None:
    if isinstance(node, ast.Subscript):  # CompatibleTraining[State]
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return frozenset() if node.id in _EMPTY else _fields(module, node.id)


def _own(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and not ast.unparse(part.annotation).startswith("ClassVar")
    )


def _joined(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None
