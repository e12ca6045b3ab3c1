"""One stage, in this process; a training on several devices in a process for each.

That is what the ``ddp`` strategy of Lightning Fabric expects.
"""

import json
import os
import socket
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmark.config.files import write_whole
from benchmark.errors import BenchError, PassedOverWarning, RefusedError
from benchmark.harness.execution import Compute, Outcome, measured
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store
from benchmark.harness.work import TrainingWork

_OUTCOME = "rank-0.json"
_REFUSED = "refused.txt"


def run_one(
    stage: Stage, store: Store, compute: Compute, progress: Callable[[float], None]
) -> None:
    """Run one stage into the store, unless it is there already and whole."""
    with store.writing(stage.name) as out:
        if out is None:
            return
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
        BenchError: If a process fails, or there are not so many devices.
    """
    from torch.multiprocessing.spawn import ProcessException, spawn

    from benchmark.training.device import Device, require_here

    require_here(Device(compute.accelerator, compute.devices))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    (out / _REFUSED).unlink(missing_ok=True)  # an earlier run's
    arguments = (port, stage, store.root, out, compute)
    try:
        # A rank that fails ends the others, which would wait for it for ever.
        spawn(_rank, args=arguments, nprocs=compute.devices)  # type: ignore[no-untyped-call]
    except ProcessException as error:
        if (out / _REFUSED).exists():
            raise RefusedError((out / _REFUSED).read_text()) from error
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
    except RefusedError as error:
        write_whole(out / _REFUSED, str(error))
        raise
