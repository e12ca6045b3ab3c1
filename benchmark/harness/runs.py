"""Carry requests out: answer from records that are there, compute and write the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from benchmark.config import registry
from benchmark.config.files import writable, write_json
from benchmark.harness.artifacts import DETAILS
from benchmark.harness.execution import Compute, Reporter, Silent
from benchmark.harness.executor import execute
from benchmark.harness.graph import Plan, record_key
from benchmark.harness.requests import Key, Request
from benchmark.harness.store import Store, default_store
from benchmark.records.details import details_path, write_details
from benchmark.records.files import read_record
from benchmark.records.record import Record

Existing = Literal["skip", "missing", "overwrite"]


def carry_out(
    requests: Sequence[Request],
    existing: Existing = "skip",
    store: str | Path | None = None,
    out: Path = Path("runs"),
    compute: Compute | None = None,
    reporter: Reporter | None = None,
) -> list[Record]:
    """Run requests one after the other, having said what they leave out.

    Args:
        requests: What to compute.
        existing: ``skip`` answers from records of the same work; ``missing`` keeps any record
            that is there; ``overwrite`` computes everything anew.
        store: Folder of stage outputs.
        out: Folder of records.
        compute: Device and engine.
        reporter: Progress callbacks.

    Returns:
        Records by request, seed, then method.

    Raises:
        BenchError: On an output folder that cannot be written, or a full disk.
    """
    writable(out, "--out")
    works = [_Work.of(request, existing, out) for request in requests]
    reporter = reporter or Silent()
    for label, reason in dict.fromkeys(left for work in works for left in work.left_out):
        reporter.left_out(label, reason)
    records = []
    for work in works:
        computed = work.compute(existing, store, out, compute or Compute(), reporter)
        records += [(work.found | computed)[key] for key in work.request.paths(out)]
    return records


@dataclass(frozen=True)
class _Work:
    """A request, the records that answer it, and the plan of the others, if there are any."""

    request: Request
    found: dict[Key, Record]
    todo: list[Key]
    plan: Plan | None

    @classmethod
    def of(cls, request: Request, existing: Existing, out: Path) -> _Work:
        """Look at what is there, and plan the rest."""
        found = {}
        if existing != "overwrite":
            found = stored_records(request, out, any_key=existing == "missing")
        todo = [key for key in request.paths(out) if key not in found]
        # Planning imports the methods and torch, which answering from records does without.
        plan = request.plan([m for m, _ in todo], sorted({s for _, s in todo})) if todo else None
        return cls(request, found, todo, plan)

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Methods that the plan leaves out, and why."""
        results = self.plan.results if self.plan is not None else ()
        return [(r.label, r.reason) for r in results if r.reason is not None]

    def compute(
        self, existing: Existing, store: str | Path | None, out: Path, compute: Compute,
        reporter: Reporter,
    ) -> dict[Key, Record]:  # fmt: skip
        """Run the plan, and write the records."""
        if self.plan is None:
            return {}
        from benchmark.harness.record_builder import make_record

        stages = Store(Path(store) if store is not None else default_store())
        if existing == "overwrite":
            for stage in self.plan.stages:
                stages.remove(stage.name)
        refused = execute(self.plan, stages, compute, reporter)
        paths, first_seed = self.request.paths(out), self.request.first_seed
        records = {}
        for result in self.plan.results:
            key = (result.label, result.seed)
            if key not in self.todo:
                continue
            if result.evaluation is not None and result.evaluation.name in refused:
                reason = refused[result.evaluation.name]
                result = replace(result, evaluation=None, updates=(), reason=reason)  # noqa: PLW2901
            record = make_record(
                self.plan, result, stages, first_seed=first_seed, argv=sys.argv[1:]
            )
            if result.evaluation is not None:
                write_details(paths[key], stages.path(result.evaluation.name) / DETAILS)
            write_json(paths[key], record.as_json())
            # What is shown is what was written.
            records[key] = read_record(paths[key])
        return records


def stored_records(request: Request, out: Path, *, any_key: bool = False) -> dict[Key, Record]:
    """Records that answer a request already; loads neither torch nor any method.

    Args:
        request: The request.
        out: Folder of records.
        any_key: Take records of other code or data too.
    """
    setup, track = request.setup, request.setup.track
    dataset = registry.check_options(track.dataset, track.data, f"track {track.id}: data")
    source = dataset.source(request.data_root)
    found = {}
    for (label, seed), path in request.paths(out).items():
        if not path.exists():
            continue
        record = read_record(path)
        if record.details is not None and not details_path(path).exists():
            continue
        if any_key or record.key == record_key(setup, source, label, seed, request.first_seed):
            found[label, seed] = record
    return found
