"""``bench results``: what the core board has, what it still needs, and computing it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from benchmark.cli import options
from benchmark.cli.output import echo, echo_json
from benchmark.cli.records import print_tables, selected
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.harness.board_runs import TimeEstimate
    from benchmark.harness.core_board import CoreBoard, UnitStatus

app = typer.Typer(
    help="Show the core board's gaps, compute them, and publish what stands beside records.",
    no_args_is_help=True,
)

Out = Annotated[Path, Option("--out", help="Folder of the records.")]
BoardFile = Annotated[
    Path | None, Option("--board", help="The board; else `results/core.yaml`.", show_default=False)
]
Roots = Annotated[
    list[str] | None,
    Option("--data-root", help="Folder of a track's images: `omniglot=DIR`. Repeatable."),
]
Processes = Annotated[
    int | None, Option("--processes", min=1, max=1024, help="Commands at a time; else one a core.")
]
_HOUR = 3600.0
_USUAL = Path("results")
"""Folder of the records of a checkout, which a first run makes."""


@app.command(epilog="Example: `bench results status`")
def status(
    out: Out = _USUAL, board: BoardFile = None, protocols: options.Protocols = "",
    tracks: options.Tracks = "", data_root: Roots = None, processes: Processes = None,
    store: options.Store = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Show what the core board has, lacks or has of other code, and the hours left."""
    if not out.is_dir():
        if out != _USUAL or out.exists():
            got = "a file" if out.exists() else "no such folder"
            raise BenchError(f"--out: expected a folder of records, got {got}: {out}")
        echo(f"bench: there is no folder {out} here, so that all records are missing", err=True)
    roots = options.track_roots(data_root)
    found, statuses, estimates = _look(board, protocols, tracks, out, roots, store)
    n = processes or os.cpu_count() or 1
    if as_json:
        echo_json([_row(s, e) for s, e in zip(statuses, estimates, strict=True)])
        return
    _print_table(found, statuses, estimates)
    _print_sum(statuses, estimates, n)


@app.command(
    epilog="Examples: `bench results run --hours 8 --data-root omniglot=DIR` · "
    "`bench results run --board results/core-frozen.yaml -p extended-class -t grocery-open "
    "--data-root grocery-open=DIR --out again`"
)
def run(
    out: Out = Path("results"), board: BoardFile = None, protocols: options.Protocols = "",
    tracks: options.Tracks = "", data_root: Roots = None, processes: Processes = None,
    hours: Annotated[float, Option(
        min=0, help="Begin no command that is estimated to end later."
    )] = 10.0,
    store: options.Store = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the commands only.")] = False,
) -> None:  # fmt: skip
    """Compute what the core board lacks, the most important first; goes on where it stopped."""
    from benchmark.config.files import writable
    from benchmark.config.places import require_outside
    from benchmark.harness.board_runs import Job, carry_out_jobs, jobs

    roots = options.track_roots(data_root)
    require_outside({"--out": out, "--store": store}, roots.values())
    found, statuses, estimates = _look(board, protocols, tracks, out, roots, store)
    folders = ["--out", str(out), *(["--store", str(store)] if store else [])]
    todo = jobs(statuses, [e.seconds for e in estimates], found, roots, folders)
    for reason in dict.fromkeys(s.unknown for s in statuses if s.todo and s.unknown):
        echo(f"bench: left out: {reason}", err=True)

    def show(job: Job) -> None:
        echo(f"bench {shlex.join(job.words)}")

    if dry_run:
        for job in todo:
            show(job)
        return
    writable(out, "--out", keep=False)
    n = processes or os.cpu_count() or 1
    failed, left = carry_out_jobs(todo, found, n, hours * _HOUR, show)
    done = len(todo) - len(failed) - len(left)
    echo(f"{done} commands done, {len(left)} left for another call")
    if done and not all(status.unit.changes for status in statuses):  # a study is on no page
        _write_pictures(out, roots, found.seeds[:1])
    if failed:
        words = shlex.join(failed[0].words)
        raise BenchError(f"results: {len(failed)} failed, the first: bench {words}")
    if left:  # what follows in a Makefile is less important
        raise typer.Exit(1)


@app.command(epilog="Example: `bench results pictures --data-root omniglot=DIR`")
def pictures(
    out: Out = Path("results"), data_root: Roots = None,
    seeds: Annotated[str, Option("--seeds", help="Of records whose queries are shown.")] = "0",
) -> None:  # fmt: skip
    """Write the pictures of the queries that pages look at, where the licence lets them pass on."""
    from benchmark.config.seeds import parse_seeds

    _write_pictures(out, options.track_roots(data_root), parse_seeds(seeds))


