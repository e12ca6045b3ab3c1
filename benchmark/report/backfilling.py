"""The table of backfilling: a row for each method and order, areas under the curves in columns.

Its model and its four forms; :mod:`benchmark.report.plots` draws the curves. Where a protocol has
settings, they are the columns, as in FastFill's Table 7, and each metric has its table.
"""

from __future__ import annotations

import csv as _csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmark.records.record import OrderCurves, Record
from benchmark.report import notes, numbers, settings
from benchmark.report import printed as shared
from benchmark.report.table import group, slugs
from benchmark.report.values import Cell, cell

OFFLINE = "offline"
BUDGETS = (10, 25, 50, 75)
"""Percent of the gallery; the curves have every percent."""
_MAIN = ("cmc_at_1", "map")
_WIDTH = 100
Line = shared.Line


@dataclass(frozen=True)
class Row:
    """A method refilled in one order; mean over its seeds.

    Attributes:
        order: An order's name; ``offline`` for the wait until all is refilled.
        cheating: Does the order need the vectors that only backfilling gives?
        areas: Metric, or setting, -> area under the curve.
        taus: Cheating order -> Kendall's tau with it.
        budgets: (percent of the gallery, metric) -> score when so much is refilled.
    """

    method: str
    order: str
    cheating: bool
    seeds: tuple[int, ...]
    areas: Mapping[str, Cell]
    taus: Mapping[str, Cell]
    budgets: Mapping[tuple[int, str], Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class RefillTable:
    """One protocol on one track.

    Attributes:
        case: ``new/old``: where the curves begin.
        columns: Keys of the rows' areas -> headings, in reading order.
        truths: Cheating orders that taus are given for.
        notes: What stands below.
    """

    protocol: str
    track: str
    title: str
    slug: str
    case: str
    columns: Mapping[str, str]
    truths: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def make_tables(records: Iterable[Record]) -> list[RefillTable]:
    """A table for each protocol and track whose records have backfilling."""
    groups = group(records)
    found: list[RefillTable] = []
    for slug, members in zip(slugs(groups), groups, strict=True):
        curved = [r for r in members if r.orders]
        if curved:
            found.append(_table(members, curved, slug))
    return found


def make_settings_tables(
    records: Iterable[Record], metrics: str | Iterable[str] | None = None
) -> list[RefillTable]:
    """A table for each protocol with settings, track and metric: a column for each setting.

    One setting alone has the table that a protocol without settings has.

    Args:
        records: Any records; those of protocols without settings are passed over.
        metrics: Keys, as a list or with commas between; ``all``; by default CMC@1 and mAP.
    """
    names = metrics.split(",") if isinstance(metrics, str) else metrics or _MAIN
    shown = [name.strip() for name in names]
    found: list[RefillTable] = []
    for members in settings.group(records):
        made = {
            title: table
            for title, own in settings.by_setting(members).items()
            for table in make_tables(own)
        }
        if len(made) == 1:
            found += made.values()
            continue
        keys = dict.fromkeys(key for table in made.values() for key in table.columns)
        title = settings.title(members)
        found += [_joined(made, key, title) for key in keys if key in shown or shown == ["all"]]
    return found


def _joined(made: Mapping[str, RefillTable], metric: str, title: str) -> RefillTable:
    """Tables of several settings as one of a single metric."""
    first = next(iter(made.values()))
    rows: dict[tuple[str, str], Row] = {}
    for setting, table in made.items():
        for row in table.rows:
            key = row.method, row.order
            before = rows.get(key, replace(row, areas={}, taus={}, budgets={}))
            here = {setting: row.areas[metric]} if metric in row.areas else {}
            rows[key] = replace(before, areas={**before.areas, **here})
    family = first.protocol.partition(":")[0]
    return replace(
        first,
        protocol=family,
        title=f"{title}: areas under the backfilling curves of {numbers.metric(metric).label}",
        slug=f"{family}-{first.track}-backfilling-{metric}",
        columns={setting: setting for setting in made},
        truths=(),
        rows=tuple(rows.values()),
        notes=tuple(dict.fromkeys(note for table in made.values() for note in table.notes)),
    )


def _table(members: Sequence[Record], curved: Sequence[Record], slug: str) -> RefillTable:
    first = curved[0]
    by_method: dict[str, list[Record]] = {}
    for record in sorted(curved, key=lambda r: r.method != "independent"):
        by_method.setdefault(record.method, []).append(record)
    metrics = numbers.ordered(m for r in curved for each in r.orders.values() for m in each.area)
    rows = [_offline(next(iter(by_method.values())))]
    rows += [row for records in by_method.values() for row in _rows(records)]
    truths = list(dict.fromkeys(t for row in rows for t in row.taus))
    return RefillTable(
        protocol=first.protocol,
        track=first.track,
        title=f"{notes.title(curved)}: areas under the backfilling curves",
        slug=f"{slug}-backfilling",
        case=_case(first),
        columns={metric: numbers.metric(metric).label for metric in metrics},
        truths=tuple(truths),
        rows=tuple(_mark_best(rows, metrics)),
        notes=tuple(_notes(members, curved, truths)),
    )


def _case(record: Record) -> str:
    """The case at nothing refilled."""
    found = record.backfilling
    return "" if found is None else f"{found.new}/{found.old}"


def orders(records: Sequence[Record]) -> list[str]:
    """Orders of some records, in reading order; ones that this version does not know last."""
    from benchmark.metrics.backfill_orders import ORDERS

    known = {name: place for place, name in enumerate(ORDERS)}
    names = {name for r in records for name in r.orders}
    return sorted(names, key=lambda name: (known.get(name, len(known)), name))


def cheating(order: str) -> bool:
    """Does an order need the vectors that only backfilling gives?"""
    return order.startswith("true-")


def _rows(records: Sequence[Record]) -> Iterator[Row]:
    """One a order that all seeds have."""
    for order in orders(records):
        found = [r.orders.get(order) for r in records]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            continue
        areas = {
            metric: cell(
                order,
                [each.area.get(metric) for each in known],
                [shared.span(each.intervals.get(metric)) for each in known],
            )
            for metric in known[0].area
        }
        taus = {
            truth: cell(order, [each.tau.get(truth) for each in known], [None] * len(known))
            for truth in known[0].tau
        }
        seeds = tuple(r.seed for r in records)
        method = records[0].method
        yield Row(method, order, cheating(order), seeds, areas, taus, _budgets(order, known))


def _budgets(order: str, known: Sequence[OrderCurves]) -> dict[tuple[int, str], Cell]:
    """Scores when a budget is spent, from curves that have a point for every percent."""
    return {
        (share, metric): cell(
            order, [_at(each.curves[metric], share) for each in known], [None] * len(known)
        )
        for metric in known[0].curves
        for share in BUDGETS
    }


def _at(curve: Sequence[float], share: int) -> float:
    return curve[round(share * (len(curve) - 1) / 100)]


def _offline(records: Sequence[Record]) -> Row:
    offline = [r.backfilling.offline for r in records if r.backfilling]
    areas = {
        name: cell(OFFLINE, [each[name].area for each in offline], [None] * len(offline))
        for name in offline[0]
    }
    method, seeds = records[0].method, tuple(r.seed for r in records)
    return Row(method, OFFLINE, False, seeds, areas, {})


def _mark_best(rows: Sequence[Row], metrics: Sequence[str]) -> list[Row]:
    """Best in each column of the methods and of the orders that can be deployed."""
    marked = list(rows)
    rivals = [
        i for i, row in enumerate(rows)
        if not row.cheating and row.order != OFFLINE and row.method != "independent"
    ]  # fmt: skip
    for metric in metrics:
        known = {i: rows[i].areas[metric].value for i in rivals if metric in rows[i].areas}
        for i in numbers.best(known, metric):
            areas = {**marked[i].areas, metric: replace(marked[i].areas[metric], best=True)}
            marked[i] = replace(marked[i], areas=areas)
    return marked


def _notes(
    members: Sequence[Record], curved: Sequence[Record], truths: Sequence[str]
) -> Iterator[str]:
    case, seeds = _case(curved[0]), {r.seed for r in curved}
    new = case.partition("/")[0]
    how = "Student's t over the seeds" if len(seeds) > 1 else "bootstrap over queries"
    yield (
        f"Percent, the mean along the curve from {case} (nothing refilled) to "
        f"{new}/{new} (all refilled); ± is the wider side of the 95 % interval "
        f"({how}). * is the best of the methods by an order that can be deployed."
    )
    yield "offline: old queries in the old gallery until every item is refilled."
    if truths:
        yield (
            "tau: Kendall's, of the order with a cheating one, which sorts by what only "
            "backfilling would tell: true-l2 by the distance of converted and new vector, "
            "true-disc by the new classifier's loss on the converted one (FastFill appendix E)."
        )
    left_out: dict[tuple[str, str], list[str]] = {}
    for method in dict.fromkeys(r.method for r in curved):
        found = [r.backfilling.omitted for r in curved if r.method == method and r.backfilling]
        why: dict[str, list[str]] = {}
        for order, reason in (pair for each in found for pair in each.items()):
            why.setdefault(reason, []).append(order)
        for reason, orders_here in why.items():
            key = ", ".join(dict.fromkeys(orders_here)), reason
            left_out.setdefault(key, []).append(method)
    for (names, reason), methods in left_out.items():
        yield f"Left out: {names} for {', '.join(methods)}: {reason}."
    for record in members:
        own = record.backfilling.reason if record.backfilling else None
        if record not in curved and (own or record.reason):
            yield f"No curve for {record.method}: {own or record.reason}."


def printed(table: RefillTable, *, spread: bool = True) -> tuple[list[str], list[Line]]:
    """Headings and lines of printed cells; with intervals or without."""
    heads = ["method", "order", *table.columns.values()]
    heads += [f"tau {truth}" for truth in table.truths]
    lines = []
    for row in table.rows:
        line: Line = [(row.method, False), (row.order, False)]
        for key in table.columns:
            line.append(shared.item(_known(row.areas.get(key)), "share", spread))
        for truth in table.truths:
            line.append(shared.item(_known(row.taus.get(truth)), "coefficient", False))
        lines.append(line)
    return heads, lines


def _known(found: Cell | None) -> Cell | None:
    """What is unknown stays blank."""
    return None if found is None or found.value is None else found


def render(tables: Sequence[RefillTable], form: str) -> str:
    """Tables as text: ``terminal``, ``csv`` (no heading), ``markdown`` or ``latex``."""
    forms = {"terminal": plain, "csv": csv, "markdown": markdown, "latex": latex}
    return "\n".join(forms[form](table) for table in tables)


def plain(table: RefillTable, width: int = _WIDTH) -> str:
    """A table without any control character; intervals only where there is room."""
    lines: list[str] = []
    for spread in (True, False):
        heads, cells = printed(table, spread=spread)
        rows = [[value + ("*" if best else "") for value, best in line] for line in cells]
        wide = [max(len(x) for x in column) for column in zip(heads, *rows, strict=True)]
        lines = [shared.padded(heads, wide)]
        last = ""
        for row in rows:
            if last and row[0] != last and row[1] != OFFLINE:
                lines.append("")
            lines.append(shared.padded([row[0] if row[0] != last else "", *row[1:]], wide))
            last = row[0]
        if max(map(len, lines)) <= width:
            break
    below = [line for note in table.notes for line in _wrapped(note, width)]
    return "\n".join([*_wrapped(table.title, width), "", *lines, "", *below]) + "\n"


def _wrapped(note: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(note, min(width, _WIDTH))


def csv(table: RefillTable) -> str:
    """Lines in the columns of :mod:`benchmark.report.text`, without a heading.

    The case is ``new/old by random``, the metric ``area_cmc_at_1``; tau's is ``kendall_tau`` of
    ``new/old by priority against true-l2``; scores at a budget have the case ``new/old by random
    at 25 %`` and no interval.
    """
    out = io.StringIO()
    writer = _csv.writer(out, lineterminator="\n")
    for row in table.rows:
        head = [table.protocol, table.track, "method", row.method]
        head += [" ".join(map(str, row.seeds)), "done", ""]
        offline = row.order == OFFLINE
        case = table.case if offline else f"{table.case} by {row.order}"
        prefix = "offline_area_" if offline else "area_"
        found = [(case, prefix + metric, each) for metric, each in row.areas.items()]
        found += [
            (f"{case} against {truth}", "kendall_tau", each) for truth, each in row.taus.items()
        ]
        found += [
            (f"{case} at {share} %", metric, each) for (share, metric), each in row.budgets.items()
        ]
        for where, metric, each in found:
            if each.value is not None:
                ends = [each.value, each.low, each.high]
                values = ["" if v is None else repr(float(v)) for v in ends]
                writer.writerow([*head, where, metric, *values, "", "", ""])
    return out.getvalue()


def markdown(table: RefillTable) -> str:
    """A table as GitHub reads it."""
    return shared.markdown(table.title, *printed(table), table.notes)


def latex(table: RefillTable) -> str:
    """A booktabs table."""
    rows = table.rows
    ruled = [i for i in range(1, len(rows)) if rows[i].method != rows[i - 1].method]
    return shared.latex(table.title, table.slug, *printed(table), table.notes, ruled)
