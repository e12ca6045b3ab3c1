"""Names to methods, protocols, tracks, datasets and tasks: found by file, imported late."""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from benchmark.config.backbones import added_backbones, backbones
from benchmark.config.declarations import (
    FIDELITIES,
    DatasetDeclaration,
    MethodDeclaration,
    TaskDeclaration,
)
from benchmark.config.entry_points import (
    DATASETS,
    METHODS,
    TRACKS,
    Added,
    added,
    one_line,
    package_of,
)
from benchmark.config.fingerprints import (
    assigned,
    declared,
    fingerprint,
    names_map_training,
    names_scale,
    syntax_tree,
)
from benchmark.config.imported import imported_files
from benchmark.config.method_names import wrong_name
from benchmark.config.reading import build
from benchmark.errors import BenchError, PassedOverWarning, unknown

Entry = TypeVar("Entry")


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
        """Hash of what the source says to Python: a part of the name of everything it computes.

        Of the methods that it builds on, too, and of other modules that it imports.
        """
        own = fingerprint(self.source)
        parts = [method_file(name).fingerprint for name in self.builds_on]
        parts += [f"{file.module}:{fingerprint(file.source)}" for file in self.imported]
        return hashlib.sha256("".join([own, *parts]).encode()).hexdigest() if parts else own

    @property
    def imported(self) -> "tuple[MethodFile, ...]":
        """Modules of its own package, or of a folder of yours, that it imports, by name.

        Directly or by way of others; what an imported method builds on is among them.
        """
        of_methods = {file.module: file for file in method_files().values()}

        def built_on(module: str) -> dict[str, Path]:
            names = of_methods[module].builds_on if module in of_methods else ()
            return {file.module: file.path for file in map(method_file, names)}

        known = built_on(self.module)
        found = imported_files(self.module, self.path, known, built_on)
        return tuple(MethodFile(name, name, found[name]) for name in sorted(found))

    @property
    def builds_on(self) -> tuple[str, ...]:
        """Methods of which it declares to take parts."""
        return tuple(declared(self.source, "builds_on", ()))

    @property
    def variant_of(self) -> str:
        """The method of which it declares to be a variant; empty otherwise."""
        return str(declared(self.source, "variant_of", ""))

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (ast.get_docstring(syntax_tree(self.source)) or "").partition("\n")[0]

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the declared variants."""
        found = assigned(self.source, "variants")
        if not isinstance(found, ast.Dict):
            return ()
        return tuple(ast.literal_eval(key) for key in found.keys if key)

    @property
    def longer(self) -> bool:
        """Tell whether it says anywhere that it changes the dimension."""
        nodes = ast.walk(syntax_tree(self.source))
        return any(isinstance(n, ast.Constant) and n.value == "dimension" for n in nodes)

    @property
    def control(self) -> bool:
        """Tell whether it declares that it is a control."""
        return declared(self.source, "control", False) is True

    def fidelity(self, variant: str = "") -> str:
        """The source that the method, or a variant, was built from; empty where it does not say so.

        BenchError if it says something else than :data:`~benchmark.config.declarations.FIDELITIES`.
        """
        said = declared(self.source, "fidelity", "")
        if isinstance(said, dict):
            said = said.get(variant, said.get("", ""))
        if said and said not in FIDELITIES:
            raise unknown(f"{self.path.name}: fidelity", str(said), FIDELITIES)
        return str(said)

    @property
    def reads_scale(self) -> bool:
        """Tell whether it may read the scale of the new classifier's logits."""
        return self._any(names_scale)

    @property
    def trains_map(self) -> bool:
        """Tell whether it may train a map step by step: another package's method always may."""
        return not self.module.startswith("methods.") or self._any(names_map_training)

    def _any(self, told: Callable[[bytes], bool]) -> bool:
        files = (self, *self.imported, *map(method_file, self.builds_on))
        return any(told(file.source) for file in files)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BenchError(f"package '{package}' is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _methods() -> tuple[Mapping[str, MethodFile], Mapping[str, str]]:
    """Every method, and why others are passed over: broken files and entry points."""
    files, broken = dict[str, MethodFile](), dict[str, str]()
    for path in sorted(_folder("methods").glob("[!_]*.py")):
        name = path.stem.replace("_", "-")
        double = f"method '{name}' is in {files[name].path.name}" if name in files else ""
        if wrong := double or wrong_name(name):
            warnings.warn(PassedOverWarning(f"passed over {path}: {wrong}"), stacklevel=3)
            continue
        files[name] = MethodFile(name, f"methods.{path.stem}", path)
    more = added(METHODS, files.__contains__)
    files |= {n: MethodFile(n, module, path) for n, (module, path) in more.found.items()}
    for name, file in list(files.items()):
        try:
            syntax_tree(file.source)
        except (SyntaxError, ValueError, OSError, RecursionError) as error:
            broken[name] = f"{file.path}: {one_line(error)}"
            warnings.warn(PassedOverWarning(f"passed over method {broken[name]}"), stacklevel=3)
            del files[name]
    return files, broken | more.broken


def method_files() -> Mapping[str, MethodFile]:
    """Every method: the files in ``methods/`` and the entry points of other packages.

    A file that is no Python, and a broken entry point, is told and passed over.
    """
    return _methods()[0]


def known(kind: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    """The entry of a name.

    Raises:
        BenchError: Saying why it is passed over, or with the nearest known one if there is none.
    """
    if name in entries:
        return entries[name]
    raise not_known(kind, name, entries)


def not_known(kind: str, name: str, entries: Iterable[str]) -> BenchError:
    """The error for a name: why it is passed over, or the nearest known one."""
    for each, reasons in _BROKEN.items():
        if kind in (each, "name") and name in (found := reasons()):
            return BenchError(f"{each} '{name}': {found[name]}")
    return unknown(kind, name, entries)


def method_file(label: str) -> MethodFile:
    """The file of ``bct`` or ``bct:distill``; BenchError if method or variant is unknown."""
    name, colon, variant = label.partition(":")
    file = known("method", name, method_files())
    if colon:
        known(f"variant of {name}", variant, dict.fromkeys(file.variants))
    return file


@cache
def is_control(label: str) -> bool:
    """Tell whether a method is the independent model or declares that it is a control.

    Example:
        >>> is_control("class-mean"), is_control("fct:simclr")
        (True, False)
    """
    name = label.partition(":")[0]
    file = method_files().get(name)
    return name == "independent" or (file is not None and file.control)


def method_class(name: str) -> type[MethodDeclaration]:
    """The adapter class in a method's file; BenchError if there is not one."""
    return _only_class(method_file(name).module, MethodDeclaration)


def method(label: str, params: Mapping[str, Any] | None = None) -> MethodDeclaration:
    """The adapter ``bct`` or ``bct:distill`` with parameters; BenchError on an unknown name."""
    cls = method_class(label)
    variant = label.partition(":")[2]
    values = {**(cls.variants[variant] if variant else {}), **(params or {})}
    try:
        return build(cls, values, f"method {label}")
    except BenchError:
        raise
    except Exception as error:  # of its own code
        file = str(method_file(label).path)
        raise BenchError(f"method {label}: {one_line(error, [file])}") from error


OWN_FILES: dict[str, dict[str, Path]] = {"protocol": {}, "track": {}}
"""Files of a user's own by id, while ``loading.known_by_id`` lets records name them so."""


def protocol_files() -> dict[str, Path]:
    """Protocol id to file."""
    files = sorted(_folder("protocols").glob("*.yaml"), key=lambda path: path.name)
    return OWN_FILES["protocol"] | {path.stem: path for path in files}


@cache
def _tracks() -> tuple[Mapping[str, Path], Added]:
    own = {path.stem: path for path in sorted(_folder("protocols").glob("tracks/*.yaml"))}
    return own, added(TRACKS, own.__contains__)


def track_files() -> Mapping[str, Path]:
    """Track id to file: in ``protocols/tracks/``, or beside the module that a package names."""
    own, more = _tracks()
    theirs = {name: path.with_name(f"{name}.yaml") for name, (_, path) in more.found.items()}
    return {**OWN_FILES["track"], **own, **theirs}


def is_added_track(name: str) -> bool:
    """Tell whether a track is of another package."""
    return name not in _tracks()[0]


def _modules(package: str, base: str) -> dict[str, str]:
    """Modules of a package with a class whose base's name ends so, found without importing them."""
    modules = {}
    for path in sorted(_folder(package).glob("*.py")):
        source = path.read_bytes()
        if base.encode() not in source:  # parsing all of them is felt in each command
            continue
        classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
        # A class that is itself named so is a base, too.
        bases = [ast.unparse(b) for c in classes if not c.name.endswith(base) for b in c.bases]
        if any(name.endswith(base) for name in bases):
            modules[path.stem] = f"{package}.{path.stem}"
    return modules


@cache
def _datasets() -> tuple[Mapping[str, str], Mapping[str, str]]:
    own = _modules("benchmark.data", "DatasetReader")
    more = added(DATASETS, own.__contains__)
    return own | {name: module for name, (module, _) in more.found.items()}, more.broken


def datasets() -> Mapping[str, str]:
    """Dataset name to module with a ``DatasetReader``: in ``benchmark/data`` or other packages."""
    return _datasets()[0]


def backbone(name: str) -> Callable[[int, int], Any]:
    """The function that builds a backbone of another package."""
    module = _imported(known("backbone", name, backbones()))
    if not callable(getattr(module, "trunk", None)):
        raise BenchError(f"{module.__file__}: expected a function trunk(channels, image_size)")
    built: Callable[[int, int], Any] = module.trunk
    return built


_BROKEN: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "method": lambda: _methods()[1], "track": lambda: _tracks()[1].broken,
    "dataset": lambda: _datasets()[1], "backbone": lambda: added_backbones().broken,
}  # fmt: skip
"""Kind -> name -> why it is passed over."""


def broken() -> list[str]:
    """Reasons why entry points and methods are passed over."""
    return [reason for reasons in _BROKEN.values() for reason in reasons().values()]


@cache
def tasks() -> Mapping[str, str]:
    """Task name to module: the files of ``benchmark/tasks`` with a ``Task``."""
    return _modules("benchmark.tasks", "Task")


_STORED = ("benchmark.models", "benchmark.training", "benchmark.contract")
"""Packages whose modules define what is stored in files, beside the methods."""


@cache
def _class_modules() -> Mapping[str, str]:
    """``module:Class`` -> module, of every class that :data:`_STORED` and the methods define."""
    files = {file.module: file.path for file in method_files().values()}
    for package in _STORED:
        paths = _folder(package).glob("*.py")
        files |= {f"{package}.{path.stem}": path for path in paths if path.stem != "__init__"}
    return {
        f"{module}:{node.name}": module
        for module, path in sorted(files.items())
        for node in syntax_tree(path.read_bytes()).body
        if isinstance(node, ast.ClassDef)
    }


def modules_defining(name: str) -> tuple[str, ...]:
    """Modules to import for a class ``module:Class`` that a file names: none but known ones.

    It is looked up among the classes of this project and of installed methods. Where a method of
    another package may define it in a module of its own, those are that package's methods.
    """
    if name in _class_modules():
        return (_class_modules()[name],)
    package = name.partition(":")[0].partition(".")[0]
    modules = {file.module for file in method_files().values()} if package != "methods" else ()
    return tuple(sorted(m for m in modules if m.partition(".")[0] == package))


def check_options(name: str, options: Mapping[str, Any], where: str) -> DatasetDeclaration:
    """A dataset with options, its class's fields; ``where`` is what a BenchError names first."""
    cls: type[DatasetDeclaration]
    cls = _only_class(known("dataset", name, datasets()), DatasetDeclaration)
    return build(cls, options, where)


def task(name: str) -> TaskDeclaration:
    """A task; BenchError on an unknown name."""
    cls: type[TaskDeclaration] = _only_class(known("task", name, tasks()), TaskDeclaration)
    return cls()


def _imported(name: str) -> Any:
    """A module; a BenchError of one line, with its package, if it cannot be imported."""
    try:
        return importlib.import_module(name)
    except BenchError:
        raise
    except (Exception, SystemExit) as error:
        line = one_line(error, {str(file.path) for file in method_files().values()})
        of = f" of {package}" if (package := package_of(name)) else ""
        raise BenchError(f"module {name}{of} cannot be imported: {line}") from error


def _only_class(module_name: str, base: Any) -> Any:
    """The class of a module that derives from ``base`` and is written there."""
    module = _imported(module_name)
    there: list[Any] = [
        c
        for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, base) and c.__module__ == module_name
    ]
    classes = [c for c in there if not inspect.isabstract(c)]
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        lacks = [f"; {c.__name__} lacks {', '.join(sorted(c.__abstractmethods__))}" for c in there]
        kind = base.__name__.removesuffix("Declaration").lower()
        more = "" if classes else "".join(lacks)  # all are abstract
        raise BenchError(f"{module.__file__}: expected one class of a {kind}, found {names}{more}")
    return classes[0]
