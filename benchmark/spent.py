"""What a stage spent: seconds of the clock and of the processor, over all its attempts."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

from benchmark.store import write_json


class Spent:
    """Seconds of this attempt, and of killed ones what their checkpoints hold.

    Kept beside the checkpoints, after each of them, so that a training that was taken up costs as
    much as one that ran through.

    Args:
        folder: Folder of the checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "spent.checkpoint.json"
        before: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.before = before
        self.marks: list[tuple[float, float]] = [(a, b) for a, b in before.get("marks", [])]
        self.started, self.worked = time.perf_counter(), time.process_time()

    def _total(self) -> dict[str, float]:
        mine = {
            "seconds": time.perf_counter() - self.started,
            "cpu_seconds": time.process_time() - self.worked,
        }
        return {key: round(value + self.before.get(key, 0.0), 3) for key, value in mine.items()}

    def keep(self, share: float) -> None:
        """An epoch has ended: note what was spent, also for the case that this attempt is killed.

        Args:
            share: Share of the training that is done, 0 to 1.
        """
        total = self._total()
        self.marks.append((share, total["cpu_seconds"]))
        write_json(self.path, total | {"marks": self.marks})

    def now(self) -> dict[str, float]:
        """Seconds of the clock and of the processor; the latter also as :func:`undisturbed`."""
        total = self._total()
        return total | {"undisturbed_cpu_seconds": undisturbed(total["cpu_seconds"], self.marks)}


def undisturbed(seconds: float, marks: list[tuple[float, float]]) -> float:
    """What a training would have taken with each epoch as fast as its fastest.

    Seconds of the processor depend on what else the machine does: two trainings beside each other
    share caches and memory. The fastest epoch saw the least of it. The first counts as it was,
    with what is prepared before it.

    Args:
        seconds: Spent in all.
        marks: After each epoch the share that was done and the seconds spent so far.

    Example:
        >>> undisturbed(12.0, [(0.25, 4.0), (0.5, 6.0), (0.75, 9.0), (1.0, 11.0)])
        11.0
    """
    epochs = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(marks) if b[0] > a[0]]
    if not epochs:
        return seconds
    pace = min(spent / share for share, spent in epochs)
    lost = sum(spent - share * pace for share, spent in epochs)
    return round(seconds - lost, 3)
