"""Calls of cases in a process of their own, beside the command: those of the Python side."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def bench(*words: str) -> None:
    """The command."""
    from benchmark.cli.app import main

    main(list(words))


def _told(work: Callable[[], object]) -> None:
    """Bad input as the command tells it."""
    from benchmark.errors import BenchError

    try:
        work()
    except BenchError as error:
        sys.stderr.write(f"bench: {error}\n")
        sys.exit(2)


def convert(folder: str) -> None:
    """Load a conversion, and convert a few vectors of its size."""

    def work() -> None:
        import numpy as np

        from benchmark.contract.conversion import Conversion

        conversion = Conversion.load(folder)
        old, side = conversion.dims.old, conversion.dims.side
        rows = np.ones((2, min(old, 64)), np.float32)
        conversion.convert(rows, np.ones((2, min(side, 64)), np.float32) if side else None)

    _told(work)


def module(path: str) -> None:
    """Read a stored module."""
    from benchmark.models.module import load_module

    _told(lambda: load_module(Path(path)))


def details(path: str) -> None:
    """Read a details file by itself."""
    from support.stored import read_details

    _told(lambda: read_details(Path(path)))


def dataset(name: str, root: str, out: str) -> None:
    """Read a dataset, decode all its images and write it, as a run begins."""

    def work() -> None:
        import numpy as np

        from benchmark.data.base import read_options
        from benchmark.data.serialization import write_dataset

        made = read_options(name).load(Path(root))
        write_dataset(made, Path(out))
        for items in (made.train, *made.evaluations.values()):
            for row in range(len(items)):
                items.images[np.array([row])]

    _told(work)


def fit_and_save(folder: str) -> None:
    """Fit a map on a few vectors and keep it."""

    def work() -> None:
        import numpy as np

        from benchmark.api import get_method

        rng = np.random.default_rng(0)
        old = rng.normal(size=(200, 64)).astype(np.float32)
        new = rng.normal(size=(200, 64)).astype(np.float32)
        get_method("linear").fit(old, new, distance="cosine").save(folder)

    _told(work)


def with_clock(seconds: float, *words: str) -> None:
    """The command, with the clock of its process set forth (or back)."""
    import time

    now = time.time
    time.time = lambda: now() + seconds
    bench(*words)


def in_a_folder_that_is_gone(*words: str) -> None:
    """The command, started in a folder that somebody has removed."""
    import tempfile

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()
    bench(*words)


def toy_run(options: dict[str, Any], out: str, store: str, clock: float = 0.0) -> None:
    """A run on the toy track without table, plots and page, telling what the command tells.

    Args:
        options: ``methods``, ``protocol``, and ``settings`` as of :func:`benchmark.api.run`.
        out: Folder of records.
        store: Folder of stage outputs.
        clock: Seconds by which the clock of this process is set forth (or back).
    """
    import time

    from benchmark.api import run
    from benchmark.cli.running import Progress
    from benchmark.harness.evaluation import details
    from benchmark.harness.execution import Compute
    from benchmark.training import loop

    loop._SAVE_EVERY_S = 0.0  # kills fall between two checkpoints
    if clock:
        now = time.time
        time.time = lambda: now() + clock
    details.draw = lambda *_: None  # type: ignore[assignment]  # the pictures take longest

    def work() -> None:
        with Progress() as reporter:
            run(
                **{"track": "toy", **options}, store=store, out=out, compute=Compute("cpu"),
                reporter=reporter,
            )  # fmt: skip

    _told(work)


def control(what: str, *more: Any) -> None:
    """Do one thing that a detector must see."""
    if what == "write":
        Path(more[0]).write_text(more[1])
    elif what == "print":
        os.write(1, more[0].encode("utf-8", "surrogatepass"))
    elif what == "import":
        __import__(more[0])
    elif what == "fill":
        kept = bytearray(more[0])
        kept[::4096] = b"x" * len(kept[::4096])
    elif what == "exit":
        sys.exit(more[0])
    elif what == "signal":
        os.kill(os.getpid(), more[0])
    elif what == "sleep":
        import time

        time.sleep(more[0])
    elif what == "system":
        os.system(more[0])
    elif what == "raise":
        raise RuntimeError(more[0])
    elif what == "remove":
        Path(more[0]).unlink()
    elif what == "link":
        Path(more[1]).symlink_to(more[0])
        Path(more[1], "through-a-link.txt").write_text("x")
