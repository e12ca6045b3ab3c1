"""What the command does, as calls: run methods, lay out a plan, load records."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmark.config import registry
from benchmark.config.files import digest, writable, write_json
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.setup import Setup
from benchmark.errors import BenchError, UnsuitedError, nearest
from benchmark.harness.execution import Compute, Reporter, Silent
from benchmark.harness.executor import execute
from benchmark.harness.graph import Plan, record_key
from benchmark.harness.store import Store, default_store
from benchmark.records.details import details_path
from benchmark.records.files import read_record
from benchmark.records.record import Record, record_path

if TYPE_CHECKING:
    import pandas as pd

Existing = Literal["skip", "missing", "overwrite"]


@dataclass(frozen=True)
class Request:
    """A run as asked for, names checked, nothing computed.

    Attributes:
        setup: Protocol and track with their changes.
        labels: Methods, ``independent`` first.
        seeds: Seeds.
        data_root: Where the dataset lies, if it is not built in.
        first_seed: Seed of the first generation, if fixed apart.
    """

    setup: Setup
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    data_root: Path | None = None
    first_seed: int | None = None

    def folder(self, out: Path) -> Path:
        """Where records go: runs of a changed track lie apart from those that may be ranked."""
        return out / "changed" / digest(self.setup.changed)[:8] if self.setup.changed else out

    def paths(self, out: Path) -> dict[tuple[str, int], Path]:
        """File of each record."""
        protocol, track = self.setup.protocol.id, self.setup.track.id
        return {
            (label, seed): record_path(self.folder(out), protocol, track, label, seed)
            for seed in self.seeds
            for label in self.labels
        }

    def plan(self, labels: Sequence[str] | None = None, seeds: Sequence[int] | None = None) -> Plan:
        """The graph of stages."""
        # Planning imports adapters, and with them torch.
        from benchmark.harness.planner import make_plan

        return make_plan(
            self.setup, list(labels or self.labels), list(seeds or self.seeds),
            data_root=self.data_root, first_seed=self.first_seed,
        )  # fmt: skip


def _warn(unsuited: BenchError) -> None:
    warnings.warn(str(unsuited), stacklevel=4)


def requests(
    methods: Iterable[str],
    protocol: str,
    track: str = "glyphs",
    *,
    on_unsuited: Callable[[BenchError], None] = _warn,
    **options: Any,
) -> list[Request]:
    """A request for each setting of a protocol, or for the protocol; see :func:`request`.

    Args:
        methods: Methods.
        protocol: A protocol.
        track: A track.
        on_unsuited: Called with what is wrong with a setting that does not suit the track, which
            is then left out; one that is asked for by its name is an error.
        **options: As for :func:`request`.

    Raises:
        BenchError: As :func:`request`, or if no setting suits the track.
    """
    labels, every = list(methods), list(expand(load_protocol(protocol)))
    asked, unsuited = [], {}
    for each in every:
        try:
            asked.append(request(labels, each, track, **options))
        except UnsuitedError as error:
            if len(every) == 1:
                raise
            unsuited[each.id] = str(error)
    named = load_track(track).id
    if not asked:
        reasons = "; ".join(dict.fromkeys(unsuited.values()))
        raise UnsuitedError(f"no setting of {protocol} suits track {named}: {reasons}")
    for setting, reason in unsuited.items():
        on_unsuited(UnsuitedError(f"{setting} does not suit track {named}: {reason}"))
    return asked


def request(
    methods: Iterable[str],
    protocol: str | Protocol,
    track: str = "glyphs",
    *,
    data_root: str | Path | None = None,
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Any] | None = None,
    first_seed: int | None = None,
    without_data: bool = False,
) -> Request:
    """Check the names and values of a run.

    Args:
        methods: As for :func:`run`, as all that follows but
        protocol: a protocol;
        track: a track;
        data_root: a folder;
        seeds: seeds;
        settings: changes;
        first_seed: a seed;
        without_data: the data may be missing: the request can be looked at, not carried out.

    Raises:
        UnsuitedError: If the track does not have what the protocol asks for.
        BenchError: On an unknown name, key or value, or a missing data root.
    """
    labels = [m for m in methods if m]
    if not labels:
        raise BenchError("methods: expected at least one")
    for label in labels:
        registry.method_file(label)
    labels = list(dict.fromkeys(["independent", *labels]))
    chosen = list(dict.fromkeys(seeds))
    if not chosen or min(chosen) < 0:
        raise BenchError(f"seeds: expected whole numbers from 0, got {chosen or 'none'}")
    changes = dict(settings or {})
    chosen_protocol = load_protocol(protocol) if isinstance(protocol, str) else protocol
    setup = set_up(chosen_protocol, load_track(track), changes, labels)
    if first_seed is not None:
        changes["first_seed"] = first_seed
        setup = Setup(setup.protocol, setup.track, setup.models, setup.methods, changes)
    root = None if data_root is None else Path(data_root)
    if setup.track.needs_root and root is None and not without_data:
        raise BenchError(f"track {setup.track.id}: needs --data-root, the folder of its images")
    if root is not None and not root.exists():
        raise BenchError(f"--data-root: {root} does not exist")
    return Request(setup, tuple(labels), tuple(chosen), root, first_seed)


def run(
    methods: Iterable[str],
    protocol: str,
    track: str = "glyphs",
    *,
    data_root: str | Path | None = None,
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Any] | None = None,
    first_seed: int | None = None,
    existing: Existing = "skip",
    store: str | Path | None = None,
    out: str | Path = "runs",
    compute: Compute | None = None,
    reporter: Reporter | None = None,
) -> list[Record]:
    """Run methods under a protocol; what is stored already is not computed again.

    Args:
        methods: ``bct``, ``bct:distill``, ...; ``independent`` is added.
        protocol: Protocol id, or the path of a YAML file; ``arch-change:deeper`` is one of the
            settings that ``arch-change`` runs. Those that do not suit the track are left out,
            with a warning.
        track: Track id, or the path of a YAML file.
        data_root: Folder of the images, for tracks that need one.
        seeds: One record for each.
        settings: Changes such as ``{"old.head": "arcface", "bct.weight": 2.0}``.
        first_seed: Fixes the first generation's seed apart from the others'.
        existing: ``skip`` answers from records of the same work; ``missing`` keeps any record
            that is there; ``overwrite`` computes everything anew.
        store: Folder of stage outputs.
        out: Folder of records.
        compute: Device and engine.
        reporter: Hears how it goes on.

    Returns:
        Records by setting, seed, then method.

    Raises:
        BenchError: On bad input, an output folder that cannot be written, or a full disk.
    """
    asked = requests(
        methods, protocol, track, data_root=data_root, seeds=list(seeds), settings=settings,
        first_seed=first_seed,
    )  # fmt: skip
    return carry_out(asked, existing, store, Path(out), compute or Compute(), reporter)


def carry_out(
    asked: Sequence[Request],
    existing: Existing,
    store: str | Path | None,
    out: Path,
    compute: Compute,
    reporter: Reporter | None = None,
) -> list[Record]:
    """Run requests one after the other, having said what they leave out; see :func:`run`."""
    writable(out, "--out")
    works = [_work(each, existing, out) for each in asked]
    reporter = reporter or Silent()
    for label, reason in dict.fromkeys(left for work in works for left in work.left_out):
        reporter.left_out(label, reason)
    records = []
    for work in works:
        made = _compute(work, existing, store, out, compute, reporter)
        records += [(work.found | made)[pair] for pair in work.asked.paths(out)]
    return records


@dataclass(frozen=True)
class _Work:
    """A request, the records that answer it, and the plan of the others, if there are any."""

    asked: Request
    found: dict[tuple[str, int], Record]
    todo: list[tuple[str, int]]
    plan: Plan | None

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Methods that the plan leaves out, and why."""
        results = self.plan.results if self.plan is not None else ()
        return [(r.label, r.reason) for r in results if r.reason is not None]


