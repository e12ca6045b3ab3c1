"""Disks that are full or cannot be written, odd paths, clocks set back, homes that are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import hostile
from support.detectors import Finding, findings, process, terminal
from support.isolated import ROOT, Case, Forks, Outcome, Scratch
from support.mounts import grow, read_only, small_disk
from support.runs import Run, differences, linked_copy, results

pytestmark = pytest.mark.slow

SIZES = tuple(2**n for n in range(12, 28))  # bytes, 4 KiB to 128 MiB
ENOUGH = 2**29
LIMIT = 300.0  # seconds
YEAR = 365 * 24 * 3600.0
SETTINGS = {"recipe.epochs": 1, "recipe.transform_steps": 5}
WORDS = (
    "run",
    "--methods=procrustes",
    "--protocol=open-class",
    "--track=toy",
    "--device=cpu",
    *(f"--set={key}={value}" for key, value in SETTINGS.items()),
)


@pytest.fixture(scope="module")
def done(forks, tmp_path_factory):
    """A finished run of the command: ``store`` and ``out`` below a folder, and its results."""
    root = tmp_path_factory.mktemp("done")
    words = (*WORDS, f"--store={root}/store", f"--out={root}/out")
    outcome = forks.start(Case(words), Scratch(root / "scratch")).wait(LIMIT)
    assert outcome.code == 0, outcome.errors
    vectors = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    np.save(root / "vectors.npy", vectors)
    conversion = Case((str(root / "conversion"),), "support.jobs:fit_and_save", allowed=(root,))
    assert forks.start(conversion, Scratch(root / "scratch")).wait(LIMIT).code == 0
    return root, results(root / "out")


@pytest.fixture(scope="module")
def right(done, forks):
    """Outcome of the same run without pictures, undisturbed."""
    root, _ = done
    run = Run(("procrustes",), "open-class", SETTINGS, root / "store-without-pictures")
    run.carry_out(forks, Scratch(root / "scratch"), root / "without-pictures")
    return results(root / "without-pictures")


def _run_into(part: str) -> Callable[[Path, Path], Case]:
    def case(root: Path, disk: Path) -> Case:
        folders = {"store": root / "store", "out": root / "scratch" / "out"} | {part: disk / part}
        return Case((*WORDS, *(f"--{name}={path}" for name, path in folders.items())))

    return case


def _sweep(root: Path, disk: Path) -> Case:
    words = (*WORDS, f"--store={root}/sweep-store", f"--out={disk}/out", "--sweep=old.dim=8,16")
    return Case(words, allowed=(root,))


WRITERS: dict[str, Callable[[Path, Path], Case]] = {
    "run-store": _run_into("store"),
    "run-out": _run_into("out"),
    "sweep": _sweep,
    "plot": lambda root, disk: Case(("plot", f"{root}/out", f"--out={disk}/plots")),
    "leaderboard": lambda root, disk: Case(("leaderboard", f"{root}/out", f"--out={disk}/site")),
    "save": lambda root, disk: Case((f"{disk}/conversion",), "support.jobs:fit_and_save"),
    "convert": lambda root, disk: Case(
        ("convert", f"{root}/conversion", f"{root}/vectors.npy", f"{disk}/out.npy", "--force")
    ),
    "perf": lambda root, disk: Case(("perf", "convert", "--items=50", f"--json={disk}/a/b.json")),
}  # fmt: skip


def _process(outcome: Outcome, codes: tuple[int, ...]) -> list[Finding]:
    """Faults of a process; what a benchmark takes to be timed is its own choice."""
    found = process(outcome, codes, LIMIT)
    return [each for each in found if each.kind != "large" or outcome.case.args[0] != "perf"]


@pytest.mark.parametrize("name", WRITERS)
def test_full_disks(name, done, forks: Forks, tmp_path, campaign):
    """At each size one line or success; with more room the same command ends as ever."""
    root, right = done
    one = campaign("full-disk", "disks of growing sizes, full while a verb writes")
    scratch, refused = Scratch(tmp_path / "scratch"), 0
    for size in SIZES:
        with small_disk(tmp_path / "disk", size) as disk:
            shutil.rmtree(root / "scratch" / "out", ignore_errors=True)  # records would answer
            if name == "perf" and size == SIZES[0]:  # the smallest disk has room for its numbers
                (disk / "else").write_bytes(bytes(size))
            case = replace(WRITERS[name](root, disk), allowed=(disk, root))
            first = forks.start(case, scratch).wait(LIMIT)
            found = [*_process(first, (0, 2)), *terminal(first)]
            refused += first.code == 2
            grow(disk, ENOUGH)
            again = forks.start(case, scratch).wait(LIMIT)
            found += _process(again, (0,))
            left = [str(p) for p in disk.rglob("*") if ".part" in p.name or ".write-" in p.name]
            if left:
                found.append(Finding("left", f"of the first try: {left[:3]}"))
            if name == "run-out" and again.code == 0:
                found += differences(disk / "out", right)
            one.add(f"{name}, {size} bytes", found, told=int(first.code == 2))
        if first.code == 0:
            break
    assert first.code == 0, "it ends well where there is room"
    assert refused, "no disk was too small"


@pytest.mark.parametrize(
    "words",
    [("schema",), ("table", "OUT"), ("table", "OUT", "-f", "csv"), ("show", "OUT", "--json"),
     ("list", "methods"), ("info", "bct"), ("published",), ("run",)],
    ids=" ".join,
)  # fmt: skip
def test_a_full_disk_behind_standard_output(words, done, tmp_path, campaign):
    """``bench schema > file`` where the file cannot be written; ``| head``, which stops reading."""
    root, _ = done
    one = campaign("stdout", "standard output into a full disk, and a pipe nobody reads")
    words = tuple(str(root / "out") if word == "OUT" else word for word in words)
    if words == ("run",):
        words = (*WORDS, f"--store={root}/store", f"--out={root}/out")
    for place in ("full", "closed"):
        reader, writer = os.pipe()
        os.close(reader)
        target = os.open("/dev/full", os.O_WRONLY) if place == "full" else writer
        done_ = subprocess.run(
            [sys.executable, "-m", "benchmark.cli.app", *words], stdout=target, timeout=120,
            stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
        )  # fmt: skip
        os.close(writer)
        if place == "full":
            os.close(target)
        found = []
        if "Traceback" in done_.stderr or "Exception ignored" in done_.stderr:
            found.append(Finding("traceback", done_.stderr.strip().splitlines()[-1]))
        if place == "full" and (done_.returncode in (0, 1, 120) or not done_.stderr.strip()):
            found.append(Finding("crash", f"exit code {done_.returncode}: {done_.stderr!r}"))
        one.add(f"{' '.join(words)} into a {place} pipe", found)


def test_disks_that_cannot_be_written(done, forks, tmp_path, campaign):
    """A finished run answers from a store, and readers from records, that nobody may write."""
    root, right = done
    one = campaign("read-only", "verbs on disks that cannot be written")
    scratch = Scratch(tmp_path / "scratch")
    kept = tmp_path / "kept"
    linked_copy(root / "store", kept / "store")
    linked_copy(root / "out", kept / "out")
    new, old = scratch.out / "new", f"--out={kept}/out"
    store = f"--store={kept}/store"
    with read_only(kept):
        for words, codes in (
            ((*WORDS, store, f"--out={new}"), (0,)),
            ((*WORDS, store, old), (0, 2)),
            (("table", f"{kept}/out"), (0,)),
            (("show", f"{kept}/out"), (0,)),
            (("leaderboard", f"{kept}/out", f"--out={scratch.out}/site"), (0,)),
            (("store", "status", store), (0,)), (("store", "verify", store), (0,)),
            (("store", "clean", store), (0, 2)),
            (("store", "clean", store, "--older-than=0"), (0, 2)),
            (("plot", f"{kept}/out", f"--out={kept}/plots"), (2,)),
            (("leaderboard", f"{kept}/out", f"--out={kept}/site"), (2,)),
            ((*WORDS, f"--store={kept}/other", f"--out={new}2"), (2,)),
            (("perf", "convert", "--items=50", f"--json={kept}/x.json"), (2,)),
        ):  # fmt: skip
            outcome = forks.start(Case(words), scratch).wait(LIMIT)
            found = [*process(outcome, codes, LIMIT), *terminal(outcome)]
            one.add(" ".join(words), found, told=int(outcome.code == 2))
    one.add("records", differences(new, right))


ODD = {
    "spaces": "a b  c", "quotes": "it's \"so\"", "umlauts": "Größe ß", "emoji": "\U0001f600",
    "line-break": "a\nb", "dash": "-rf", "200-letters": "n" * 200, "not-utf-8": "a\udcff\udcfe",
    "escape": "\x1b[2J", "right-to-left": "\u202eabc", "percent": "%s%d", "glob": "[a-z]*?",
    "dollar": "$HOME`x`", "backslash": "a\\b", "dots": "...", "colon": "a:b", "markup": "<b>&amp;",
    "rich": "[bold red]", "tilde": "~root", "hash": "#x", "tab": "a\tb", "nfd": "u\u0308",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_paths(name, done, right, forks, tmp_path, campaign):
    """Store, records, output and vectors in folders of odd names."""
    root, pictured = done
    # What reads weights takes paths in UTF-8 alone.
    codes = (2,) if name == "not-utf-8" else (0,)
    one = campaign("odd-path", "folders with odd names")
    scratch = Scratch(tmp_path / "scratch")
    odd = scratch.out / ODD[name]
    store, out = odd / "store", odd / "out"
    linked_copy(root / "store", store)
    words = (*WORDS, f"--store={store}", f"--out={out}")
    run = Run(("procrustes",), "open-class", SETTINGS, odd / "store2")
    before = scratch.state()
    computing = (
        Case(words), Case(words, cwd=odd), Case((*words, "--dry-run")),
        Case((*WORDS, "--store=store", "--out=out"), cwd=odd), run.case(odd / "out2"),
        Case(("store", "verify", f"--store={store}")), Case(("store", "clean", f"--store={store}")),
    )  # fmt: skip
    reading = (
        Case(("table", str(out))), Case(("show", str(out))),
        Case(("plot", str(out), f"--out={odd}/plots")),
        Case(("leaderboard", str(out), f"--out={odd}/site")),
        Case(("leaderboard", ".", f"--out={odd}/b"), cwd=out),
        Case((f"{odd}/conversion",), "support.jobs:fit_and_save"),
        Case(("convert", f"{root}/conversion", f"{root}/vectors.npy", f"{odd}/v.npy")),
    )  # fmt: skip
    for case in (*computing, *reading):
        if case is reading[0] and codes != (0,):
            linked_copy(root / "out", out)
        outcome = forks.start(case, scratch).wait(LIMIT)
        expected = codes if case in computing else (0,)
        found = findings(outcome, scratch, before, expected, LIMIT)
        told = int(outcome.code == 2)
        one.add(f"{name}: {case.call} {case.words[:150]}", found, told=told)
    for folder, whole in (("out", pictured), ("out2", right)):
        if codes == (0,) or folder == "out":
            one.add("records", differences(odd / folder, whole))
    hostile.empty(scratch.out)


def test_clocks_set_back(right, forks, tmp_path, campaign):
    """Stages and records from the future, a clock that goes back while a run goes on."""
    one = campaign("clocks", "clocks that are wrong, and set back during a run")
    scratch = Scratch(tmp_path / "scratch")
    for number, (clock, then) in enumerate(
        ((10 * YEAR, -10 * YEAR), (-10 * YEAR, 0.0), (-60 * YEAR, 60 * YEAR), (0.0, -1.0))
    ):
        run = Run(("procrustes",), "open-class", SETTINGS, tmp_path / f"store{number}")
        out = tmp_path / f"out{number}"
        child = forks.start(run.case(out, clock), scratch)
        child.ended(0.7)
        child.kill()
        child.wait()
        for path in [*run.store.rglob("*"), *out.rglob("*")]:
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime + clock))
        outcome = forks.start(run.case(out, then), scratch).wait(LIMIT)
        found = [*process(outcome, (0,), LIMIT), *differences(out, right)]
        one.add(f"from {clock:g} s to {then:g} s", found)
        for words in (("store", "status"), ("store", "verify"), ("store", "clean"),
                      ("store", "clean", "--older-than=1")):  # fmt: skip
            case = Case(
                (then, *words, f"--store={run.store}"), "support.jobs:with_clock",
                allowed=(run.store,),
            )  # fmt: skip
            outcome = forks.start(case, scratch).wait(LIMIT)
            one.add(f"{' '.join(words)} at {then:g} s", process(outcome, (0,), LIMIT))


def test_places_that_are_missing(done, forks, tmp_path, campaign):
    """No home, no place for temporary files, no terminal width, a current folder that is gone."""
    root, _ = done
    one = campaign(
        "places", "a home, a place for temporary files, a current folder that is missing"
    )
    scratch = Scratch(tmp_path / "scratch")
    nothing = "/dev/null/nothing"
    away = {"HOME": nothing, "XDG_CACHE_HOME": "", "COMPATBENCH_STORE": "", "MPLCONFIGDIR": ""}
    verbs = (
        ("list", "methods"), ("info", "bct"), ("doctor",), ("table", f"{root}/out"), ("published",),
        ("plot", f"{root}/out", f"--out={scratch.out}/plots"), ("schema",), ("run", *WORDS[1:]),
        ("leaderboard", f"{root}/out", f"--out={scratch.out}/site"), ("store", "status"),
        (*WORDS, "--dry-run"), (*WORDS, f"--store={root}/store", f"--out={scratch.out}/run"),
    )  # fmt: skip
    for label, env in (
        ("home", away), ("temporary files", {"TMPDIR": nothing}),
        ("language", {"LANG": "C", "LC_ALL": "C"}), ("width", {"COLUMNS": "0"}),
        ("tiny width", {"COLUMNS": "5"}), ("width of text", {"COLUMNS": "x"}),
        ("path", {"PATH": ""}), ("store", {"COMPATBENCH_STORE": f"{root}/vectors.npy"}),
    ):  # fmt: skip
        for words in verbs:
            case = Case(words, env={**env, "PYTHONPATH": str(ROOT)}, allowed=(root,))
            outcome = forks.start(case, scratch).wait(LIMIT)
            found = [*process(outcome, (0, 2), LIMIT), *terminal(outcome)]
            one.add(f"no {label}: {words[0]}", found, told=int(outcome.code == 2))
            shutil.rmtree(scratch.out)
            scratch.out.mkdir()
    for words in verbs:
        case = Case(words, "support.jobs:in_a_folder_that_is_gone", allowed=(root,))
        outcome = forks.start(case, scratch).wait(LIMIT)
        one.add(f"in a folder that is gone: {words[0]}", process(outcome, (0, 2), LIMIT))
