"""Output of ``bench run``: progress, plans, tables, plots, the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.progress import TaskID

from benchmark.cli.output import bars, echo, unheard
from benchmark.cli.records import print_tables
from benchmark.config import registry
from benchmark.config.files import default_store, digest, plain_io_errors, writable, write_whole
from benchmark.config.split_sizes import generation_lines
from benchmark.config.sweep import Axis
from benchmark.errors import printable
from benchmark.harness.execution import Reporter
from benchmark.harness.graph import Stage
from benchmark.harness.published_models import PublishedModels
from benchmark.harness.requests import Request
from benchmark.harness.store import Store
from benchmark.harness.work import TakenWork
from benchmark.metrics.intervals import LEAST_GROUPS
from benchmark.report.costs import hours_words

if TYPE_CHECKING:
    from benchmark.harness.runs import Existing
    from benchmark.records.record import Record

_CHANGED = "the run counts as changed all the same"


class Progress(Reporter):
    """One line a stage; on a terminal with a bar, elsewhere when the stage has ended."""

    def __init__(self) -> None:
        self.bar = bars("{task.description}")
        self.console = self.bar.console
        self.places: dict[str, tuple[str, TaskID]] = {}
        self.left: Counter[str] = Counter()  # stages by kind, where no record tells their time
        self.took: dict[str, list[float]] = {}

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def left_out(self, label: str, reason: str) -> None:
        """Show that a method cannot be applied, and why, in the words of ``--dry-run``."""
        self._print(f"left out {label}: {reason}")

    def damaged(self, stage: Stage, reason: str) -> None:
        """Show that a stored stage is computed anew, and why."""
        self._print(f"damaged stage {stage.title} [{stage.name}]: {reason}; computed anew")

    def edited(self, path: Path, reason: str) -> None:
        """Show that a record is made anew, and why."""
        self._print(f"damaged record {path}: {reason}; made anew")

    def planned(self, stages: Sequence[Stage], track: str) -> None:
        """Show how many stages follow and, if known, how long they take."""
        if n := len(stages):
            words = time_words(stages, track)
            self.left = Counter() if words else Counter(stage.kind for stage in stages)
            later = "" if words else f"{_unknown(track)}; the first of each kind will"
            self._print(f"[{0:>{len(str(n))}}/{n}] stages to do{words}{later}")

    def start(self, stage: Stage, number: int, total: int) -> Callable[[float], None]:
        """Show that a stage begins."""
        self.bar.start()
        place = f"[{number:>{len(str(total))}}/{total}]"
        task = self.bar.add_task(printable(f"{place} {stage.words}").replace("[", r"\["), total=1.0)
        self.places[stage.name] = (place, task)
        return lambda share: self.bar.update(task, completed=share)

    def done(self, stage: Stage, seconds: float) -> None:
        """Show that a stage has ended."""
        place, task = self.places[stage.name]
        self.bar.remove_task(task)
        self._print(f"{f'{place} {stage.words}':<64} {seconds:6.1f} s")
        self._tell_left(place, stage.kind, seconds)

    def _tell_left(self, place: str, kind: str, seconds: float) -> None:
        """Show once how long the rest takes, as soon as one of each kind of stage has ended."""
        self.left[kind] -= 1
        self.took.setdefault(kind, []).append(seconds)
        rest = +self.left
        if rest and rest.keys() <= self.took.keys():
            hours = sum(n * fmean(self.took[of]) for of, n in rest.items()) / 3600
            self._print(f"{place} left: {hours_words(hours)}, as long as these took")
            self.left.clear()

    def _print(self, line: str) -> None:
        self.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def print_plans(
    requests: Sequence[Request], store: Path | None, out: Path, published: PublishedModels | None,
    existing: Existing,
) -> None:  # fmt: skip
    """The stages of requests, what of them is stored, and where records go."""
    for request in requests:
        if len(requests) > 1:
            protocol, track = request.setup.protocol, request.setup.track
            changed = "".join(f", {key}={value}" for key, value in request.setup.changed.items())
            echo(f"\n{protocol.id} ({protocol.title}) on {track.id}{changed}")
        _print_plan(request, Store(store or default_store()), out, published, existing)


def _print_plan(
    request: Request, store: Store, out: Path, published: PublishedModels | None, existing: Existing
) -> None:
    paths, track = request.paths(out), request.setup.track
    wanted = [key for key, path in paths.items() if existing != "missing" or not path.exists()]
    plan = request.plan_of(wanted, published)
    has_data = request.data_root is not None or not track.needs_root
    taken = has_data and existing != "overwrite"  # what is stored serves
    for line in generation_lines(request.setup):
        echo(line)
    todo = []
    for stage in plan.stages:
        # Without the data a stage has no name yet: what is stored cannot be known.
        there = taken and store.has(stage.name)
        todo += [] if there else [stage]
        name = f"  [{stage.name}]" if has_data else ""
        echo(f"{'stored ' if there else 'to do  '} {stage.words}{name}")
    for result in plan.results:
        if result.reason:
            echo(f"left out {result.label}: {result.reason}")
    reader = registry.check_options(track.dataset, track.data, "track")
    if track.needs_root and reader.origin is None:
        echo(f"note    intervals need {LEAST_GROUPS} classes or more that are evaluated")
    if not has_data:
        echo(f"data    not here: to run on track {track.id}, give --data-root, its images' folder")
    for (label, seed), path in paths.items():
        echo(f"record  {label}, seed {seed}: {path}{' (exists)' if path.exists() else ''}")
    n = len(plan.stages)
    words = time_words(todo, track.id) or (_unknown(track.id) if todo else "")
    echo(f"{n} stages, {n - len(todo)} stored, {len(todo)} to do{words}")


def _unknown(track: str) -> str:
    return f"; no record of {track} says how long"


def time_words(stages: Sequence[Stage], track: str) -> str:
    """Time of some stages by committed records, behind a comma; empty where they say nothing."""
    from benchmark.report.run_times import stage_seconds

    known = [
        stage_seconds(track, s.about.verb) for s in stages if not isinstance(s.work, TakenWork)
    ]
    seconds = sum(each for each in known if each is not None)
    if None in known or not seconds:
        return ""
    words = hours_words(seconds / 3600)
    return f", {'' if words.startswith('under') else 'about '}{words} on one core"


def print_results(records: Sequence[Record], folder: Path) -> None:
    """The table, and beside the records CSV, plots and page; unchanged ones are not drawn again.

    The files are written though nobody may read the table.
    """
    from benchmark.report import record_tables, render
    from benchmark.report.found import found
    from benchmark.report.tables import csv_tables

    with unheard() as broken:
        for words in found(records):
            echo(words)
        print_tables(record_tables(records))
    first = records[0]
    one = len({r.protocol for r in records}) == 1
    protocol = first.protocol.replace(":", "+") if one else first.protocol.partition(":")[0]
    name = f"{protocol}-{first.track}"
    csv = folder / "tables" / f"{name}.csv"
    plots = folder / "plots" / name
    page = folder / "site" / "index.html"
    writable(csv.parent, "--out")
    with plain_io_errors(folder):
        write_whole(csv, render(csv_tables(records, "all", "all"), "csv"))
        shown, mark = digest([r.result() for r in records]), plots / ".records"
        if not (page.exists() and mark.exists() and mark.read_bytes() == shown.encode()):
            from benchmark.report.plots.records import plot
            from leaderboard.site import build

            plots.mkdir(parents=True, exist_ok=True)
            plot(list(records), plots)
            build(list(records), page.parent, root=folder)
            write_whole(mark, shown)
    above = first.path(folder).parents[1 if one else 3]
    _print_places(broken, f"{above} ({len(records)} files)", table=csv, plots=plots, page=page)


def _print_places(broken: list[OSError], records: str, **files: Path) -> None:
    """Say where the files are; raise what kept somebody from reading all that was printed."""
    with unheard(broken):
        echo(f"\nrecords  {records}")
        for kind, path in files.items():
            echo(f"{kind:<8} {path}")
    if broken:
        raise broken[0]


def tell_idle(
    protocol: str, track: str, settings: Mapping[str, Any], methods: Sequence[str]
) -> list[str]:
    """Tell what ``--set`` gives that is so already: records lie apart from others all the same."""
    from benchmark.config.loading import load_protocol, load_track
    from benchmark.config.overrides import idle

    told = idle(load_protocol(protocol), load_track(track), settings, methods)
    for key in told:
        echo(f"bench: --set {key}: so it is without it; {_CHANGED}", err=True)
    return told


def tell_unread(
    requests: Sequence[Request], settings: Mapping[str, Any], told: Sequence[str]
) -> None:
    """Tell what ``--set`` or ``--sweep`` gives that nothing reads, beside what is told already."""
    from benchmark.config.unread import unread

    found = [unread(request.setup) for request in requests]
    for key, reason in found[0].items():
        if key not in told and all(key in each for each in found):
            option = "--set" if key in settings else "--sweep"
            echo(f"bench: {option} {key}: no effect, as {reason}; {_CHANGED}", err=True)


def print_sweep(records: Sequence[Record], axes: Sequence[Axis], out: Path) -> None:
    """The table of a sweep, and the files beside it; one for each setting of a protocol."""
    from benchmark.report import render
    from benchmark.report.plots import style, sweeps
    from benchmark.report.tables import sweep

    tracks = [] if any(axis.key == "track" for axis in axes) else [records[0].track]
    for protocol in dict.fromkeys(record.protocol for record in records):
        chosen = [record for record in records if record.protocol == protocol]
        points = sweep.make_sweep(chosen, axes)
        table = sweep.text_table(points)
        with unheard() as broken:
            print_tables([table])
        name = "-".join([protocol, *tracks, *(axis.key for axis in axes)]).replace(":", "+")
        folder = out / "sweeps" / name
        writable(folder, "--out")
        with plain_io_errors(folder):
            write_whole(folder / "table.csv", render(table, "csv"))
            style.save(sweeps.drawings(points), folder)
        files = {"table": folder / "table.csv", "plots": folder}
        _print_places(broken, f"{out} ({len(chosen)} files)", **files)
