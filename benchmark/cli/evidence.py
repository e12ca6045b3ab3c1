"""``bench claims`` and ``bench transfer``: what the records say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from benchmark.cli import options
from benchmark.cli.options import split
from benchmark.cli.output import echo, echo_json
from benchmark.cli.records import print_tables, selected
from benchmark.errors import unknown

if TYPE_CHECKING:
    from benchmark.records.record import Record

app = typer.Typer()


@app.command(
    epilog="Examples: `bench claims results` · "
    "`bench claims results --only fct-1,bct-3 --show lines` · "
    "`bench claims results --show counts -f markdown`"
)
def claims(
    runs: options.Runs = None, form: options.Form = "terminal",
    only: Annotated[str, Option("--only", help="Claims, with commas; else all.")] = "",
    show: Annotated[Literal["verdicts", "lines", "counts", "lists"], Option(
        help="`verdicts`, every comparison (`lines`), how many (`counts`), or `lists` in Markdown."
    )] = "verdicts",
    file: Annotated[
        Path | None, Option("--claims", help="The claims; else `results/claims.yaml`.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Say what records make of the papers' claims: agree, disagree, cannot tell."""
    from benchmark.report.claims import answers, read_claims
    from benchmark.report.tables import claims as tables

    every = read_claims(file)
    for name in split(only):
        if name not in every.claims:
            raise unknown("claim", name, every.claims)
    chosen = {
        name: claim for name, claim in every.claims.items() if name in (split(only) or [name])
    }
    found = answers(every.model_copy(update={"claims": chosen}), _records(runs))
    if as_json:
        table = tables.lines_table(found)
        echo_json([dict(zip(table.columns, row, strict=True)) for row in table.values])
    elif show == "lists":
        echo("\n".join(tables.claim_lists(found)))
    elif show == "counts":
        print_tables([tables.counts_table(found, every)], form)
    elif show == "lines" or form == "csv":
        print_tables([tables.lines_table(found)], form)
    elif form == "terminal":
        print_tables([tables.short_table(found)])
    else:
        print_tables(tables.verdict_tables(found, every), form)


def _records(runs: list[Path] | None) -> list[Record]:
    """Records below some folders; those of changed tracks too, which claims may name."""
    return [one.record for one in selected(runs, "", "", "", "")]
