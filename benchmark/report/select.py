"""Which metrics and cases a table or a plot shows when nobody says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from benchmark.records.record import Record
from benchmark.report import derived, numbers

Role = Literal["cross-test", "self-test", "converted", "difference", ""]

# A rate estimated from fewer accepts than this says little.
_LEAST_ACCEPTS = 10.0


def generations(records: Sequence[Record]) -> list[str]:
    """Names of the generations, first to last."""
    return list(records[0].models)


def cross_case(records: Sequence[Record]) -> str:
    """The newest model asks, the oldest one's gallery answers.

    Where the oldest is asked with texts it is the other way round: they find new images.
    """
    names = generations(records)
    ends = (names[0], names[-1]) if texts_ask(records) else (names[-1], names[0])
    return "/".join(ends)


def texts_ask(records: Sequence[Record]) -> bool:
    """Is the oldest generation asked with texts, so that none of its items are asked for?"""
    names = generations(records)
    found = {case for record in records for case in record.scores}
    return f"{names[0]}/{names[-1]}" in found and f"{names[-1]}/{names[0]}" not in found


def self_case(records: Sequence[Record]) -> str:
    """The newest model by itself."""
    return "/".join([generations(records)[-1]] * 2)


def lower_case(records: Sequence[Record]) -> str:
    """The oldest model by itself."""
    return "/".join([generations(records)[0]] * 2)


def role(case: str, names: Sequence[str]) -> Role:
    """What a case tests.

    Example:
        >>> role("new/old", ["old", "new"]), role("old'/old'", ["old", "new"])
        ('cross-test', 'converted')
    """
    query, _, gallery = case.partition("/")
    if derived.is_difference(case):
        return "difference"
    if "'" in case:
        return "converted"
    if query not in names or gallery not in names:
        return ""
    if query == gallery:
        return "self-test"
    return "cross-test"


def cases(records: Sequence[Record], asked: str | Iterable[str] | None = None) -> list[str]:
    """Cases in reading order; by default what the newest model does, and converted galleries.

    ``A - B`` asks for the difference of two.

    Raises:
        BenchError: If a case asked for is in no record.
    """
    names = generations(records)
    found = {case for record in records for case in record.scores}
    wanted = [f"{names[-1]}/{name}{way}" for name in names for way in ("", " direct")]
    # In a sequence each gallery once, as the last update leaves it.
    marks = {name: "'" * (len(names) - 1 - i) for i, name in enumerate(names[:-1])}
    wanted += [f"{name}{mark}/{name}{mark}" for name, mark in marks.items()]
    main = [case for case in wanted if case in found]
    if _symmetric(records):
        main.insert(1, f"{names[0]}/{names[-1]}")
    if asked is None:
        return main or [cross_case(records), self_case(records)]
    known = [*main, *sorted(found - set(main))]
    words = asked.split(",") if isinstance(asked, str) else asked
    stripped = dict.fromkeys(word.strip() for word in words if word.strip())
    numbers.chosen("case", [part for word in stripped for part in derived.parts(word)], known)
    return known if list(stripped) == ["all"] else list(stripped)


def _symmetric(records: Sequence[Record]) -> bool:
    """Is all that is scored also scored with the models exchanged, as 1:1 verification is?"""
    names = generations(records)
    cross, swapped = f"{names[-1]}/{names[0]}", f"{names[0]}/{names[-1]}"
    both = [r.scores for r in records if swapped in r.scores]
    return bool(both) and all(set(s[swapped]) == set(s.get(cross, s[swapped])) for s in both)


def metrics(records: Sequence[Record], asked: str | Iterable[str] | None = None) -> list[str]:
    """Metrics in reading order; by default one or two a task, at the strictest rate that is sound.

    Raises:
        BenchError: If a metric asked for is in no record.
    """
    known = numbers.ordered(
        metric
        for record in records
        for scores in (*record.scores.values(), *record.bounds.values())
        for metric in scores
    )
    if asked is not None:
        both = derived.averaged(generations(records))
        has = any(derived.mean(record, both) is not None for record in records)
        # AVG is not measured, so "all" leaves it out.
        more = [derived.AVG] if has and asked not in ("all", ["all"]) else []
        return numbers.chosen("metric", asked, [*known, *more])
    strictest = [
        _strictest(records, known, "tar_at_far_"),
        _strictest(records, known, "tpir_at_fpir_"),
    ]
    main = [key for key in ("cmc_at_1", "map", *strictest) if key in known]
    return main or known[:4]


def _strictest(records: Sequence[Record], known: list[str], family: str) -> str:
    """The smallest rate at which chance would accept enough impostors to count."""
    keys = [key for key in known if key.startswith(family)]
    trials = _impostors(records, family)
    sound = [key for key in keys if trials * float(key.removeprefix(family)) >= _LEAST_ACCEPTS]
    return (sound or keys[-1:] or [""])[0]


def _impostors(records: Sequence[Record], family: str) -> int:
    """Impostor pairs, or probes without a mate in a gallery; the fewest of all records."""
    found = []
    case = cross_case(records)
    for record in records:
        count = record.counts.get(case, {})
        if family == "tar_at_far_":
            found.append(count.get("n_impostor", 0))
        else:
            probes = count.get("n_probe", 0)
            mated = [n for key, n in count.items() if key.startswith("n_mated")]
            found.append(probes - max(mated, default=0))
    return min((n for n in found if n > 0), default=0)
