"""A package outside of the checkout adds a method, a track and a dataset."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.packages import installed, write_package

from benchmark.config import registry
from benchmark.config.loading import load_track
from benchmark.data.base import read_options
from benchmark.errors import BenchError

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


@pytest.mark.parametrize(
    ("group", "names", "words"),
    [
        (registry.METHODS, {"bct": "others.bct"}, "'bct' exists already"),
        (registry.TRACKS, {"glyphs": "others"}, "'glyphs' exists already"),
        (registry.DATASETS, {"toy": "others.toy"}, "'toy' exists already"),
        (registry.DATASETS, {"lost": "nowhere.lost"}, "'nowhere.lost' cannot be found"),
    ],
)
def test_what_is_taken_or_lost_is_said(group, names, words, tmp_path):
    files = {f"others/{name}.py": "" for name in ("__init__", "bct", "toy")}
    write_package(tmp_path, files, {group: names})
    with installed(tmp_path), pytest.raises(BenchError, match=f"entry point {group}: {words}"):
        registry.method_files(), registry.track_files(), registry.datasets()


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
    protocol = tmp_path / "plain.yaml"
    protocol.write_text(
        "{id: plain, version: 1, title: Plain, source: s, question: q, tasks: [retrieval],"
        " generations: [{name: old, classes: [0.0, 0.3]}, {name: new, classes: [0.3, 1.0]}]}"
    )
    table = bench("run", "-m", "halfway", "-p", "plain.yaml", "-t", "stripes-small", "--store", "s")
    assert "plain on Stripes" in table and "halfway" in table
    record = json.loads(
        (tmp_path / "runs/measured/plain/stripes-small/halfway/seed-0.json").read_text()
    )
    assert record["adapter"]["package"] == "example-shapes 1.0"
    assert record["dataset"]["name"] == "stripes"
    site = tmp_path / Path(bench("leaderboard", "runs", "--out", "board").strip()).parent
    assert "halfway" in (site / "methods.html").read_text()
    assert "x + share * (mean of y - mean of x)" in (site / "methods" / "halfway.html").read_text()
    (board,) = (site / "boards").glob("plain*.html")
    rows = re.findall(r"<tr.*?</tr>", board.read_text(), re.S)
    score = f"{100 * record['scores']['new/old']['cmc_at_1']:.1f}"
    assert any("halfway.html" in row and score in row for row in rows), rows
