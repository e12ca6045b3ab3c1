"""Fixtures that several tests share: small runs on the toy track."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

# One thread, here and in every process that a test starts: tiny products on a busy machine would
# mostly wait for each other, and weights are equal bit for bit only for one number of threads.
# test_processors.py sets another number.
os.environ["OMP_NUM_THREADS"] = os.environ.get("COMPATBENCH_TEST_THREADS", "1")
# pytest-xdist gives its workers a terminal of 80 columns, which they have not.
os.environ.pop("COLUMNS", None)

# Tests make and remove tens of thousands of small files, in memory where there is room for them.
MEMORY, ROOM = Path("/dev/shm"), 1 << 30  # bytes
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OMNIGLOT = ROOT.parent / "shared" / "data" / "omniglot-small"


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Look for no garbage among the modules and tests that are gathered; all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make alone: a million objects are there before.

    At the very end everything goes, as it does without tests.
    """
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Look for examples in no file of tests: there are none, and each file takes its time."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.fixture(scope="session")
def drawn():
    """Draw the pictures of details: what tests leave out of runs, of which it is a third.

    The workload beside which stages are timed is a small one, too, and runs no longer than it must;
    git says once what the commit is, and nobody waits for the disk.
    """
    from benchmark.harness import execution, record_builder
    from benchmark.harness.evaluation import details

    really = details.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(details, "draw", lambda *_: None)
        patch.setattr(execution, "convolution", lambda: sum(range(10_000)))
        patch.setattr(execution, "_SHARE", 0.0)
        patch.setattr(record_builder, "code_version", cache(record_builder.code_version))
        patch.setattr(os, "fsync", lambda _: None)
        yield really


@pytest.fixture(scope="session", autouse=True)
def _short_runs(request) -> None:
    """Runs leave out what takes long; where no test has torch, there is no run to shorten."""
    if "torch" in sys.modules:
        request.getfixturevalue("drawn")


@pytest.fixture(scope="session")
def cards(tmp_path_factory) -> Path:
    """A folder for the cards of methods, which each page has: made once in a session."""
    return tmp_path_factory.mktemp("cards")


@pytest.fixture
def pictures(drawn, monkeypatch) -> None:
    """Runs of this test draw the pictures of their details, as the command does."""
    monkeypatch.setattr("benchmark.harness.evaluation.details.draw", drawn)


@pytest.fixture(scope="session")
def omniglot() -> Path:
    """Folder of the small omniglot archives."""
    if not OMNIGLOT.is_dir():
        pytest.skip("the omniglot archives are not beside the checkout")
    return OMNIGLOT


@pytest.fixture(scope="module")
def browser():
    """A browser that is installed; tests that need one are passed over without."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found ({', '.join(BROWSERS)})")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def bench():
    """Run the command in a process of its own; gives exit code, stdout, stderr."""

    def run(*words: str, cwd: Path | None = None, **env: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "benchmark.cli.app", *map(str, words)],
            capture_output=True, text=True, cwd=cwd or ROOT, timeout=600, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **env},
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


class Heard:
    """A reporter that remembers which stages ran, and what was left out before which of them."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.left: list[tuple[str, str, int]] = []

    def left_out(self, label, reason) -> None:
        self.left.append((label, reason, len(self.titles)))

    def planned(self, stages, track) -> None:
        pass

    def start(self, stage, number, total):
        self.titles.append(stage.title)
        return lambda share: None

    def done(self, stage, seconds) -> None:
        pass


@pytest.fixture
def heard() -> Heard:
    return Heard()
