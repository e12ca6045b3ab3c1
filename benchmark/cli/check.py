"""Trying a method in seconds, and looking at an installation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmark.config import registry
from benchmark.errors import BenchError
from benchmark.records.record import Record


def check_method(label: str, protocol: str, track: str = "toy") -> Iterator[str]:
    """Train, embed, score, write and read back a method on the toy track, twice.

    Args:
        label: A method.
        protocol: The protocol to try it under.
        track: The track to try it on.

    Yields:
        A line for each thing that was found right.

    Raises:
        BenchError: If something is wrong: the two runs differ, or a score is missing.
    """
    from benchmark.api import run
    from benchmark.harness.execution import Compute
    from benchmark.harness.requests import make_requests

    registry.method_file(label)
    planned = make_requests([label], protocol, track)[-1].plan().results[-1]
    if planned.reason is not None:
        raise _refused(label, planned.reason)
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder:
        root = Path(folder)
        runs = [
            run([label], protocol, track, store=root / f"store{i}", out=root / f"runs{i}",
                compute=Compute("cpu"))[-1]
            for i in range(2)
        ]  # fmt: skip
    record = runs[0]
    if record.status != "done":  # it refused at work
        raise _refused(label, str(record.reason))
    yield f"trained, embedded, scored: {_summary(record)}"
    missing = [f"{c} {m}" for c, s in record.scores.items() for m, v in s.items() if v is None]
    if missing:
        raise BenchError(f"check {label}: no score for {', '.join(missing)}")
    yield "record written, validated and read back"
    different = [k for k, v in runs[0].result().items() if v != runs[1].result()[k]]
    if different:
        raise BenchError(f"check {label}: two runs of one seed differ in {', '.join(different)}")
    yield "a second run from scratch gives the same record, bit for bit"
    yield f"{label} is fine"


def _refused(label: str, reason: str) -> BenchError:
    return BenchError(f"check {label}: {reason}; try another --protocol")


def _summary(record: Record) -> str:
    cases = sorted(record.scores)
    return ", ".join(
        f"{c} {record.scores[c]['cmc_at_1']:.3f}" for c in cases if "cmc_at_1" in record.scores[c]
    )


def diagnose() -> Iterator[tuple[str, str, bool]]:
    """What this installation has: name, state, and whether that is sound."""
    from benchmark.config.files import writable
    from benchmark.harness.store import default_store
    from benchmark.records.provenance import hardware, packages

    for name, state in (packages() | hardware()).items():
        yield name, state, True
    yield _device()
    for kind, names in (
        ("methods", registry.method_files()), ("protocols", registry.protocol_files()),
        ("tracks", registry.track_files()),
    ):  # fmt: skip
        yield kind, ", ".join(names), bool(names)
    try:
        writable(default_store(), "store")
        yield "store", f"{default_store()} can be written", True
    except BenchError as error:
        yield "store", str(error), False
    yield _kernel()


def _device() -> tuple[str, str, bool]:
    from benchmark.training.device import Device, device_name

    try:
        return "device", device_name(Device()), True
    except Exception as error:  # whatever a broken driver raises
        return "device", f"{type(error).__name__}: {error}", False


def _kernel() -> tuple[str, str, bool]:
    import numpy as np

    from benchmark.ranking.ranks import rank

    vectors = np.eye(4, dtype=np.float32)
    labels = np.array([0, 0, 1, 1])
    try:
        ranks = rank(vectors, vectors, labels, labels).first_rank
    except Exception as error:  # whatever a broken compiler raises
        return "ranking kernel", f"{type(error).__name__}: {error}", False
    good = bool((ranks == 1).all())
    return "ranking kernel", "compiles and ranks" if good else f"wrong ranks {ranks}", good
