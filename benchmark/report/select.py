"""Metrics and cases of tables and plots: by default, chosen, and derived from a record's own.

Derived are the difference of two cases, ``A - B``, and MixBCT's AVG over cross-test and self-test.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from benchmark.errors import BenchError
from benchmark.metrics.compatibility import average
from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.comparable import of_another_old_model

Role = Literal["cross-test", "self-test", "converted", "difference", ""]
Names = str | Sequence[str] | None
"""Keys or cases as a list, or with commas between; ``all``; None for the main ones."""
Known = Callable[[Sequence[Record], Names], list[str]]
"""Choice among what records have: :func:`metrics` or :func:`cases`."""
AVG = "avg"
_LESS = " - "

# A rate estimated from fewer accepts than this says little.
_LEAST_ACCEPTS = 10.0
_RATE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?")


def generations(records: Sequence[Record]) -> list[str]:
    """Names of the generations, first to last."""
    return list(records[0].models)


def cross_case(records: Sequence[Record]) -> str:
    """Queries of the newest model in the gallery of the oldest one.

    With text queries it is the other way round: texts of the oldest model find new images.
    """
    names = generations(records)
    ends = (names[0], names[-1]) if text_queries(records) else (names[-1], names[0])
    return "/".join(ends)


def text_queries(records: Sequence[Record]) -> bool:
    """Tell records whose oldest queries are texts, in galleries of newer models only."""
    names = generations(records)
    measured = {case for record in records for case in record.scores}
    return f"{names[0]}/{names[-1]}" in measured and f"{names[-1]}/{names[0]}" not in measured


ELSEWHERE, DIVERGED = "another old model or other data", "diverged"


def unranked(records: Iterable[Record]) -> dict[str, str]:
    """Methods that have scores, but no rank, and are never the best -> why.

    A training diverged, or a record is of another old model, or of other data, than the others of
    its seed.
    """
    every = list(records)
    found = dict.fromkeys((record.method for record in of_another_old_model(every)), ELSEWHERE)
    return found | dict.fromkeys((r.method for r in every if r.diverged), DIVERGED)


def rivals(records: Iterable[Record]) -> list[str]:
    """Methods whose score may be the best: all but the independent model and unranked ones.

    Of them those of the seeds that most have, as :func:`of_most_seeds`.
    """
    every = list(records)
    out = unranked(every)
    return of_most_seeds({m: its for m, its in seeds_of(every).items() if m not in out})


def seeds_of(records: Iterable[Record]) -> dict[str, tuple[int, ...]]:
    """Method -> the seeds that it has scores of; all but the independent model."""
    seeds: dict[str, set[int]] = {}
    for record in records:
        if record.status == "done" and record.method != "independent":
            seeds.setdefault(record.method, set()).add(record.seed)
    return {method: tuple(sorted(its)) for method, its in seeds.items()}


def of_most_seeds(seeds: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Methods of the very seeds that most of them have; of as many, the longer ones.

    Example:
        >>> of_most_seeds({"a": (0,), "b": (0, 1, 2), "c": (0, 1, 2), "d": (1,)})
        ['b', 'c']
    """
    counts = Counter(seeds.values())
    most = max(counts, key=lambda each: (counts[each], len(each), each), default=())
    return [method for method, its in seeds.items() if its == most]


def self_case(records: Sequence[Record]) -> str:
    """The newest model by itself."""
    return "/".join([generations(records)[-1]] * 2)


def lower_case(records: Sequence[Record]) -> str:
    """The oldest model by itself."""
    return "/".join([generations(records)[0]] * 2)


def role(case: str, names: Sequence[str]) -> Role:
    """The role of a case.

    Example:
        >>> role("new/old", ["old", "new"]), role("old'/old'", ["old", "new"])
        ('cross-test', 'converted')
    """
    query, _, gallery = case.partition("/")
    if is_difference(case):
        return "difference"
    if "'" in case:
        return "converted"
    if query not in names or gallery not in names:
        return ""
    return "self-test" if query == gallery else "cross-test"


def case_head(case: str) -> str:
    """The head of a case's column: several conversions of one gallery are counted.

    Example:
        >>> case_head("old'/old'"), case_head("v1'''''/v1'''''"), case_head("new/old")
        ("old'/old'", 'v1, 5 updates', 'new/old')
    """
    query, _, gallery = case.partition("/")
    name = query.rstrip("'")
    marks = len(query) - len(name)
    return f"{name}, {marks} updates" if query == gallery and marks > 1 else case


def cases(records: Sequence[Record], chosen: Names = None) -> list[str]:
    """Cases in reading order; by default those of the newest model, and converted galleries.

    ``A - B`` chooses the difference of two.

    Raises:
        BenchError: If a chosen case is in no record.
    """
    names = generations(records)
    measured = {case for record in records for case in record.scores}
    usual = [f"{names[-1]}/{name}{way}" for name in names for way in ("", " direct")]
    # In a sequence each gallery once, as the last update leaves it.
    marks = {name: "'" * (len(names) - 1 - i) for i, name in enumerate(names[:-1])}
    usual += [f"{name}{mark}/{name}{mark}" for name, mark in marks.items()]
    main = [case for case in usual if case in measured]
    if _symmetric(records):
        main.insert(1, f"{names[0]}/{names[-1]}")
    if chosen is None:
        return main or [cross_case(records), self_case(records)]
    known = [*main, *sorted(measured - set(main))]
    words = numbers.words(chosen)
    numbers.chosen("case", [part for word in words for part in word.split(_LESS, 1)], known)
    return known if words == ["all"] else words


