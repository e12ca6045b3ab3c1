"""A package outside of the checkout adds a method, a track and a dataset."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import call
from support.packages import installed, write_package

from benchmark.config import registry
from benchmark.config.entry_points import DATASETS, METHODS, TRACKS
from benchmark.config.loading import load_track
from benchmark.data.base import read_options
from benchmark.errors import BenchError, PassedOverWarning
from benchmark.records.files import read_record
from benchmark.upgrade.fit.maps import map_labels

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "support" / "example_package"
SOURCES = EXAMPLE / "src" / "example_shapes"


def entries() -> dict[str, dict[str, str]]:
    """Its entry points, as its project file has them."""
    import tomllib

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    found: dict[str, dict[str, str]] = project["entry-points"]
    return found


def test_what_it_adds_is_found_and_read(tmp_path):
    files = {f"example_shapes/{path.name}": path.read_text() for path in SOURCES.glob("*.*")}
    write_package(tmp_path, files, entries())
    with installed(tmp_path):
        assert registry.method_file("halfway").summary.startswith("Halfway: the stored gallery")
        track = load_track("stripes-small")
        assert (track.dataset, track.data) == ("stripes", {"images": 6})
        reader = read_options("stripes", {"images": 2, "classes": 6})
        dataset = reader.load(None)
        assert dataset.name == reader.name == "stripes"
        assert len(dataset.train) == 8 and len(dataset.evaluations["test"]) == 4
        with pytest.raises(BenchError, match=r"track 'stripes-smal'; did you mean 'stripes-small'"):
            load_track("stripes-smal")
    assert "stripes" not in registry.datasets() and "stripes-small" not in registry.track_files()


BROKEN = {
    "taken": (METHODS, {"bct": "others.bct"}, "'bct' exists already"),
    "a track's name": (TRACKS, {"glyphs": "others"}, "'glyphs' exists already"),
    "a dataset's name": (DATASETS, {"toy": "others.toy"}, "'toy' exists already"),
    "no module": (METHODS, {"lost": "nowhere.lost"}, "'nowhere.lost' cannot be found"),
    "no track": (TRACKS, {"lost": "nowhere.lost"}, "'nowhere.lost' cannot be found"),
    "no dataset": (DATASETS, {"lost": "nowhere.lost"}, "'nowhere.lost' cannot be found"),
    "no words": (METHODS, {"lost": "a b c"}, "'a b c'"),
    "raises": (METHODS, {"lost": "raising.lost"}, "'raising.lost': ZeroDivisionError: division"),
    "exits": (TRACKS, {"lost": "exiting.lost"}, "'exiting.lost': SystemExit: 7"),
    "no Python": (METHODS, {"lost": "others.half"}, "half.py: SyntaxError: invalid syntax, line 2"),
    "no UTF-8": (METHODS, {"lost": "others.bytes"}, "bytes.py: SyntaxError: "),
}
"""Group, names and what is said of entry points that are broken."""
OTHERS = {
    **{f"others/{name}.py": "" for name in ("__init__", "bct", "toy")},
    "others/half.py": "\ndef (\n", "raising/__init__.py": "1 / 0", "raising/lost.py": "",
    "exiting/__init__.py": "raise SystemExit(7)", "exiting/lost.py": "",
    "others/at_import.py": "import nosuch_module\n", "others/leaves.py": "raise SystemExit(7)",
}  # fmt: skip
UNRELATED = (
    ("list", "methods"), ("list", "tracks"), ("list", "protocols"), ("info", "bct"),
    ("info", "glyphs"), ("data", "list"),
)  # fmt: skip


@pytest.fixture
def broken(tmp_path):
    """Install a broken package, and give what must be said of it."""

    def made(kind):
        group, names, words = BROKEN[kind]
        write_package(tmp_path, OTHERS, {group: names})
        (tmp_path / "others" / "bytes.py").write_bytes(b'x = "\xff"\n')
        return group, next(iter(names)), words

    return made


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_is_named_and_passed_over(broken, kind, tmp_path):
    group, name, words = broken(kind)
    with installed(tmp_path):
        code, out, err = call("list", "tracks" if group == TRACKS else "methods")
        assert code == 0 and "lost" not in out, err
        asked = {METHODS: ("info", name), TRACKS: ("info", name)}.get(
            group, ("data", "check", name)
        )
        if name == "lost":  # those whose name is taken are what they were
            code, out, err = call(*asked)
            assert (code, out) == (2, "") and err.count("\n") == 1 and words in err, err
    with installed(tmp_path):
        code, _, err = call("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--dry-run")
        assert code == 0 and err.startswith("bench: passed over ") and err.count("\n") == 1
        assert words in err and ("others-package 1.0" in err or "others/" in err)
    with installed(tmp_path):
        code, out, err = call("doctor")
        assert code == 2 and "BAD  passed over: " in out and words in out
    with installed(tmp_path), pytest.warns(PassedOverWarning):
        assert any(words in reason for reason in registry.broken())


@pytest.mark.parametrize(("name", "error"), [
    ("at_import", "ModuleNotFoundError"), ("leaves", "SystemExit"),
])  # fmt: skip
def test_a_module_that_cannot_be_imported_stops_only_what_needs_it(tmp_path, name, error):
    write_package(tmp_path, OTHERS, {METHODS: {"lost": f"others.{name}"}})
    said = f"module others.{name} of others-package 1.0 cannot be imported: {error}"
    with installed(tmp_path):
        assert [call(*words)[0] for words in UNRELATED] == [0] * len(UNRELATED)
        code, _, err = call("run", "-m", "lost", "-p", "open-class", "-t", "toy", "--dry-run")
        assert code == 2 and said in err and err.count("\n") == 1
        assert f"{name}.py, line 1" in err
        code, out, _ = call("doctor")
        assert code == 2 and f"BAD  passed over: method lost: {said}" in out
        with pytest.warns(PassedOverWarning, match="lost"):
            assert "procrustes" in map_labels()


def test_a_track_that_cannot_be_read_is_left_out_of_the_list(tmp_path):
    write_package(tmp_path, {"others/__init__.py": ""}, {TRACKS: {"lost": "others"}})
    with installed(tmp_path):
        code, out, err = call("list", "tracks")
        assert code == 0 and "glyphs" in out and "passed over track lost: " in err
        assert call("info", "lost")[0] == 2


def test_a_method_of_the_checkout_that_is_half_written(tmp_path, monkeypatch):
    own = tmp_path / "methods"
    own.mkdir()
    for path in (ROOT / "methods").glob("*.py"):
        (own / path.name).symlink_to(path)
    (own / "half_way.py").write_text("\ndef (\n")
    folder = registry._folder
    monkeypatch.setattr(
        registry, "_folder", lambda name: own if name == "methods" else folder(name)
    )
    with installed(tmp_path):
        code, out, err = call("list", "methods")
        assert code == 0 and "bct" in out and "half-way" not in out
        assert err.count("\n") == 1 and "half_way.py: SyntaxError: invalid syntax, line 2" in err
        for words in (("check", "half-way"), ("info", "half-way"), ("submit", "half-way"),
                      ("run", "-m", "half-way", "-p", "open-class", "--dry-run")):  # fmt: skip
            code, out, err = call(*words)
            assert code == 2 and err.count("\n") == 1 and "line 2" in err, err


@pytest.mark.slow
def test_it_is_built_installed_checked_run_and_shown(tmp_path):
    uv = Path(sys.executable).with_name("uv")
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", EXAMPLE, source], check=True)
    subprocess.run(
        [uv, "build", "--wheel", "--quiet", "--no-build-isolation", "--python", sys.executable,
         "--out-dir", tmp_path, source], check=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("example_shapes-*.whl")
    site = tmp_path / "site-packages"
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )

    def bench(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "benchmark.cli.app", *words],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "COLUMNS": "160"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "halfway" in bench("list", "methods") and "stripes-small" in bench("list", "tracks")
    assert bench("check", "halfway").endswith("halfway is fine\n")
    assert "open-class" in bench("info", str(ROOT / "protocols/open-class.yaml"))
    table = bench("run", "-m", "halfway", "-p", "open-class", "-t", "stripes-small", "--store", "s")
    assert " on Stripes" in table and "halfway" in table
    path = tmp_path / "runs/measured/open-class/stripes-small/halfway/seed-0.json"
    record = read_record(path).as_json()
    assert record["adapter"]["package"] == "example-shapes 1.0"
    assert record["dataset"]["name"] == "stripes"
    site = tmp_path / Path(bench("leaderboard", "runs", "--out", "board").strip()).parent
    assert "halfway" in (site / "methods.html").read_text()
    assert "x + share * (mean of y - mean of x)" in (site / "methods" / "halfway.html").read_text()
    (board,) = (site / "boards").glob("open-class*.html")
    rows = re.findall(r"<tr.*?</tr>", board.read_text(), re.S)
    score = f"{100 * record['scores']['new/old']['cmc_at_1']:.1f}"
    assert any("halfway.html" in row and score in row for row in rows), rows
