"""A wheel installed outside the checkout works like the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_wheel(tmp_path) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "--wheel", "--quiet", "--out-dir", tmp_path, ROOT], check=True)
    wheel = next(tmp_path.glob("compatbench-*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if n.startswith(("tests", "results"))]
    assert "protocols/tracks/glyphs.yaml" in names
    site = tmp_path / "site"
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def bench(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "benchmark.cli.app", *words],
            cwd=elsewhere, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(site), "COLUMNS": "160"},
        )  # fmt: skip
        return done.stdout

    assert "mixbct" in bench("list", "methods")
    out = bench("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--store", "store")
    assert "Open-Class on Toy" in out
    assert (elsewhere / "runs" / "site" / "index.html").is_file()
    # Published numbers come along; the site is whole, with all that its pages load.
    assert "fct, Table 1" in bench("published", "--paper", "fct", "--metrics", "cmc_at_1")
    page = Path(bench("leaderboard", "--out", "board").strip())
    assert (elsewhere / page.parent / "published" / "fct.html").is_file()
    assert (elsewhere / page.parent / "assets" / "vendor" / "plot.min.js").is_file()
