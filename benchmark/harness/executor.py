"""Carry out a plan: every stage at most once, in this process or on a Ray cluster."""

from benchmark.config.files import writable
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import Plan, Stage
from benchmark.harness.local import execute_locally
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
