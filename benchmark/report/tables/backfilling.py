"""The table of backfilling: a row for each method and order, areas under the curves in columns.

Where a protocol has settings, they are the columns, as in FastFill's Table 7, and each metric has
its table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from benchmark.metrics.backfill_orders import ORDERS, is_oracle
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import OrderCurves, Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import by_method, method_label, named_groups
from benchmark.report.tables import settings
from benchmark.report.tables.results import COLUMNS
from benchmark.report.text_table import TextCell, TextTable, score_cell, score_cells, simple_table

OFFLINE = "offline"
OWN_ORDER, NO_ORDER = "priority", "random"
BUDGETS = (10, 25, 50, 75)
"""Percent of the gallery; the curves have every percent."""
_MAIN = ("cmc_at_1", "map")
_BEST = "* is the best of the methods by an order that can be deployed"
_DIPS = "^(worst|share_above)_"
_BESIDE = ("flips_positive", "flips_negative", "group_gap")


@dataclass(frozen=True)
class OrderScores:
    """A method whose gallery is backfilled in one order; mean over its seeds."""

    method: str
    order: str  # an order's name; ``offline`` for the wait until all is backfilled
    seeds: tuple[int, ...]
    areas: Mapping[str, Estimate]  # metric, or setting, -> area under the curve
    # oracle order -> Kendall's tau with it
    taus: Mapping[str, Estimate] = field(default_factory=dict)
    # (percent of the gallery, metric) -> score when so much is backfilled
    budgets: Mapping[tuple[int, str], Estimate] = field(default_factory=dict)
    # ``worst_<metric>`` and ``share_above_<metric>`` -> score; empty for older records
    dips: Mapping[str, Estimate] = field(default_factory=dict)
    diverged: bool = False  # a training did: the scores say nothing of the method

    @property
    def label(self) -> str:
        """The method as its row is named."""
        return method_label(self.method, self.diverged)


def orders(records: Sequence[Record]) -> list[str]:
    """Orders of some records, in reading order; ones that this version does not know last."""
    known = {name: place for place, name in enumerate(ORDERS)}
    names = {name for record in records for name in record.orders}
    return sorted(names, key=lambda name: (known.get(name, len(known)), name))


def order(record: Record) -> OrderCurves | None:
    """The curves of the order that a method brings; of one without, in random order."""
    return record.orders.get(order_name(record))


def order_name(record: Record) -> str:
    """Name of the order of :func:`order`; empty where there is none."""
    deployed = [name for name in record.orders if not is_oracle(name)]
    return next((name for name in (OWN_ORDER, NO_ORDER, *deployed) if name in record.orders), "")


def order_scores(records: Iterable[Record]) -> list[OrderScores]:
    """Scores by method and order, of records of one protocol and track; empty without curves."""
    methods = by_method(record for record in records if record.orders)
    rows = [row for members in methods.values() for row in _rows(members)]
    for method, members in [*methods.items()][:1]:
        ends = [record.backfilling.offline for record in members if record.backfilling]
        keys = [key for key in ends[0] if all(key in end for end in ends)]
        areas = {key: mean_score([end[key].area for end in ends]) for key in keys}
        rows.insert(0, OrderScores(method, OFFLINE, tuple(r.seed for r in members), areas))
    return rows


def _rows(records: Sequence[Record]) -> Iterator[OrderScores]:
    """A row for each order that all seeds have."""
    for order in orders(records):
        curves = [record.orders[order] for record in records if order in record.orders]
        if len(curves) == len(records):
            yield OrderScores(
                records[0].method, order, tuple(record.seed for record in records),
                _means(curves, "area"), _means(curves, "tau"),
                {
                    (share, key): mean_score([point(c.curves[key], share) for c in curves])
                    for key, share in product(curves[0].curves, BUDGETS)
                    if all(key in c.curves for c in curves)
                },
                _means(curves, "worst", "worst_") | _means(curves, "share_above", "share_above_"),
                any(record.diverged for record in records),
            )  # fmt: skip


def _means(curves: Sequence[OrderCurves], part: str, prefix: str = "") -> dict[str, Estimate]:
    """One kind of numbers of an order, mean over seeds."""
    return {
        prefix + key: mean_score(
            [getattr(each, part).get(key) for each in curves],
            [each.intervals.get(prefix + key) for each in curves],
        )
        for key in getattr(curves[0], part)
    }


def point(curve: Sequence[float], share: int) -> float:
    """A curve of even points, when a share of the gallery, in percent, is backfilled."""
    return curve[round(share * (len(curve) - 1) / 100)]


def curves(records: Sequence[Record], metric: str) -> dict[str, dict[str, list[float]]]:
    """Method -> order -> values at even points in percent, mean over seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for method in dict.fromkeys(record.method for record in records if record.orders):
        members = [r for r in records if r.orders and r.method == method]
        for order in orders(members):
            known = [_curve(r.orders[order], metric) for r in members if order in r.orders]
            if all(known) and len(known) == len(members):
                seeds = zip(*known, strict=True)
                mean = [100 * sum(values) / len(values) for values in seeds]
                found.setdefault(method, {})[order] = mean
    return found


