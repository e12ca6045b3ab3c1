"""Tables and plots of records. Heavy libraries are loaded only by what needs them."""

from benchmark.report.renderers import render
from benchmark.report.scores import make_table, make_tables
from benchmark.report.tables import record_tables
from benchmark.report.text_table import TextTable

__all__ = ["TextTable", "make_table", "make_tables", "record_tables", "render"]
