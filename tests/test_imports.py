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


@pytest.mark.parametrize(
    "code",
    [
        "import benchmark",
        "import benchmark.cli.app",
        "import benchmark.api, benchmark.records.record, benchmark.harness.graph",
        "from benchmark.config import registry; registry.method_file('bct:distill').summary",
        "import benchmark.metrics.catalog, benchmark.report, leaderboard",
        "from benchmark.config import registry\nfor name in registry.tasks(): registry.task(name)",
    ],
)
def test_light_imports(code: str) -> None:
    assert not loaded(code) & {"torch", "timm", "lightning_fabric", "matplotlib", "pandas", "numba"}


def test_help_loads_nothing_heavy() -> None:
    code = (
        "from benchmark.cli.app import main\n"
        "for words in (['--help'], ['run', '--help'], ['info', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit as end: assert end.code == 0"
    )
    heavy = {"torch", "timm", "lightning_fabric", "matplotlib", "pandas", "numba", "yaml"}
    assert not loaded(code) & heavy


def test_the_public_calls_are_listed() -> None:
    code = "import benchmark; print('\\n'.join(n for n in dir(benchmark) if n[0] != '_'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == [
        "BenchError",
        "Conversion",
        "convert_file",
        "get_method",
        "load",
        "read_vectors",
        "run",
        "upgrade",
    ]
