"""What a stage spent: seconds of the clock and of the processor, over all its attempts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmark.config.files import write_json

_SHARE = 0.03  # of the processor's time, for the yardstick


class Spent:
    """Seconds of this attempt, and of killed ones what their checkpoints hold.

    Kept beside the checkpoints, after each of them, so that a training that was taken up costs as
    much as one that ran through. A stage on the processor also notes how long the same piece of
    work took meanwhile: trainings an hour apart are only comparable in that unit, as whatever
    else the machine does slows both, through caches and memory, in seconds of the processor too.

    Args:
        folder: Folder of the checkpoints.
        yardstick: The piece of work, done after each epoch for a few percent of its time, which
            is not counted.
    """

    def __init__(self, folder: Path, yardstick: Callable[[], object] | None = None) -> None:
        self.path = folder / "spent.checkpoint.json"
        before: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.paces: list[float] = before.pop("paces", [])
        self.before: dict[str, float] = before
        self.yardstick = yardstick
        self.started, self.worked = time.perf_counter(), time.process_time()
        self.measured = self.worked

    def _total(self) -> dict[str, float]:
        mine = {
            "seconds": time.perf_counter() - self.started,
            "cpu_seconds": time.process_time() - self.worked,
        }
        return {key: round(value + self.before.get(key, 0.0), 3) for key, value in mine.items()}

    def keep(self) -> None:
        """An epoch has ended: note what was spent, in case that this attempt is killed."""
        self._measure()
        write_json(self.path, self._total() | {"paces": self.paces})

    def now(self) -> dict[str, float]:
        """Seconds of the clock and of the processor, and of the yardstick on average."""
        if not self.paces:  # a stage without epochs
            self._measure()
        pace = {"yardstick_cpu_seconds": fmean(self.paces)} if self.paces else {}
        return self._total() | pace

    def _measure(self) -> None:
        """Do the piece of work for a share of the time since the last time, once at least."""
        if self.yardstick is None:
            return
        started, worked = time.perf_counter(), time.process_time()
        self.yardstick()  # brings code and memory into reach
        begun, passes = time.process_time(), 0
        while not passes or time.process_time() - begun < _SHARE * (worked - self.measured):
            self.yardstick()
            passes += 1
        self.measured = time.process_time()
        self.paces.append(round((self.measured - begun) / passes, 6))
        self.worked += self.measured - worked
        self.started += time.perf_counter() - started


def convolution() -> None:
    """The yardstick: forward and backward through a convolutional layer, as in a training.

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