def _work(asked: Request, existing: Existing, out: Path) -> _Work:
    found = {}
    if existing != "overwrite":
        found = stored_records(asked, out, any_key=existing == "missing")
    todo = [pair for pair in asked.paths(out) if pair not in found]
    # Planning imports the methods and torch, which answering from records does without.
    plan = asked.plan([m for m, _ in todo], sorted({s for _, s in todo})) if todo else None
    return _Work(asked, found, todo, plan)


def stored_records(
    asked: Request, out: Path, *, any_key: bool = False
) -> dict[tuple[str, int], Record]:
    """Records that answer a request already; loads neither torch nor any method.

    Args:
        asked: The request.
        out: Folder of records.
        any_key: Take records of other code or data too.
    """
    setup = asked.setup
    dataset = registry.check_options(setup.track.dataset, setup.track.data, "data")
    source = dataset.source(asked.data_root)
    found = {}
    for (label, seed), path in asked.paths(out).items():
        if not path.exists():
            continue
        record = read_record(path)
        if record.details is not None and not details_path(path).exists():
            continue
        if any_key or record.key == record_key(setup, source, label, seed, asked.first_seed):
            found[label, seed] = record
    return found


def _compute(
    work: _Work,
    existing: Existing,
    store: str | Path | None,
    out: Path,
    compute: Compute,
    reporter: Reporter,
) -> dict[tuple[str, int], Record]:
    asked, plan = work.asked, work.plan
    if plan is None:
        return {}
    from benchmark.harness.artifacts import DETAILS
    from benchmark.harness.record_builder import make_record
    from benchmark.records.details import write_details

    stages = Store(Path(store) if store is not None else default_store())
    paths = asked.paths(out)
    made = {}
    if existing == "overwrite":
        for stage in plan.stages:
            stages.remove(stage.name)
    refused = execute(plan, stages, compute, reporter)
    for result in plan.results:
        pair = (result.label, result.seed)
        if result.evaluation is not None and result.evaluation.name in refused:
            reason = refused[result.evaluation.name]
            result = replace(result, evaluation=None, updates=(), reason=reason)  # noqa: PLW2901
        record = make_record(plan, result, stages, first_seed=asked.first_seed, argv=sys.argv[1:])
        if pair in work.todo:
            if result.evaluation is not None:
                write_details(paths[pair], stages.path(result.evaluation.name) / DETAILS)
            write_json(paths[pair], record.as_json())
            # What is shown is what was written.
            made[pair] = read_record(paths[pair])
    return made


def load(root: str | Path | Iterable[str | Path] = "runs", **where: Any) -> pd.DataFrame:
    """Records as a pandas frame: a row for each record, case and metric.

    What is no record that can be read is left out, with a warning.

    Args:
        root: A folder of records, a record, or several of them.
        **where: Keep only rows with these values: ``protocol="open-class"``, or one of several:
            ``metric=["map", "cmc_at_1"]``.

    Returns:
        Columns protocol, track, method, seed, status, case, metric, value, low, high, gain,
        compatible.

    Raises:
        BenchError: If there is no record, or a column is unknown.
    """
    from benchmark.records.selection import read_selection
    from benchmark.report.frame import frame

    roots = [root] if isinstance(root, str | Path) else root
    found = read_selection(
        map(Path, roots), on_damaged=lambda e: warnings.warn(str(e), stacklevel=4)
    )
    table = frame(one.record for one in found)
    for column, value in where.items():
        if column not in table:
            raise BenchError(f"load: unknown column '{column}'{nearest(column, map(str, table))}")
        wanted = value if isinstance(value, list | tuple | set) else [value]
        table = table[table[column].isin(list(wanted))]
    return table.reset_index(drop=True)
