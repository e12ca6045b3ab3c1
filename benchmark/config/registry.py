"""Names to methods, protocols, tracks, datasets and tasks: found by file, imported late."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from benchmark.config.reading import build, read_yaml
from benchmark.config.types import Protocol, Track
from benchmark.errors import BenchError, unknown

GROUP = "compatbench.methods"


@dataclass(frozen=True)
class Adapter(ABC):
    """What a method declares of itself; :class:`benchmark.contract.Method` adds what it does.

    Class attributes:
        paper: Where it comes from: title, authors, year.
        own_model: False when the new model is the independent one, so nothing is trained
            or embedded again.
        own_first: True when the first generation is trained the method's own way.
        runs_old_model: True when the old model itself embeds new images, beside or instead of the
            new one; such a method cannot serve text queries, whose old model reads texts.
        trains: What is trained at an update, in words for its card; empty: a new model, or none
            without ``own_model``.
        variants: Named sets of parameters.
    """

    paper: ClassVar[str] = ""
    own_model: ClassVar[bool] = True
    own_first: ClassVar[bool] = False
    runs_old_model: ClassVar[bool] = False
    trains: ClassVar[str] = ""
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def needs(self) -> tuple[str, ...]:
        """What the plan must provide: ``old_head``, ``independent``, ``side:<kind>``."""
        return ()

    @property
    def uses(self) -> tuple[str, ...]:
        """What else it reads of what every plan has, in words for its card."""
        return ()

    @property
    def changes(self) -> tuple[str, ...]:
        """What it changes: any of ``training``, ``gallery``, ``queries``, ``dimension``."""
        return ("training",)

    @abstractmethod
    def refuses(self, step: Any) -> str | None:
        """Why the method cannot make this update; ``None`` if it can."""

    @abstractmethod
    def first(self, job: Any) -> Any:
        """Train generation 1 the method's own way; only with ``own_first``."""

    @abstractmethod
    def fit(self, *arrays: Any, **options: Any) -> Any:
        """Fit on plain arrays."""

    @abstractmethod
    def update(self, job: Any) -> Any:
        """Train or fit the new generation, given the earlier ones."""


@dataclass(frozen=True)
class MethodFile:
    """A method as its file shows it, nothing imported."""

    id: str
    module: str
    path: Path

    @property
    def source(self) -> bytes:
        """The adapter's source as it stands."""
        return self.path.read_bytes()

    @property
    def fingerprint(self) -> str:
        """Hash of what the source says to Python: a part of the name of everything it computes."""
        return fingerprint(self.source)

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        doc = ast.get_docstring(ast.parse(self.source)) or ""
        return doc.partition("\n")[0]

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the declared variants."""
        for node in ast.walk(ast.parse(self.source)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(t, ast.Name) and t.id == "variants" for t in targets):
                    return tuple(k.value for k in node.value.keys if isinstance(k, ast.Constant))  # type: ignore[misc]
        return ()


@cache
def fingerprint(source: bytes) -> str:
    """Hash of a module's code: comments, docstrings and formatting do not count.

    Of the syntax tree as plain values, without what is empty: ``ast.dump`` and ``ast.unparse``
    write the same tree in other words from one Python to the next.
    """
    text = json.dumps(_code(ast.parse(source)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _code(node: Any) -> Any:
    if isinstance(node, list):
        return [_code(part) for part in node if not _is_words(part)]
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = {name: _code(value) for name, value in ast.iter_fields(node) if value is not None}
    return {"": type(node).__name__, **{name: part for name, part in parts.items() if part != []}}


def _is_words(node: Any) -> bool:
    """A text that stands alone, such as a docstring or what is written below a field."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return alone and isinstance(node.value.value, str)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BenchError(f"package '{package}' is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def method_files() -> Mapping[str, MethodFile]:
    """Every method: the files in ``methods/`` and the entry points of other packages."""
    found = {}
    for path in sorted(_folder("methods").glob("*.py")):
        if not path.stem.startswith("_"):
            name = path.stem.replace("_", "-")
            found[name] = MethodFile(name, f"methods.{path.stem}", path)
    for entry in entry_points(group=GROUP):
        spec = importlib.util.find_spec(entry.module)
        if spec is None or spec.origin is None:
            raise BenchError(f"entry point {GROUP}: '{entry.value}' cannot be found")
        if entry.name in found:
            raise BenchError(f"entry point {GROUP}: method '{entry.name}' exists already")
        found[entry.name] = MethodFile(entry.name, entry.module, Path(spec.origin))
    return found