def _curve(each: OrderCurves, metric: str) -> Sequence[float]:
    """The curve of a score, or of a key that has its own place in the record; empty without."""
    beside = (each.flips.positive, each.flips.negative, each.groups.gap)
    return each.curves.get(metric) or dict(zip(_BESIDE, beside, strict=True)).get(metric, ())


def offline_ends(records: Iterable[Record]) -> dict[str, dict[str, float | None]]:
    """Metric -> scores before and after a backfill that is shown when it ends, mean over seeds."""
    curved = [r for r in records if r.backfilling and r.orders]
    curved.sort(key=lambda record: record.method == "independent")  # whose old model is the seed's
    found = [*{r.seed: r.backfilling.offline for r in curved if r.backfilling}.values()]
    return {
        key: {
            "before": mean_score([each[key].before for each in found if key in each]).value,
            "after": mean_score([each[key].after for each in found if key in each]).value,
        }
        for key in found[0]
    }


def curve_metrics(records: Sequence[Record]) -> list[str]:
    """Keys that have curves: scores, flips, and the gap between groups."""
    found = [each for record in records for each in record.orders.values()]
    scores = numbers.ordered(metric for each in found for metric in each.curves)
    return scores + [key for key in _BESIDE if any(_curve(each, key) for each in found)]


def make_tables(records: Iterable[Record], metrics: select.Names = None) -> list[TextTable]:
    """Areas, and worst points where they are known, of each protocol and track with backfilling.

    By default of all metrics.
    """
    tables = []
    for slug, members in named_groups(records):
        rows = _of_metrics(order_scores(members), metrics)
        if not rows:
            continue
        curved = [record for record in members if record.orders]
        title, rivals = notes.title(curved), select.rivals(members)
        best = _BEST + notes.rival_words(select.seeds_of(curved), rivals)
        few = [*notes.few_seeds(curved)]
        heads = {key: numbers.metric(key).label for key in _metrics(rows)}
        made = _table(
            f"{title}: areas under the backfilling curves", f"{slug}-backfilling", heads, rows,
            [*_notes(members, best), *few], dict.fromkeys(heads, rivals), record=curved[0],
        )  # fmt: skip
        tables.append(made)
        known = list(dict.fromkeys(key for row in rows for key in row.dips))
        keys = [key for key in known if key.endswith(_MAIN)] or known
        below = (
            f"Percent; worst: the lowest point of the curve from {_case(curved[0])} on. > old/old "
            "from: the share of the gallery from which on the score stays above old/old; none "
            f"where it never does; {notes.interval_words(curved, keys)}. {best}."
        )
        dips = [replace(row, areas=row.dips, taus={}, budgets={}) for row in rows if row.dips]
        made = _table(
            f"{title}: worst points of the backfilling curves", f"{slug}-backfilling-worst",
            {key: numbers.metric(key).label for key in keys}, dips, [below, *few],
            dict.fromkeys(keys, rivals), record=curved[0], prefix="",
        )  # fmt: skip
        tables += [made] if keys else []
    return tables


