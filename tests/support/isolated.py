"""Run a verb, or a call, in a process of its own with limits, and see what it did.

A :class:`Forks` starts one process that imports everything (:mod:`support.forker`) and forks it for
each case. What it reports of a case is an :class:`Outcome`; what is wrong with that, is for
:mod:`support.detectors`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from support.forker import waited_for_processor

ROOT = Path(__file__).parents[2]
LIGHT = ("benchmark.cli.app", "support.jobs")
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


@dataclass(frozen=True)
class Case:
    """A call in a process of its own."""

    args: tuple[Any, ...]  # JSON-able
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
    """A case that runs."""

    def __init__(self, forks: Forks, number: int, case: Case, folder: Path, pid: int) -> None:
        self.forks, self.number, self.case, self.folder, self.pid = forks, number, case, folder, pid

    def kill(self) -> None:
        """End it and all that it started, at once, as ``kill -9`` does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def ended(self, seconds: float) -> bool:
        """Wait some seconds for the end of it; whether it has ended."""
        return self.forks.hear(lambda: self.number in self.forks.ends, seconds)

    def wait(self, seconds: float = 600.0) -> Outcome:
        """Wait for its end, kill it after some seconds in which it might have run."""
        ended, waited = self.ended(seconds), 0.0
        while not ended and (more := waited_for_processor(self.pid) - waited) > 0.1:
            ended, waited = self.ended(more), waited + more
        timed_out = not ended
        if timed_out:
            self.kill()
            if not self.ended(30.0):
                raise TimeoutError(f"{self.case.words}: cannot be killed")
        end = self.forks.ends.pop(self.number)
        texts = [(self.folder / f"{self.number}.{n}") for n in ("out", "err", "audit")]
        out, err, audit = (path.read_bytes() if path.exists() else b"" for path in texts)
        for path in texts:
            path.unlink(missing_ok=True)
        return Outcome(
            self.case, end["code"], end["signal"], timed_out, end["seconds"], end["cpu_seconds"],
            end["memory_bytes"], out, err, tuple(audit.decode().splitlines()),
        )  # fmt: skip


class Forks:
    """The process that forks, and what it has told."""

    def __init__(self, modules: Sequence[str], folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
            "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "MPLCONFIGDIR": str(folder / "mpl"),
            # pyarrow, which pandas imports where it is installed, begins a thread otherwise.
            "JE_ARROW_MALLOC_CONF": "background_thread:false",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.forker", *modules], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=environment, cwd=folder, bufsize=0,
        )  # fmt: skip
        self.numbers = itertools.count()
        self.begun: dict[int, int] = {}
        self.ends: dict[int, dict[str, Any]] = {}
        self._rest = b""
        if not self.hear(lambda: -1 in self.begun, 120.0):
            raise TimeoutError("the forking process does not begin")
        if self.begun[-1] != 1:
            raise RuntimeError(f"a fork would lose {self.begun[-1] - 1} threads")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)

    def start(self, case: Case, scratch: Scratch, spare: int = _SPARE) -> Child:
        """Begin a case; ``spare`` bytes may be mapped before the system refuses."""
        number = next(self.numbers)
        files = {n: str(self.folder / f"{number}.{n}") for n in ("out", "err", "audit")}
        allowed = [scratch.out, scratch.tmp, scratch.cache, self.folder, *case.allowed]
        value = {
            "id": number, "call": case.call, "args": list(case.args),
            "cwd": str(case.cwd or scratch.cwd), "env": scratch.env() | case.env,
            "memory_bytes": spare, "allowed": list(map(str, allowed)), **files,
        }  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        if not self.hear(lambda: number in self.begun, 60.0):
            raise TimeoutError("no child begins")
        return Child(self, number, case, self.folder, self.begun.pop(number))

    def run(self, case: Case, scratch: Scratch, seconds: float = SECONDS) -> Outcome:
        """Carry a case out; one that is too slow has a second chance, as machines are busy."""
        outcome = self.start(case, scratch).wait(seconds)
        return self.start(case, scratch).wait(seconds) if outcome.timed_out else outcome

    def hear(self, enough: Any, seconds: float) -> bool:
        """Take up answers until it is enough, for some seconds at most; whether it is."""
        end = time.monotonic() + seconds
        assert self.process.stdout is not None
        while not enough():
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return bool(enough())
            content = os.read(self.process.stdout.fileno(), 1 << 16)
            if not content:
                raise RuntimeError("the forking process has ended")
            *lines, self._rest = (self._rest + content).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        return True

    def _take(self, said: dict[str, Any]) -> None:
        if "code" in said:
            self.ends[said["id"]] = said
        else:
            self.begun[said["id"]] = said.get("pid", said.get("threads"))


@contextlib.contextmanager
def forking(modules: Sequence[str], folder: Path) -> Iterator[Forks]:
    """A process that forks cases, for a while."""
    with Forks(modules, folder) as forks:
        yield forks
