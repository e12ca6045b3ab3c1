"""Trying a method in seconds, and looking at an installation."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmark.api import run
from benchmark.config import registry
from benchmark.config.files import writable
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_requests
from benchmark.harness.store import default_store
from benchmark.records.provenance import hardware, packages


def check_method(label: str, protocol: str, track: str = "toy") -> Iterator[str]:
    """Train, embed, score, write and read back a method, twice; a line for each step that is right.

    BenchError if the method cannot be applied, a score is missing, or the two runs differ.
    """
    registry.method_file(label)
    planned = make_requests([label], protocol, track)[-1].plan().results[-1]
    if planned.reason is not None:
        raise _refused(label, planned.reason)
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder:
        first, second = (
            run([label], protocol, track, store=Path(folder, f"store{i}"),
                out=Path(folder, f"runs{i}"), compute=Compute("cpu"))[-1]
            for i in range(2)
        )  # fmt: skip
    if first.status != "done":  # it refused at work
        raise _refused(label, str(first.reason))
    hits = {case: first.scores[case].get("cmc_at_1") for case in sorted(first.scores)}
    shown = ", ".join(f"{case} {hit:.3f}" for case, hit in hits.items() if hit is not None)
    yield f"trained, embedded, scored: {shown}"
    missing = [f"{c} {m}" for c, s in first.scores.items() for m, v in s.items() if v is None]
    if missing:
        raise BenchError(f"check {label}: no score for {', '.join(missing)}")
    yield "record written, validated and read back"
    different = [key for key, value in first.result().items() if value != second.result()[key]]
    if different:
        raise BenchError(f"check {label}: two runs of one seed differ in {', '.join(different)}")
    yield "a second run from scratch gives the same record, bit for bit"
    yield f"{label} is fine"


def _refused(label: str, reason: str) -> BenchError:
    return BenchError(f"check {label}: {reason}; try another --protocol")


def diagnose() -> Iterator[tuple[str, str, bool]]:
    """What this installation has: name, state, and whether that is sound."""
    for name, state in (packages() | hardware()).items():
        yield name, state, True
    yield _tried("device", _device)
    for kind, names in (
        ("methods", registry.method_files()), ("protocols", registry.protocol_files()),
        ("tracks", registry.track_files()),
    ):  # fmt: skip
        yield kind, ", ".join(names), bool(names)
    yield _tried("store", _store)
    yield _tried("ranking kernel", _kernel)


def _tried(name: str, attempt: Callable[[], str]) -> tuple[str, str, bool]:
    try:
        return name, attempt(), True
    except BenchError as error:
        return name, str(error), False
    except Exception as error:  # whatever a broken driver or compiler raises
        return name, f"{type(error).__name__}: {error}", False


def _device() -> str:
    from benchmark.training.device import Device, device_name

    return device_name(Device())


def _store() -> str:
    writable(default_store(), "store")
    return f"{default_store()} can be written"


def _kernel() -> str:
    from benchmark.ranking.ranks import rank

    vectors = np.eye(4, dtype=np.float32)
    labels = np.array([0, 0, 1, 1])
    ranks = rank(vectors, vectors, labels, labels).first_rank
    if (ranks != 1).any():
        raise BenchError(f"wrong ranks {ranks}")
    return "compiles and ranks"