@app.command(epilog="Example: `bench results models --store DIR --data-root omniglot=DIR`")
def models(
    out: Out = Path("results"), board: BoardFile = None, data_root: Roots = None,
    store: Annotated[list[Path] | None, Option(
        "--store", help="Folder of stage outputs; else the user's cache. Repeatable."
    )] = None,
    most_mb: Annotated[float, Option(
        "--most-mb", min=0, help="Megabytes of files; first generations are all written."
    )] = 40.0,
    address: Annotated[str, Option(
        help="Where files beyond that will lie, `https://host/folder/`; else they are left out."
    )] = "",
) -> None:  # fmt: skip
    """Publish the models that the board's records stand on, by their hashes, for runs to take."""
    from benchmark.config.files import default_store
    from benchmark.harness.core_board import read_core_board
    from benchmark.harness.publishing import publish

    done = publish(
        read_core_board(board), out, store or [default_store()], options.track_roots(data_root),
        int(most_mb * 1e6), address, echo,
    )  # fmt: skip
    for words, wanted in (("in no store", done.missing), ("beyond --most-mb", done.beyond)):
        for each in wanted:
            echo(f"{words}: '{each.title}' of {each.unit}, {each.checkpoint}")
    n = len(done.index.models)
    echo(f"{done.folder}: {n} models, {done.n_bytes / 1e6:.1f} MB; {len(done.missing)} missing")


@app.command(
    epilog="Examples: `bench results details results -p open-class -t glyphs -m bct,fct` · "
    "`bench results details results -m fct --data-root omniglot=DIR`"
)
def details(
    runs: options.Runs = None, methods: options.Methods = "", protocols: options.Protocols = "",
    tracks: options.Tracks = "", seeds: options.Seeds = "", data_root: Roots = None,
    store: options.Store = None,
) -> None:  # fmt: skip
    """Write all results by query beside records, from the store or computed again."""
    from benchmark.cli.running import Progress
    from benchmark.config.files import default_store
    from benchmark.harness.repeating import results_by_query
    from benchmark.records.slim import write_queries

    roots, failed = options.track_roots(data_root), 0
    chosen = selected(runs, methods, protocols, tracks, seeds)
    with Progress() as reporter:
        for one in chosen:
            root = roots.get(one.record.track)
            try:
                packed = results_by_query(
                    one.record, store or default_store(), data_root=root, reporter=reporter
                )
            except BenchError as error:
                failed += 1
                echo(f"bench: {one.path}: {error}", err=True)
                continue
            echo(write_queries(one.path, packed))
    if failed:
        raise BenchError(f"results: {failed} of {len(chosen)} records without results by query")


@app.command(epilog="Example: `bench results export results --out scores.parquet`")
def export(
    runs: options.Runs = None,
    out: Annotated[Path, Option("--out", help="The file.")] = Path("scores.parquet"),
) -> None:
    """Write scores of records, areas and worst moments with them, as one tidy Parquet file.

    A row for each case and metric; points of curves stay in the records.
    """
    from benchmark.config.files import plain_io_errors, require_file_place, writable, write_whole
    from benchmark.report.frame import frame

    require_file_place(out, "--out")
    if out.suffix != ".parquet":
        raise BenchError(f"--out: expected a name that ends in .parquet, got {out.name}")
    writable(out.parent, "--out", keep=False)
    table = frame(one.record for one in selected(runs, "", "", "", ""))
    writable(out.parent, "--out")
    with plain_io_errors(out.parent):
        write_whole(out, table.to_parquet(index=False))
    echo(f"{out}: {len(table):,} scores")


def _write_pictures(out: Path, roots: dict[str, Path], seeds: Collection[int]) -> None:
    from benchmark.harness.publishing import draw_pictures, items_shown, may_be_passed_on
    from benchmark.records.files import find_records
    from benchmark.records.pictures import FOLDER, write_pictures

    every = find_records(out, on_damaged=lambda error: echo(f"bench: skipped {error}", err=True))
    stored = [each for each in every if each.record.seed in seeds]
    for name, (first, rows) in sorted(items_shown(stored).items()):
        if not may_be_passed_on(first):
            echo(f"{name}: not written, its licence does not say that pictures may be passed on")
            continue
        path = out / FOLDER.name / f"{name}.safetensors"
        try:
            drawn = draw_pictures(first, rows, roots.get(first.record.track))
        except BenchError as error:  # data that are not here, or other ones than a record's
            echo(f"{name}: not written: {error}", err=True)
            continue
        write_pictures(path, drawn)
        echo(f"{path}: {len(rows)} pictures, {path.stat().st_size / 1e3:.0f} kB")


