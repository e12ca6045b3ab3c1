"""The layout of a record's file: what it differs in from its board's base, and nothing derived.

A record with a ``base`` leaves out what the file ``base-<hash>.json`` of its board says: dataset,
models, rules, bounds, and the scores of the independent model of its seed. Criterion and gain
follow from scores and bounds. Curves, stage times and the command line lie in the details file.
A record without a ``base`` says all of it itself.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from benchmark.config.files import digest, read_bytes, write_whole
from benchmark.errors import BenchError
from benchmark.metrics import compatibility
from benchmark.metrics.catalog import describe
from benchmark.records.limits import parse_json

Values = dict[str, Any]

BASE = "base"
ABSENT = "absent"
"""Key of what the base has and the record has not: field -> keys, null for all of them."""
SHARED = (
    "dataset", "models", "recipe", "parameters", "environment", "over", "bounds", "scores",
    "counts", "curves", "cost", "checkpoints", "backfilling",
)  # fmt: skip
"""Fields that a base has, each a mapping; of a record those keys are written that differ."""
VERDICTS = ("compatible", "not_hurting", "update_gain")
_OF_PARTS = frozenset({
    "models", "parameters", "bounds", "scores", "intervals", "counts", "curves", "checkpoints",
    "backfilling", *VERDICTS,
})  # fmt: skip
_TIMES = ("stages", "seconds", "argv")
_CURVES = ("curves", "flips", "groups", "tau")
_OF_ORDERS = {"area": "", "worst": "worst_", "share_above": "share_above_"}
"""Scores of an order -> what the names of their intervals begin with."""
_STEPS = "steps"
_DECIMALS = 10_000  # of curves
_INTERVAL = 9  # decimals of the ends of an interval
_LARGEST = 256 * 1024
_NAME_LENGTH = 16
Scores = Mapping[str, float | None]


def base_name(base: Values) -> str:
    """Name of a base by its content: 16 hexadecimal digits."""
    return digest(base)[:_NAME_LENGTH]


def base_path(record: Path, name: str) -> Path:
    """Place of a record's base: in the folder of its board."""
    return record.parent.parent / f"base-{name}.json"


def base_of(value: Values) -> Values:
    """The base that a record of the independent model gives to its board and seed."""
    joined = _joined(value)
    base = {field: joined[field] for field in SHARED if joined.get(field) is not None}
    if "backfilling" in base:
        own = ("orders", "offline", "omitted", "reason")
        base["backfilling"] = {k: v for k, v in base["backfilling"].items() if k not in own}
    return base


def parted(value: Values, base: Values) -> tuple[Values, Values]:
    """A complete record as the value of its file, and what its details file keeps instead."""
    joined = _joined(value)
    kept = {name: joined["run"][name] for name in _TIMES}
    joined["run"] = {k: v for k, v in joined["run"].items() if k not in _TIMES and v is not None}
    if joined["backfilling"] is not None:
        orders = joined["backfilling"]["orders"]
        kept["orders"] = {
            o: {k: {name: _steps(curve) for name, curve in order[k].items()} for k in _CURVES}
            for o, order in orders.items()
        }
        short = {name: _short_order(order) for name, order in orders.items()}
        joined["backfilling"] = joined["backfilling"] | {"orders": short}
    absent: dict[str, list[str] | None] = {}
    for field, shared in base.items():
        found = joined.pop(field)
        if found is None:
            absent[field] = None
            continue
        own = {k: v for k, v in found.items() if k not in shared or not _same(v, shared[k])}
        if own:
            joined[field] = own
        if missing := [key for key in shared if key not in found]:
            absent[field] = missing
    if absent:
        joined[ABSENT] = absent
    kept["curves"] = joined.pop("curves", {})
    own = {k: v for k, v in joined.items() if v is not None and v != {} and k not in VERDICTS}
    return {"schema": own.pop("schema"), BASE: base_name(base), **own}, kept


