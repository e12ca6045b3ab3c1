"""Modules stored without pickle: safetensors weights, a class name and constructor arguments."""

import importlib
import inspect
import json
from pathlib import Path
from typing import Any, Self

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from benchmark.errors import BenchError


class Portable(nn.Module):
    """A module that remembers its constructor arguments, so that a file can restore it.

    The arguments must be plain values (numbers, text, lists, mappings) or other Portable modules;
    they are kept in ``arguments``. A module given as an argument must become a submodule, whose
    weights are then stored with this one's.
    """

    arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        module = super().__new__(cls)
        bound = inspect.signature(cls.__init__).bind(module, *args, **kwargs)
        module.__dict__["arguments"] = dict(list(bound.arguments.items())[1:])
        return module

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        """Copies are built with the same arguments."""
        return (), self.arguments


def save_module(module: Portable, path: Path) -> None:
    """Write weights, class and constructor arguments to ``path`` (safetensors)."""
    # Copies: parts that share a weight may not share memory in the file.
    state = {k: v.detach().cpu().contiguous().clone() for k, v in module.state_dict().items()}
    save_file(state, path, metadata={"module": json.dumps(_describe(module), sort_keys=True)})


def _describe(module: Portable) -> dict[str, Any]:
    cls = type(module)
    if "<locals>" in cls.__qualname__:
        raise BenchError(f"{cls.__qualname__}: expected a class at module level, to store it")
    arguments = {
        k: {"portable": _describe(v)} if isinstance(v, Portable) else v
        for k, v in module.arguments.items()
    }
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "arguments": arguments}


def load_module(path: Path) -> Portable:
    """Read a file of :func:`save_module`.

    Raises:
        BenchError: If the file is damaged or names no Portable class.
    """
    try:
        with safe_open(path, framework="pt") as file:
            description = json.loads((file.metadata() or {})["module"])
            state = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 - no mapping
        module = _build(description, path)
        module.load_state_dict(state)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise BenchError(f"{path}: not a stored module: {' '.join(str(error).split())}") from error
    return module


def _build(description: dict[str, Any], path: Path) -> Portable:
    arguments = {
        k: _build(v["portable"], path) if isinstance(v, dict) and set(v) == {"portable"} else v
        for k, v in description["arguments"].items()
    }
    written = description["class"]
    name, _, qualname = written.partition(":")
    try:
        cls = getattr(importlib.import_module(name), qualname, None)
    except ImportError as error:
        raise BenchError(f"{path}: cannot import the class '{written}': {error}") from error
    if not (inspect.isclass(cls) and issubclass(cls, Portable)):
        raise BenchError(f"{path}: class '{written}' is not a Portable module")
    return cls(**arguments)
