"""The table of a protocol with settings: a row group for each setting, a row for each method.

One table a metric, as the papers' tables of pairs of models and losses are read: BCT Table 3, FCT
Tables 4 and 11, MixBCT Table 7. The CSV is that of the single tables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmark.config.grouping import grouped
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, numbers, outcome, scores, select
from benchmark.report.scores import by_method, case_score
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextCell,
    TextTable,
    score_cells,
    simple_table,
)

_LOWER, _CROSS, _CONVERTED, _SELF = "old/old", "new/old", "old'/old'", "new/new"
_AVERAGED = select.averaged_case(["old", "new"])


def split_settings(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Records of protocols without settings, and those of settings."""
    listed = list(records)
    return [r for r in listed if ":" not in r.protocol], [r for r in listed if ":" in r.protocol]


def setting_groups(records: Iterable[Record]) -> list[list[Record]]:
    """Records of the settings of one protocol, by track, versions and changes."""
    return scores.group(split_settings(records)[1], families=True)


def title(members: Sequence[Record]) -> str:
    """``Architecture change on Glyphs, seed 0``."""
    return notes.title(members, notes.protocol_title(members[0].protocol.partition(":")[0]))


def by_setting(members: Sequence[Record]) -> dict[str, list[Record]]:
    """Setting's title -> its records, in the protocol's order; unknown ones last."""
    known = notes.settings(members[0])
    order = {name: place for place, name in enumerate(known)}
    ids = {record.protocol for record in members}
    return {
        known.get(i, i.partition(":")[2]): [r for r in members if r.protocol == i]
        for i in sorted(ids, key=lambda i: (order.get(i, len(order)), i))
    }


