"""What the types of a record leave open, and whoever shows a record relies on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.records.record import Record


def check(record: Record) -> None:
    """Look for what cannot be.

    Raises:
        BenchError: Naming the field, what was expected and what came.
    """
    for name in ("protocol", "track", "method"):
        # They become folder names, and go to terminals.
        value = getattr(record, name)
        if not value.strip(". ") or not value.isprintable() or re.search(r"[/\\]", value):
            raise BenchError(f"{name}: expected a name, got {value!r}")
    if not record.models:
        raise BenchError("models: expected at least one generation, got none")
    if record.seed < 0:
        raise BenchError(f"seed: expected at least 0, got {record.seed}")
    _shares(record)
    for name, value in record.cost.items():
        _optional(value, f"cost.{name}")
    for name, about in _part(record.dataset, "dataset", "generations").items():
        _mapping(about, f"dataset.generations.{name}")
    for name, about in _part(record.side, "side", "generations").items():
        _mapping(about, f"side.generations.{name}")
    _run(record.run)
    _curves(record.curves)
    if record.backfilling.get("orders"):
        _backfilling(record.backfilling)


def _shares(record: Record) -> None:
    """Scores, their intervals and gains."""
    for part in ("scores", "bounds"):
        for case, metrics in getattr(record, part).items():
            for metric, score in metrics.items():
                if score is not None and not 0.0 <= score <= 1.0:
                    raise BenchError(f"{part}.{case}.{metric}: expected 0 to 1, got {score}")
    for case, spans in record.intervals.items():
        for metric, ends in spans.items():
            if ends is not None and not ends[0] <= ends[1] < math.inf:
                raise BenchError(
                    f"intervals.{case}.{metric}: expected [low, high], got {list(ends)}"
                )
    for metric, gain in record.update_gain.items():
        _optional(gain, f"update_gain.{metric}")


def _run(run: Mapping[str, Any]) -> None:
    _part(run, "run", "code")
    _part(run, "run", "seconds")
    argv = run.get("argv") or []
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise BenchError(f"run.argv: expected a list of words, got {argv!r:.60}")
    _optional(run.get("training_cost"), "run.training_cost")
    for title, stage in _part(run, "run", "stages").items():
        about = _mapping(stage, f"run.stages.{title}")
        for key in ("seconds", "peak_memory_bytes"):
            _optional(about.get(key), f"run.stages.{title}.{key}")


def _curves(curves: Mapping[str, Any]) -> None:
    for title, parts in curves.items():
        for part, lines in _mapping(parts, f"curves.{title}").items():
            for key, line in _mapping(lines, f"curves.{title}.{part}").items():
                if isinstance(line, list):
                    # A training that diverged has losses that are none.
                    known = [value for value in line if value is not None]
                    _numbers(known, f"curves.{title}.{part}.{key}")


def _backfilling(found: Mapping[str, Any]) -> None:
    for metric, ends in _part(found, "backfilling", "offline").items():
        for key in ("before", "after", "area"):
            _number(_mapping(ends, f"backfilling.offline.{metric}").get(key), f"offline.{key}")
    lengths: set[int] = set()
    for name, order in _part(found, "backfilling", "orders").items():
        _order(_mapping(order, f"backfilling.orders.{name}"), f"backfilling.orders.{name}")
        lengths |= {len(curve) for curve in order["curves"].values()}
    if len(lengths) > 1 or min(lengths, default=2) < 2:
        raise BenchError("backfilling.orders: expected curves of one length, of 2 points or more")
    for key in ("old", "new"):
        if not isinstance(found.get(key), str):
            raise BenchError(f"backfilling.{key}: expected text, got {found.get(key)!r:.60}")


def _order(order: Mapping[str, Any], where: str) -> None:
    for key in ("area", "intervals", "curves", "flips", "groups", "tau"):
        _mapping(order.get(key), f"{where}.{key}")
    for part in ("area", "tau"):
        for name, value in order[part].items():
            _optional(value, f"{where}.{part}.{name}")
    for metric, span in order["intervals"].items():
        if span is not None:
            _numbers(span, f"{where}.intervals.{metric}", n=2)
    for metric, curve in order["curves"].items():
        _numbers(curve, f"{where}.curves.{metric}")
    for key in ("positive", "negative"):
        _numbers(order["flips"].get(key), f"{where}.flips.{key}")


def _part(whole: Mapping[str, Any], where: str, key: str) -> Mapping[str, Any]:
    """A mapping in another; empty where it is not there."""
    return _mapping(whole.get(key) or {}, f"{where}.{key}")


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BenchError(f"{where}: expected a mapping, got {value!r:.60}")
    return value


def _optional(value: Any, where: str) -> None:
    if value is not None:
        _number(value, where)


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BenchError(f"{where}: expected a number, got {value!r:.60}")


def _numbers(values: Any, where: str, n: int | None = None) -> None:
    if not isinstance(values, list | tuple) or (n is not None and len(values) != n):
        raise BenchError(f"{where}: expected {n or 'a list of'} numbers, got {values!r:.60}")
    for value in values:
        _number(value, where)
