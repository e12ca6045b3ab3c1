"""Carrying out a plan: stages in their order, each at most once, and the records that follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmark.errors import BenchError, RefusedError, unknown
from benchmark.plan import Plan, Stage
from benchmark.spent import Spent, convolution
from benchmark.store import META, Store, write_json

if TYPE_CHECKING:
    from benchmark.training.loop import Device

_ACCELERATORS = ("auto", "cpu", "cuda", "mps")


class Reporter(Protocol):
    """Hears how a run goes on."""

    def left_out(self, label: str, reason: str) -> None:
        """A method cannot be applied; said before anything runs."""
        ...

    def start(self, stage: Stage, number: int, total: int) -> Callable[[float], None]:
        """A stage begins; returns what is called with the share that is done."""
        ...

    def done(self, stage: Stage, seconds: float) -> None:
        """A stage has ended."""
        ...


class Silent:
    """Says nothing."""

    def left_out(self, label: str, reason: str) -> None:
        """Say nothing."""

    def start(self, stage: Stage, number: int, total: int) -> Callable[[float], None]:  # noqa: ARG002
        """Listen to nothing."""
        return lambda share: None

    def done(self, stage: Stage, seconds: float) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Compute:
    """Where stages run.

    Attributes:
        accelerator: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        devices: Devices that train one model together.
        engine: ``local``: one after the other in this process; ``ray``: on a Ray cluster, as
            many at once as it has room for. The store must be on a disk that all machines see.
    """

    accelerator: str = "auto"
    devices: int = 1
    engine: str = "local"


def execute(
    plan: Plan, store: Store, compute: Compute, reporter: Reporter | None = None
) -> dict[str, str]:
    """Run the stages of a plan that the store does not have.

    A method that refuses at work is left out with what depends on it, unless that is a bound.

    Args:
        plan: What to do.
        store: Where outputs lie; a killed run goes on from here.
        compute: Where to do it.
        reporter: Hears how it goes on.

    Returns:
        Stages that were left out, by name, and why.

    Raises:
        BenchError: On anything else, and where a bound cannot be computed.
    """
    missing = [stage for stage in plan.stages if not store.has(stage.name)]
    if compute.engine == "ray":
        from benchmark.cluster import execute_on_ray

        return execute_on_ray(missing, store, compute, reporter or Silent(), bounds(plan))
    reporter = reporter or Silent()
    refused: dict[str, str] = {}
    for number, stage in enumerate(missing, 1):
        reasons = [refused[s.name] for s in stage.inputs.values() if s.name in refused]
        if reasons:
            refused[stage.name] = reasons[0]
            continue
        started = time.perf_counter()
        progress = reporter.start(stage, number, len(missing))
        try:
            run_one(stage, store, compute, progress)
        except RefusedError as error:
            if stage.name in bounds(plan):
                raise
            refused[stage.name] = str(error)
        reporter.done(stage, time.perf_counter() - started)
    return refused


def bounds(plan: Plan) -> set[str]:
    """Names of the stages without which no record can be made."""
    ends = [end for result in plan.results for end in (result.bound, result.upper)]
    return {stage.name for end in ends if end is not None for stage in end.walk()}


def run_one(
    stage: Stage, store: Store, compute: Compute, progress: Callable[[float], None]
) -> None:
    """Run one stage into the store, unless it is there already."""
    with store.writing(stage.name) as out:
        if store.has(stage.name):
            return
        if compute.devices > 1 and stage.kind in ("train", "side", "update", "first"):
            from benchmark.ranks import run_in_ranks

            facts, used = run_in_ranks(stage, store, out, compute)
        else:
            facts, used = measured(stage, store.root, out, compute, progress)
        meta = {"title": stage.title, "kind": stage.kind, "facts": facts, "run": used}
        write_json(out / META, meta)


def measured(
    stage: Stage,
    root: Path,
    out: Path,
    compute: Compute,
    progress: Callable[[float], None] = lambda share: None,
    checkpoints: Path | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a stage's function; returns its facts, and time, memory and device.

    Checkpoints lie in ``out`` unless another folder is named.
    """
    from benchmark.stages import Context, run_stage
    from benchmark.training.loop import Device, precision, torch_device

    device = Device(compute.accelerator, compute.devices)
    inputs = {role: root / "stages" / s.name for role, s in stage.inputs.items()}
    chip = torch_device(device).type
    spent = Spent(checkpoints or out, convolution if chip == "cpu" else None)

    def heard(share: float) -> None:
        if checkpoints is None:  # else another process keeps them
            spent.keep()
        progress(share)

    with _resources(device, spent) as used:
        context = Context(out, checkpoints or out, device, stage.local, heard)
        facts = run_stage(stage.kind, stage.params, inputs, context)
    if "recipe" in stage.params:
        asked = stage.params["recipe"].get("precision", "32-true")
        used["precision"] = precision(asked, chip)
    return facts, used


@contextmanager
def _resources(device: Device, spent: Spent) -> Iterator[dict[str, Any]]:
    import torch

    from benchmark.training.loop import device_name, torch_device

    used: dict[str, Any] = {}
    on_gpu = torch_device(device).type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    _forget_peak()
    yield used
    used.update(spent.now())
    used["peak_memory_bytes"] = _peak()
    if on_gpu:
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated()
    used["device"] = device_name(device)


def _forget_peak() -> None:
    """Let the peak of this process's memory begin anew, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The peak of this process's memory, in bytes; elsewhere than on Linux since it began."""
    import resource

    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def parse_device(text: str, engine: str = "local") -> Compute:
    """``auto``, ``cpu``, ``cuda``, ``cuda:2`` (two devices) as a Compute.

    Raises:
        BenchError: On another name or number.
    """
    name, colon, count = text.partition(":")
    if name not in _ACCELERATORS:
        raise unknown("device", text, _ACCELERATORS)
    if colon and not (count.isdigit() and int(count) >= 1):
        raise BenchError(f"--device: expected a number of devices after ':', got '{text}'")
    return Compute(name, int(count) if colon else 1, engine)
