"""Tables and plots of records. Heavy libraries are loaded only by what needs them."""

from benchmark.report.table import Table, make_table, make_tables, print_table, render

__all__ = ["Table", "make_table", "make_tables", "print_table", "render"]
