"""Modules stored without pickle: safetensors weights, a class name and constructor arguments.

A file may come from anyone. Its class is looked up among those that the project's own packages and
the installed methods define, never imported by name; what the constructor allocates is held to the
size of the file.
"""

import importlib
import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import torch
from pydantic_core import from_json
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from torch.overrides import TorchFunctionMode

from benchmark.config import registry
from benchmark.config.files import file_size
from benchmark.errors import BenchError, unknown

_MOST_BYTES = 2**36
_MOST_HEADER = 2**25
"""Bytes of a header; the classes of a million people take 7 MiB."""
_DEEPEST = 16
"""Modules inside modules."""
_SPARE = 2**20
"""Numbers and tensors that a constructor may make beyond those that the file has."""
_FACTORIES = frozenset(
    getattr(torch, name)
    for name in (
        "arange", "empty", "empty_strided", "eye", "full", "linspace", "logspace", "ones", "rand",
        "randint", "randn", "randperm", "tril_indices", "triu_indices", "zeros",
    )
)  # fmt: skip


class Portable(nn.Module):
    """A module that remembers its constructor arguments, so that a file can restore it.

    The arguments must be plain values (numbers, text, lists, mappings) or other Portable modules;
    they are kept in ``arguments``. A module given as an argument must become a submodule, whose
    weights are then stored with this one's. Every class at module level is known to
    :func:`load_module` as soon as it is defined.
    """

    known: ClassVar[dict[str, type["Portable"]]] = {}
    """Classes by ``module:Class``."""
    arguments: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the class known by its name."""
        super().__init_subclass__(**options)
        if "<locals>" not in cls.__qualname__:
            Portable.known[_name(cls)] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        module = super().__new__(cls)
        bound = inspect.signature(cls.__init__).bind(module, *args, **kwargs)
        module.__dict__["arguments"] = dict(list(bound.arguments.items())[1:])
        return module

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        """Copies are built with the same arguments."""
        return (), self.arguments


def save_module(module: Portable, path: Path) -> None:
    """Write weights, class and constructor arguments (safetensors), readable as the umask says."""
    # Copies: parts that share a weight may not share memory in the file.
    state = {k: v.detach().cpu().contiguous().clone() for k, v in module.state_dict().items()}
    text = json.dumps(_describe(module), sort_keys=True, default=_cannot_be_stored)
    path.touch()
    mode = path.stat().st_mode
    save_file(state, path, metadata={"module": text})
    path.chmod(mode)  # safetensors gives its files to the owner alone


def _cannot_be_stored(value: object) -> NoReturn:
    raise BenchError(
        "to store a module: expected a Portable module, whose arguments are numbers, texts, lists "
        f"and Portable modules, got {type(value).__name__}"
    )


def _describe(module: Portable) -> dict[str, Any]:
    cls = type(module)
    if not isinstance(module, Portable):
        _cannot_be_stored(module)
    if "<locals>" in cls.__qualname__:
        raise BenchError(f"{cls.__qualname__}: expected a class at module level, to store it")
    arguments = {
        k: {"portable": _describe(v)} if isinstance(v, Portable) else v
        for k, v in module.arguments.items()
    }
    return {"class": _name(cls), "arguments": arguments}


def _name(cls: type[Portable]) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def load_module(path: Path) -> Portable:
    """Read a file of :func:`save_module`.

    Raises:
        BenchError: If the file is damaged, is no regular file, names no known Portable class, or
            does not fit it.
    """
    size = file_size(path, _MOST_BYTES)
    try:
        _check_header(path, size)
        with safe_open(path, framework="pt") as file:
            description = from_json((file.metadata() or {})["module"], allow_inf_nan=False)
            shapes = {k: tuple(file.get_slice(k).get_shape()) for k in file.keys()}  # noqa: SIM118
            with _Allowance(shapes):
                module = _build(description)
            _check_shapes(module, shapes)
            module.load_state_dict({k: file.get_tensor(k) for k in shapes})
    except (Exception, SystemExit) as error:  # whatever a constructor makes of odd arguments
        text = " ".join(str(error).split()) or type(error).__name__
        raise BenchError(f"{path}: not a stored module: {text:.300}") from error
    return module


def _check_header(path: Path, size: int) -> None:
    """Look at the length that a file gives for its header, before anything is allocated for it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, _MOST_HEADER):
        most = min(max(size - 8, 0), _MOST_HEADER)
        raise BenchError(f"expected a header of at most {most} bytes, got {length}")


class _Allowance(TorchFunctionMode):
    """Lets a constructor make no more and no larger tensors than a file can fill.

    Four times its numbers, for a parametrization or a fixed head is made of several. What would be
    too large is refused before memory is taken.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.left = _SPARE + 4 * sum(math.prod(shape) for shape in shapes.values())
        self.calls = 1000 + 16 * len(shapes)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            without = {k: v for k, v in kwargs.items() if k not in ("generator", "out")}
            self.left -= func(*args, **{**without, "device": "meta"}).numel()
            self.calls -= 1
            if self.left < 0 or self.calls < 0:
                raise BenchError("its arguments ask for more weights than the file has")
        return func(*args, **kwargs)


def _check_shapes(module: Portable, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Say which tensor differs; torch's own text lists all of them."""
    expected = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    for key in sorted(expected.keys() | shapes.keys()):
        if expected.get(key) != shapes.get(key):
            sizes = (each.get(key, "none") for each in (expected, shapes))
            raise BenchError("tensor '{}': expected size {}, got {}".format(key, *sizes))


def _build(description: Any, depth: int = 1) -> Portable:
    if depth > _DEEPEST:
        raise BenchError(f"expected at most {_DEEPEST} modules inside each other")
    if not isinstance(description, dict) or description.keys() != {"class", "arguments"}:
        raise BenchError("expected a class and its arguments")
    name, given = description["class"], description["arguments"]
    if not isinstance(name, str) or not isinstance(given, dict):
        raise BenchError("expected the name of a class and a mapping of arguments")
    cls = _class(name)
    inner = {k for k, v in given.items() if isinstance(v, dict) and v.keys() == {"portable"}}
    built = {k: _build(given[k]["portable"], depth + 1) for k in given if k in inner}
    return cls(**given | built)


def _class(name: str) -> type[Portable]:
    """The class of a name that is known, or that a file of ours or of a method defines."""
    if name not in Portable.known:
        for module in registry.modules_defining(name):
            importlib.import_module(module)
    if name not in Portable.known:
        raise unknown("Portable class", name, Portable.known)
    return Portable.known[name]