def completed(value: Values, base: Values, kept: Values) -> Values:
    """The complete record of a file's value, its base, and what its details file keeps.

    Raises:
        ValueError: If a part has not the form that :func:`parted` gives it.
    """
    try:
        absent = value.get(ABSENT, {})
        value = {k: v for k, v in value.items() if k not in (BASE, ABSENT)}
        for field, shared in base.items():
            without = absent.get(field, ())
            rest = {k: v for k, v in shared.items() if k not in (without or ())}
            value[field] = None if without is None else rest | value.get(field, {})
        value = _split(value)
        value["curves"] |= kept.get("curves", {})
        value["run"] = value["run"] | {k: v for k, v in kept.items() if k in _TIMES}
        if value.get("backfilling") is not None:
            orders, curves = value["backfilling"]["orders"], kept.get("orders", {})
            whole = {
                name: _whole_order(each, curves.get(name, {})) for name, each in orders.items()
            }
            value["backfilling"] = value["backfilling"] | {"orders": whole}
        bounds, names = value["bounds"], list(value["models"])
        return value | verdicts(value["scores"], bounds, bounds[value["upper"]], names)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"not the parts of a record: {reason:.200}") from error


def write_base(record: Path, base: Values) -> None:
    """Write the base of a record at ``record``, if it is not there as it should be."""
    path, text = base_path(record, base_name(base)), json_lines(base)
    if not path.is_file() or path.read_bytes() != text.encode():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def read_base(path: Path) -> Values:
    """Read a base, which nobody may change; BenchError if missing, or not what its name says."""
    return _base(path, changed_at(path))


