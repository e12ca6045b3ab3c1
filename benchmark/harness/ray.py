"""A plan on a Ray cluster: every stage a task, as many at once as there is room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.errors import BenchError, FailedError, RefusedError
from benchmark.harness.execution import Compute, run_one
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store

if TYPE_CHECKING:
    from benchmark.harness.execution import PlanProgress
    from benchmark.ranking.ranks import Matches, RankOptions


def connected() -> Any:
    """Ray, connected to its cluster; BenchError if it is not installed."""
    try:
        import ray
    except ImportError as error:
        message = "engine ray: Ray is not installed; pip install 'compatbench[ray]'"
        raise BenchError(message) from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level="error")
    return ray


def in_order(work: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]) -> Iterator[Any]:
    """``work(shared, item)`` of each item on the cluster, in order; the items may be endless."""
    ray = connected()
    task, held = ray.remote(num_cpus=1)(work), ray.put(shared)
    most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    pending: deque[Any] = deque()
    try:
        for item in items:
            pending.append(task.remote(held, item))
            if len(pending) >= most:
                yield ray.get(pending.popleft())
        while pending:
            yield ray.get(pending.popleft())
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None


class Machines:
    """Shards of a gallery, spread over the machines of the cluster; each uses all of its threads.

    A shard asks for no processor of Ray's: the stage that waits for it has one already, and all may
    be taken by such stages.
    """

    def __init__(self, n: int | None = None) -> None:
        self.ray = connected()
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        self.n = len(alive) if n is None else n

    def __len__(self) -> int:
        return self.n

    def hold(self, shards: Sequence[tuple[tuple[Any, ...], RankOptions]]) -> list[Any]:
        """Actors that hold the shards."""
        actor = self.ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_Shard)
        query = self.ray.put(shards[0][0][0])  # once a machine, however large
        return [actor.remote(query, *arguments[1:], **options) for arguments, options in shards]

    def matches(self, held: list[Any]) -> list[Matches]:
        """The matches of each shard."""
        found: list[Matches] = self.ray.get([shard.matches.remote() for shard in held])
        return found

    def counts(self, held: list[Any], thresholds: Matches) -> list[Any]:
        """The counts of each shard."""
        limits = self.ray.put(thresholds)
        counts: list[Any] = self.ray.get([shard.count.remote(limits) for shard in held])
        return counts


class _Shard:
    """A shard in a process of the cluster."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        from benchmark.ranking.ranks import Shard

        self.shard = Shard(*arguments, **options)

    def matches(self) -> Matches:
        """Those of the shard."""
        return self.shard.matches

    def count(self, thresholds: Matches) -> Any:
        """Counts of the shard."""
        return self.shard.count(thresholds)


def execute_on_ray(
    stages: Sequence[Stage], store: Store, compute: Compute, progress: PlanProgress
) -> None:
    """Run stages on Ray, each after its inputs that are not stored; BenchError without Ray."""
    ray = connected()
    gpus = compute.devices if ray.cluster_resources().get("GPU") else 0
    task = ray.remote(num_gpus=gpus)(_run)
    pending: dict[str, Any] = {}
    waiting: dict[Any, Stage] = {}
    for stage in stages:
        before = [pending[s.name] for s in stage.inputs.values() if s.name in pending]
        pending[stage.name] = task.remote(stage, store.root, compute, *before)
        progress.begun(stage)
        waiting[pending[stage.name]] = stage
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting))
        stage = waiting.pop(ready)
        failure = None
        try:
            ray.get(ready)
        except ray.exceptions.RayTaskError as error:
            # A task whose input failed fails with the error of that input.
            if not isinstance(error.cause, RefusedError | FailedError):
                raise error.as_instanceof_cause() from None
            failure = error.cause
        progress.ended(stage, failure)


def _run(stage: Stage, root: Any, compute: Compute, *_: Any) -> None:
    from benchmark.ranking.spread import spread_over

    with spread_over(Machines()):
        run_one(stage, Store(root), compute, lambda share: None)
