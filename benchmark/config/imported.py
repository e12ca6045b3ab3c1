"""Modules that an adapter imports of its own package or of a folder of yours, found by file.

None of them is imported; what cannot be found as a file of Python is passed over.
"""

import ast
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from benchmark.config.fingerprints import syntax_tree

_INSTALLED = {"site-packages", "dist-packages"}
_METHODS = "methods"
"""Package of the methods here, of which adapters of other packages may import, too."""


def imported_files(
    module: str, path: Path, known: Collection[str],
    built_on: Callable[[str], Mapping[str, Path]],
) -> dict[str, Path]:  # fmt: skip
    """Modules that a module imports, directly or by way of others, and their files.

    Those of its own top-level package and of ``methods``, and those that are not installed: not
    the standard library, ``benchmark``, or what lies in ``site-packages``. Not those that are
    ``known``, nor what only they import. ``built_on`` gives what an imported one needs beside.
    """
    own = {module.partition(".")[0], _METHODS}
    found: dict[str, Path] = {}
    todo = [(module, path)]
    while todo:
        name, file = todo.pop()
        more = {**dict(_imports(name, file, own)), **(built_on(name) if name in found else {})}
        for each, where in more.items():
            if each not in found and each not in known and each != module and _is_python(where):
                found[each] = where
                todo.append((each, where))
    return found


def _imports(module: str, path: Path, own: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Modules that count of those that a module names, and their files."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for level, origin, name in _statements(path.read_bytes()):
        parts = package.split(".") if level else []
        above = parts[: len(parts) - level + 1] if level else []
        whole = ".".join([*above, *([origin] if origin else [])])
        # What is imported of a package is a module of it, else of what its own file says.
        for each in ([f"{whole}.{name}"] if name else []) + [whole]:
            if where := _file(each, own):
                yield each, where
                break


@cache
def _statements(source: bytes) -> tuple[tuple[int, str, str], ...]:
    """Imports of a source: level, module and name; ``import a.b`` as those of a and of a.b."""
    found = []
    for node in ast.walk(syntax_tree(source)):
        if isinstance(node, ast.Import):
            for parts in (alias.name.split(".") for alias in node.names):
                found += [(0, ".".join(parts[: i + 1]), "") for i in range(len(parts))]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module or "", alias.name) for alias in node.names]
    return tuple(found)


def _file(module: str, own: Collection[str]) -> Path | None:
    """The file of a module that counts; None where it does not, or there is none."""
    top, *inner = module.split(".")
    if not top or top == "benchmark" or top in sys.stdlib_module_names:
        return None
    spec = _top(top, tuple(sys.path))
    if top not in own and spec is not None and _is_installed(spec):
        return None
    name = top
    for each in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{each}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


@cache
def _top(name: str, _: tuple[str, ...]) -> ModuleSpec | None:
    """Place of a top-level module, on a path of folders."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _is_installed(spec: ModuleSpec) -> bool:
    places = [spec.origin or "", *(spec.submodule_search_locations or [])]
    return any(_INSTALLED & {*Path(place).parts} for place in places)


def _is_python(path: Path) -> bool:
    try:
        syntax_tree(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return False
    return True
