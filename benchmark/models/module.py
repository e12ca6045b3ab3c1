"""Modules that go to disk and come back without pickle: weights, and the call that made them."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

from torch import nn

from benchmark.errors import BenchError


class Portable(nn.Module):
    """A module that remembers how it was made.

    The arguments of the constructor must be plain values (numbers, text, lists, mappings) or
    other Portable modules; they are kept in ``made_with``. A module that is given so must become
    a part of this one, whose weights then hold its own.
    """

    made_with: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Portable:  # noqa: D102
        module = super().__new__(cls)
        bound = inspect.signature(cls.__init__).bind(module, *args, **kwargs)
        module.__dict__["made_with"] = dict(list(bound.arguments.items())[1:])
        return module

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        """A copy is made with the same arguments."""
        return (), self.made_with


def save_module(module: Portable, path: Path) -> None:
    """Write ``path`` (safetensors): weights, class and constructor arguments."""
    from safetensors.torch import save_file

    # Copies: parts that share a weight may not share memory in the file.
    state = {k: v.detach().cpu().contiguous().clone() for k, v in module.state_dict().items()}
    save_file(state, path, metadata={"made": json.dumps(_recipe(module), sort_keys=True)})


def _recipe(module: Portable) -> dict[str, Any]:
    cls = type(module)
    if "<locals>" in cls.__qualname__:
        raise BenchError(f"{cls.__qualname__}: a stored module's class must stand in its file")
    arguments = {
        k: {"portable": _recipe(v)} if isinstance(v, Portable) else v
        for k, v in module.made_with.items()
    }
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "arguments": arguments}


def load_module(path: Path) -> Portable:
    """Read what :func:`save_module` wrote.

    Raises:
        BenchError: If the file is damaged or names no Portable class.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            made = json.loads((file.metadata() or {})["made"])
            state = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 - no mapping
        module = _make(made, path)
        module.load_state_dict(state)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        text = " ".join(str(error).split())
        raise BenchError(f"{path}: not a stored module: {text}") from error
    return module


def _make(recipe: dict[str, Any], path: Path) -> Portable:
    arguments = {
        k: _make(v["portable"], path) if isinstance(v, dict) and set(v) == {"portable"} else v
        for k, v in recipe["arguments"].items()
    }
    return _portable(recipe["class"], path)(**arguments)


def _portable(written: str, path: Path) -> type[Portable]:
    name, _, qualname = written.partition(":")
    try:
        cls = getattr(importlib.import_module(name), qualname, None)
    except ImportError as error:
        raise BenchError(f"{path}: cannot import the class '{written}': {error}") from error
    if not (inspect.isclass(cls) and issubclass(cls, Portable)):
        raise BenchError(f"{path}: class '{written}' is not a Portable module")
    return cls
