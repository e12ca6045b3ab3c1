"""Tables of records, published numbers and comparisons: a module for each kind of table."""

from collections.abc import Sequence

from benchmark.records.record import Record
from benchmark.report import scores, select
from benchmark.report.tables import (
    backfilling,
    groups,
    results,
    sequence,
    settings,
    side_information,
)
from benchmark.report.text_table import TextTable


def record_tables(
    records: Sequence[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[TextTable]:
    """Every table of some records, to be printed; settings of one protocol stand in one table.

    Raises:
        BenchError: If a metric or case is in no record.
    """
    single, _ = settings.split_settings(records)
    select.require(scores.group(records), metrics, cases)
    return [
        *map(results.text_table, scores.some_tables(single, metrics, cases)),
        *sequence.make_tables(records, metrics, cases),
        *settings.make_tables(records, metrics, cases),
        *groups.make_tables(records, cases),
        *backfilling.part_tables(single, metrics),
        *backfilling.make_tables(single, metrics),
        *backfilling.make_settings_tables(records, metrics),
        *groups.make_gap_tables(records),
        *side_information.make_tables(records, metrics),
    ]


def csv_tables(
    records: Sequence[Record], metrics: select.Names = None, cases: select.Names = None
) -> list[TextTable]:
    """The tables that have the columns of one CSV; those of settings look like all others."""
    return [
        *map(results.text_table, scores.make_tables(records, metrics, cases)),
        *backfilling.make_tables(records, metrics),
        *side_information.make_tables(records, metrics),
    ]
