"""What the command prints: progress, plans, lists, cards, results."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.files import writable
from benchmark.config.loading import load_protocol, load_track
from benchmark.errors import BenchError, unknown
from benchmark.harness.execution import Reporter
from benchmark.harness.store import Store, default_store

if TYPE_CHECKING:
    from benchmark.config.sweep import Axis
    from benchmark.harness.graph import Stage
    from benchmark.harness.requests import Request
    from benchmark.records.record import Record
    from benchmark.report.paired import Difference
    from benchmark.report.text_table import TextTable


class Progress(Reporter):
    """One line a stage; on a terminal with a bar, elsewhere when the stage has ended."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.bar: Any = None
        self.number = {}  # type: dict[str, str]

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def _start_bar(self) -> Any:
        from rich import progress

        bar = progress.Progress(
            progress.TextColumn("{task.description}"), progress.BarColumn(bar_width=24),
            progress.TaskProgressColumn(), progress.TimeRemainingColumn(compact=True),
            console=self.console, transient=True,
        )  # fmt: skip
        bar.start()
        return bar

    def left_out(self, label: str, reason: str) -> None:
        """Show that a method cannot be applied, and why, in the words of ``--dry-run``."""
        line = f"left out {label}: {reason}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def start(self, stage: Stage, number: int, total: int) -> Callable[[float], None]:
        """Show that a stage begins."""
        place = f"[{number:>{len(str(total))}}/{total}]"
        self.number[stage.name] = place
        if not self.console.is_terminal:
            return lambda share: None
        self.bar = self.bar or self._start_bar()
        task = self.bar.add_task(f"{place} {stage.title}".replace("[", r"\["), total=1.0)
        self.number[stage.name + " task"] = task
        return lambda share: self.bar.update(task, completed=share)

    def done(self, stage: Stage, seconds: float) -> None:
        """Show that a stage has ended."""
        if self.bar is not None:
            self.bar.remove_task(self.number[stage.name + " task"])
        line = f"{self.number[stage.name]} {stage.title}"
        self.console.print(f"{line:<64} {seconds:6.1f} s", markup=False, highlight=False)


def print_plans(requests: Sequence[Request], store: Path | None, out: Path) -> None:
    """The stages of requests, what of them is stored, and where records go."""
    for asked in requests:
        if len(requests) > 1:
            _print(f"\n{_heading(asked)}")
        _print_plan(asked, store, out)


def _heading(asked: Request) -> str:
    """A setting's name and title, and what else tells a plan from the others."""
    protocol, track = asked.setup.protocol, asked.setup.track
    changed = "".join(f", {key}={value}" for key, value in asked.setup.changed.items())
    return f"{protocol.id} ({protocol.title}) on {track.id}{changed}"


def _print_plan(asked: Request, store: Path | None, out: Path) -> None:
    from benchmark.config.split_sizes import generation_lines

    plan = asked.plan()
    stages = plan.stages
    kept = Store(store or default_store())
    there = asked.data_root is not None or not asked.setup.track.needs_root
    missing = [s for s in stages if not there or not kept.has(s.name)]
    for line in generation_lines(asked.setup):
        _print(line)
    for stage in stages:
        # Without the data a stage has no name yet: what is stored cannot be known.
        name = f"  [{stage.name}]" if there else ""
        _print(f"{'stored ' if stage not in missing else 'to do  '} {stage.title}{name}")
    for result in plan.results:
        if result.reason:
            _print(f"left out {result.label}: {result.reason}")
    if not there:
        track = asked.setup.track.id
        _print(f"data    not here: to run on track {track}, give --data-root, its images' folder")
    for (label, seed), path in asked.paths(out).items():
        _print(f"record  {label}, seed {seed}: {path}{' (exists)' if path.exists() else ''}")
    _print(f"{len(stages)} stages, {len(stages) - len(missing)} stored, {len(missing)} to do")


