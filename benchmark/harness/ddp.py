"""One training on several devices: a process for each, as Fabric's ``ddp`` strategy expects."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.harness.execution import Compute, measured
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store


def run_in_ranks(
    stage: Stage, store: Store, out: Path, compute: Compute
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a training stage in ``compute.devices`` processes; rank 0 writes the output.

    Returns:
        Facts, and time, memory and device, of rank 0.

    Raises:
        BenchError: If a process fails.
    """
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    answers: Any = context.SimpleQueue()
    port = _free_port()
    ranks = [
        context.Process(target=_rank, args=(r, port, stage, store.root, out, compute, answers))
        for r in range(compute.devices)
    ]
    for process in ranks:
        process.start()
    # A rank that fails leaves the others waiting for it for ever.
    while any(process.is_alive() for process in ranks):
        if any(process.exitcode for process in ranks):
            for process in ranks:
                process.terminate()
        time.sleep(0.05)
    failed = [r for r, process in enumerate(ranks) if process.exitcode != 0]
    if failed:
        raise BenchError(f"{stage.title}: {len(failed)} of {compute.devices} processes failed")
    facts: tuple[dict[str, Any], dict[str, Any]] = answers.get()
    return facts


def _rank(
    rank: int, port: int, stage: Stage, root: Path, out: Path, compute: Compute, answers: Any
) -> None:
    # LOCAL_RANK tells Fabric that somebody else made the processes.
    os.environ |= {
        "LOCAL_RANK": str(rank), "RANK": str(rank), "NODE_RANK": "0",
        "WORLD_SIZE": str(compute.devices), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    if rank == 0:
        answers.put(measured(stage, root, out, compute))
        return
    # Only rank 0 writes an output; all of them resume from its checkpoint.
    with tempfile.TemporaryDirectory() as thrown_away:
        measured(stage, root, Path(thrown_away), compute, checkpoints=out)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