def changed_at(path: Path) -> int:
    """Time at which a base was written, in nanoseconds; BenchError if it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise BenchError(f"{path}: missing; it lies beside the records of its board") from error


@lru_cache(maxsize=512)
def _base(path: Path, _changed: int) -> Values:
    value = parse_json(read_bytes(path, _LARGEST), path)
    if not isinstance(value, dict) or path.name != f"base-{base_name(value)}.json":
        raise BenchError(f"{path}: edited since it was written: its name does not fit")
    if not all(isinstance(part, dict) for part in value.values()):
        raise BenchError(f"{path}: expected mappings")
    return value


def json_lines(value: Values) -> str:
    """JSON with a line for each field, and for each part of one that is by case or generation."""
    lines = (
        f" {compact(k)}: {_lines(v) if k in _OF_PARTS else compact(v)}" for k, v in value.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return compact(value)
    return "{\n" + ",\n".join(f"  {compact(k)}: {compact(v)}" for k, v in value.items()) + "\n }"


def compact(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _joined(value: Values) -> Values:
    """A record's values with intervals beside scores.

    A score is a number, ``[score]`` with no interval known, or ``[score, low, high]``.
    """
    spans = value["intervals"]
    scores = {c: _with_spans(found, spans.get(c, {})) for c, found in value["scores"].items()}
    cost = {k: v for k, v in value["cost"].items() if v is not None}
    joined = {k: v for k, v in value.items() if k != "intervals"}
    return joined | {"scores": scores, "cost": cost, "counts": _same_counts(value["counts"])}


def _same_counts(counts: Values) -> Values:
    """Counts by case; instead of the very same ones the name of that case."""
    first: dict[str, str] = {}
    short: Values = {}
    for case, found in sorted(counts.items()):
        other = first.setdefault(compact(found), case)
        short[case] = found if other == case else other
    return short


def _short_order(order: Values) -> Values:
    """An order without its curves, each score with its interval as in :func:`_joined`."""
    spans = order["intervals"]
    short = {k: v for k, v in order.items() if k not in (*_CURVES, *_OF_ORDERS, "intervals")}
    return short | {k: _with_spans(order[k], spans, prefix) for k, prefix in _OF_ORDERS.items()}


def _whole_order(short: Values, curves: Values) -> Values:
    """The inverse of :func:`_short_order`; without curves these are empty."""
    order: Values = {**short, "intervals": {}}
    for part, prefix in _OF_ORDERS.items():
        order[part], spans = _without_spans(short[part], prefix)
        order["intervals"] |= spans
    for part, found in curves.items():
        order[part] = {name: _curve(each) for name, each in found.items()}
    return order


def _with_spans(scores: Values, spans: Values, prefix: str = "") -> Values:
    return {
        metric: [score, *(round(end, _INTERVAL) for end in spans[prefix + metric] or ())]
        if prefix + metric in spans
        else score
        for metric, score in scores.items()
    }


def _without_spans(joined: Values, prefix: str = "") -> tuple[Values, Values]:
    """The inverse of :func:`_with_spans`."""
    scores: Values = {}
    spans: Values = {}
    for metric, each in joined.items():
        scores[metric], *span = each if isinstance(each, list) else (each,)
        if isinstance(each, list):
            spans[prefix + metric] = span or None
    return scores, spans


def _split(value: Values) -> Values:
    """The inverse of :func:`_joined`, cases and metrics in the order of their names."""
    scores: Values = {}
    intervals: Values = {}
    for case, found in sorted(value["scores"].items()):
        scores[case], intervals[case] = _without_spans(dict(sorted(found.items())))
    counts = value["counts"]
    counts = {k: counts[v] if isinstance(v, str) else v for k, v in sorted(counts.items())}
    over = value.get("over") and dict(sorted(value["over"].items()))
    return value | {"scores": scores, "intervals": intervals, "counts": counts, "over": over}


def _steps(curve: Any) -> Any:
    """A curve of four decimals as whole steps from point to point, behind a mark; else as it is."""
    if not isinstance(curve, list) or not curve:
        return curve
    if None in curve:
        return curve
    whole = [round(value * _DECIMALS) for value in curve]
    if [value / _DECIMALS for value in whole] != curve:
        return curve
    return [_STEPS, *(value - before for before, value in pairwise([0, *whole]))]


def _curve(steps: Any) -> Any:
    """The inverse of :func:`_steps`."""
    if not isinstance(steps, list) or steps[:1] != [_STEPS]:
        return steps
    return [value / _DECIMALS for value in accumulate(steps[1:])]


def _same(left: Any, right: Any) -> bool:
    """Equal and of equal types: ``1``, ``1.0`` and ``True`` are three values."""
    return json.dumps(left) == json.dumps(right)


def verdicts(
    scores: Mapping[str, Scores], bounds: Mapping[str, Scores], upper: Scores, names: list[str]
) -> dict[str, dict[str, Any]]:
    """Criterion, not hurting, and gain of the last generation against the first, per metric."""
    old, new = names[0], names[-1]
    # With text queries of the first generation the cross-test is a text in the new gallery.
    new_queries = f"{new}/{old}" in scores
    cross = scores.get(f"{new}/{old}" if new_queries else f"{old}/{new}", {})
    self_test = scores.get(f"{new}/{new}", {})
    found: dict[str, dict[str, Any]] = {"compatible": {}, "not_hurting": {}, "update_gain": {}}
    for metric, low in bounds["lower"].items():
        new_old, new_new, high = cross.get(metric), self_test.get(metric), upper.get(metric)
        if new_old is None or new_new is None or low is None or high is None:
            continue
        paragon = bounds["upper"][metric]
        # Of errors and gaps smaller is better.
        sign = -1.0 if describe(metric).higher_is_better is False else 1.0
        found["compatible"][metric] = compatibility.compatible(sign * new_old, sign * low)
        found["not_hurting"][metric] = (
            None if paragon is None else compatibility.not_hurting(sign * new_new, sign * paragon)
        )
        # There is no upper bound of text queries: the measured one is of image queries.
        gain = compatibility.update_gain(sign * new_old, sign * low, sign * high)
        found["update_gain"][metric] = gain if new_queries else None
    return found