def print_results(records: Sequence[Record], folder: Path) -> None:
    """The table, and the files beside the records: CSV, plots, page."""
    print_table(records, "terminal", "")
    first = records[0]
    protocols = {r.protocol for r in records}
    own = first.protocol.replace(":", "+")
    name = f"{own if len(protocols) == 1 else own.partition('+')[0]}-{first.track}"
    csv = folder / "tables" / f"{name}.csv"
    page = folder / "site" / "index.html"
    plots_folder = folder / "plots" / name
    writable(csv.parent, "--out")
    _write_reports(records, csv, plots_folder, page)
    paths = [r.path(folder) for r in records]
    above = paths[0].parents[1 if len(protocols) == 1 else 3]
    _print(f"\nrecords  {above} ({len(paths)} files)")
    _print(f"table    {csv}\nplots    {plots_folder}\npage     {page}")


def print_sweep(records: Sequence[Record], axes: Sequence[Axis], out: Path) -> None:
    """The table of a sweep, and the files beside it; one for each setting of a protocol."""
    for protocol in dict.fromkeys(record.protocol for record in records):
        _print_sweep([r for r in records if r.protocol == protocol], axes, out)


def _print_sweep(records: Sequence[Record], axes: Sequence[Axis], out: Path) -> None:
    from benchmark.report import render
    from benchmark.report.plots.sweeps import plot_sweep
    from benchmark.report.tables import sweep

    points = sweep.make_sweep(records, axes)
    table = sweep.text_table(points)
    _show([table])
    first = records[0]
    tracks = [] if any(a.key == "track" for a in axes) else [first.track]
    name = "-".join([first.protocol, *tracks, *(a.key for a in axes)]).replace(":", "+")
    folder = out / "sweeps" / name
    writable(folder, "--out")
    (folder / "table.csv").write_text(render(table, "csv"))
    plot_sweep(points, folder)
    _print(f"\nrecords  {out} ({len(records)} files)\ntable    {folder / 'table.csv'}")
    _print(f"plots    {folder}")


def _write_reports(records: Sequence[Record], csv: Path, plots: Path, page: Path) -> None:
    """Write table, plots and page unless they show these very records already."""
    from benchmark.config.files import digest
    from benchmark.report import render
    from benchmark.report.tables import csv_tables

    csv.write_text(render(csv_tables(records, "all", "all"), "csv"))
    shown = digest([r.result() for r in records])
    mark = plots / ".records"
    if page.exists() and mark.exists() and mark.read_text() == shown:
        return
    import leaderboard
    from benchmark.report.plots import plot

    plots.mkdir(parents=True, exist_ok=True)
    plot(list(records), plots)
    leaderboard.build(list(records), page.parent, root=page.parents[1])
    mark.write_text(shown)


def print_table(records: Sequence[Record], form: str, metrics: str, cases: str = "") -> None:
    """Records as one table a protocol, track and set of changes."""
    from benchmark.report import record_tables
    from benchmark.report.tables import csv_tables

    make = csv_tables if form == "csv" else record_tables
    _show(make(records, metrics or None, cases or None), form)
    if form != "terminal":
        _print("")


def print_beside(records: Sequence[Record], form: str, metrics: str) -> None:
    """What papers print on the protocols and data of some records, apart from these."""
    from benchmark.records import published
    from benchmark.report import make_tables
    from benchmark.report.renderers import csv
    from benchmark.report.tables.published import csv_table
    from benchmark.report.tables.published import make_tables as published_tables

    every = published.read_published()
    shown = {key for table in make_tables(records, metrics or None) for key in table.metrics}
    found = [n for n in published.beside(every, records) if n.metric in shown]
    if form == "csv":
        _print(csv.render([csv_table(found)], heading=False).rstrip("\n"))
    elif found:
        _print("")
        _show(published_tables(found, every), form)
    elif form == "terminal":
        _print("\nNo paper prints numbers on these protocols and data.")