def method_file(label: str) -> MethodFile:
    """The file of ``bct`` or ``bct:distill``.

    Raises:
        BenchError: If the method or the variant is unknown.
    """
    name, colon, variant = label.partition(":")
    files = method_files()
    if name not in files:
        raise unknown("method", name, files)
    if colon and variant not in files[name].variants:
        raise unknown(f"variant of {name}", variant, files[name].variants)
    return files[name]


def method_class(name: str) -> type[Adapter]:
    """The adapter class in a method's file."""
    file = method_file(name)
    module = importlib.import_module(file.module)
    classes = [
        c
        for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, Adapter) and c.__module__ == module.__name__ and not inspect.isabstract(c)
    ]
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        raise BenchError(f"{file.path}: expected one Method subclass, found {names}")
    return classes[0]


def method(label: str, params: Mapping[str, Any] | None = None) -> Adapter:
    """The adapter ``bct`` or ``bct:distill`` with its parameters.

    Raises:
        BenchError: On an unknown method, variant or parameter.
    """
    cls = method_class(label)
    variant = label.partition(":")[2]
    values = {**(cls.variants[variant] if variant else {}), **(params or {})}
    return build(cls, values, f"method {label}")


def protocol_files() -> dict[str, Path]:
    """Protocol id to file."""
    return {p.stem: p for p in sorted(_folder("protocols").glob("*.yaml"))}


def track_files() -> dict[str, Path]:
    """Track id to file."""
    return {p.stem: p for p in sorted((_folder("protocols") / "tracks").glob("*.yaml"))}


def protocol(name: str) -> Protocol:
    """A protocol by id, or by the path of a YAML file; ``arch-change:deeper`` is one setting."""
    from benchmark.config.overrides import check_names, with_setting

    base, _, setting = name.partition(":")
    path, value = _read(base, protocol_files(), "protocol")
    made = build(Protocol, value, path.name)
    check_names(made, path.name)
    return with_setting(made, setting) if setting else made


def track(name: str) -> Track:
    """A track by id, or by the path of a YAML file; ``extends`` is followed."""
    path, value = _read(name, track_files(), "track")
    made = build(Track, _extended(path, value, ()), str(path.name))
    if made.dataset not in datasets():
        raise BenchError(f"{path.name}: {unknown('dataset', made.dataset, datasets())}")
    for name_ in made.protocols:
        if name_.partition(":")[0] not in protocol_files():
            wrong = unknown("protocol", name_, protocol_files())
            raise BenchError(f"{path.name}: protocols: {wrong}")
    return made


def _read(name: str, files: Mapping[str, Path], kind: str) -> tuple[Path, dict[str, Any]]:
    path = Path(name) if name.endswith((".yaml", ".yml")) else files.get(name)
    if path is None:
        raise unknown(kind, name, files)
    value = read_yaml(path)
    if value.get("id") != path.stem:
        raise BenchError(
            f"{path.name}: id: expected '{path.stem}' as the file's, got {value.get('id')!r}"
        )
    return path, value


def _extended(path: Path, value: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    base = value.get("extends")
    if base is None:
        return value
    if base in seen:
        raise BenchError(f"{path.name}: extends: goes in a circle over '{base}'")
    parent, below = _read(str(base), track_files(), "track")
    inherited = _extended(parent, below, (*seen, str(base)))
    # Another dataset has other options and other groups.
    if value.get("dataset", inherited.get("dataset")) != inherited.get("dataset"):
        inherited = {k: v for k, v in inherited.items() if k not in ("data", "groups")}
    return _merge(inherited, value)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def _modules(package: str, must_define: str) -> dict[str, str]:
    found = {}
    for path in sorted(_folder(package).glob("*.py")):
        names = [
            n.name for n in ast.parse(path.read_bytes()).body if isinstance(n, ast.FunctionDef)
        ]
        if must_define in names:
            found[path.stem] = f"{package}.{path.stem}"
    return found


@cache
def datasets() -> Mapping[str, str]:
    """Dataset name to module: the files of ``benchmark/data`` that define ``load``."""
    return _modules("benchmark.data", "load")


@cache
def tasks() -> Mapping[str, str]:
    """Task name to module: the files of ``benchmark/tasks`` that define ``evaluate``."""
    return _modules("benchmark.tasks", "evaluate")


def dataset(name: str) -> ModuleType:
    """The module of a dataset, with ``load`` and ``source``."""
    if name not in datasets():
        raise unknown("dataset", name, datasets())
    return importlib.import_module(datasets()[name])


def task(name: str) -> ModuleType:
    """The module of a task, with ``evaluate``."""
    if name not in tasks():
        raise unknown("task", name, tasks())
    return importlib.import_module(tasks()[name])
