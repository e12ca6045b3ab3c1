"""Costs of imports: nothing heavy where nothing is computed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def loaded(code: str) -> set[str]:
    """Names of sys.modules after running ``code`` in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


HEAVY = {"torch", "timm", "lightning_fabric", "matplotlib", "pandas", "numba"}


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import benchmark.api, benchmark.records.record, benchmark.harness.graph", HEAVY),
        ("from benchmark.config import registry; file = registry.method_file('bct:distill')\n"
         "file.summary, file.fingerprint", HEAVY),
        ("import benchmark.metrics.catalog, benchmark.report.tables, leaderboard",
         HEAVY | {"seaborn", "jinja2", "rich"}),
        ("from benchmark.config import registry\nfor name in registry.tasks(): registry.task(name)",
         HEAVY),
        # A site draws them for one page, which takes less than these do.
        ("import benchmark.studies.transfer.plot", {"seaborn", "pandas", "scipy.stats"}),
    ],
)  # fmt: skip
def test_light_imports(code: str, heavy: set[str]) -> None:
    assert not loaded(code) & heavy


def test_help_loads_nothing_heavy() -> None:
    code = (
        "from benchmark.cli.app import main\n"
        "for words in (['--help'], ['run', '--help'], ['info', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit as end: assert end.code == 0"
    )
    assert not loaded(code) & (HEAVY | {"yaml"})


def test_the_public_calls_are_listed() -> None:
    code = "import benchmark; print('\\n'.join(n for n in dir(benchmark) if n[0] != '_'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == [
        "BenchError",
        "Compute",
        "Conversion",
        "convert_file",
        "get_method",
        "load",
        "read_vectors",
        "run",
        "upgrade",
    ]
