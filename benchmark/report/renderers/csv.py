"""Tables as CSV: the values of all of them below one heading, numbers in full precision."""

import csv
import io
from collections.abc import Sequence

from benchmark.report.text_table import TextTable


def render(tables: Sequence[TextTable], *, heading: bool = True) -> str:
    """Values of tables that have the same CSV columns; those without any are passed over."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    known = [table for table in tables if table.columns]
    if known and heading:
        writer.writerow(known[0].columns)
    for table in known:
        writer.writerows(table.values)
    return out.getvalue()
