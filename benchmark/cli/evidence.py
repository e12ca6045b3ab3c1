"""``bench claims`` and ``bench transfer``: what the records say together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.options import split
from benchmark.cli.output import echo, echo_json
from benchmark.cli.records import print_skipped, print_tables, selected
from benchmark.config.files import plain_io_errors, writable, write_json, write_whole
from benchmark.config.places import require_apart
from benchmark.errors import BenchError, unknown

if TYPE_CHECKING:
    from benchmark.records.record import Record
    from benchmark.report import TextTable
    from benchmark.report.plots.style import Drawing

app = typer.Typer()


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench claims results` · "
    "`bench claims results --only fastfill,bct-3 --show lines` · "
    "`bench claims results --show counts -f markdown`",
)
def claims(
    runs: options.Runs = None, form: options.Form = "terminal",
    only: Annotated[str, Option(
        "--only", help="Claims, or papers with all of theirs, with commas; else all."
    )] = "",
    show: Annotated[Literal["verdicts", "lines", "counts", "lists", "overview"], Option(
        help="`verdicts`, every comparison (`lines`), how many (`counts`); in Markdown all `lists` "
        "or a short `overview`."
    )] = "verdicts",
    file: Annotated[
        Path | None, Option("--claims", help="The claims; else `results/claims.yaml`.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Say what records make of the papers' claims: agree, disagree, cannot tell."""
    from benchmark.studies.claims import answers, read_claims, tables

    if show in ("lists", "overview") and (as_json or form not in ("terminal", "markdown")):
        got = "--json" if as_json else f"--format {form}"
        raise BenchError(f"--show {show}: expected no format but markdown, got {got}")
    every = read_claims(file)
    wanted = split(only)
    for name in wanted:
        if name not in every.claims and name not in every.papers:
            raise unknown("claim", name, [*every.claims, *every.papers])
    chosen = {
        name: claim for name, claim in every.claims.items()
        if not wanted or {name, name.rpartition("-")[0]} & {*wanted}
    }  # fmt: skip
    records = [one.record for one in selected(runs, "", "", "", "")]
    found = answers(every.model_copy(update={"claims": chosen}), _with_study(runs, records))
    if as_json:
        table = tables.lines_table(found)
        table = tables.counts_table(found, every) if show == "counts" else table
        echo_json([dict(zip(table.columns, row, strict=True)) for row in table.values])
    elif show == "lists":
        echo("\n".join(tables.claim_lists(found)))
    elif show == "overview":
        echo("\n".join(tables.overview(found, every)))
    elif show == "counts":
        print_tables([tables.counts_table(found, every)], form)
    elif show == "lines" or form == "csv":
        print_tables([tables.lines_table(found)], form)
    elif form == "terminal":
        print_tables([tables.short_table(found)])
    else:
        print_tables(tables.verdict_tables(found, every), form)


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench transfer results` · `bench transfer results --out transfer` · "
    "`bench transfer results -p open-class -f csv`",
)
def transfer(
    runs: options.Runs = None, form: options.Form = "terminal",
    protocols: options.Protocols = "", tracks: options.Tracks = "",
    out: Annotated[
        Path | None, Option("--out", help="Also write plots, CSV and JSON into a folder.")
    ] = None,
    rules: Annotated[
        Path | None, Option("--rules", help="What counts; else `results/transfer.yaml`.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Say whether the order of methods on one track is that on another, or in a paper."""
    from benchmark.records.published import read_published
    from benchmark.studies.transfer import compare_all, networks, read_rules, tables

    asked = read_rules(rules)
    stored = selected(runs, "", protocols, tracks, "")
    records = [one.record for one in stored]
    found = compare_all(records, read_published(), asked)
    shown = tables.tables(found, asked)
    if carried := networks.carried(found, asked):
        words = [*networks.changed_words(carried), *_differing(runs, records)]
        shown.insert(0, networks.carried_table(carried, words))
    if out is not None:
        _require_apart(shown, out, [*(one.path for one in stored), *([rules] if rules else [])])
        from benchmark.studies.transfer.plot import drawings

        _write(shown, out, drawings(found, asked), as_json=True)
    if as_json:
        echo_json(_rows(shown))
    elif not shown:
        echo("No two places have two methods of one protocol in common.")
    elif form == "csv":
        measured = [table for table in shown if table.slug == "transfer"]
        if measured:
            print_tables(measured, form)
        else:
            echo("No two tracks have two methods of one protocol in common.", err=True)
    else:
        print_tables(shown, form)


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench lengths runs` · `bench lengths runs -p open-class --out lengths`, "
    "after `bench run -p open-class -m bct,fct --sweep recipe.length=1,2,4`",
)
def lengths(
    runs: options.Runs = None, form: options.Form = "terminal",
    protocols: options.Protocols = "", tracks: options.Tracks = "", seeds: options.Seeds = "",
    metrics: Annotated[str, Option("--metrics", help="Metrics, with commas.")] = "cmc_at_1,map",
    out: options.PlotsAndCsv = None,
) -> None:  # fmt: skip
    """Say whether methods are ordered otherwise when everything trains longer."""
    from benchmark.studies.lengths.shares import compare_lengths, tables

    stored = selected(runs, "", protocols, tracks, seeds)
    found = compare_lengths(stored, split(metrics))
    shown = tables(found)
    if out is not None:
        _require_apart(shown, out, [one.path for one in stored])
    print_tables(shown, form)
    if out is not None:
        from benchmark.studies.share_plots import lengths_drawings

        _write(shown, out, lengths_drawings(found))


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench factors results/studies/pays` · "
    "`bench factors results/studies/pays --out factors`",
)
def factors(
    study: Annotated[Path, Argument(help="Folder of a study, with study.yaml and records.")],
    form: options.Form = "terminal",
    out: options.PlotsAndCsv = None,
) -> None:  # fmt: skip
    """Say which settings decide what a method keeps of the upgrade."""
    from benchmark.studies.factors import tables
    from benchmark.studies.factors.model import fit, read_study

    asked, stored = read_study(study), selected([study], "", "", "", "")
    found = [fit(asked, [one.record for one in stored], metric) for metric in asked.metrics]
    shown = tables.tables(asked, found)
    if out is not None:
        _require_apart(shown, out, [one.path for one in stored])
    for each in found:
        echo(f"{tables.answer(asked, each)} {tables.summary(each)}", err=form != "terminal")
    print_tables(shown, form)
    if out is not None:
        from benchmark.studies.share_plots import factors_drawings

        _write(shown, out, factors_drawings(asked, found))


def _differing(runs: list[Path] | None, records: list[Record]) -> list[str]:
    """The claims that small networks and frozen, pretrained ones decide otherwise, in words."""
    from benchmark.studies.claims import answers, read_claims, tables

    return [*tables.differing_words(answers(read_claims(), _with_study(runs, records)))]


def _with_study(runs: list[Path] | None, records: list[Record]) -> list[Record]:
    """Records, and those that were computed for claims alone."""
    from benchmark.records.files import study_records

    study = study_records(runs or [], "claims", print_skipped)
    return [*records, *(each.record for each in study)]


def _require_apart(shown: list[TextTable], out: Path, read: list[Path]) -> None:
    """BenchError if a file of :func:`_write` is one that is read."""
    names = ["transfer.json", *(f"{table.slug}.csv" for table in shown)]
    require_apart([("--out", out / name) for name in dict.fromkeys(names)], read)


def _write(
    shown: list[TextTable], out: Path, drawings: Iterable[Drawing], as_json: bool = False
) -> None:
    """The CSV of each table that has one, all of them as JSON, and the plots."""
    from benchmark.report import render
    from benchmark.report.plots.style import save

    writable(out, "--out")
    with plain_io_errors(out):
        for table in shown:
            if table.columns:
                write_whole(out / f"{table.slug}.csv", render(table, "csv"))
        if as_json:
            write_json(out / "transfer.json", _rows(shown))
        for path in save(drawings, out):
            echo(path, err=True)


def _rows(shown: list[TextTable]) -> dict[str, list[dict[str, object]]]:
    """The values of tables, by slug."""
    return {
        table.slug: [dict(zip(table.columns, row, strict=True)) for row in table.values]
        for table in shown
        if table.columns
    }
