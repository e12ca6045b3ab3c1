"""Run one stage and measure it; where stages run, and the callbacks of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.entry_points import one_line, passed
from benchmark.errors import BenchError
from benchmark.harness.graph import Stage
from benchmark.harness.timing import Timer, convolution
from benchmark.harness.work import TakenWork, TrainingWork, UpdateWork

if TYPE_CHECKING:
    from benchmark.training.device import Device

Outcome = tuple[dict[str, Any], dict[str, Any]]
"""Facts of a stage; its time, memory and device."""


class Reporter:
    """Callbacks of a run; those of this base do nothing."""

    def left_out(self, label: str, reason: str) -> None:
        """A method is not applicable; called before anything runs."""

    def damaged(self, stage: Stage, reason: str) -> None:
        """A stored stage is not what was written; it is computed anew."""

    def edited(self, path: Path, reason: str) -> None:
        """A record is not as it was written, or its details are not; it is made anew."""

    def planned(self, stages: Sequence[Stage], track: str) -> None:
        """These stages of a track follow; called once before the first one begins."""

    def start(self, stage: Stage, number: int, total: int) -> Callable[[float], None]:  # noqa: ARG002
        """A stage begins; returns the progress callback, which takes the share that is done."""
        return lambda share: None

    def done(self, stage: Stage, seconds: float) -> None:
        """A stage has ended."""


@dataclass(frozen=True)
class Compute:
    """Place where stages run."""

    accelerator: str = "auto"  # or ``cpu``, ``cuda``, ``mps``
    devices: int = 1  # that train one model together
    # ``local``: one after the other in this process; ``ray``: on a Ray cluster, as many at once as
    # it has room for. The store must be on a disk that all machines see.
    engine: str = "local"


def measured(
    stage: Stage,
    root: Path,
    out: Path,
    compute: Compute,
    progress: Callable[[float], None] = lambda share: None,
    checkpoints: Path | None = None,
) -> Outcome:
    """Run a stage's function; returns its facts, and time, memory and device.

    Checkpoints lie in ``out`` unless another folder is named.
    """
    from benchmark.harness.stages import Context, run_stage
    from benchmark.training.device import Device, effective_precision, torch_device

    device = Device(compute.accelerator, compute.devices)
    work = stage.work.at(lambda of: root / "stages" / of.name)
    kind = torch_device(device).type
    timer = Timer(checkpoints or out, convolution if kind == "cpu" else None)

    def on_progress(share: float) -> None:
        if checkpoints is None:  # else another process keeps them
            timer.checkpoint()
        progress(share)

    faults = faults_of_adapters(stage.title, own=isinstance(stage.work, UpdateWork))
    with _resources(device, timer) as used, faults:
        context = Context(out, checkpoints or out, device, on_progress, progress)
        facts = run_stage(work, context)
    if isinstance(work, TakenWork):  # times are those of its training, wherever that was
        return facts, {**work.run, "published": True}
    if isinstance(work, TrainingWork):
        requested = work.recipe.get("precision", "32-true")
        used["precision"] = effective_precision(requested, kind)
    return facts, used


@contextmanager
def faults_of_adapters(title: str, *, own: bool) -> Iterator[None]:
    """One line for whatever an adapter raises: ``title``, kind, words, the adapter's line.

    Unless what runs is an adapter's ``own``, what passed through none of them stays as it is.
    """
    try:
        yield
    except (BenchError, OSError):
        raise
    except (Exception, SystemExit) as error:
        files = {str(file.path) for file in registry.method_files().values()}
        if own or any(file in files for file, _ in passed(error)):
            raise BenchError(f"{title}: {one_line(error, files)}") from error
        raise


@contextmanager
def _resources(device: Device, timer: Timer) -> Iterator[dict[str, Any]]:
    import torch

    from benchmark.training.device import device_name, torch_device

    used: dict[str, Any] = {}
    on_gpu = torch_device(device).type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # the peak of this process's memory is reset (Linux)
        Path("/proc/self/clear_refs").write_text("5")
    yield used
    used.update(timer.result())
    used["peak_memory_bytes"] = _peak_memory()
    if on_gpu:
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated()
    used["device"] = device_name(device)


def _peak_memory() -> int:
    """The peak of this process's memory, bytes; elsewhere than on Linux since it began."""
    import resource

    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
