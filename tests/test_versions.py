"""Versions of packages: the lock file that ``make`` installs, and the lowest that are allowed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CORE = "tests/ranking/test_ranks.py tests/metrics tests/records tests/training/test_loop.py"
"""Tests that a version of NumPy, numba, pandas, pydantic or torch would break first."""


def required():
    """Requirements of the package and of its development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    found = [*project["dependencies"], *extras["dev"]]
    (own,) = (each for each in found if each.startswith(project["name"]))
    names = re.search(r"\[(.*)\]", own)[1].split(",")
    found += [each for name in names for each in extras[name]]
    return [Requirement(each) for each in found if each != own]


def test_the_lock_file_has_a_version_of_everything_within_its_bounds():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = [Requirement(line) for line in lines]
    versions = {canonicalize_name(each.name): str(each.specifier)[2:] for each in locked}
    for each in required():
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each
    assert not [each for each in locked if each.url or "//" in str(each)]


@pytest.mark.slow
def test_the_lowest_versions_run(tmp_path):
    """A new environment with the lowest version of whatever pyproject.toml names."""
    uv, python = [sys.executable, "-m", "uv"], str(tmp_path / "venv" / "bin" / "python")
    made = [*uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")]
    subprocess.run(made, check=True)
    lowest = ["--resolution", "lowest-direct", "--python", python, "--editable", ".[dev]"]
    subprocess.run([*uv, "pip", "install", "--quiet", *lowest], cwd=ROOT, check=True)
    tests = [python, "-m", "pytest", "-n", "0", "-m", "not slow and not gpu", *CORE.split()]
    done = subprocess.run(tests, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    words = [python, "-m", "benchmark.cli.app", "run", "-m", "bct,fct", "-p", "open-class"]
    words += ["-t", "toy", "--device", "cpu", "--out", str(tmp_path), "--store", f"{tmp_path}/s"]
    subprocess.run(words, cwd=ROOT, check=True)
