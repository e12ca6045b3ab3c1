"""Carry out a plan: every stage at most once, in this process or on a Ray cluster."""

import time
from collections.abc import Collection, Sequence

from benchmark.config.files import writable
from benchmark.errors import RefusedError
from benchmark.harness.ddp import run_one
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import Plan, Stage
from benchmark.harness.ray import execute_on_ray
from benchmark.harness.store import Store


def execute(
    plan: Plan, store: Store, compute: Compute, reporter: Reporter | None = None
) -> dict[str, str]:
    """Run the stages of a plan that the store does not have, or not as they were written.

    A method that refuses at work is left out with what depends on it, unless that is a bound.

    Args:
        plan: What to do.
        store: Where outputs lie; a killed run goes on from here.
        compute: Where to do it.
        reporter: Progress callbacks.

    Returns:
        Stages that were left out, by name, and why.

    Raises:
        BenchError: On anything else, and where a bound cannot be computed.
    """
    reporter = reporter or Reporter()
    missing = [stage for stage in plan.stages if not _is_whole(stage, store, reporter)]
    if missing:
        writable(store.root, "--store")  # told before what is planned
    reporter.planned(missing, plan.setup.track.id)
    engine = execute_on_ray if compute.engine == "ray" else execute_locally
    return engine(missing, store, compute, reporter, bounds(plan))


def execute_locally(
    stages: Sequence[Stage], store: Store, compute: Compute, reporter: Reporter,
    bounds: Collection[str],
) -> dict[str, str]:  # fmt: skip
    """Run stages in their order.

    Returns:
        Stages that a method refused, with those that depend on them, and why; none of ``bounds``.
    """
    refused: dict[str, str] = {}
    for number, stage in enumerate(stages, 1):
        reasons = [refused[s.name] for s in stage.inputs.values() if s.name in refused]
        if reasons:
            refused[stage.name] = reasons[0]
            continue
        started = time.perf_counter()
        progress = reporter.start(stage, number, len(stages))
        try:
            run_one(stage, store, compute, progress)
        except RefusedError as error:
            if stage.name in bounds:
                raise RefusedError(f"{stage.title}: {error}") from error
            refused[stage.name] = str(error)
        reporter.done(stage, time.perf_counter() - started)
    return refused


def _is_whole(stage: Stage, store: Store, reporter: Reporter) -> bool:
    if not store.has(stage.name):
        return False
    damage = store.damage(stage.name)
    if damage is not None:
        reporter.damaged(stage, damage)
    return damage is None


def bounds(plan: Plan) -> set[str]:
    """Names of the stages without which there is no record."""
    ends = [end for result in plan.results for end in (result.bound, result.upper)]
    return {stage.name for end in ends if end is not None for stage in end.walk()}