def print_published(folder: Path | None, form: str, chosen: dict[str, list[str]]) -> None:
    """Published numbers; without a choice the papers on a terminal, everything elsewhere."""
    from benchmark.records import published
    from benchmark.report.tables.published import make_tables, summary

    every = published.read_published(folder)
    if form == "terminal" and not any(chosen.values()):
        _print(summary(every).rstrip())
        return
    found = published.select(every, **chosen)
    if not found:
        raise BenchError("published: no number has all of these")
    _show(make_tables(found, every), form)


def print_record(record: Record, path: Path) -> None:
    """All that a record and its details file say."""
    from benchmark.records.details import find_details
    from benchmark.report.tables.record import facts, text_table

    try:
        details = find_details(record, path)
    except BenchError as error:
        sys.stderr.write(f"bench: skipped {error}\n")
        details = None
    _show([text_table(record)])
    _print("\n".join([*facts(record, details), ""]))


def print_comparison(
    differences: Sequence[Difference], left: str, right: str, by: Any, form: str
) -> None:
    """Differences of two methods."""
    from benchmark.report.tables.comparison import text_table

    _show([text_table(differences, left, right, by)], form)


def _show(tables: Sequence[TextTable], form: str = "terminal") -> None:
    """Tables on standard output, with colour on a terminal."""
    from benchmark.report import render
    from benchmark.report.renderers import terminal

    if form == "terminal":
        terminal.show(tables)
    else:
        _print(render(tables, form).rstrip())


def print_list(kind: str, *, as_json: bool) -> None:
    """Methods, protocols or tracks, one line each."""
    rows = _listed(kind)
    if as_json:
        _print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        variants = f"  [variants: {', '.join(row['variants'])}]" if row.get("variants") else ""
        _print(f"{row['id']:<{width}}  {row['summary']}{variants}")


def _listed(kind: str) -> list[dict[str, Any]]:
    if kind == "methods":
        return [
            {"id": f.id, "summary": f.summary, "variants": list(f.variants)}
            for f in registry.method_files().values()
        ]
    if kind == "protocols":
        return [
            {"id": name, "summary": load_protocol(name).question}
            for name in registry.protocol_files()
        ]
    tracks = [load_track(name) for name in registry.track_files()]
    return [
        {"id": t.id, "summary": f"{t.title}. {t.note}", "needs_data_root": t.needs_root}
        for t in tracks
    ]


def print_card(name: str, *, as_json: bool) -> None:
    """The card of a method, protocol or track."""
    card = _card(name)
    if as_json:
        _print(json.dumps(card, indent=1, ensure_ascii=False))
        return
    for key, value in card.items():
        _print_field(key, value)


def _card(name: str) -> dict[str, Any]:
    if name.partition(":")[0] in registry.method_files():
        from benchmark.report.card import method_card

        return method_card(name)
    if name in registry.protocol_files():
        return load_protocol(name).model_dump()
    if name in registry.track_files():
        return load_track(name).model_dump()
    known = [*registry.method_files(), *registry.protocol_files(), *registry.track_files()]
    raise unknown("name", name, known)


def _print_field(key: str, value: Any, indent: str = "") -> None:
    label = f"{indent}{key.replace('_', ' ')}:"
    if isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value):
        # A protocol's generations and settings, which stand by their names as a track's models do.
        value = {each["name"]: {k: v for k, v in each.items() if k != "name"} for each in value}
    if isinstance(value, dict) and value:
        _print(label)
        for k, v in value.items():
            _print_field(str(k), v, indent + "  ")
        return
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or "none"
    body = textwrap.wrap(str(value), 88) or [""]
    _print(f"{label:<14} {body[0]}")
    for line in body[1:]:
        _print(f"{'':<14} {line}")


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Rows of a benchmark as a table."""
    from benchmark.perf.readme import table

    _show([table(rows)])


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
