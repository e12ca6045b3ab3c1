"""Tables as LaTeX's booktabs: the blocks of a table one below the other."""

import re
from collections.abc import Iterator, Sequence

from benchmark.report import numbers
from benchmark.report.text_table import TextCell, TextTable

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip
_SIGNED = re.compile(r"(?<!\S)[-+]\d[\d.]*")  # outside of math LaTeX prints a hyphen


def render(tables: Sequence[TextTable]) -> str:
    """Tables with titles and notes as captions."""
    return "\n".join("\n".join(_lines(table)) + "\n" for table in tables)


def _lines(table: TextTable) -> Iterator[str]:
    columns = list(dict.fromkeys(column for block in table.blocks for column in block.columns))
    n = len(table.labels)
    caption = " ".join(part.rstrip(".") + "." for part in (table.title, *table.bold_notes()))
    yield "% needs \\usepackage{booktabs}"
    yield "\\begin{table}"
    yield "  \\centering"
    yield f"  \\caption{{{escape(caption)}}}"
    yield f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', table.slug)}}}"
    yield f"  \\begin{{tabular}}{{{'l' * n}{'r' * len(columns)}}}"
    yield "    \\toprule"
    yield _line([escape(column.head) for column in (*table.labels, *columns)])
    for i, block in enumerate(table.blocks):
        yield "    \\midrule"
        if block.label:
            label = f"\\emph{{{escape(block.label)}}}"
            yield f"    \\multicolumn{{{n + len(columns)}}}{{l}}{{{label}}} \\\\"
        for ruled, row in table.ruled():
            if ruled:
                yield f"    \\cmidrule{{1-{n + len(columns)}}}"
            cells = dict(zip(block.columns, row.cells[i], strict=False))
            labels = [escape(label.full) for label in row.labels]
            yield _line([*labels, *(_cell(cells.get(column, TextCell())) for column in columns)])
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"


def _line(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)}".rstrip() + r" \\"


def _cell(cell: TextCell) -> str:
    text = "--" if cell.text == numbers.DASH else _SIGNED.sub(r"$\g<0>$", escape(cell.text))
    text = f"\\textbf{{{text}}}" if cell.best else text
    spread = escape(cell.spread.removeprefix("±"))
    return f"{text} {{\\scriptsize $\\pm${spread}}}" if spread else text


def escape(text: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(_ESCAPED.get(char, char) for char in " ".join(text.split()))
