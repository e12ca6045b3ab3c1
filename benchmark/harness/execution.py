"""Run one stage and time it; where stages run, the callbacks of a run, the progress of a plan.

A training on several devices has a process for each, as Fabric's ``ddp`` strategy expects.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.entry_points import one_line, passed
from benchmark.config.files import FULL, read_sealed, write_sealed, write_whole
from benchmark.config.memory import keep_freed_memory
from benchmark.errors import BenchError, FailedError, PassedOverWarning, RefusedError
from benchmark.harness.graph import Result, Stage, unique_stages
from benchmark.harness.store import Store
from benchmark.harness.work import TakenWork, TrainingWork, UpdateWork

if TYPE_CHECKING:
    from benchmark.training.device import Device

Outcome = tuple[dict[str, Any], dict[str, Any]]
"""Facts of a stage; its time, memory and device."""
OnResult = Callable[[Result], None]
_OUTCOME = "rank-0.json"
_ERRORS: dict[str, type[BenchError]] = {"refused.txt": RefusedError, "failed.txt": FailedError}
_LARGEST = 1024 * 1024  # bytes; a number an epoch
_SHARE = 0.03  # of the processor's time, for the calibration workload
_APART = 1.0  # seconds of the processor between two calibrations of short epochs


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
    processes: int = 1  # stages at a time here, each in a process with its share of the cores
    # ``local``: on this machine; ``ray``: on a Ray cluster, as many at once as
    # it has room for. The store must be on a disk that all machines see.
    engine: str = "local"


def measured(
    stage: Stage, root: Path, out: Path, compute: Compute,
    progress: Callable[[float], None] = lambda share: None, checkpoints: Path | None = None,
) -> Outcome:  # fmt: skip
    """Run a stage; returns its facts, and what it used. Checkpoints lie in ``out`` by default."""
    import torch

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
        context = Context(out, checkpoints or out, device, on_progress, progress, stage.title)
        facts = run_stage(work, context)
    if isinstance(work, TakenWork):  # times are those of its training, wherever that was
        return facts, {**work.run, "published": True}
    if isinstance(work, TrainingWork):
        requested = work.recipe.get("precision", "32-true")
        used["precision"] = effective_precision(requested, kind)
        used["threads"] = torch.get_num_threads()
    return facts, used


@contextmanager
def faults_of_adapters(title: str, *, own: bool) -> Iterator[None]:
    """One line for whatever an adapter raises: ``title``, kind, words, the adapter's line.

    Refusals and a full disk stay as they are; unless what runs is an adapter's ``own``, so do a
    BenchError, but of a map that fails when it is applied, and what passed through no adapter.
    """
    try:
        yield
    except BenchError as error:
        if isinstance(error, FailedError) or (own and not isinstance(error, RefusedError)):
            raise FailedError(f"{title}: {error}") from error
        raise
    except (Exception, SystemExit) as error:
        files = {str(file.path) for file in registry.method_files().values()}
        theirs = own or any(file in files for file, _ in passed(error))
        if theirs and getattr(error, "errno", None) not in FULL:
            raise FailedError(f"{title}: {one_line(error, files)}") from error
        raise


@contextmanager
def _resources(device: Device, timer: Timer) -> Iterator[dict[str, Any]]:
    import torch

    from benchmark.training.device import device_name, torch_device

    used: dict[str, Any] = {}
    on_gpu = torch_device(device).type == "cuda"
    keep_freed_memory()
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


@dataclass
class _Open:
    """A result, and the names of the stages that it waits for."""

    result: Result
    bounds: set[str]  # without which there is no record
    own: set[str]  # of its evaluation alone


class PlanProgress:
    """Follow the stages of a plan; hand over each result as soon as nothing of it is missing.

    The reporter is told of each stage as it begins and ends. A method that refuses at work gives a
    result without an evaluation, which says why. Where a bound refuses, or an adapter fails, the
    results that need it are given up and the others go on: what they cost is not lost. Results that
    wait for no stage are handed over first.
    """

    def __init__(
        self, results: Iterable[Result], missing: Iterable[Stage], on_result: OnResult,
        reporter: Reporter,
    ) -> None:  # fmt: skip
        self._numbers = {stage.name: number for number, stage in enumerate(missing, 1)}
        names = self._numbers.keys()
        self._failed: list[str] = []
        self._on_result, self._reporter = on_result, reporter
        self._begun: dict[str, tuple[Callable[[float], None], float]] = {}
        self._open = []
        for result in results:
            bounds = {s.name for s in unique_stages(result.bound, result.upper)} & names
            own = {s.name for s in unique_stages(result.evaluation)} & names
            self._open.append(_Open(result, bounds, own - bounds))
        self._hand_over()

    def left_out(self, stage: Stage) -> bool:
        """Tell if a stage is not to run: no result that is still waited for needs it."""
        return not any(stage.name in each.bounds | each.own for each in self._open)

    def begun(self, stage: Stage) -> Callable[[float], None]:
        """A stage has begun; returns the callback that takes the share that is done."""
        share = self._reporter.start(stage, self._numbers[stage.name], len(self._numbers))
        self._begun[stage.name] = share, time.perf_counter()
        return share

    def ended(self, stage: Stage, error: RefusedError | FailedError | None) -> None:
        """A stage has ended, well or by an error; one that failed with its inputs says nothing."""
        share, begun = self._begun.pop(stage.name)
        share(1.0)
        self._reporter.done(stage, time.perf_counter() - begun)
        if error is None:
            for each in self._open:
                each.bounds.discard(stage.name)
                each.own.discard(stage.name)
        elif isinstance(error, RefusedError):
            self._refused(stage, str(error))
        elif not self.left_out(stage):
            self._give_up(str(error), lambda each: stage.name in each.bounds | each.own)
        self._hand_over()

    def _refused(self, stage: Stage, reason: str) -> None:
        if any(stage.name in each.bounds for each in self._open):
            self._give_up(f"{stage.title}: {reason}", lambda each: stage.name in each.bounds)
        for each in self._open:
            if stage.name in each.own:
                each.own.clear()
                each.result = replace(each.result, evaluation=None, updates=(), reason=reason)

    def _give_up(self, reason: str, needs: Callable[[_Open], bool]) -> None:
        self._failed.append(reason)
        self._open = [each for each in self._open if not needs(each)]

    def check(self) -> None:
        """Raise FailedError if results were given up; those of other methods are written."""
        if self._failed:
            raise FailedError(*self._failed)

    def _hand_over(self) -> None:
        whole = [each for each in self._open if not each.bounds and not each.own]
        self._open = [each for each in self._open if each.bounds or each.own]
        for each in whole:
            self._on_result(each.result)


def run_one(
    stage: Stage, store: Store, compute: Compute, progress: Callable[[float], None]
) -> None:
    """Run one stage into the store, unless it is there already and whole."""
    with store.writing(stage.name) as out:
        if out is None:
            return
        for name in (*_ERRORS, _OUTCOME):  # an earlier run's
            (out / name).unlink(missing_ok=True)
        if compute.devices > 1 and isinstance(stage.work, TrainingWork):
            facts, used = _run_in_ranks(stage, store, out, compute)
        else:
            facts, used = measured(stage, store.root, out, compute, progress)
        meta = {"title": stage.title, "kind": stage.kind, "facts": facts, "run": used}
        store.publish(stage.name, meta)


def _run_in_ranks(stage: Stage, store: Store, out: Path, compute: Compute) -> Outcome:
    """Run a training stage in ``compute.devices`` processes; rank 0 writes, and says what it used.

    Raises:
        RefusedError: If the method refuses, or its training diverges.
        FailedError: If the adapter raises an error of its own.
        BenchError: If a process is killed, or there are not so many devices.
    """
    from torch.multiprocessing.spawn import ProcessException, spawn

    from benchmark.training.device import Device, require_here

    require_here(Device(compute.accelerator, compute.devices))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    arguments = (port, stage, store.root, out, compute)
    try:
        # A rank that fails ends the others, which would wait for it for ever.
        spawn(_rank, args=arguments, nprocs=compute.devices)  # type: ignore[no-untyped-call]
    except ProcessException as error:
        for name, kind in _ERRORS.items():
            if (out / name).exists():
                raise kind((out / name).read_text()) from error
        raise BenchError(
            f"{stage.title}: process {error.error_index} of {compute.devices} failed: "
            f"{str(error).strip().splitlines()[-1]}"
        ) from error
    outcome = out / _OUTCOME
    facts, used = json.loads(outcome.read_text())
    outcome.unlink()
    return facts, used


def _rank(rank: int, port: int, stage: Stage, root: Path, out: Path, compute: Compute) -> None:
    warnings.simplefilter("ignore", PassedOverWarning)  # told where the run began
    # LOCAL_RANK tells Fabric that the processes are there already.
    os.environ |= {
        "LOCAL_RANK": str(rank), "RANK": str(rank), "NODE_RANK": "0",
        "WORLD_SIZE": str(compute.devices), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    try:
        if rank == 0:
            (out / _OUTCOME).write_text(json.dumps(measured(stage, root, out, compute)))
            return
        # Only rank 0 writes an output; all of them resume from its checkpoint.
        with tempfile.TemporaryDirectory() as discarded:
            measured(stage, root, Path(discarded), compute, checkpoints=out)
    except (RefusedError, FailedError) as error:
        name = next(name for name, kind in _ERRORS.items() if isinstance(error, kind))
        write_whole(out / name, str(error))
        raise


class Timer:
    """Seconds of this attempt, and of killed ones what their checkpoints hold.

    Kept beside the checkpoints, after each of them, so that a resumed training costs as much as one
    that ran through. A stage on the CPU also notes how long the same piece of work took meanwhile:
    trainings an hour apart are only comparable in that unit, as whatever else the machine does
    slows both, through caches and memory, in seconds of the processor too.

    Args:
        folder: Folder of the checkpoints.
        calibration: The piece of work, run after epochs for a few percent of their time, which is
            not counted: after each one, where they are short after about a second of them.
    """

    def __init__(self, folder: Path, calibration: Callable[[], object] | None = None) -> None:
        self.path = folder / "seconds.checkpoint.json"
        before = self._before()
        self.paces: list[float] = before.pop("paces", [])
        self.before: dict[str, float] = before
        self.calibration = calibration
        self.clock, self.cpu = time.perf_counter(), time.process_time()
        self.calibrated = self.cpu

    def _before(self) -> dict[str, Any]:
        """Time of killed attempts; none if that is damaged, as they are then repeated."""
        if not self.path.exists():
            return {}
        try:
            noted = read_sealed(self.path, _LARGEST)
        except BenchError:
            return {}
        return noted if noted.pop("stage", None) == self.path.parent.name else {}

    def _total(self) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self.clock, time.process_time() - self.cpu
        attempt = {"seconds": wall, "cpu_seconds": cpu}
        return {key: round(value + self.before.get(key, 0.0), 3) for key, value in attempt.items()}

    def checkpoint(self) -> None:
        """Note the seconds at the end of an epoch, in case that this attempt is killed."""
        if not self.paces or time.process_time() - self.calibrated >= _APART:
            self._calibrate()
        noted = self._total() | {"paces": self.paces, "stage": self.path.parent.name}
        write_sealed(self.path, noted, durable=False)

    def result(self) -> dict[str, float]:
        """Seconds of the clock, of the processor, and of the calibration workload on average."""
        if not self.paces:  # a stage without epochs
            self._calibrate()
        pace = {"calibration_cpu_seconds": fmean(self.paces)} if self.paces else {}
        return self._total() | pace

    def _calibrate(self) -> None:
        """Run the workload for a share of the time since the last call, once at least."""
        if self.calibration is None:
            return
        clock, cpu = time.perf_counter(), time.process_time()
        self.calibration()  # brings code and memory into reach
        begun, passes = time.process_time(), 0
        while not passes or time.process_time() - begun < _SHARE * (cpu - self.calibrated):
            self.calibration()
            passes += 1
        self.calibrated = time.process_time()
        self.paces.append(round((self.calibrated - begun) / passes, 6))
        self.cpu += self.calibrated - cpu
        self.clock += time.perf_counter() - clock


def convolution() -> None:
    """Calibration workload: forward and backward through a convolution, as in a training.

    It draws nothing at random and leaves no gradients. With arrays of 1 MiB: those of a whole
    batch would be taken from the system anew each time, or not, as the process's past has it.
    """
    import torch
    from torch.nn import functional as F

    images = torch.linspace(-1, 1, 16 * 16 * 32 * 32).reshape(16, 16, 32, 32).requires_grad_()
    kernel = torch.linspace(-1, 1, 16 * 16 * 3 * 3).reshape(16, 16, 3, 3).requires_grad_()
    with torch.enable_grad():
        layer = F.relu(F.batch_norm(F.conv2d(images, kernel, padding=1), None, None, training=True))
        torch.autograd.grad(layer.sum(), [images, kernel])
