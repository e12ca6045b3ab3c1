"""The verbs of ``bench`` that read records and published numbers: parse, call, print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.options import split
from benchmark.cli.output import echo, echo_json
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.records.files import StoredRecord
    from benchmark.records.pictures import Pictures
    from benchmark.records.record import Record
    from benchmark.report import TextTable

app = typer.Typer()


@app.command(
    rich_help_panel=options.MEASURE,
    epilog="Examples: `bench table runs` · `bench table runs --format latex --metrics all` · "
    "`bench table results -p open-class -m bct,fct --seeds 0-2 --cases 'new/old - old/old'`",
)
def table(
    runs: options.Runs = None, form: options.Form = "terminal", metrics: options.Metrics = "",
    cases: options.Cases = "", methods: options.Methods = "", protocols: options.Protocols = "",
    tracks: options.Tracks = "", seeds: options.Seeds = "",
    published: Annotated[
        bool, Option("--published", help="Also what papers print on the same protocol and data.")
    ] = False,
) -> None:  # fmt: skip
    """Print records as a table."""
    from benchmark.report.tables import csv_tables, record_tables

    records = [one.record for one in selected(runs, methods, protocols, tracks, seeds)]
    make = csv_tables if form == "csv" else record_tables
    print_tables(make(records, metrics or None, cases or None), form)
    if form != "terminal":
        echo()
    if published:
        _print_published_beside(records, form, metrics)


def _print_published_beside(records: Sequence[Record], form: str, metrics: str) -> None:
    """Print what papers print on the protocols and data of some records, apart from these."""
    from benchmark.records.published import beside, read_published
    from benchmark.report import make_tables
    from benchmark.report.renderers import csv
    from benchmark.report.tables import published

    every = read_published()
    shown = {key for table in make_tables(records, metrics or None) for key in table.metrics}
    numbers = [n for n in beside(every, records) if n.metric in shown]
    if form == "csv":
        echo(csv.render([published.csv_table(numbers)], heading=False).rstrip("\n"))
    elif numbers:
        echo()
        print_tables(published.make_tables(numbers, every), form)
    elif form == "terminal":
        echo("\nNo paper prints numbers on these protocols and data.")


@app.command(
    rich_help_panel=options.MEASURE,
    epilog="Examples: `bench show runs/measured/open-class/glyphs/bct/seed-0.json` · "
    "`bench show results -m bct -p open-class --seeds 0`",
)
def show(
    runs: options.Runs = None, methods: options.Methods = "", protocols: options.Protocols = "",
    tracks: options.Tracks = "", seeds: options.Seeds = "", as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Show all that records say: scores, cost, data, times, provenance."""
    from benchmark.records.details_files import find_details
    from benchmark.report.tables.record import facts, text_table

    chosen = selected(runs, methods, protocols, tracks, seeds)
    if as_json:
        values = [one.record.as_json() for one in chosen]
        one_or_all = values[0] if len(values) == 1 else values
        echo_json(one_or_all)
        return
    for one in chosen:
        try:
            details = find_details(one.record, one.path)
        except BenchError as error:
            print_skipped(error)
            details = None
        print_tables([text_table(one.record)])
        echo("\n".join([*facts(one.record, details), ""]))


