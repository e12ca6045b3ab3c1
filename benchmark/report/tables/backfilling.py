"""The table of backfilling: a row for each method and order, areas under the curves in columns.

:mod:`benchmark.report.plots` draws the curves. Where a protocol has settings, they are the columns,
as in FastFill's Table 7, and each metric has its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import Score, by_method, mean_score, named_groups
from benchmark.report.tables import settings
from benchmark.report.tables.results import COLUMNS
from benchmark.report.text_table import TextCell, TextTable, score_cell, simple_table

OFFLINE = "offline"
BUDGETS = (10, 25, 50, 75)
"""Percent of the gallery; the curves have every percent."""
_MAIN = ("cmc_at_1", "map")


@dataclass(frozen=True)
class OrderScores:
    """A method whose gallery is backfilled in one order; mean over its seeds.

    Attributes:
        order: An order's name; ``offline`` for the wait until all is backfilled.
        areas: Metric, or setting, -> area under the curve.
        taus: Oracle order -> Kendall's tau with it.
        budgets: (percent of the gallery, metric) -> score when so much is backfilled.
    """

    method: str
    order: str
    seeds: tuple[int, ...]
    areas: Mapping[str, Score]
    taus: Mapping[str, Score] = field(default_factory=dict)
    budgets: Mapping[tuple[int, str], Score] = field(default_factory=dict)


@dataclass(frozen=True)
class BackfillTable:
    """Areas under the curves of one protocol on one track.

    Attributes:
        case: ``new/old``: where the curves begin.
        columns: Keys of the rows' areas -> headings, in reading order.
        oracles: Oracle orders that taus are given for.
        notes: What stands below.
        metric: The one whose areas settings are compared by; empty where metrics are the columns.
    """

    protocol: str
    track: str
    title: str
    slug: str
    case: str
    columns: Mapping[str, str]
    oracles: tuple[str, ...]
    rows: tuple[OrderScores, ...]
    notes: tuple[str, ...]
    metric: str = ""

    def best(self, column: str) -> set[tuple[str, str]]:
        """The best methods and orders, of those that can be deployed."""
        rivals = {
            (row.method, row.order): row.areas[column].value
            for row in self.rows
            if row.method != "independent" and row.order != OFFLINE
            if not is_oracle(row.order) and column in row.areas
        }
        return numbers.best(rivals, self.metric or column)


def orders(records: Sequence[Record]) -> list[str]:
    """Orders of some records, in reading order; ones that this version does not know last."""
    from benchmark.metrics.backfill_orders import ORDERS

    known = {name: place for place, name in enumerate(ORDERS)}
    names = {name for record in records for name in record.orders}
    return sorted(names, key=lambda name: (known.get(name, len(known)), name))


def is_oracle(order: str) -> bool:
    """Does an order need the vectors that only backfilling gives?"""
    return order.startswith("true-")


def make_tables(records: Iterable[Record]) -> list[BackfillTable]:
    """A table for each protocol and track whose records have backfilling."""
    return [
        _table(members, curved, slug)
        for slug, members in named_groups(records)
        if (curved := [record for record in members if record.orders])
    ]


def make_settings_tables(
    records: Iterable[Record], metrics: select.Names = None
) -> list[BackfillTable]:
    """A table for each protocol with settings, track and metric: a column for each setting.

    One setting alone has the table that a protocol without settings has.

    Args:
        records: Any records; those of protocols without settings are passed over.
        metrics: Keys, as a list or with commas between; ``all``; by default CMC@1 and mAP.
    """
    shown = numbers.words(metrics or _MAIN)
    tables: list[BackfillTable] = []
    for members in settings.setting_groups(records):
        of = settings.by_setting(members).items()
        by_setting = {title: table for title, own in of for table in make_tables(own)}
        if len(by_setting) == 1:
            tables += by_setting.values()
            continue
        keys = dict.fromkeys(key for table in by_setting.values() for key in table.columns)
        chosen = [key for key in keys if key in shown or shown == ["all"]]
        tables += [_joined(by_setting, key, settings.title(members)) for key in chosen]
    return tables


def _joined(by_setting: Mapping[str, BackfillTable], metric: str, title: str) -> BackfillTable:
    """Tables of several settings as one of a single metric."""
    first = next(iter(by_setting.values()))
    rows: dict[tuple[str, str], OrderScores] = {}
    for setting, table in by_setting.items():
        for row in table.rows:
            key = row.method, row.order
            before = rows.get(key, OrderScores(*key, row.seeds, {}))
            here = {setting: row.areas[metric]} if metric in row.areas else {}
            rows[key] = replace(before, areas={**before.areas, **here})
    family = first.protocol.partition(":")[0]
    return replace(
        first,
        protocol=family,
        title=f"{title}: areas under the backfilling curves of {numbers.metric(metric).label}",
        slug=f"{family}-{first.track}-backfilling-{metric}",
        columns={setting: setting for setting in by_setting},
        oracles=(),
        rows=tuple(rows.values()),
        notes=tuple(dict.fromkeys(note for table in by_setting.values() for note in table.notes)),
        metric=metric,
    )


def _table(members: Sequence[Record], curved: Sequence[Record], slug: str) -> BackfillTable:
    methods = by_method(curved)
    first = next(iter(methods.values()))
    metrics = numbers.ordered(m for r in curved for each in r.orders.values() for m in each.area)
    rows = [_offline(first), *(row for records in methods.values() for row in _rows(records))]
    oracles = tuple(dict.fromkeys(oracle for row in rows for oracle in row.taus))
    case = _case(curved[0])
    return BackfillTable(
        protocol=curved[0].protocol,
        track=curved[0].track,
        title=f"{notes.title(curved)}: areas under the backfilling curves",
        slug=f"{slug}-backfilling",
        case=case,
        columns={metric: numbers.metric(metric).label for metric in metrics},
        oracles=oracles,
        rows=tuple(rows),
        notes=(*_reading(curved, case, bool(oracles)), *_left_out(members, curved)),
    )


def _case(record: Record) -> str:
    """The case at nothing backfilled."""
    about = record.backfilling
    return "" if about is None else f"{about.new}/{about.old}"


def _rows(records: Sequence[Record]) -> Iterator[OrderScores]:
    """A row for each order that all seeds have."""
    for order in orders(records):
        known = [record.orders[order] for record in records if order in record.orders]
        if len(known) == len(records):
            first = known[0]
            yield OrderScores(
                records[0].method,
                order,
                tuple(record.seed for record in records),
                areas={
                    key: mean_score(
                        [each.area.get(key) for each in known],
                        [each.intervals.get(key) for each in known],
                    )
                    for key in first.area
                },
                taus={key: mean_score([each.tau.get(key) for each in known]) for key in first.tau},
                budgets={
                    (share, key): mean_score([point(each.curves[key], share) for each in known])
                    for key in first.curves
                    for share in BUDGETS
                },
            )


def point(curve: Sequence[float], share: int) -> float:
    """A curve of even points, when a share of the gallery, in percent, is backfilled."""
    return curve[round(share * (len(curve) - 1) / 100)]


def _offline(records: Sequence[Record]) -> OrderScores:
    offline = [record.backfilling.offline for record in records if record.backfilling]
    areas = {key: mean_score([each[key].area for each in offline]) for key in offline[0]}
    return OrderScores(records[0].method, OFFLINE, tuple(r.seed for r in records), areas)


def _reading(curved: Sequence[Record], case: str, oracles: bool) -> Iterator[str]:
    new = case.partition("/")[0]
    yield (
        f"Percent, the mean along the curve from {case} (nothing backfilled) to {new}/{new} (all "
        f"backfilled); {notes.interval_words(curved, 'bootstrap over queries')}. * is the best of "
        "the methods by an order that can be deployed."
    )
    yield "offline: old queries in the old gallery until every item is backfilled."
    if oracles:
        yield (
            "tau: Kendall's, of the order with an oracle, which sorts by what only backfilling "
            "would tell: true-l2 by the distance of converted and new vector, true-disc by the "
            "new classifier's loss on the converted one (FastFill appendix E)."
        )


def _left_out(members: Sequence[Record], curved: Sequence[Record]) -> Iterator[str]:
    """Orders that methods do not have, and methods without curves."""
    left_out: dict[tuple[str, str], dict[str, None]] = {}
    for method in dict.fromkeys(record.method for record in curved):
        reasons: dict[str, dict[str, None]] = {}
        for record in curved:
            if record.method == method and record.backfilling:
                for order, why in record.backfilling.omitted.items():
                    reasons.setdefault(why, {})[order] = None
        for why, names in reasons.items():
            left_out.setdefault((", ".join(names), why), {})[method] = None
    for (listed, why), methods in left_out.items():
        yield f"Left out: {listed} for {', '.join(methods)}: {why}."
    for record in members:
        reason = record.backfilling.reason if record.backfilling else None
        if record not in curved and (reason or record.reason):
            yield f"No curve for {record.method}: {reason or record.reason}."


def text_table(table: BackfillTable) -> TextTable:
    """Areas under the curves, to be printed."""
    best = {column: table.best(column) for column in table.columns}
    lines: list[list[str | TextCell]] = []
    for row in table.rows:
        key = row.method, row.order
        areas = [
            score_cell(_known(row.areas.get(column)), best=key in best[column])
            for column in table.columns
        ]
        taus = [_known(row.taus.get(oracle)) for oracle in table.oracles]
        lines.append([*key, *areas, *(score_cell(t, "coefficient", spread=False) for t in taus)])
    values = [] if table.metric else [line for row in table.rows for line in _values(table, row)]
    return simple_table(
        table.title,
        table.slug,
        ("method", "order"),
        [*table.columns.values(), *(f"tau {oracle}" for oracle in table.oracles)],
        lines,
        notes=table.notes,
        grouped=True,
        compact=True,
        columns=() if table.metric else COLUMNS,
        values=tuple(values),
    )


def _known(score: Score | None) -> Score | None:
    """What is unknown stays blank."""
    return None if score is None or score.value is None else score


def _values(table: BackfillTable, row: OrderScores) -> Iterator[list[object]]:
    """CSV lines in the columns of the table of methods.

    The case is ``new/old by random``, the metric ``area_cmc_at_1``; tau's is ``kendall_tau`` of
    ``new/old by priority against true-l2``; scores at a budget have the case ``new/old by random
    at 25 %`` and no interval.
    """
    seeds = " ".join(map(str, row.seeds))
    head = [table.protocol, table.track, "method", row.method, seeds, "done", ""]
    offline = row.order == OFFLINE
    case = table.case if offline else f"{table.case} by {row.order}"
    prefix = "offline_area_" if offline else "area_"
    scores = [(case, prefix + metric, score) for metric, score in row.areas.items()]
    scores += [(f"{case} against {o}", "kendall_tau", score) for o, score in row.taus.items()]
    scores += [(f"{case} at {at} %", metric, s) for (at, metric), s in row.budgets.items()]
    for where, metric, score in scores:
        if score.value is not None:
            yield [*head, where, metric, score.value, score.low, score.high, "", "", ""]
