"""Run a verb, or a call, in a process of its own with limits, and see what it did.

A :class:`Forks` starts a fork server with everything imported, which forks a child for each case:
milliseconds, not seconds. What :mod:`support.forker` tells of a case is an :class:`Outcome`; what
is wrong with that, is for :mod:`support.detectors`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.forker import carry_out, threads_of_the_server, waited_for_processor

ROOT = Path(__file__).parents[2]
LIGHT = ("pytest", "benchmark.cli.app", "support.jobs")
"""Imports of the command before it knows its verb."""
HEAVY = (
    *LIGHT, "torch", "torch._dynamo", "numba", "matplotlib.pyplot", "pandas", "scipy.stats",
    "sklearn.manifold", "html5lib", "PIL.Image", "benchmark.api", "benchmark.cli.running",
    "benchmark.harness.stages", "benchmark.harness.record_builder",
    "benchmark.report.plots.records", "benchmark.report.plots.sweeps", "leaderboard.site",
    "benchmark.contract.conversion", "benchmark.upgrade.formats.convert",
    "benchmark.upgrade.formats.parquet", "benchmark.upgrade.formats.hdf5", "rich.progress",
)  # fmt: skip
"""Imports of any verb, torch and numba included."""

SECONDS = 10.0
MEMORY = 2**30  # bytes
_SPARE = 3 * MEMORY  # bytes a child may map before the system refuses: the machine is others' too
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Case:
    """A call in a process of its own."""

    args: tuple[Any, ...]
    call: str = "support.jobs:bench"  # module:function
    env: dict[str, str] = field(default_factory=dict)  # beside the scratch folder's
    cwd: Path | None = None  # by default the scratch folder's
    allowed: tuple[Path, ...] = ()  # folders that it may write into, beside out, tmp and cache

    @property
    def words(self) -> str:
        """For people."""
        return " ".join(str(word) for word in self.args)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case."""

    case: Case
    code: int | None  # exit code; None if a signal ended it
    signal: int | None
    timed_out: bool  # and was killed for it
    seconds: float  # without those in which others had the processor
    cpu_seconds: float
    memory_bytes: int  # the most that was resident, with everything that was imported before
    out: bytes
    err: bytes
    events: tuple[str, ...]  # what the audit saw: "run: ...", "wrote: ..."

    @property
    def errors(self) -> str:
        """Standard error as text."""
        return self.err.decode("utf-8", "replace")


