"""The verbs of ``bench`` that read records: parse, call, print."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer()


class Format(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


class By(StrEnum):
    """What a bootstrap draws."""

    identity = "identity"
    query = "query"


Runs = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders of records, or single ones; by default `runs`.", metavar="RUNS"),
]
Form = Annotated[Format, typer.Option("--format", "-f", help="How to write it.")]
Only = "with commas; else all."
Methods = Annotated[str, typer.Option("--methods", "-m", help=f"Methods, {Only}")]
Protocols = Annotated[str, typer.Option("--protocol", "-p", help=f"Protocols, {Only}")]
Tracks = Annotated[str, typer.Option("--track", "-t", help=f"Tracks, {Only}")]
Seeds = Annotated[str, typer.Option("--seeds", help="Seeds: `0`, `0,1,2` or `0-4`; else all.")]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics", help="Metrics, with commas, or `all`; else the main ones. `avg` is MixBCT's."
    ),
]
Cases = Annotated[
    str,
    typer.Option(
        "--cases",
        help="Cases, with commas, or `all`; else the main ones. `A - B` is their difference.",
    ),
]


@app.command(
    epilog="Examples: `bench table runs` · `bench table runs --format latex --metrics all` · "
    "`bench table results -p open-class -m bct,fct --seeds 0-2 --cases 'new/old - old/old'`"
)
def table(
    runs: Runs = None,
    form: Form = Format.terminal,
    metrics: Metrics = "",
    cases: Cases = "",
    methods: Methods = "",
    protocols: Protocols = "",
    tracks: Tracks = "",
    seeds: Seeds = "",
    published: Annotated[
        bool,
        typer.Option("--published", help="Also what papers print on the same protocol and data."),
    ] = False,
) -> None:
    """Print records as a table."""
    from benchmark.cli import show

    chosen = _selected(runs, methods, protocols, tracks, seeds)
    records = [found.record for found in chosen]
    show.print_table(records, form.value, metrics, cases)
    if published:
        show.print_beside(records, form.value, metrics)


@app.command(
    epilog="Examples: `bench show runs/measured/open-class/glyphs/bct/seed-0.json` · "
    "`bench show results -m bct -p open-class --seeds 0`"
)
def show(
    runs: Runs = None,
    methods: Methods = "",
    protocols: Protocols = "",
    tracks: Tracks = "",
    seeds: Seeds = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: the record itself.")
    ] = False,
) -> None:
    """Show all that records say: scores, cost, data, times, provenance."""
    from benchmark.cli import show as printer

    chosen = _selected(runs, methods, protocols, tracks, seeds)
    if as_json:
        found = [one.record.as_json() for one in chosen]
        typer.echo(json.dumps(found[0] if len(found) == 1 else found, indent=1, ensure_ascii=False))
        return
    for one in chosen:
        printer.print_record(one.record, one.path)


@app.command(
    epilog="Examples: `bench compare bct mixbct runs` · "
    "`bench compare fct fct:simclr results -p open-class --metrics map --cases new/old` · "
    "`bench compare a/seed-0.json b/seed-0.json --by query`"
)
def compare(
    left: Annotated[str, typer.Argument(help="A method, or a record's file.", metavar="A")],
    right: Annotated[str, typer.Argument(help="Another.", metavar="B")],
    runs: Runs = None,
    form: Form = Format.terminal,
    metrics: Metrics = "",
    cases: Cases = "",
    protocols: Protocols = "",
    tracks: Tracks = "",
    seeds: Seeds = "",
    by: Annotated[
        By,
        typer.Option("--by", help="Draw whole identities, or queries as if they were independent."),
    ] = By.identity,
) -> None:
    """Compare two methods query by query: difference, interval, p-value."""
    from benchmark.cli import show
    from benchmark.report import paired as comparison

    files = all(Path(word).suffix == ".json" for word in (left, right))
    records = [] if files else _selected(runs, "", protocols, tracks, seeds)
    pair = [comparison.find(word, records) for word in (left, right)]
    lines = comparison.compare(*pair, cases=_words(cases), metrics=_words(metrics), by=by.value)
    show.print_comparison(lines, left, right, by.value, form.value)


@app.command(
    epilog="Examples: `bench published` · `bench published -p open-class --metrics avg` · "
    "`bench published -m fct --dataset imagenet --format csv`"
)
def published(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of the numbers; by default the project's own.")
    ] = None,
    form: Form = Format.terminal,
    papers: Annotated[str, typer.Option("--paper", help=f"Papers, {Only}")] = "",
    protocols: Protocols = "",
    datasets: Annotated[str, typer.Option("--dataset", help=f"Datasets, {Only}")] = "",
    methods: Methods = "",
    metrics: Annotated[str, typer.Option("--metrics", help=f"Metrics, {Only}")] = "",
) -> None:
    """Show numbers that papers print; they are never ranked with measured ones."""
    from benchmark.cli import show

    chosen = {
        "paper": papers, "protocol": protocols, "dataset": datasets, "method": methods,
        "metric": metrics,
    }  # fmt: skip
    show.print_published(folder, form.value, {k: _words(v) for k, v in chosen.items()})


@app.command(epilog="Examples: `bench plot runs` · `bench plot runs --out figures --metrics map`")
def plot(
    runs: Runs = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of the plots.")] = Path("plots"),
    metrics: Annotated[str, typer.Option("--metrics", help="Metrics, with commas.")] = "",
    methods: Methods = "",
    protocols: Protocols = "",
    tracks: Tracks = "",
    seeds: Seeds = "",
) -> None:
    """Draw records as PNG and SVG."""
    from benchmark.config.files import writable
    from benchmark.report import plots

    records = [f.record for f in _selected(runs, methods, protocols, tracks, seeds)]
    writable(out, "--out")
    for path in plots.plot(records, out, metrics=_words(metrics) or None):
        typer.echo(path)


@app.command(epilog="Example: `bench schema > record.schema.json`")
def schema() -> None:
    """Print the JSON Schema of records."""
    from benchmark.records.record import json_schema

    typer.echo(json.dumps(json_schema(), indent=1))


def _selected(
    runs: list[Path] | None, methods: str, protocols: str, tracks: str, seeds: str
) -> list[Any]:
    from benchmark.config.seeds import parse_seeds
    from benchmark.records.selection import read_selection

    return read_selection(
        runs or [Path("runs")],
        on_damaged=lambda error: typer.echo(f"bench: skipped {error}", err=True),
        method=_words(methods),
        protocol=_words(protocols),
        track=_words(tracks),
        seed=parse_seeds(seeds) if seeds else [],
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
