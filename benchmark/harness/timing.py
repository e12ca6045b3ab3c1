"""Seconds that a stage takes, on the clock and on the processor, over all its attempts."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmark.config.files import read_sealed, write_sealed
from benchmark.errors import BenchError

_LARGEST = 1024 * 1024  # bytes; a number an epoch
_SHARE = 0.03  # of the processor's time, for the calibration workload
_APART = 1.0  # seconds of the processor between two calibrations of short epochs


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
