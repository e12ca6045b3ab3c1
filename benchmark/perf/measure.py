"""Seconds and memory of calls, side by side: rounds of all of them, the best round of each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


@dataclass
class Timing:
    """The best time of a call, and the most memory it added."""

    seconds: float
    memory_mib: float | None


def together(calls: dict[str, Callable[[], object]], rounds: int = 3) -> dict[str, Timing]:
    """Time calls in turn, several rounds, so that a busy machine is busy for all of them.

    Args:
        calls: Name -> what to time; warmed up by the caller.
        rounds: How often.

    Returns:
        Name -> best seconds and largest growth of resident memory.
    """
    best: dict[str, Timing] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            now = once(call)
            old = best.get(name)
            if old is not None:
                now.seconds = min(now.seconds, old.seconds)
                if now.memory_mib is not None and old.memory_mib is not None:
                    now.memory_mib = max(now.memory_mib, old.memory_mib)
            best[name] = now
    return best


def once(call: Callable[[], object]) -> Timing:
    """Time one call."""
    gc.collect()
    before = _resident(reset=True)
    start = time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - start
    after = _resident(reset=False)
    del kept
    growth = None if before is None or after is None else max(0.0, after - before)
    return Timing(seconds, growth)


def row(
    name: str, timing: Timing, size: str, against: str | None = None, base: float | None = None
) -> dict[str, Any]:
    """One line of a table.

    Args:
        name: What was timed.
        timing: Its time and memory.
        size: The sizes, as text.
        against: What it is compared with.
        base: That one's seconds.
    """
    return {
        "name": name,
        "seconds": round(timing.seconds, 4),
        "against": against,
        "ratio": None if base is None else round(timing.seconds / base, 3),
        "memory_mib": None if timing.memory_mib is None else round(timing.memory_mib, 1),
        "size": size,
    }


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
