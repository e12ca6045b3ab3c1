"""Fingerprints of adapters: hashes of what a source says to Python."""

import ast
import hashlib
import json
from functools import cache
from typing import Any

_MAP_TRAINING = {
    "fit_map", "LearnedMap", "SideInformationMap", "TrainedVectorMap", "transform_steps",
    "transform_batch",
}  # fmt: skip
"""Names of ``benchmark.contract`` that train a map, the bases that do, and a recipe's settings."""

_OF_OLD = {"OldClassifier", "OldClassifierTraining"}
"""Names of ``benchmark.contract`` whose rows of class means have the new classifier's scale."""
_SCALED = ("spec", "head")
"""Usual names of what has a scale."""


@cache
def syntax_tree(source: bytes) -> ast.Module:
    """The syntax tree of a module's source."""
    return ast.parse(source)


def declared(source: bytes, name: str, usual: Any) -> Any:
    """Literal value of a name in a module or a class; ``usual`` where it is not set."""
    found = assigned(source, name)
    return usual if found is None else ast.literal_eval(found)


def assigned(source: bytes, name: str) -> ast.expr | None:
    """Value of a name in a module or a class; None where it is not set."""
    if name.encode() not in source:
        return None
    for node in ast.walk(syntax_tree(source)):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == name:
                return node.value
    return None


@cache
def names_map_training(source: bytes) -> bool:
    """Tell whether a module's code names what trains a map, or a setting of such a training.

    By an import, as an attribute, or as a text of its own: ``getattr(recipe, "transform_steps")``.
    """
    return any(not _MAP_TRAINING.isdisjoint(_names(n)) for n in ast.walk(syntax_tree(source)))


@cache
def names_scale(source: bytes) -> bool:
    """Tell whether a module's code reads a classifier's scale, or builds a classifier with it."""
    return any(
        not _OF_OLD.isdisjoint(_names(n))
        or (isinstance(n, ast.Attribute) and n.attr == "scale" and _last(n.value) in _SCALED)
        for n in ast.walk(syntax_tree(source))
    )


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


@cache
def fingerprint(source: bytes) -> str:
    """Hash of a module's code: comments, docstrings, formatting and descriptions do not count.

    Of the syntax tree as plain values, without what is empty: ``ast.dump`` and ``ast.unparse``
    write the same tree in other words from one Python to the next.
    """
    text = json.dumps(_code(syntax_tree(source)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(node: Any) -> Any:
    if isinstance(node, list):  # without texts that stand alone: docstrings, notes below a field
        return [_code(n) for n in node if not (isinstance(n, ast.Expr) and _is_text(n.value))]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.ClassDef):
        fields["body"] = [each for each in node.body if not _is_description(each)]
    parts = {name: _code(value) for name, value in fields.items() if value is not None}
    return {"": type(node).__name__, **{name: part for name, part in parts.items() if part != []}}


def _is_description(node: ast.stmt) -> bool:
    """Tell declarations of a class that only readers see from its code."""
    names = [ast.unparse(t) for t in node.targets] if isinstance(node, ast.Assign) else []
    if not isinstance(node, ast.Assign) or names not in (["fidelity"], ["baseline"], ["fitted"]):
        return False
    if names == ["fitted"]:
        return isinstance(node.value, ast.Constant)
    found: list[ast.expr | None] = [node.value]
    if isinstance(node.value, ast.Dict):
        found = [*node.value.keys, *node.value.values]
    return all(each is not None and _is_text(each) for each in found)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
