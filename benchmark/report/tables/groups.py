"""The tables of groups: CMC@1 of each group of queries, and the gap between them.

Source: FCT appendix C (ranges of classes), FastFill section 5.3 (an under-represented group).
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, select
from benchmark.report.scores import by_method, case_score, method_label, named_groups
from benchmark.report.tables.backfilling import orders, point
from benchmark.report.text_table import TextCell, TextTable, score_cell, simple_table

_KEY = re.compile(r"group_(.+?)__cmc_at_1")
_GAP, _ALL = "group_gap", "cmc_at_1"
_SHARES = (0, 25, 50, 75, 100)
_SHARES_OF = (
    "Percent of the queries of a group, in the whole gallery. gap: best minus worst group; smaller "
    "is better."
)
_GAPS = (
    "Percent CMC@1, best minus worst group, when a share of the gallery is backfilled: 0 % is the "
    "cross-test, 100 % the new model by itself (FastFill Figure 4). Smaller is better."
)


def make_tables(records: Iterable[Record], cases: select.Names = None) -> list[TextTable]:
    """A table for each protocol and track that is scored by group, with any of the cases."""
    tables = [_table(done, slug, cases) for slug, done in _scored(records)]
    return [table for table in tables if table.rows]


def make_gap_tables(records: Iterable[Record]) -> list[TextTable]:
    """The gap between the groups while the gallery is backfilled, by method and order.

    Only for protocols that are scored by group: others have groups too, but no question on them.
    """
    tables = [
        simple_table(
            f"{notes.title(done)}: gap between the groups while backfilled",
            f"{slug}-gaps",
            ("method", "order"),
            [f"{share} %" for share in _SHARES],
            list(_gap_lines(done)),
            notes=(_GAPS,),
        )
        for slug, done in _scored(records)
    ]
    return [table for table in tables if table.rows]


def _scored(records: Iterable[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Finished records of protocols that are scored by group."""
    for slug, members in named_groups(records):
        done = [record for record in members if record.status == "done"]
        if any(_GAP in scores for record in done for scores in record.scores.values()):
            yield slug, done


def _gap_lines(records: Sequence[Record]) -> Iterator[list[str | TextCell]]:
    for method, members in by_method(records).items():
        for order in orders(members):
            curves = [r.orders[order].groups.gap for r in members if order in r.orders]
            if len(curves) == len(members) and all(curves):
                means = (mean_score([point(c, share) for c in curves]) for share in _SHARES)
                cells = (score_cell(mean, spread=False) for mean in means)
                yield [method_label(method, members), order, *cells]


def _table(records: Sequence[Record], slug: str, cases: select.Names) -> TextTable:
    scored = {key for r in records for scores in r.scores.values() for key in scores}
    groups = {key: found[1].replace("_", " ") for key in scored if (found := _KEY.fullmatch(key))}
    keys = sorted(groups, key=lambda key: _place(groups[key]))
    return simple_table(
        f"{notes.title(records)}: CMC@1 by group",
        f"{slug}-groups",
        ("query/gallery", "method"),
        ("all", *(groups[key] for key in keys), "gap"),
        list(_lines(records, _cases(records, cases), (_ALL, *keys, _GAP))),
        notes=(_SHARES_OF,),
    )


def _place(name: str) -> tuple[bool, float, str]:
    """Ranges by number, names by alphabet, what is left last."""
    number = re.match(r"[\d.]+", name)
    return name in ("others", "not trained on"), float(number[0]) if number else 0.0, name


def _cases(records: Sequence[Record], chosen: select.Names) -> list[str]:
    """The cases of the rows: by default the tests before and after, and converted galleries."""
    if chosen:
        return select.some(select.cases, records, chosen)
    converted = [case for case in select.cases(records) if "'" in case]
    low, cross = select.lower_case(records), select.cross_case(records)
    return [low, cross, *converted, select.self_case(records)]


def _lines(
    records: Sequence[Record], cases: Sequence[str], keys: Sequence[str]
) -> Iterator[list[str | TextCell]]:
    low = select.lower_case(records)
    for case in cases:
        for method, members in by_method(records).items():
            # The lower bound is the same for every method.
            if case == low and method != "independent":
                continue
            if any(case in record.scores for record in members):
                cells = [score_cell(case_score(members, case, k), spread=False) for k in keys]
                yield [case, "" if case == low else method_label(method, members), *cells]