def _of_metrics(rows: Sequence[OrderScores], metrics: select.Names) -> Sequence[OrderScores]:
    """Rows of the chosen metrics alone; those without any have gone."""
    words = numbers.words(metrics or "all")
    if words == ["all"]:
        return rows
    found = [
        replace(
            row,
            areas={key: score for key, score in row.areas.items() if key in words},
            budgets={(at, key): s for (at, key), s in row.budgets.items() if key in words},
            dips={key: s for key, s in row.dips.items() if re.sub(_DIPS, "", key) in words},
        )
        for row in rows
    ]
    return [row for row in found if row.areas]


def part_tables(records: Iterable[Record], metrics: select.Names = None) -> list[TextTable]:
    """A table for each protocol, track and metric, by default CMC@1 and mAP: see below."""
    shown = numbers.words(metrics or _MAIN)
    return [
        part_table(members, metric)
        for _, members in named_groups(records)
        for metric in _metrics(order_scores(members))
        if metric in shown or shown == ["all"]
    ]


def part_table(records: Sequence[Record], metric: str) -> TextTable:
    """Each method in the order that it brings, when 10 to 75 % of the gallery are backfilled."""
    curved = [record for record in records if record.orders]
    names = {record.method: order_name(record) for record in curved}
    about = numbers.metric(metric)
    lines: list[list[str | TextCell]] = [
        [row.label, row.order,
         *(score_cell(row.budgets.get((each, metric)), about.unit) for each in BUDGETS)]
        for row in order_scores(curved)
        if names[row.method] == row.order and not is_oracle(row.order)
    ]  # fmt: skip
    return simple_table(
        f"{notes.title(curved)}: {about.label} when a part of the gallery is backfilled, in the "
        "order that each method brings",
        "parts", ("method", "order"), [f"{each} %" for each in BUDGETS], lines, compact=True,
    )  # fmt: skip


def make_settings_tables(
    records: Iterable[Record], metrics: select.Names = None
) -> list[TextTable]:
    """A table for each protocol with settings, track and metric: a column for each setting.

    One setting alone has the table that a protocol without settings has; records of protocols
    without settings are passed over. By default the metrics are CMC@1 and mAP.
    """
    shown = numbers.words(metrics or _MAIN)
    tables: list[TextTable] = []
    for members in settings.setting_groups(records):
        of_setting = settings.by_setting(members)
        scores = {name: rows for name, of in of_setting.items() if (rows := order_scores(of))}
        if len(scores) == 1:
            tables += make_tables(of_setting[next(iter(scores))], metrics)
            continue
        curved = {name: [r for r in of_setting[name] if r.orders] for name in scores}
        best = _BEST + settings.rival_words(curved)
        noted = (note for name in scores for note in _notes(of_setting[name], best))
        listed = [*dict.fromkeys(noted), *settings.told(curved, notes.few_seeds)]
        name = f"{members[0].protocol.partition(':')[0]}-{members[0].track}"
        for metric in _metrics(row for rows in scores.values() for row in rows):
            if metric not in shown and shown != ["all"]:
                continue
            areas: dict[tuple[str, str], dict[str, Estimate]] = {}
            bad = {row.method for rows in scores.values() for row in rows if row.diverged}
            for setting, rows in scores.items():
                for row in rows:
                    known = {setting: row.areas[metric]} if metric in row.areas else {}
                    areas.setdefault((row.method, row.order), {}).update(known)
            made = _table(
                f"{settings.title(members)}: areas under the backfilling curves of "
                f"{numbers.metric(metric).label}", f"{name}-backfilling-{metric}",
                {setting: setting for setting in scores},
                [
                    OrderScores(*key, (), each, diverged=key[0] in bad)
                    for key, each in areas.items()
                ], listed,
                {name: select.rivals(of_setting[name]) for name in scores}, metric=metric,
            )  # fmt: skip
            tables.append(made)
    return tables


def _metrics(rows: Iterable[OrderScores]) -> list[str]:
    return numbers.ordered(key for row in rows if row.order != OFFLINE for key in row.areas)


