"""The table of a protocol with settings: a row group for each setting, a row for each method.

One table a metric, as the papers' tables of pairs of models and losses are read: BCT Table 3, FCT
Tables 4 and 11, MixBCT Table 7. Its model and three forms; the CSV is that of the single tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

from benchmark.config.loading import load_protocol
from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report import printed as shared
from benchmark.report.values import Cell, Verdict, cell, mean_gain

_WIDTH = 100


@dataclass(frozen=True)
class Row:
    """A method under one setting; mean over its seeds.

    Attributes:
        setting: Its title.
        cells: Column -> score; the columns' names are :attr:`SettingsTable.cases`.
        verdict: Compatible, gain; ``None`` where the method is not applicable.
        reason: Why not.
    """

    setting: str
    method: str
    cells: Mapping[str, Cell]
    verdict: Verdict | None
    reason: str | None = None


@dataclass(frozen=True)
class SettingsTable:
    """One metric of one protocol on one track.

    Attributes:
        metric: Its key.
        cases: Columns: lower bound, cross-test, converted gallery, self-test.
        rows: By setting, as the protocol lists them, then by method.
        notes: What stands below.
    """

    protocol: str
    track: str
    title: str
    slug: str
    metric: str
    cases: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def group(records: Iterable[Record]) -> list[list[Record]]:
    """Records of the settings of one protocol, by track, versions and changes."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        family, colon, _ = record.protocol.partition(":")
        if colon:
            key = (
                family, record.track, str(record.protocol_version), str(record.track_version),
                json.dumps(record.changed, sort_keys=True, default=str),
            )  # fmt: skip
            groups.setdefault(key, []).append(record)
    return [groups[key] for key in sorted(groups)]


def alone(records: Iterable[Record]) -> list[Record]:
    """Records of protocols without settings."""
    return [record for record in records if ":" not in record.protocol]


def make_tables(
    records: Iterable[Record], metrics: str | Iterable[str] | None = None
) -> list[SettingsTable]:
    """A table for each protocol with settings, track and metric.

    Args:
        records: Any records; those of protocols without settings are passed over.
        metrics: Keys, as a list or with commas between; ``all``; by default the main ones.

    Raises:
        BenchError: If a metric is in no record.
    """
    asked = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    return [table for members in group(records) for table in _tables(members, asked)]


def _tables(members: Sequence[Record], asked: str | list[str] | None) -> Iterator[SettingsTable]:
    first = members[0]
    family = first.protocol.partition(":")[0]
    each = by_setting(members)
    keys = list(dict.fromkeys(k for own in each.values() for k in select.metrics(own, asked)))
    for place, key in enumerate(keys, 1):
        cases = _cases(members, key)
        rows = [row for own in each.values() for row in _rows(own, key, cases)]
        yield SettingsTable(
            protocol=family,
            track=first.track,
            title=f"{title(members)}: {numbers.metric(key).label}",
            slug=f"{family}-{first.track}-{key}" + ("-changed" if first.changed else ""),
            metric=key,
            cases=tuple(cases),
            rows=tuple(rows),
            notes=tuple(_notes(each)) if place == len(keys) else (),  # once, below the last
        )


def title(members: Sequence[Record]) -> str:
    """``Architecture change on Glyphs, seed 0``."""
    family = members[0].protocol.partition(":")[0]
    try:
        name = load_protocol(family).title
    except BenchError:
        name = family
    return notes.title(members, name)


def by_setting(members: Sequence[Record]) -> dict[str, list[Record]]:
    """Setting's title -> its records, in the protocol's order; unknown ones last."""
    family = members[0].protocol.partition(":")[0]
    try:
        made = load_protocol(family)
        known = {f"{family}:{s.name}": s.title or s.name for s in made.settings}
    except BenchError:
        known = {}
    order = list(known)
    ids = sorted(
        {r.protocol for r in members},
        key=lambda i: (order.index(i) if i in known else len(order), i),
    )
    return {known.get(i, i.partition(":")[2]): [r for r in members if r.protocol == i] for i in ids}


def _cases(members: Sequence[Record], key: str) -> list[str]:
    """Columns that any record has; generations may be called differently in another setting."""
    found: dict[str, None] = {}
    for record in members:
        for name, case in _columns(record).items():
            if key in record.scores.get(case, {}) or name == _LOWER:
                found.setdefault(name)
    return [name for name in _COLUMNS if name in found]


_LOWER, _CROSS, _CONVERTED, _OWN = "old/old", "new/old", "old'/old'", "new/new"
_COLUMNS = (_LOWER, _CROSS, _CONVERTED, _OWN)


def _columns(record: Record) -> dict[str, str]:
    """Column -> the record's own case: the first generation is the old one, the last the new."""
    names = list(record.models)
    first, last, marks = names[0], names[-1], "'" * (len(names) - 1)
    return {
        _LOWER: f"{first}/{first}", _CROSS: f"{last}/{first}",
        _CONVERTED: f"{first}{marks}/{first}{marks}", _OWN: f"{last}/{last}",
    }  # fmt: skip


def _rows(own: Sequence[Record], key: str, cases: Sequence[str]) -> list[Row]:
    title = next(iter(by_setting(own)))
    by_method: dict[str, list[Record]] = {}
    for record in sorted(own, key=lambda r: (r.method != "independent", r.method.partition(":"))):
        by_method.setdefault(record.method, []).append(record)
    return _marked([_row(title, members, key, cases) for members in by_method.values()], key)


