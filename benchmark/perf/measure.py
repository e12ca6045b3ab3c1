"""Seconds and memory of calls, side by side, the best of some rounds; and vectors to time with."""

import gc
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.memory import give_back_memory
from benchmark.ranking.arrays import Floats, Ints

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


@dataclass
class Timing:
    """The best time of a call, and the most memory it added.

    Attributes:
        seconds: By the clock.
        memory_mib: Growth of the peak; None where the system does not tell.
        busy_s: Of processors, by all threads, and by processes that it waited for.
    """

    seconds: float
    memory_mib: float | None = None
    busy_s: float = 0.0

    @property
    def busy(self) -> "Timing":
        """The same by the time of processors."""
        return Timing(self.busy_s, self.memory_mib)


def together(
    calls: Mapping[str, Callable[[], object]], rounds: int = 3, *, warm_up: bool = False
) -> dict[str, Timing]:
    """Best seconds and most memory of calls in turn; ``warm_up`` calls each once before."""
    for call in calls.values() if warm_up else ():
        call()
    best: dict[str, Timing] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            now = once(call)
            old = best.setdefault(name, now)
            old.seconds = min(now.seconds, old.seconds)
            old.busy_s = min(now.busy_s, old.busy_s)
            if now.memory_mib is not None and old.memory_mib is not None:
                old.memory_mib = max(now.memory_mib, old.memory_mib)
    return best


def once(call: Callable[[], object]) -> Timing:
    """Time one call."""
    gc.collect()
    give_back_memory()
    before = _resident(reset=True)
    busy, start = _busy_s(), time.perf_counter()
    kept = call()
    seconds, busy = time.perf_counter() - start, _busy_s() - busy
    after = _resident(reset=False)
    del kept
    growth = None if before is None or after is None else max(0.0, after - before)
    return Timing(seconds, growth, busy)


def rows(timings: Mapping[str, Timing], size: str, base: str | None = None) -> list[dict[str, Any]]:
    """Lines of a table, each but the base's compared with it, if one of the names is given."""
    out = []
    for name, timing in timings.items():
        against = None if name == base else base
        ratio = None if against is None else round(timing.seconds / timings[against].seconds, 3)
        memory = None if timing.memory_mib is None else round(timing.memory_mib, 1)
        out.append({
            "name": name, "seconds": round(timing.seconds, 4), "against": against, "ratio": ratio,
            "memory_mib": memory, "size": size,
        })  # fmt: skip
    return out


def _busy_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


def _resident(*, reset: bool) -> float | None:
    """Resident MiB now (after resetting the peak), or the peak since; None where not known."""
    try:
        if reset:
            _RESET.write_text("5")
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    field = "VmRSS:" if reset else "VmHWM:"
    values = [line.split()[1] for line in lines if line.startswith(field)]
    return int(values[0]) / 1024 if values else None


def clusters(n: int, centre: Floats, noise: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Floats around class centres ``[classes, dim]``, and their classes."""
    labels = np.arange(n, dtype=np.int64) % len(centre)
    rng.shuffle(labels)
    x = rng.standard_normal((n, centre.shape[1]), dtype=np.float32)
    x *= np.float32(noise)
    x += centre[labels]
    return x, labels


def clustered(
    sizes: tuple[int, int], dim: int, classes: int, noise: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints, Ints]:
    """Queries and gallery around the same class centres, and their classes."""
    centre = rng.standard_normal((classes, dim), dtype=np.float32)
    (q, ql), (g, gl) = (clusters(n, centre, noise, rng) for n in sizes)
    return q, g, ql, gl
