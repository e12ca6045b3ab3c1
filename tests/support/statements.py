"""Statements of a module, without a look into expressions, which are most of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def statements(file: Path) -> Iterator[ast.stmt]:
    """All statements of a file, those within others among them."""
    yield from _below(ast.parse(file.read_bytes()))


def _below(node: ast.AST) -> Iterator[ast.stmt]:
    """Go through bodies; parts that hold some, as handlers and cases, are no statements."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from _below(child)