def _row(title: str, members: Sequence[Record], key: str, cases: Sequence[str]) -> Row:
    done = [r for r in members if r.status == "done"]
    if not done:
        reason = members[0].reason or "no reason given"
        return Row(title, members[0].method, {}, None, reason)
    cells = {}
    for name in cases:
        values: list[Any] = []
        for record in done:
            found = record.scores.get(_columns(record)[name], {})
            values.append((record.bounds.get("lower", found) if name == _LOWER else found).get(key))
        spans = [shared.span(r.intervals.get(_columns(r)[name], {}).get(key)) for r in done]
        cells[name] = cell(name, values, spans)
    compatible = [r.compatible.get(key) for r in done]
    verdict = Verdict(
        compatible=None if None in compatible else (sum(map(bool, compatible)), len(done)),
        not_hurting=None,
        gain=mean_gain([r.update_gain.get(key) for r in done]),
    )
    return Row(title, members[0].method, cells, verdict)


def _marked(rows: list[Row], key: str) -> list[Row]:
    """The best of the methods in each column of a setting."""
    made = list(rows)
    for name in (_CROSS, _CONVERTED, _OWN):
        rivals = {
            i: row.cells[name].value
            for i, row in enumerate(rows)
            if row.method != "independent" and name in row.cells
        }
        for i in numbers.best(rivals, key):
            cells = {**made[i].cells, name: replace(made[i].cells[name], best=True)}
            made[i] = replace(made[i], cells=cells)
    return made


def _notes(each: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    members = [r for own in each.values() for r in own]
    how = "Student's t over the seeds" if len({r.seed for r in members}) > 1 else "bootstrap"
    yield (
        f"Percent; ± is the wider side of the 95 % interval ({how}). * is the best method of a "
        "setting's column."
    )
    yield (
        "Compatible: new/old > old/old (BCT eq. 2). Gain: share of the way from old/old to the "
        "upper bound that new/old goes (BCT eq. 9); none where not compatible."
    )
    yield f"Upper bound: {notes.upper_words(members[0])}, by itself."
    if any(len(r.models) > 2 for r in members):
        yield "old is the first generation, new the last; the tables by step stand apart."
    models = {title: models_words(own[0]) for title, own in each.items()}
    if len(set(models.values())) == 1:
        yield f"Models: {models_words(members[0])}."
    else:
        yield from (f"{title}: {words}." for title, words in models.items())
    for title, own in each.items():
        for record in own:
            if record.status != "done":
                yield f"{title}: {record.method} not applicable: {record.reason}"
    note = notes.track_note(members[0])
    if note:
        yield f"{notes.track_title(members[0])}: {note}"


def models_words(record: Record) -> str:
    """What each generation is made of.

    ``old convnet-16, 64 dimensions, softmax``
    """
    words = []
    for name, spec in record.models.items():
        ends = ", ReLU" if spec.relu else ""
        words.append(f"{name} {spec.backbone}, {spec.dim} dimensions, {spec.head}{ends}")
    return "; ".join(words) or "models unknown"


def printed(table: SettingsTable, *, spread: bool = True) -> tuple[list[str], list[shared.Line]]:
    """Headings and lines of printed cells; with intervals or without."""
    unit = numbers.metric(table.metric).unit
    heads = ["setting", "method", *table.cases, "compatible", "gain"]
    lines = []
    for row in table.rows:
        line: shared.Line = [(row.setting, False), (row.method, False)]
        if row.verdict is None:
            line += [("n/a", False)] + [("", False)] * (len(heads) - 3)
        else:
            line += [
                shared.item(row.cells.get(name), unit, spread and name != _LOWER)
                for name in table.cases
            ]
            line += [(_yes(row), False), (_gain(row), False)]
        lines.append(line)
    return heads, lines


def _yes(row: Row) -> str:
    if row.verdict is None or row.verdict.compatible is None:
        return numbers.DASH
    yes, of = row.verdict.compatible
    return ("yes" if yes == of else "no") if yes in (0, of) else f"{yes} of {of}"


def _gain(row: Row) -> str:
    return numbers.number(row.verdict.gain) if row.verdict is not None else ""


def render(tables: Sequence[SettingsTable], form: str) -> str:
    """Tables as text: ``terminal``, ``markdown`` or ``latex``; nothing as ``csv``."""
    forms = {"terminal": plain, "markdown": markdown, "latex": latex}
    return "" if form == "csv" else "\n".join(forms[form](table) for table in tables)


def plain(table: SettingsTable, width: int = _WIDTH) -> str:
    """A table without any control character; intervals only where there is room."""
    lines: list[str] = []
    for spread in (True, False):
        heads, cells = printed(table, spread=spread)
        # A place for the mark on every number, so that numbers stand below each other.
        rows = [
            [v if i < 2 else v + ("*" if best else " ") for i, (v, best) in enumerate(line)]
            for line in cells
        ]
        wide = [max(len(x) for x in column) for column in zip(heads, *rows, strict=True)]
        lines, last = [shared.padded(heads, wide)], ""
        for row in rows:
            if last and row[0] != last:
                lines.append("")
            lines.append(shared.padded([row[0] if row[0] != last else "", *row[1:]], wide))
            last = row[0]
        if max(map(len, lines)) <= width:
            break
    below = [line for note in table.notes for line in wrap(note, width, break_on_hyphens=False)]
    return "\n".join([table.title, "", *lines, *(["", *below] if below else [])]) + "\n"


def markdown(table: SettingsTable) -> str:
    """A table as GitHub reads it."""
    return shared.markdown(table.title, *printed(table), table.notes)


def latex(table: SettingsTable) -> str:
    """A booktabs table, ruled between settings."""
    rows = table.rows
    ruled = [i for i in range(1, len(rows)) if rows[i].setting != rows[i - 1].setting]
    return shared.latex(table.title, table.slug, *printed(table), table.notes, ruled)
