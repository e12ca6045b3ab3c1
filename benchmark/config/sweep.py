"""Sweeps: the same run at several values of a field."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.config.reading import parse_settings
from benchmark.errors import BenchError


@dataclass(frozen=True)
class Axis:
    """A field and its values."""

    # as in ``--set``: ``mixbct.ratio``, ``old.dim``; ``track``; several fields that move together
    # with a plus between: ``old.dim+new.dim``
    key: str
    values: tuple[Any, ...]  # at least two, all different, in the order they are shown

    @property
    def fields(self) -> list[str]:
        """The fields that move together."""
        return self.key.split("+")


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Axes of the command line; BenchError if a key comes twice, or has not several values.

    Example:
        >>> parse_axes(["mixbct.ratio=0.1,0.2"])
        (Axis(key='mixbct.ratio', values=(0.1, 0.2)),)
    """
    axes = []
    for text in texts:
        key, equals, listed = text.partition("=")
        if not key or not equals:
            raise BenchError(f"--sweep: expected key=value,value, got '{text}'")
        values = tuple(parse_settings([f"{key}={v.strip()}"])[key] for v in listed.split(","))
        if any(isinstance(value, list | dict) for value in values):
            raise BenchError(f"--sweep {key}: expected numbers or names, got '{listed}'")
        if len(values) < 2 or len(set(values)) < len(values):
            raise BenchError(f"--sweep {key}: expected several different values, got '{listed}'")
        axes.append(Axis(key, values))
    keys = [key for axis in axes for key in axis.fields]
    if len(set(keys)) < len(keys):
        raise BenchError(f"--sweep: a key is given twice: {', '.join(keys)}")
    return tuple(axes)


def points(axes: Sequence[Axis], settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The settings of each run, every combination of values; BenchError if a swept key is set."""
    for axis in axes:
        for key in axis.fields:
            if key in settings:
                raise BenchError(f"--sweep {key}: also given by --set")
    for values in itertools.product(*(axis.values for axis in axes)):
        changes = [dict.fromkeys(a.fields, v) for a, v in zip(axes, values, strict=True)]
        yield {**settings, **{k: v for change in changes for k, v in change.items()}}