def _table(
    title: str,
    slug: str,
    heads: Mapping[str, str],
    rows: Sequence[OrderScores],
    notes: Sequence[str],
    rivals: Mapping[str, Container[str]],
    metric: str = "",
    record: Record | None = None,
    prefix: str = "area_",
) -> TextTable:
    """Areas in columns, by key and heading: metrics, or settings compared by one ``metric``.

    The best of a column is one of its ``rivals``. With one of the records it has CSV, whose keys of
    areas begin with ``prefix``.
    """
    oracles = list(dict.fromkeys(oracle for row in rows for oracle in row.taus))
    deployed = [
        i for i, row in enumerate(rows)
        if row.order != OFFLINE and not is_oracle(row.order)
    ]  # fmt: skip
    columns = []
    for key in heads:
        scores = {i: _known(row.areas.get(key)) for i, row in enumerate(rows)}
        known = [i for i in deployed if key in rows[i].areas and rows[i].method in rivals[key]]
        columns.append(score_cells(scores, metric or key, known))
    for oracle in oracles:
        taus = ((i, _known(row.taus.get(oracle))) for i, row in enumerate(rows))
        columns.append({i: score_cell(tau, "coefficient", spread=False) for i, tau in taus})
    lines: list[list[str | TextCell]] = [
        [row.label, row.order, *(column[i] for column in columns)] for i, row in enumerate(rows)
    ]
    names = [*heads.values(), *(f"tau {oracle}" for oracle in oracles)]
    return simple_table(
        title, slug, ("method", "order"), names, lines,
        notes=tuple(notes), grouped=True, compact=True, columns=COLUMNS if record else (),
        values=tuple(v for row in rows for v in _values(record, row, prefix)) if record else (),
    )  # fmt: skip


def _known(score: Estimate | None) -> Estimate | None:
    """A score with a value; all else stays blank."""
    return None if score is None or score.value is None else score


def _case(record: Record) -> str:
    """The case at nothing backfilled."""
    about = record.backfilling
    return "" if about is None else f"{about.new}/{about.old}"


def _notes(members: Sequence[Record], best: str) -> Iterator[str]:
    curved = [record for record in members if record.orders]
    case = _case(curved[0])
    new = case.partition("/")[0]
    keys = {key for record in curved for each in record.orders.values() for key in each.area}
    yield (
        f"Percent, the mean along the curve from {case} (nothing backfilled) to {new}/{new} (all "
        f"backfilled); {notes.interval_words(curved, [*keys])}. {best}."
    )
    yield "offline: old queries in the old gallery until every item is backfilled."
    if any(each.tau for record in curved for each in record.orders.values()):
        yield (
            "tau: Kendall's, of the order with an oracle, which sorts by what only backfilling "
            "would tell: true-l2 by the distance of converted and new vector, true-disc by the "
            "new classifier's loss on the converted one (FastFill appendix E)."
        )
    omitted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in curved:
        for order, reason in record.backfilling.omitted.items() if record.backfilling else ():
            omitted[record.method, reason].append(order)
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (method, reason), names in omitted.items():
        alike[", ".join(dict.fromkeys(names)), reason].append(method)
    for (listed, reason), methods in alike.items():
        yield f"Left out: {listed} for {', '.join(methods)}: {reason}."
    for record in members:
        about = record.backfilling
        reason = (about.reason if about else None) or record.reason or ""
        if not record.orders and reason:
            yield f"No curve for {record.method}: {reason}."


def _values(record: Record, row: OrderScores, prefix: str) -> Iterator[list[object]]:
    """CSV lines in the columns of the table of methods.

    The case is ``new/old by random``, the metric ``area_cmc_at_1``; tau's is ``kendall_tau`` of
    ``new/old by priority against true-l2``; scores at a budget have the case ``new/old by random
    at 25 %`` and no interval.
    """
    seeds = " ".join(map(str, row.seeds))
    told = notes.untold(row.diverged)
    head = [record.protocol, record.track, "method", row.method, seeds, "done", told]
    case, changed = f"{_case(record)} by {row.order}", notes.changed_words(record)
    if row.order == OFFLINE:
        case, prefix = _case(record), "offline_area_"
    scores = [(case, prefix + metric, score) for metric, score in row.areas.items()]
    scores += [(f"{case} against {o}", "kendall_tau", score) for o, score in row.taus.items()]
    scores += [(f"{case} at {at} %", metric, s) for (at, metric), s in row.budgets.items()]
    for where, metric, score in scores:
        if score.value is not None:
            yield [*head, where, metric, score.value, score.low, score.high, "", "", "", changed]
