"""The arrows between the packages, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    p
    for package in ("benchmark", "methods", "protocols", "leaderboard")
    for p in sorted((ROOT / package).rglob("*.py"))
]


def imports(path: Path) -> set[str]:
    """Modules that a file imports when it runs; imports for type checkers alone do not count."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(path: Path) -> set[str]:
    heads = ("benchmark", "methods", "protocols", "leaderboard")
    return {m for m in imports(path) if m.split(".")[0] in heads}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    place = path.relative_to(ROOT).parts
    names = ours(path)
    if place[0] == "methods":
        assert not {m for m in names if m.startswith(("methods", "leaderboard"))}
    if place[0] == "benchmark":
        assert not {m for m in names if m.startswith("methods")}
    if place[:2] == ("benchmark", "metrics"):
        assert {m for m in names if not m.startswith("benchmark.metrics")} <= {"benchmark"}
    if place[:2] == ("benchmark", "tasks"):
        assert all(m.startswith(("benchmark.metrics", "benchmark.tasks")) for m in names)
    if place[0] == "leaderboard":
        assert not {m for m in names if m.startswith("methods")}
        assert not {m for m in names if m.startswith(("benchmark.tasks", "benchmark.training"))}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


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
        "from benchmark import registry; registry.method_file('bct:distill').summary",
        "import benchmark.metrics.catalog, benchmark.report, leaderboard",
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