class Scratch:
    """A folder in which cases run: home, current folder, temporary files, output.

    ``outside`` holds what nobody may touch, and so do ``home`` and ``cwd``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        for name in ("home/.cache", "cwd", "tmp", "outside", "input", "out"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self.home, self.cwd, self.out, self.input, self.outside = (
            self.root / name for name in ("home", "cwd", "out", "input", "outside")
        )
        self.cache, self.tmp = self.home / ".cache", self.root / "tmp"
        self.marker = self.tmp / "planted-module-was-imported"
        for folder in (self.home, self.cwd, self.outside, self.root / "outside" / "deep"):
            folder.mkdir(exist_ok=True)
            (folder / "keep.txt").write_text("nobody may change this\n")
        body = f"open({str(self.marker)!r}, 'a').write(__name__)\nclass Planted: ...\n"
        (self.cwd / "planted.py").write_text(body)
        (self.cwd / "side_planted.py").write_text(body)

    def env(self) -> dict[str, str]:
        """The environment of a case."""
        return {
            "HOME": str(self.home), "TMPDIR": str(self.tmp), "PATH": os.environ["PATH"],
            "XDG_CACHE_HOME": str(self.cache), "MPLCONFIGDIR": str(self.cache / "matplotlib"),
            "COMPATBENCH_STORE": str(self.cache / "store"), "COLUMNS": "120", "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
        }  # fmt: skip

    def state(self) -> dict[str, tuple[int, ...]]:
        """Files where nobody may write: path -> kind, size, time of the last change."""
        found = {}
        for folder in (self.home, self.cwd, self.outside):
            for path in sorted(folder.rglob("*")):
                if self.cache != path and self.cache not in path.parents:
                    about = path.lstat()
                    key = os.fsencode(path).decode("utf-8", "backslashreplace")
                    found[key] = (about.st_mode, about.st_size, about.st_mtime_ns)
        return found


class Child:
    """A case that runs; ``files`` are where it writes what it prints and what is noted of it."""

    def __init__(self, case: Case, process: Any, files: dict[str, Path]) -> None:
        self.case, self.process, self.files = case, process, files
        self.started = time.monotonic()

    def kill(self) -> None:
        """End it and all that it started, at once, as ``kill -9`` does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet
                os.kill(self.process.pid, signal.SIGKILL)

    def ended(self, seconds: float) -> bool:
        """Wait some seconds for the end of it; whether it has ended."""
        self.process.join(seconds)
        return self.process.exitcode is not None

    def wait(self, seconds: float = 600.0) -> Outcome:
        """Wait for its end, kill it after some seconds in which it might have run."""
        ended, waited = self.ended(seconds), 0.0
        while not ended and (more := waited_for_processor(self.process.pid) - waited) > 0.1:
            ended, waited = self.ended(more), waited + more
        if not ended:
            self.kill()
            if not self.ended(30.0):
                raise TimeoutError(f"{self.case.words}: cannot be killed")
        raw = {n: path.read_bytes() if path.exists() else b"" for n, path in self.files.items()}
        for path in self.files.values():
            path.unlink(missing_ok=True)
        wall = {"seconds": time.monotonic() - self.started, "cpu_seconds": 0.0, "memory_bytes": 0}
        usage, code = json.loads(raw["usage"] or json.dumps(wall)), self.process.exitcode
        return Outcome(
            self.case, code if code >= 0 else None, -code if code < 0 else None, not ended,
            out=raw["out"], err=raw["err"], events=tuple(raw["audit"].decode().splitlines()),
            **usage,
        )  # fmt: skip


class Forks:
    """The fork server, and the folder of what its children tell."""

    def __init__(self, modules: Sequence[str], folder: Path) -> None:
        self.folder, self.numbers = folder, itertools.count()
        before = dict(os.environ)
        os.environ |= {
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "MPLCONFIGDIR": str(folder / "mpl"),
            # pyarrow, which pandas imports where it is installed, begins a thread otherwise.
            "JE_ARROW_MALLOC_CONF": "background_thread:false",
        }  # fmt: skip
        _CONTEXT.set_forkserver_preload(list(modules))
        # A timer of matplotlib's, which lists the fonts, ends a moment after it was cancelled.
        deadline, threads = time.monotonic() + 120, 0
        while threads != 1:
            if time.monotonic() > deadline:
                raise RuntimeError(f"a fork would lose {threads - 1} threads")
            process = _CONTEXT.Process(target=threads_of_the_server)
            process.start()
            process.join()
            threads = process.exitcode
        os.environ.clear()
        os.environ.update(before)

    def start(self, case: Case, scratch: Scratch, spare: int = _SPARE) -> Child:
        """Begin a case; ``spare`` bytes may be mapped before the system refuses."""
        names = ("out", "err", "audit", "usage")
        number = next(self.numbers)
        files = {name: self.folder / f"{number}.{name}" for name in names}
        allowed = [scratch.out, scratch.tmp, scratch.cache, self.folder, *case.allowed]
        process = _CONTEXT.Process(
            target=carry_out,
            args=(case.call, case.args, str(case.cwd or scratch.cwd), scratch.env() | case.env,
                  spare, list(map(str, allowed)), {n: str(path) for n, path in files.items()}),
        )  # fmt: skip
        process.start()
        return Child(case, process, files)

    def run(self, case: Case, scratch: Scratch, seconds: float = SECONDS) -> Outcome:
        """Carry a case out; one that is too slow has a second chance, as machines are busy."""
        outcome = self.start(case, scratch).wait(seconds)
        return self.start(case, scratch).wait(seconds) if outcome.timed_out else outcome
