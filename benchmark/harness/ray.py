"""A plan on a Ray cluster: every stage a task, as many at once as there is room for."""

import time
from collections.abc import Collection, Sequence
from typing import Any

from benchmark.errors import BenchError, RefusedError
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import Stage
from benchmark.harness.local import run_one
from benchmark.harness.store import Store


def execute_on_ray(
    stages: Sequence[Stage], store: Store, compute: Compute, reporter: Reporter,
    bounds: Collection[str],
) -> dict[str, str]:  # fmt: skip
    """Run stages on Ray; a stage waits for those among its inputs that are not stored yet.

    Returns:
        Stages that a method refused, with those that depend on them, and why; none of ``bounds``.

    Raises:
        BenchError: If Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        message = "engine ray: Ray is not installed; pip install 'compatbench[ray]'"
        raise BenchError(message) from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level="error")
    gpus = compute.devices if ray.cluster_resources().get("GPU") else 0
    task = ray.remote(num_gpus=gpus)(_run)
    pending: dict[str, Any] = {}
    waiting: dict[Any, tuple[Stage, Any, float]] = {}
    for number, stage in enumerate(stages, 1):
        before = [pending[s.name] for s in stage.inputs.values() if s.name in pending]
        pending[stage.name] = task.remote(stage, store.root, compute, *before)
        progress = reporter.start(stage, number, len(stages))
        waiting[pending[stage.name]] = (stage, progress, time.perf_counter())
    refused: dict[str, str] = {}
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting))
        stage, progress, started = waiting.pop(ready)
        try:
            ray.get(ready)
        except ray.exceptions.RayTaskError as error:
            # A task whose input failed fails with the error of that input.
            if not isinstance(error.cause, RefusedError) or stage.name in bounds:
                raise error.as_instanceof_cause() from None
            refused[stage.name] = str(error.cause)
        progress(1.0)
        reporter.done(stage, time.perf_counter() - started)
    return refused


def _run(stage: Stage, root: Any, compute: Compute, *_: Any) -> None:
    run_one(stage, Store(root), compute, lambda share: None)
