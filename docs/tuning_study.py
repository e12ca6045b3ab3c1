"""Was every method tuned alike? The table of weights in ``results/studies``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmark.config.registry import is_control
from benchmark.errors import AbsentError
from benchmark.records.files import StoredRecord, find_records
from benchmark.records.record import Record
from benchmark.report import numbers, render
from benchmark.report.paired import compare
from benchmark.report.text_table import simple_table
from benchmark.studies.transfer.statistics import taus

STUDY = Path("results/studies/tuning")
_CASES = ("new/old", "new/new")


def lines(study: Path = STUDY) -> Iterator[str]:
    """A table of methods by their main weight, with what another weight would change."""
    methods = {name: of for name, of in _by_weight(_records(study)).items() if len(of) > 1}
    if not methods:
        yield "No record yet."
        return
    heads = ["method", "weight", "value", "CMC@1 new/old", "beside the default", "CMC@1 new/new"]
    rows = [row for name, points in sorted(methods.items()) for row in _rows(name, points)]
    yield render(simple_table("", "", heads, (), rows), "markdown").strip()
    yield ""
    yield _orders(methods)


def _rows(method: str, points: Sequence[StoredRecord]) -> Iterator[list[str]]:
    """A method at each weight, the smallest first."""
    key = next(key for s in points for key in _own(s.record))
    default = next(s for s in points if not _own(s.record))
    changed = sorted((s for s in points if s is not default), key=lambda s: _value(s, key))
    # A default that is a function of sizes stands in the middle, where studies put it.
    place = len(changed) // 2
    for stored in (*changed[:place], default, *changed[place:]):
        value = stored.record.config.get(key.partition(".")[2])
        shown = f"{value:.4g}" if isinstance(value, int | float) else "of sizes"
        against = "default" if stored is default else _beside(stored, default)
        cross, own = (_score(stored.record, case) for case in _CASES)
        yield [f"`{method}`", f"`{key}`", shown, cross, against, own]


def _by_weight(stored: Sequence[StoredRecord]) -> Mapping[str, list[StoredRecord]]:
    """Method -> its record at each weight, one of the default among them."""
    found: dict[str, list[StoredRecord]] = {}
    for each in stored:
        if each.record.status == "done" and not is_control(each.record.method):
            found.setdefault(each.record.method, []).append(each)
    return {m: of for m, of in found.items() if any(not _own(s.record) for s in of)}


def _own(record: Record) -> dict[str, object]:
    """Change of the record's method."""
    owner = f"{record.method}."
    return {key: value for key, value in record.changed.items() if key.startswith(owner)}


def _value(stored: StoredRecord, key: str) -> float:
    return float(str(_own(stored.record)[key]))


def _score(record: Record, case: str) -> str:
    value = record.scores[case]["cmc_at_1"]
    span = record.intervals.get(case, {}).get("cmc_at_1")
    around = "" if span is None else f" ({100 * span[0]:.1f} to {100 * span[1]:.1f})"
    return f"{100 * value:.1f}{around}" if value is not None else numbers.DASH


def _beside(left: StoredRecord, right: StoredRecord) -> str:
    """The difference of both scores, which are of all queries.

    Its interval is as wide as that of the queries that details keep, a part of them where there
    are many: rather too wide.
    """
    (line,) = compare([left], [right], cases=["new/old"], metrics=["cmc_at_1"])
    first, second = (s.record.scores["new/old"]["cmc_at_1"] for s in (left, right))
    if first is None or second is None:
        return numbers.DASH
    of_all = first - second
    kept = line.difference
    if kept.ends is None:
        return f"{100 * of_all:+.1f}"
    low, high = (end - kept.known + of_all for end in kept.ends)
    return f"{100 * of_all:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def _orders(methods: Mapping[str, Sequence[StoredRecord]]) -> str:
    """Tell whether the order of methods is another one when each takes its best weight."""
    usual, best = {}, {}
    for name, points in sorted(methods.items()):
        scores = [s.record.scores["new/old"]["cmc_at_1"] or 0.0 for s in points]
        best[name] = max(scores)
        usual[name] = next(v for s, v in zip(points, scores, strict=True) if not _own(s.record))
    first, second = (" > ".join(f"`{n}`" for n in sorted(of, key=lambda n: -of[n]))
                     for of in (usual, best))  # fmt: skip
    agreement = taus(*(np.array([list(of.values())]) for of in (usual, best)))[0]
    words = f"By new/old at the defaults: {first}. Each at its best weight: {second}."
    return words + (f" Tau-b of the two: {agreement:.2f}." if np.isfinite(agreement) else "")


def _records(folder: Path) -> list[StoredRecord]:
    try:
        return find_records(folder)
    except AbsentError:
        return []
