"""Carry requests out: take records that are there, compute and write the others, stage by stage."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

from benchmark.config.data_roots import folders_of
from benchmark.config.files import default_store, digest, writable
from benchmark.config.places import real
from benchmark.errors import BenchError, FailedError, RefusedError, unknown
from benchmark.harness.execution import Compute, OnResult, PlanProgress, Reporter, run_one
from benchmark.harness.graph import Plan, Result, Stage, data_source, record_key
from benchmark.harness.processes import Workers, execute_in_processes
from benchmark.harness.published_models import PublishedModels
from benchmark.harness.ray import execute_on_ray
from benchmark.harness.requests import Key, Request
from benchmark.harness.store import DETAILS, Store
from benchmark.harness.work import DataWork
from benchmark.records.details_files import check_beside, queries_path
from benchmark.records.files import read_record
from benchmark.records.provenance import code_version
from benchmark.records.record import Record
from benchmark.records.slim import bases, remove_unused, write_queries, write_slim
from benchmark.records.verified import verification_path

Existing = Literal["skip", "missing", "overwrite"]
Records = dict[Key, Record]
Engine = Callable[[Sequence[Stage], Store, Compute, PlanProgress], None]
"""Runs the stages of a plan that are missing, each after its inputs."""


def carry_out(
    requests: Sequence[Request], existing: Existing = "skip", store: str | Path | None = None,
    out: Path = Path("runs"), compute: Compute | None = None, reporter: Reporter | None = None,
    published: PublishedModels | None = None, queries: bool = True,
) -> list[Record]:  # fmt: skip
    """Run requests one after the other, after reporting what they leave out.

    Arguments are those of :func:`benchmark.api.run`; without published models all are trained,
    and with ``queries`` all results by query lie beside each record. Gives records by request,
    seed, then method. Each is written as soon as its seed's stages are there.

    Raises:
        BenchError: On an output folder that cannot be written, or a full disk; after all others
            are written, where a bound was refused or an adapter failed.
    """
    if existing not in get_args(Existing):
        raise unknown("value of existing", existing, get_args(Existing))
    compute = compute or Compute()
    if compute.processes < 1 or (compute.processes > 1 and compute.engine == "ray"):
        expected = "1 on a cluster" if compute.engine == "ray" else "at least 1"
        raise BenchError(f"--processes: expected {expected}, got {compute.processes}")
    writable(out, "--out", keep=False)
    reporter = reporter or Reporter()
    stored = [_stored_records(request, out, existing, reporter) for request in requests]
    records, failed = [], list[str]()
    stages = Store(Path(store) if store is not None else default_store())
    removed: set[str] = set()  # what plans share is computed anew once
    todo = [
        [key for key in request.paths(out) if key not in known]
        for request, known in zip(requests, stored, strict=True)
    ]
    with _engine(compute, idle=not any(todo)) as engine:
        plans = _plans(requests, todo, published, reporter)
        for request, known, plan in zip(requests, stored, plans, strict=True):
            if plan is not None:
                if existing == "overwrite":
                    for name in {stage.name for stage in plan.stages} - removed:
                        stages.remove(name)
                        removed.add(name)
                writer = _Writer(
                    plan, known, request.paths(out), stages,
                    queries=queries, anew=existing == "overwrite",
                )  # fmt: skip
                try:
                    new = tuple(r for r in plan.results if (r.label, r.seed) not in known)
                    wanted = replace(plan, results=new)
                    execute(wanted, stages, compute, reporter, writer.write, engine)
                except FailedError as error:
                    failed += error.reasons
                with suppress(BenchError):  # of a record that is damaged nobody knows
                    remove_unused(writer.outdated)
            records += [known[key] for key in request.paths(out) if key in known]
    if failed:
        kept = f"; {len(records)} others are below {out}" if records else ""
        raise FailedError(f"{FailedError(*failed)}{kept}")
    return records


def _stored_records(request: Request, out: Path, existing: Existing, reporter: Reporter) -> Records:
    """Records of a request that are there already; loads neither torch nor any method.

    One that is not as it was written, or whose details are not, is reported and left out; so is,
    with ``skip``, one of uncommitted code where all is committed now.
    """
    records: Records = {}
    clean = cache(lambda: code_version().dirty is False)
    if existing == "overwrite":
        return records
    source = data_source(request.setup, request.data_root)
    for (label, seed), path in request.paths(out).items():
        if path.is_dir():
            raise BenchError(f"{path}: expected a record, got a folder")
        if not path.exists():
            continue
        key = record_key(request.setup, source, label, seed, request.first_seed)
        try:
            record = read_record(path)
            # Its trainings have the precision that is asked for, if one is.
            precise = request.precision in ("recipe", record.environment.get("precision"))
            outdated = record.run.code.dirty is True and clean()
            if existing == "missing" or (record.key == key and precise and not outdated):
                check_beside(record, path)
                records[label, seed] = record
        except BenchError as error:
            reporter.edited(path, str(error).removeprefix(f"{path}: "))
    return records


def _plans(
    requests: Sequence[Request], todo: Sequence[Sequence[Key]], published: PublishedModels | None,
    reporter: Reporter,
) -> list[Plan | None]:  # fmt: skip
    """The plan of what each request has to do, ``None`` for nothing; told is what is left out.

    Planning loads methods and torch.
    """
    plans = [
        request.plan_of(keys, published) if keys else None
        for request, keys in zip(requests, todo, strict=True)
    ]
    results = [result for plan in plans if plan is not None for result in plan.results]
    for label, reason in dict.fromkeys((r.label, r.reason) for r in results):
        if reason is not None:
            reporter.left_out(label, reason)
    return plans


@dataclass(frozen=True)
class _Writer:
    """Writes the records of a plan that are not known, each as soon as its result is whole."""

    plan: Plan
    known: Records
    paths: Mapping[Key, Path]
    store: Store
    queries: bool
    anew: bool
    bases: dict[str, Record] = field(default_factory=dict)
    """Records of the independent model, on which those of methods are based, by evaluation."""
    outdated: set[Path] = field(default_factory=set)
    """Bases of records that were written anew."""

    def write(self, result: Result) -> None:
        """Write a record; one of the same result that another process has just written stays.

        Its details have the times of that process: two of them must not be mixed.
        """
        from benchmark.harness.record_builder import make_record

        key = (result.label, result.seed)
        if key in self.known:
            return
        path, setup, store = self.paths[key], self.plan.setup, self.store
        record = make_record(setup, result, store)
        if result.evaluation is result.bound:
            self.bases[result.bound.name] = record
        elif result.bound.name not in self.bases:
            independent = next(r for r in self.plan.results if r.evaluation is result.bound)
            self.bases[result.bound.name] = make_record(setup, independent, store)
        base = self.bases[result.bound.name]
        packed, of_base = (
            None if stage is None else (store.path(stage.name) / DETAILS).read_bytes()
            for stage in (result.evaluation, result.bound)
        )
        # A finished run answers from a store that nobody may write, too, where there is no lock.
        name = f"record-{digest(str(real(path)))[:24]}"
        with store.lock(name) if os.access(store.root, os.W_OK) else nullcontext():
            there = None if self.anew else _whole(path)
            if there is None or _is_other(record, there):
                with suppress(BenchError, OSError):  # none is there, or it is damaged
                    self.outdated.update(bases(path))
                write_slim(path, record, base, packed, of_base or b"")
                verification_path(path).unlink(missing_ok=True)  # of an earlier record
            if self.queries and packed is not None:
                write_queries(path, packed)
            else:
                queries_path(path).unlink(missing_ok=True)  # of an earlier record
            self.known[key] = read_record(path)  # what is shown is what was written


def _is_other(record: Record, there: Record) -> bool:
    """Tell another result, or the same by code that is committed since."""
    committed = there.run.code.dirty is True and record.run.code.dirty is False
    return committed or _says(there) != _says(record)


def _says(record: Record) -> dict[str, Any]:
    """A result without intervals, whose ends a file has rounded."""
    return {key: value for key, value in record.result().items() if key != "intervals"}


def _whole(path: Path) -> Record | None:
    """The record at a place with its details; None where either is missing or damaged."""
    with suppress(BenchError, OSError):
        record = read_record(path)
        check_beside(record, path)
        return record
    return None


def execute(
    plan: Plan, store: Store, compute: Compute, reporter: Reporter | None = None,
    on_result: OnResult = lambda result: None, engine: Engine | None = None,
) -> None:  # fmt: skip
    """Run the stages of a plan that the store does not have, or not as they were written.

    A method that refuses at work is left out with what depends on it. Where a bound refuses, or an
    adapter fails, the results that need it are given up, and the others go on. ``on_result`` is
    called with each result as soon as its stages are there, one that was left out without an
    evaluation.

    Raises:
        BenchError: On anything else.
        FailedError: In the end, where results were given up.
    """
    reporter = reporter or Reporter()
    missing = [stage for stage in plan.stages if not _is_whole(stage, store, reporter)]
    if missing:
        writable(store.root, "--store")  # told before what is planned
    reporter.planned(missing, plan.setup.track.id)
    progress = PlanProgress(plan.results, missing, on_result, reporter)
    (engine or execute_locally)(missing, store, compute, progress)
    progress.check()


@contextmanager
def _engine(compute: Compute, *, idle: bool) -> Iterator[Engine]:
    """The way to run stages: what it begins serves all plans, and ends with the last one."""
    if compute.engine == "ray":
        yield execute_on_ray
    elif compute.processes > 1:
        with Workers(compute.processes) as workers:
            workers.prepare("benchmark.harness.stages", 0 if idle else compute.processes)
            yield partial(execute_in_processes, workers)
    else:
        yield execute_locally


def execute_locally(
    stages: Sequence[Stage], store: Store, compute: Compute, progress: PlanProgress
) -> None:
    """Run stages in their order, but for those that are left out."""
    for stage in stages:
        if progress.left_out(stage):
            continue
        error = None
        try:
            run_one(stage, store, compute, progress.begun(stage))
        except (RefusedError, FailedError) as raised:
            error = raised
        progress.ended(stage, error)


def _is_whole(stage: Stage, store: Store, reporter: Reporter) -> bool:
    if not store.has(stage.name):
        return False
    damage = store.damage(stage.name)
    if damage is None and (place := _elsewhere(stage, store)) is not None:
        damage = f"its images lie below {place}, which is not the --data-root of this run"
        store.remove(stage.name)
    if damage is not None:
        reporter.damaged(stage, damage)
    return damage is None


def _elsewhere(stage: Stage, store: Store) -> Path | None:
    """The place of a stored dataset's files, where it is not the one that is given now.

    The stage is named by what the files hold, which may have moved, or lie in two places.
    """
    if not isinstance(stage.work, DataWork) or stage.work.data_root is None:
        return None
    from benchmark.data.serialization import image_roots  # which takes torch

    given = [place.resolve() for place in folders_of(stage.work.data_root)]
    roots = image_roots(store.path(stage.name))
    return next((r for r in roots if not any(r.is_relative_to(g) for g in given)), None)