def _look(
    path: Path | None, protocols: str, tracks: str, out: Path, roots: dict[str, Path],
    store: Path | None,
) -> tuple[CoreBoard, list[UnitStatus], list[TimeEstimate]]:  # fmt: skip
    from benchmark.config.files import default_store
    from benchmark.harness.board_runs import Estimates, stages_left
    from benchmark.harness.core_board import read_core_board, unit_statuses
    from benchmark.harness.published_models import read_published
    from benchmark.harness.store import Store
    from benchmark.records.files import read_selection

    board = read_core_board(path).only(options.split(protocols), options.split(tracks))
    statuses = list(unit_statuses(board, out, roots))
    kept = Store(store or default_store())
    left = list(stages_left(statuses, roots, board.precision, kept.has, read_published()))

    def estimates(**chosen: list[str]) -> list[TimeEstimate]:
        stored = []
        for folder in {out, Path("results")}:  # a study takes as long as the board beside it
            with suppress(BenchError):  # no record yet, or none that can be read
                stored += read_selection([folder], lambda _: None, **chosen)
        by = Estimates([one.record for one in stored], board.precision)
        pairs = zip(statuses, left, strict=True)
        return [by.of(status.unit, todo) for status, todo in pairs]

    near = estimates(track=sorted({status.unit.track for status in statuses}))
    return board, statuses, estimates() if any(e.seconds is None for e in near) else near


def _row(status: UnitStatus, estimate: TimeEstimate) -> dict[str, object]:
    unit = status.unit
    return {
        "protocol": unit.protocol, "track": unit.track, "seed": unit.seed,
        "changed": dict(unit.changes), "states": dict(status.states),
        "seconds": estimate.seconds, "rough": estimate.rough, "unknown": status.unknown,
    }  # fmt: skip


def _print_table(
    board: CoreBoard, statuses: Sequence[UnitStatus], estimates: Sequence[TimeEstimate]
) -> None:
    """A line for each protocol and what is changed of it, in the order of importance."""
    from benchmark.config.grouping import grouped
    from benchmark.harness.core_board import count_states
    from benchmark.report.text_table import simple_table

    places = grouped(((each.unit.track, each.unit.title), i) for i, each in enumerate(statuses))
    lines: list[list[str]] = []
    notes: dict[str, None] = {}
    for (track, protocol), where in places.items():
        counts = count_states([statuses[i] for i in where])
        wrong = ", ".join(f"{n} {state}" for state, n in counts.items() if state != "there")
        for i in where:
            if statuses[i].todo and statuses[i].unknown:
                notes[statuses[i].unknown] = None
        there, wanted = counts.get("there", 0), sum(counts.values())
        lines.append(
            [track, protocol, f"{there} of {wanted}", wrong, hours([estimates[i] for i in where])]
        )
    heads = ["track", "protocol", "there", "else"]
    n = len({unit.seed for unit in board.units})
    what = f"{n} seed{'s' * (n > 1)}, {board.device}, {board.precision}, {board.threads} thread"
    table = simple_table(
        f"Core board: {what}{'s' * (board.threads > 1)}", "core-board", heads, ["core hours left"],
        lines, notes=tuple(notes),
    )  # fmt: skip
    print_tables([table])


def _print_sum(statuses: Sequence[UnitStatus], estimates: Sequence[TimeEstimate], n: int) -> None:
    from benchmark.harness.core_board import count_states

    counts = count_states(statuses)
    known = sum(e.seconds or 0.0 for e in estimates) / _HOUR
    unknown = sum(e.seconds is None for e in estimates)
    echo(f"{counts.get('there', 0)} of {sum(counts.values())} records are there.")
    more = f", and {unknown} units that nothing is known of" * bool(unknown)
    echo(f"About {known:.1f} core hours left{more}; {known / n:.1f} hours in {n} processes.")
    if any(e.rough and e.seconds for e in estimates):
        echo("~: partly of records of other tracks.")


def hours(estimates: Sequence[TimeEstimate]) -> str:
    """Hours in a cell: ``~1.5`` where other tracks' times stand in, ``?`` where none are known."""
    seconds = [e.seconds for e in estimates]
    known = sum(s or 0.0 for s in seconds) / _HOUR
    if None in seconds:
        return "?" if not known else f"more than {known:.1f}"
    return f"{'~' if known and any(e.rough for e in estimates) else ''}{known:.1f}"