def _symmetric(records: Sequence[Record]) -> bool:
    """Tell records that also score the models exchanged, as of 1:1 verification."""
    names = generations(records)
    cross, swapped = f"{names[-1]}/{names[0]}", f"{names[0]}/{names[-1]}"
    both = [r.scores for r in records if swapped in r.scores]
    return bool(both) and all(set(s[swapped]) == set(s.get(cross, s[swapped])) for s in both)


def metrics(records: Sequence[Record], chosen: Names = None) -> list[str]:
    """Metrics in reading order; by default one or two a task, at the strictest rate that is sound.

    Raises:
        BenchError: If a chosen metric is in no record.
    """
    found: set[str] = set()
    for record in records:
        found.update(*record.scores.values(), *record.bounds.values())
    known = numbers.ordered(found)
    if chosen is not None:
        has = any(mean(record) is not None for record in records)
        # AVG is not measured, so "all" leaves it out.
        more = [AVG] if has and numbers.words(chosen) != ["all"] else []
        return numbers.chosen("metric", chosen, [*known, *more])
    strictest = [_strictest(records, known, rate) for rate in ("tar_at_far_", "tpir_at_fpir_")]
    main = [key for key in ("cmc_at_1", "map", *strictest) if key in known]
    return main or known[:4]


def some(known: Known, records: Sequence[Record], chosen: Names) -> list[str]:
    """The choice among records of one table, by :func:`metrics` or :func:`cases`; maybe empty.

    Protocols differ in their tasks and generations: what one lacks another may have.
    """
    words = [] if chosen is None else numbers.words(chosen)
    if not words or words == ["all"]:
        return known(records, chosen)
    found: list[str] = []
    for word in words:
        with suppress(BenchError):
            found += known(records, [word])
    return list(dict.fromkeys(found))


def require(groups: Sequence[Sequence[Record]], metrics_: Names, cases_: Names) -> None:
    """Raise a BenchError, with the nearest one, for a metric or a case that is in no group."""
    every = [record for members in groups for record in members]
    for known, chosen in ((metrics, metrics_), (cases, cases_)):
        for word in [] if chosen is None or not every else numbers.words(chosen):
            if not any(some(known, members, [word]) for members in groups):
                known(every, [word])
                raise BenchError(f"'{word}': expected two cases of one protocol")


def _strictest(records: Sequence[Record], known: list[str], family: str) -> str:
    """The smallest rate at which chance would accept enough impostors to count."""
    keys = [key for key in known if key.startswith(family) and _RATE.fullmatch(key, len(family))]
    trials = _impostors(records, family)
    sound = [key for key in keys if trials * float(key.removeprefix(family)) >= _LEAST_ACCEPTS]
    return (sound or keys[-1:] or [""])[0]


def _impostors(records: Sequence[Record], family: str) -> int:
    """Impostor pairs, or probes without a mate in a gallery; the fewest of all records."""
    trials = []
    case = cross_case(records)
    for record in records:
        count = record.counts.get(case, {})
        if family == "tar_at_far_":
            trials.append(count.get("n_impostor", 0))
        else:
            mated = [n for key, n in count.items() if key.startswith("n_mated")]
            trials.append(count.get("n_probe", 0) - max(mated, default=0))
    return min((n for n in trials if n > 0), default=0)


def score(record: Record, case: str, metric: str) -> float | None:
    """A record's score; AVG stands under :func:`averaged_case`."""
    left, less, right = case.partition(_LESS)
    if less:
        ends = score(record, left, metric), score(record, right, metric)
        return None if ends[0] is None or ends[1] is None else ends[0] - ends[1]
    if metric == AVG:
        names = list(record.models)
        return mean(record) if averaged_case(names) == case else None
    return record.scores.get(case, {}).get(metric)


def mean(record: Record) -> float | None:
    """MixBCT's AVG over cross-test and self-test; none where one of its metrics is missing."""
    old, *_, new = record.models
    cases = [
        record.scores.get(case, {}) for case in (f"{old}/{new}", f"{new}/{old}", f"{new}/{new}")
    ]
    known = [{key: x for key, x in case.items() if x is not None} for case in cases]
    try:
        return average(*known)
    except ValueError:
        return None


def averaged_case(names: Sequence[str]) -> str:
    """Both tests of the newest of some generations as the one case under which AVG stands.

    Example:
        >>> averaged_case(["old", "new"])
        'new/old + new/new'
    """
    return f"{names[-1]}/{names[0]} + {names[-1]}/{names[-1]}"


def is_difference(case: str) -> bool:
    """Tell the difference of two cases, ``A - B``."""
    return _LESS in case


def ranks(case: str, lower: str) -> bool:
    """Tell whether more of a case is better: of a difference from ``lower``, old/old, alone.

    It is the same for all methods; of two scores of one method more may be a larger loss.

    Example:
        >>> ranks("new/old - old/old", "old/old"), ranks("new/new - new/old", "old/old")
        (True, False)
    """
    return not is_difference(case) or case.partition(_LESS)[2] == lower
