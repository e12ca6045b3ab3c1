"""Checking stored stages, and publishing them durably, beside bare reads and writes."""

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.harness.store import Store
from benchmark.perf import measure

_NAME, _FILE = "embed-perf", "vectors.npy"
_READ, _WRITE = "read, bare", "write, bare"


def rows(items: int = 1_000_000, dim: int = 128) -> list[dict[str, Any]]:
    """Time a stage of ``items`` float32 vectors; files stay in the system's cache between rounds.

    A check reads and hashes each file (SHA-256), publishing hashes it and waits for the disk.
    See ``benchmark.perf.run``; ``size`` tells the bytes.
    """
    vectors = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        store, bare = Store(Path(name) / "store"), Path(name) / _FILE
        calls: dict[str, Callable[[], object]] = {
            _WRITE: partial(np.save, bare, vectors),
            "write and publish": partial(_publish, store, vectors),
            _READ: partial(_read, bare),
            "check": partial(store.damage, _NAME),
        }
        timings = measure.together(calls, warm_up=True)
    size = f"{items:,} x {dim}, {vectors.nbytes / 1e6:.0f} MB"
    names = list(calls)
    pairs = [({n: timings[n] for n in names[i : i + 2]}, names[i]) for i in (0, 2)]
    return [row for pair, base in pairs for row in measure.rows(pair, size, base)]


def _publish(store: Store, vectors: Any) -> None:
    shutil.rmtree(store.path(_NAME), ignore_errors=True)
    with store.writing(_NAME) as work:
        if work is not None:
            np.save(work / _FILE, vectors)
            store.publish(_NAME, {"title": "", "kind": "embed", "facts": {}, "run": {}})


def _read(path: Path) -> None:
    block = bytearray(1024 * 1024)
    with path.open("rb", buffering=0) as file:
        while file.readinto(block):
            pass