def make_tables(
    records: Iterable[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[TextTable]:
    """A table for each protocol with settings, track and metric; other records are passed over."""
    groups = setting_groups(records)
    return [table for group in groups for table in group_tables(group, metrics, cases)]


def group_tables(
    members: Sequence[Record], metrics: select.Names = None, cases: select.Names = None
) -> Iterator[TextTable]:
    """A table a metric of the settings of one protocol, whatever the version of each."""
    first = members[0]
    family = first.protocol.partition(":")[0]
    settings = by_setting(members)
    found = (select.some(select.metrics, of, metrics) for of in settings.values())
    keys = list(dict.fromkeys(key for of_setting in found for key in of_setting))
    chosen = _chosen(settings, cases)
    keys = keys if chosen else []
    for place, key in enumerate(keys, 1):
        columns = [*chosen, _AVERAGED] if key == select.AVG else chosen
        # Every record has the lower bound, but of no average.
        has = [c for c in columns if any(_score([r], c, key).value is not None for r in members)]
        shown = has or columns[:1]
        lines = [
            line
            for name, of_setting in settings.items()
            for line in _lines(name, by_method(of_setting, done=False), key, shown)
        ]
        yield simple_table(
            f"{title(members)}: {numbers.metric(key).label}",
            f"{family}-{first.track}-{key}" + ("-changed" if first.changed else ""),
            ("setting", "method"),
            (*shown, "compatible", scores.GAIN),
            lines,
            # Once, below the last.
            notes=tuple(_notes(settings, keys)) if place == len(keys) else (),
            grouped=True,
            compact=True,
        )


def _chosen(settings: Mapping[str, Sequence[Record]], cases: select.Names) -> list[str]:
    """Columns that are chosen; by default old/old and what is of the newest model."""
    if cases is None:
        return [_LOWER, _CROSS, _CONVERTED, _SELF]
    found: dict[str, None] = {}
    for of_setting in settings.values():
        columns = {own: column for column, own in _cases(of_setting[0]).items()}
        for case in select.some(select.cases, of_setting, cases):
            found[columns.get(case, case)] = None
    return [*found]


def _cases(record: Record) -> dict[str, str]:
    """Column -> the record's own case: the first generation is the old one, the last the new.

    Generations may be called differently in another setting.
    """
    names = list(record.models)
    first, last, marks = names[0], names[-1], "'" * (len(names) - 1)
    return {
        _LOWER: f"{first}/{first}", _CROSS: f"{last}/{first}",
        _CONVERTED: f"{first}{marks}/{first}{marks}", _SELF: f"{last}/{last}",
        _AVERAGED: select.averaged_case(names),
    }  # fmt: skip


def _lines(
    name: str, methods: Mapping[str, Sequence[Record]], key: str, cases: Sequence[str]
) -> Iterator[list[str | TextCell]]:
    """A line for each method of one setting; the best of each column is marked."""
    done = {m: d for m, rs in methods.items() if (d := [r for r in rs if r.status == "done"])}
    rivals = select.rivals(record for records in done.values() for record in records)
    columns = [
        score_cells(
            {method: _score(records, case, key) for method, records in done.items()},
            key, rivals if case != _LOWER and select.ranks(case, _LOWER) else (),
            spread=case != _LOWER, signed=select.is_difference(case),
        )
        for case in cases
    ]  # fmt: skip
    for method in methods:
        if method not in done:
            yield [name, method, NOT_APPLICABLE]
            continue
        verdict = scores.make_verdict(done[method], key)
        verdict_texts = (numbers.of_seeds(verdict.compatible), numbers.number(verdict.gain))
        label = scores.method_label(method, done[method])
        yield [name, label, *(column[method] for column in columns), *verdict_texts]


def _score(records: Sequence[Record], case: str, key: str) -> Estimate:
    if case != _LOWER:
        return case_score(records, _cases(records[0]).get(case, case), key)
    lower = [r.bounds.get("lower", r.scores.get(_cases(r)[case], {})).get(key) for r in records]
    return mean_score(lower)


def _notes(settings: Mapping[str, Sequence[Record]], keys: Sequence[str]) -> Iterator[str]:
    members = [record for of_setting in settings.values() for record in of_setting]
    around = notes.interval_words(members, keys)
    yield f"Percent; {around}. * is the best method of a setting's column{rival_words(settings)}."
    yield (
        "Compatible: new/old > old/old (BCT eq. 2). Gain: share of the way from old/old to the "
        "upper bound that new/old goes (BCT eq. 9); none where not compatible."
    )
    yield f"Upper bound: {notes.upper_words(members[0])}, by itself."
    if any(len(r.models) > 2 for r in members):
        yield "old is the first generation, new the last; the tables by step stand apart."
    models = {name: generation_words(of_setting[0]) for name, of_setting in settings.items()}
    models = models if len(set(models.values())) > 1 else {"Models": generation_words(members[0])}
    yield from (f"{name}: {words}." for name, words in models.items())
    yield from told(settings, notes.warnings)
    yield from outcome.warnings(settings, keys)
    yield from notes.track_lines(members[0])


def rival_words(settings: Mapping[str, Sequence[Record]]) -> str:
    """As :func:`notes.rival_words`, of each setting where they differ."""
    words = {
        name: notes.rival_words(select.seeds_of(records), select.rivals(records))
        for name, records in settings.items()
    }
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return f" ({'; '.join(f'{name}{each}' for name, each in words.items() if each)})"


def told(
    settings: Mapping[str, Sequence[Record]], lines: Callable[[Sequence[Record]], Iterable[str]]
) -> Iterator[str]:
    """Lines on each setting behind its name; what is said of all of them once."""
    found = ((line, name) for name, records in settings.items() for line in lines(records))
    for line, names in grouped(found).items():
        kind, colon, words = line.rpartition("Warning: ")
        of = f"{', '.join(names)}: " if len(names) < len(settings) else ""
        yield f"{kind}{colon}{of}{words}"


def generation_words(record: Record) -> str:
    """The parts of each generation: ``old convnet-16, 64 dimensions, softmax``."""
    words = (
        f"{name} {spec.backbone}, {spec.dim} dimensions, {spec.head}{', ReLU' if spec.relu else ''}"
        for name, spec in record.models.items()
    )
    return "; ".join(words) or "models unknown"
