"""Ctrl-C and SIGTERM: one line, exit code 130 or 143, and an end of all that was begun."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import call

from benchmark.cli.stopping import signals_as_interrupts

ROOT = Path(__file__).parents[2]
RUN = ("run", "-m", "bct", "-p", "open-class", "-t", "glyphs", "--device", "cpu")


def descendants(pid):
    """Processes that another one has begun, on Linux."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(each) for each in children.read_text().split()] if children.exists() else []
    return [*found, *(more for each in found for more in descendants(each))]


def runs(pid):
    """Tell whether a process is there, and no more than not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def listens(pid):
    """Tell a process that handles SIGTERM, as Python by itself does not; elsewhere wait for it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        time.sleep(2.5)
        return True
    (handled,) = re.findall(r"SigCgt:\s*(\w+)", status.read_text())
    return bool(int(handled, 16) >> signal.SIGTERM - 1 & 1)


def stopped(folder, *words, begun, by=signal.SIGINT):
    """Exit code and standard error of a command that a signal stops when ``begun(pid)`` is true.

    An interrupt goes to all processes, as a terminal sends it, another signal to the first alone,
    as a scheduler does. A job in the background ignores interrupts, and so would what it begins.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark.cli.app", *map(str, words)], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    end = time.monotonic() + 120
    while not begun(process.pid) and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    (os.killpg if by == signal.SIGINT else os.kill)(process.pid, by)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def test_a_run_says_that_it_goes_on(tmp_path):
    store = tmp_path / "s"
    words = ("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--set", "recipe.epochs=2000")
    code, err = stopped(tmp_path, *words, "--store", store, begun=lambda _: store.exists())
    assert code == 130
    assert err.splitlines()[-1] == "bench: stopped; the same command goes on from here"
    assert "Traceback" not in err


def test_a_run_that_overwrites_begins_anew(monkeypatch, tmp_path):
    """In this process: what the one above shows of another is not the words."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmark.harness.runs.run_one", interrupted)
    words = ("--existing", "overwrite", "--store", tmp_path / "s", "--out", tmp_path / "o")
    code, _, err = call(*RUN, *words)
    assert code == 130 and err.endswith("bench: stopped; --existing overwrite begins anew\n")


def test_other_verbs_say_that_they_stop(tmp_path):
    code, err = stopped(tmp_path, "upgrade", "--demo", begun=listens)
    assert (code, err) == (130, "bench: stopped\n")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_end_of_an_import(monkeypatch, tmp_path, by, times):
    """Compiled modules abort, or swallow it, and nothing may import half a module."""
    (tmp_path / "begins.py").write_text(
        "import signal, time\n"
        f"for _ in range({times}):\n"
        f"    signal.raise_signal({int(by)})\n"
        "time.sleep(0.2)\n"  # asked again, and again put off
        "whole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(by)
    with pytest.raises(KeyboardInterrupt), signals_as_interrupts() as came:
        import begins

        time.sleep(30)
    assert ("begins" in sys.modules) is (times == 1)
    assert sys.modules.pop("begins", None) is None or begins.whole
    assert set(came) == {by} and signal.getsignal(by) is before


def test_a_signal_put_off_till_the_end_is_none(monkeypatch, tmp_path):
    (tmp_path / "ends.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with signals_as_interrupts() as came:
        import ends  # noqa: F401
    time.sleep(0.1)
    assert came == [signal.SIGINT]


@pytest.mark.parametrize("raised", [
    "raise KeyboardInterrupt",
    "raise ImportError('initialization failed') from KeyboardInterrupt()",  # of pybind11
])  # fmt: skip
def test_an_interrupt_of_code_that_was_text_or_compiled(tmp_path, raised):
    (tmp_path / "begun.py").write_text(
        f"from benchmark.cli import app\napp.app = lambda **_: exec({raised!r})\napp.main([])\n"
    )
    process = subprocess.run(
        [sys.executable, "-m", "begun"], cwd=tmp_path, check=False,
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (130, "bench: stopped\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("wait", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("words", ["check bct", f"{' '.join(RUN)} --processes 2"])
def test_processes_of_a_command_end_in_silence(tmp_path, words, wait, by):
    pids = []

    def children(pid):
        pids[:] = descendants(pid)
        if pids:
            time.sleep(wait)  # imports, then work
        return bool(pids)

    code, err = stopped(tmp_path, *words.split(), begun=children, by=by)
    *progress, told = err.splitlines()
    assert code == 128 + by and told.startswith("bench: stopped")
    assert all(line.startswith("[") for line in progress), err
    time.sleep(0.5)
    assert pids and not any(map(runs, pids))
