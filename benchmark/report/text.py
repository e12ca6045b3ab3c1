"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv as _csv
import io
import re
from collections.abc import Iterator, Sequence

from benchmark.report import grid, numbers
from benchmark.report.table import Row, Table

COLUMNS = (
    "protocol", "track", "kind", "method", "seeds", "status", "reason", "case", "metric",
    "value", "low", "high", "compatible", "not_hurting", "gain",
)  # fmt: skip

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", ">": r"\textgreater{}", "<": r"\textless{}",
}  # fmt: skip


def csv(tables: Sequence[Table]) -> str:
    """Long form, a line for each row, case and metric; fractions in full precision.

    ``compatible``, ``not_hurting`` and ``gain`` stand on the lines of the cross-test, the first two
    as the share of the seeds on which they hold.
    """
    out = io.StringIO()
    writer = _csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for table in tables:
        for row in table.rows:
            writer.writerows(_csv_lines(table, row))
    return out.getvalue()


def _csv_lines(table: Table, row: Row) -> Iterator[list[object]]:
    head = [table.protocol, table.track, row.kind, row.method, " ".join(map(str, row.seeds))]
    if row.reason is not None:
        yield [*head, "not-applicable", row.reason, *[""] * 8]
    judged = next(
        (c for c, r in zip(table.cases, table.roles, strict=True) if r == "cross-test"), ""
    )
    for (metric, case), cell in row.cells.items():
        if cell.value is None:
            continue
        verdict = row.verdicts.get(metric) if case == judged else None
        ends = [cell.value, cell.low, cell.high]
        words = [_share(verdict.compatible), _share(verdict.not_hurting)] if verdict else [None] * 2
        gain = verdict.gain if verdict else None
        yield [*head, "done", "", cell.case, metric, *map(_full, [*ends, *words, gain])]


def _share(answer: tuple[int, int] | None) -> float | None:
    return None if answer is None else answer[0] / answer[1]


def _full(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def markdown(tables: Sequence[Table]) -> str:
    """A table for each metric, as GitHub reads it."""
    return "\n".join("\n".join(_markdown(table)) for table in tables) + "\n"


def _markdown(table: Table) -> Iterator[str]:
    yield f"### {md(table.title)}"
    for block in grid.blocks(table):
        heads = [f"{c.head} {c.role}".strip() for c in block.columns]
        yield ""
        yield "| " + " | ".join(md(x) for x in [block.label, *heads]) + " |"
        yield "|---|" + "---:|" * len(heads)
        for row, items in zip(table.rows, block.items, strict=True):
            cells = [
                f"**{md(x.text)}** {x.spread}".strip() if x.best else md(x.whole) for x in items
            ]
            yield "| " + " | ".join([md(row.full), *cells]) + " |"
    yield ""
    yield f"Bold is the best method of a {table.marks}.  "
    yield from (f"{md(note)}  " for note in table.notes)


def md(text: str) -> str:
    """Text that Markdown and HTML leave alone, on one line."""
    text = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|&~#])", r"\\\1", text)


def latex(tables: Sequence[Table]) -> str:
    """A booktabs table for each table, the metrics one below the other."""
    return "\n".join("\n".join(_latex(table)) for table in tables) + "\n"


def _latex(table: Table) -> Iterator[str]:
    found = grid.blocks(table)
    heads = list(dict.fromkeys(column for block in found for column in block.columns))
    last = len(heads) + 1
    notes = " ".join((f"Bold is the best method of a {table.marks}.", *table.notes))
    yield "% needs \\usepackage{booktabs}"
    yield "\\begin{table}"
    yield "  \\centering"
    yield f"  \\caption{{{tex(table.title)}. {tex(notes)}}}"
    yield f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9-]+', '-', table.slug)}}}"
    yield f"  \\begin{{tabular}}{{l{'r' * len(heads)}}}"
    yield "    \\toprule"
    yield "    & " + " & ".join(tex(column.head) for column in heads) + r" \\"
    for block in found:
        yield "    \\midrule"
        yield f"    \\multicolumn{{{last}}}{{l}}{{\\emph{{{tex(block.label)}}}}} \\\\"
        for i, (row, items) in enumerate(zip(table.rows, block.items, strict=True)):
            if row.kind == "method" and i and table.rows[i - 1].kind != "method":
                yield f"    \\cmidrule{{1-{last}}}"
            by = dict(zip(block.columns, items, strict=True))
            cells = [_tex_item(by.get(column, grid.Item())) for column in heads]
            yield "    " + " & ".join([tex(row.full), *cells]) + r" \\"
    yield "    \\bottomrule"
    yield "  \\end{tabular}"
    yield "\\end{table}"


def _tex_item(item: grid.Item) -> str:
    text = "--" if item.text == numbers.DASH else tex(item.text)
    if item.best:
        text = f"\\textbf{{{text}}}"
    spread = item.spread.removeprefix("±")
    return f"{text} {{\\scriptsize $\\pm${tex(spread)}}}" if spread else text


def tex(text: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))
