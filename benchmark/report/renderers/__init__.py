"""Tables as text: for terminals, and as CSV, Markdown, LaTeX and HTML."""

from collections.abc import Sequence

from benchmark.errors import unknown
from benchmark.report.renderers import csv, html, latex, markdown
from benchmark.report.text_table import TextTable

_RENDER = {
    "csv": csv.render, "markdown": markdown.render, "latex": latex.render, "html": html.render,
}  # fmt: skip


def render(tables: TextTable | Sequence[TextTable], form: str = "terminal") -> str:
    """Tables as text, ending with a line break.

    Args:
        tables: One or several.
        form: ``terminal`` (plain, as wide as the terminal, or 100 columns), ``csv`` (one heading
            for all), ``markdown``, ``latex`` (booktabs) or ``html`` (a fragment).

    Raises:
        BenchError: If the form is unknown.
    """
    tables = [tables] if isinstance(tables, TextTable) else tables
    if form == "terminal":
        from benchmark.report.renderers import terminal  # rich takes long to import

        return terminal.plain(tables)
    if form not in _RENDER:
        raise unknown("form", form, ["terminal", *_RENDER])
    return _RENDER[form](tables)
