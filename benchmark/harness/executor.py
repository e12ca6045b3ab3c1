"""Carry out a plan: every stage at most once, in this process or on a Ray cluster."""

import time
from collections.abc import Sequence

from benchmark.config.files import writable
from benchmark.errors import RefusedError
from benchmark.harness.ddp import run_one
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import Plan, Stage
from benchmark.harness.plan_progress import OnResult, PlanProgress
from benchmark.harness.ray import execute_on_ray
from benchmark.harness.store import Store


def execute(
    plan: Plan, store: Store, compute: Compute, reporter: Reporter | None = None,
    on_result: OnResult = lambda result: None,
) -> None:  # fmt: skip
    """Run the stages of a plan that the store does not have, or not as they were written.

    A method that refuses at work is left out with what depends on it. Where a bound refuses, the
    results that need it are given up, and the others go on. ``on_result`` is called with each
    result as soon as its stages are there, one that was left out without an evaluation.

    Raises:
        BenchError: On anything else, and in the end where a bound was refused.
    """
    reporter = reporter or Reporter()
    missing = [stage for stage in plan.stages if not _is_whole(stage, store, reporter)]
    if missing:
        writable(store.root, "--store")  # told before what is planned
    reporter.planned(missing, plan.setup.track.id)
    progress = PlanProgress(plan.results, missing, on_result)
    engine = execute_on_ray if compute.engine == "ray" else execute_locally
    engine(missing, store, compute, reporter, progress)
    progress.check()


def execute_locally(
    stages: Sequence[Stage], store: Store, compute: Compute, reporter: Reporter,
    progress: PlanProgress,
) -> None:  # fmt: skip
    """Run stages in their order, but for those that are left out."""
    for number, stage in enumerate(stages, 1):
        if progress.left_out(stage):
            continue
        started = time.perf_counter()
        reason = None
        try:
            run_one(stage, store, compute, reporter.start(stage, number, len(stages)))
        except RefusedError as error:
            reason = str(error)
        reporter.done(stage, time.perf_counter() - started)
        progress.done(stage) if reason is None else progress.refused(stage, reason)


def _is_whole(stage: Stage, store: Store, reporter: Reporter) -> bool:
    if not store.has(stage.name):
        return False
    damage = store.damage(stage.name)
    if damage is not None:
        reporter.damaged(stage, damage)
    return damage is None
