"""Runs that are killed again and again, and runs at once on one store: the same records."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import replace

import pytest
from support.detectors import Finding, process
from support.isolated import Case, Scratch
from support.runs import Run, differences, results

from benchmark.harness.store import Store

pytestmark = pytest.mark.slow

# Trainings of many epochs, each of which leaves a checkpoint.
LONG = {"recipe.epochs": 12}
KILLS = 100
LIMIT = 300.0  # seconds
TOGETHER = (2, 4, 8)


@pytest.fixture(scope="module")
def undisturbed(forks, tmp_path_factory):
    """A run of some seconds: it, its results, and how long it takes."""
    root = tmp_path_factory.mktemp("undisturbed")
    run = Run(("bct", "procrustes"), "open-class", LONG, root / "store")
    started = time.monotonic()
    run.carry_out(forks, Scratch(root / "scratch"), root / "out")
    return run, results(root / "out"), time.monotonic() - started


def test_kills(undisturbed, forks, tmp_path, campaign):
    """Killed at a random moment, the same command goes on, and is killed again, to the end."""
    run, right, duration = undisturbed
    one = campaign("kills", f"kill -9 at a random moment of a run of {duration:.0f} s")
    scratch, rng = Scratch(tmp_path / "scratch"), random.Random(20)
    n_kills = n_runs = 0
    while n_kills < KILLS:
        store, out = tmp_path / "store", tmp_path / "out"
        chain, ended, finished = replace(run, store=store), None, {}
        while ended is None:
            child = forks.start(chain.case(out), scratch)
            # Those that go on have less to do, yet any moment of theirs may be the one.
            if n_kills < KILLS and not child.ended(rng.uniform(0, duration)):
                child.kill()
                outcome, n_kills = child.wait(LIMIT), n_kills + 1
                finished |= _stamps(store)
                found = [f for f in process(outcome, (0, None), LIMIT) if f.kind != "crash"]
                one.add(f"kill {n_kills}", found)
            else:
                ended = child.wait(LIMIT)
        n_runs += 1
        found = [*process(ended, (0,), LIMIT), *_differences(out, right, store)]
        if not finished.items() <= _stamps(store).items():
            found.append(Finding("lost", "a stage that was finished before a kill was made again"))
        if "damaged" in ended.errors:
            found.append(Finding("torn", f"a kill left damage: {ended.errors[:300]}"))
        one.add(f"run {n_runs}", found, tried=0, ends=1)
        shutil.rmtree(store)
        shutil.rmtree(out)
    assert n_runs >= 5, "runs that are killed come to an end"


def _stamps(store):
    """Times at which finished stages were made, by name."""
    return {path.parent.name: path.stat().st_mtime_ns for path in store.glob("stages/*/stage.json")}


@pytest.mark.parametrize("n", TOGETHER)
def test_processes_at_once(undisturbed, n, forks, tmp_path, campaign):
    """On one store, half of them with one folder of records as well; one of them is killed."""
    run, right, duration = undisturbed
    one = campaign("at-once", "2, 4 and 8 processes at once on one store")
    scratch, store = Scratch(tmp_path / "scratch"), tmp_path / "store"
    shared = replace(run, store=store)
    outs = [tmp_path / f"out{i if i % 2 else 0}" for i in range(n)]
    children = [forks.start(shared.case(out), scratch) for out in outs]
    if n > 2:
        time.sleep(duration / 2)
        children[-1].kill()
    for i, (child, out) in enumerate(zip(children, outs, strict=True)):
        outcome = child.wait(2 * LIMIT)
        if n > 2 and i == n - 1:
            continue
        one.add(
            f"process {i}", [*process(outcome, (0,), 2 * LIMIT), *_differences(out, right, store)]
        )
    words = ("store", "verify", f"--store={store}")
    verified = forks.run(Case(words, allowed=(store,)), scratch)
    one.add("verify", process(verified, (0,), 60.0), tried=0)


def _differences(out, right, store) -> list[Finding]:
    """Records unlike the undisturbed run's, and stages that are not whole."""
    kept = Store(store)
    torn = [
        Finding("torn", f"{entry.name}: {harm}")
        for entry in kept.entries()
        if entry.finished and (harm := kept.damage(entry.name)) is not None
    ]
    return torn + differences(out, right)