@app.command(
    rich_help_panel=options.MEASURE,
    epilog="Examples: `bench compare bct mixbct runs` · "
    "`bench compare fct fct:simclr runs -p open-class --metrics map --cases new/old` · "
    "`bench compare a/seed-0.json b/seed-0.json --by query`",
)
def compare(
    left: Annotated[
        str, Argument(help="A method, a record's file, or a folder of records.", metavar="A")
    ],
    right: Annotated[str, Argument(help="Another.", metavar="B")],
    runs: options.Runs = None, form: options.Form = "terminal", metrics: options.QueryMetrics = "",
    cases: options.QueryCases = "", protocols: options.Protocols = "",
    tracks: options.Tracks = "", seeds: options.Seeds = "",
    by: Annotated[
        Literal["identity", "query"],
        Option("--by", help="Draw whole identities, or queries as if they were independent."),
    ] = "identity",
) -> None:  # fmt: skip
    """Compare two methods query by query: difference, interval, p-value."""
    from benchmark.report import paired
    from benchmark.report.tables.comparison import text_table

    if left.strip() == right.strip():
        raise BenchError(f"compare: expected two different ones, got '{left:.60}' twice")
    places = [word for word in (left, right) if paired.is_place(word)]
    records = [] if len(places) == 2 else selected(runs, "", protocols, tracks, seeds)
    pair = [
        selected([Path(word)], "", protocols, tracks, seeds) if word in places
        else paired.find(word, records) for word in (left, right)
    ]  # fmt: skip
    lines = paired.compare(*pair, cases=split(cases), metrics=split(metrics), by=by)
    doubts = paired.doubts(*pair)
    print_tables([text_table(lines, left.strip(), right.strip(), by, doubts)], form)
    for line in doubts if form == "csv" else ():
        echo(f"bench: {line}", err=True)


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench published` · `bench published -p open-class --metrics avg` · "
    "`bench published -m fct --dataset imagenet --format csv`",
)
def published(
    folder: Annotated[
        Path | None, Argument(help="Folder of the numbers; by default the project's own.")
    ] = None,
    form: options.Form = "terminal", papers: options.Papers = "",
    protocols: options.Protocols = "", datasets: options.Datasets = "",
    methods: options.Methods = "", metrics: options.PaperMetrics = "",
) -> None:  # fmt: skip
    """Show numbers that papers print; they are never ranked with measured ones."""
    from benchmark.records.published import read_published, select
    from benchmark.report.tables.published import make_tables, summary

    every = read_published(folder)
    words = {
        "paper": papers, "protocol": protocols, "dataset": datasets, "method": methods,
        "metric": metrics,
    }  # fmt: skip
    if form == "terminal" and not any(words.values()):
        echo(summary(every).rstrip())
        return
    numbers = select(every, **{key: split(text) for key, text in words.items()})
    if not numbers:
        raise BenchError("published: no number has all of these")
    print_tables(make_tables(numbers, every), form)


@app.command(
    rich_help_panel=options.MEASURE,
    epilog="Examples: `bench plot runs` · `bench plot runs --out figures --metrics map`",
)
def plot(
    runs: options.Runs = None,
    out: Annotated[Path, Option("--out", help="Folder of the plots.")] = Path("plots"),
    metrics: Annotated[str, Option("--metrics", help="Metrics, with commas.")] = "",
    methods: options.Methods = "", protocols: options.Protocols = "",
    tracks: options.Tracks = "", seeds: options.Seeds = "",
) -> None:  # fmt: skip
    """Draw records as PNG and SVG."""
    from benchmark.config.files import plain_io_errors, writable
    from benchmark.report.plots.records import plot

    records = [one.record for one in selected(runs, methods, protocols, tracks, seeds)]
    writable(out, "--out", keep=False)
    with plain_io_errors(out):
        paths = plot(records, out, metrics=split(metrics) or None)
    for path in paths:
        echo(path)


@app.command(
    rich_help_panel=options.MAINTAIN, epilog="Example: `bench schema > record.schema.json`"
)
def schema() -> None:
    """Print the JSON Schema of records."""
    from benchmark.records.record import json_schema

    echo_json(json_schema())


@app.command(
    rich_help_panel=options.MAINTAIN,
    epilog="Examples: `bench leaderboard --out site` · `bench leaderboard runs --out site` · "
    "`bench leaderboard results/measured runs --out site` · `bench leaderboard --freeze 0.1.0`",
)
def leaderboard(
    out: Annotated[Path | None, Option("--out", help="Folder of the site.")] = None,
    runs: Annotated[list[Path] | None, Argument(
        metavar="RUNS",
        help="Folders of records; by default `results/measured` if it exists, else `runs`. "
        "Of two records of one run the first is shown.",
    )] = None,
    freeze: Annotated[str, Option(
        help="Write the standings as this release, which pages of changes compare with."
    )] = "",
    releases: Annotated[Path, Option(help="Folder of frozen releases.")] = Path("results/releases"),
    data_root: Annotated[list[str] | None, Option(
        help="Folder of a track's images, `cifar100-small=DIR`: pages then show queries of it "
        "too, whose pictures may not be passed on. Repeatable."
    )] = None,
) -> None:  # fmt: skip
    """Write records as a static site, which opens from disk; thousands take a minute or two."""
    from benchmark.config.files import plain_io_errors, writable
    from leaderboard.site import build_folder
    from leaderboard.site import freeze as freeze_release

    if out is None and not freeze:
        raise BenchError("leaderboard: expected --out or --freeze, got none of them")
    committed = Path("results/measured")
    default = committed if committed.is_dir() else Path("runs")
    if freeze:
        with plain_io_errors(releases):
            echo(freeze_release(runs or [default], freeze, releases))
    if out is None:
        return
    writable(out, "--out", keep=False)
    drawn = _drawn(runs or [default], options.track_roots(data_root))
    with plain_io_errors(out):
        page, skipped = build_folder(runs or [default], out, releases, drawn)
    for each in skipped:
        echo(f"bench: {each}", err=True)
    echo(page)


def _drawn(runs: Sequence[Path], roots: Mapping[str, Path]) -> dict[str, Pictures]:
    """Pictures of the queries looked at on the tracks whose images are at hand."""
    if not roots:
        return {}
    from benchmark.harness.publishing import draw_pictures, items_shown
    from benchmark.records.files import find_records

    stored = [s for run in runs for s in find_records(run, on_damaged=lambda _: None)]
    shown = items_shown([s for s in stored if s.record.track in roots])
    return {
        name: draw_pictures(first, rows, roots[first.record.track])
        for name, (first, rows) in shown.items()
    }


def selected(
    runs: list[Path] | None, methods: str, protocols: str, tracks: str, seeds: str
) -> list[StoredRecord]:
    """Records below some folders that an option chooses; damaged ones are named and skipped."""
    from benchmark.config.seeds import parse_seeds
    from benchmark.records.files import read_selection

    return read_selection(
        runs or [Path("runs")], on_damaged=print_skipped, method=split(methods),
        protocol=split(protocols), track=split(tracks), seed=parse_seeds(seeds) if seeds else [],
    )  # fmt: skip


def print_skipped(error: BenchError) -> None:
    """Name a damaged file that is left out."""
    echo(f"bench: skipped {error}", err=True)


def print_tables(tables: Sequence[TextTable], form: str = "terminal", one: str = "") -> None:
    """Print tables, on a terminal with colour; CSV has one heading, so one kind of columns.

    Raises:
        BenchError: If tables differ in the columns of CSV, with words on how to choose ``one``.
    """
    from benchmark.report import render
    from benchmark.report.renderers import terminal

    if form == "csv" and len({table.columns for table in tables}) > 1:
        names = ", ".join(table.title for table in tables)
        raise BenchError(f"--format csv: expected tables of the same columns, got {names}{one}")
    if form == "terminal":
        terminal.show(tables)
    else:
        echo(render(tables, form).rstrip())
