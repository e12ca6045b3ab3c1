"""Stages carried out one after the other in this process."""

import time
from collections.abc import Callable, Collection, Sequence

from benchmark.errors import RefusedError
from benchmark.harness.ddp import run_in_ranks
from benchmark.harness.execution import Compute, Reporter, measured
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store
from benchmark.harness.work import TrainingWork


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
                raise
            refused[stage.name] = str(error)
        reporter.done(stage, time.perf_counter() - started)
    return refused


def run_one(
    stage: Stage, store: Store, compute: Compute, progress: Callable[[float], None]
) -> None:
    """Run one stage into the store, unless it is there already and whole."""
    with store.writing(stage.name) as out:
        if out is None:
            return
        if compute.devices > 1 and isinstance(stage.work, TrainingWork):
            facts, used = run_in_ranks(stage, store, out, compute)
        else:
            facts, used = measured(stage, store.root, out, compute, progress)
        meta = {"title": stage.title, "kind": stage.kind, "facts": facts, "run": used}
        store.publish(stage.name, meta)
