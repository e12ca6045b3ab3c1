"""Direction of imports: packages import what stands above them, and nothing in circles."""

import ast
import graphlib
import subprocess
from functools import cache
from pathlib import Path

import pytest
from support.statements import statements

ROOT = Path(__file__).parents[1]
ORDER = (
    "ranking", "metrics", "config", "data", "models", "training", "contract", "tasks", "records",
    "report", "studies", "harness", "upgrade", "pairs", "perf", "leaderboard", "cli",
)  # fmt: skip
LOOSE = {"__init__", "errors", "api"}


def modules() -> dict[str, Path]:
    """Every module of the project, by its dotted name."""
    found = {}
    for root in ("benchmark", "leaderboard", "methods"):
        for path in (ROOT / root).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the project that a file imports, late and for types too."""
    found = set()
    for node in statements(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{a.name}" for a in node.names]
            # A name of a module, rather than a module of a package, is of that module.
            names = [n if n in known else str(node.module) for n in names]
        found |= {name for name in names if name in known}
    return found


def layer(module: str) -> str:
    """``benchmark.data.base`` -> ``data``; what stands directly in benchmark has none."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "benchmark" else first


@cache
def arrows() -> list[tuple[str, str]]:
    known = modules()
    return [(m, other) for m, path in known.items() for other in imports(path, known) - {m}]


def test_three_files_stand_outside_the_packages():
    assert {p.stem for p in (ROOT / "benchmark").glob("*.py")} == LOOSE


def test_files_are_short():
    long = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name: n for name, n in long.items() if n > 400} == {}


def test_no_circle():
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for module, other in arrows():
        graph[module].add(other)
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_no_arrow_against_the_order():
    wrong = []
    for module, other in arrows():
        mine, its = layer(module), layer(other)
        if mine in ORDER and (its == "methods" or its in ORDER[ORDER.index(mine) + 1 :]):
            wrong.append(f"{module} -> {other}")
        if module.startswith("methods.") and not allowed_for_methods(other):
            wrong.append(f"{module} -> {other}")
    assert sorted(wrong) == []


def test_the_leaderboard_computes_no_score():
    """It reads records and shows what report, studies and the cost model make of them."""
    shown = {"backfill_orders", "cost_model", "estimate"}
    taken = {o for m, o in arrows() if layer(m) == "leaderboard" and layer(o) == "metrics"}
    assert {name.rpartition(".")[2] for name in taken} <= shown
    for path in (ROOT / "leaderboard").rglob("*.py"):
        names = {alias.name for node in statements(path)
                 if isinstance(node, ast.Import) for alias in node.names}  # fmt: skip
        assert not names & {"statistics", "scipy", "math"}, path


def allowed_for_methods(other: str) -> bool:
    """An adapter takes the contract, and public parts of models and training."""
    return other == "benchmark.contract" or layer(other) in ("models", "training")


def test_no_file_that_a_run_leaves_is_committed_to_the_root():
    git = ["git", "-C", str(ROOT), "ls-files", "--", ":(glob)*"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no checkout of git")
    files = done.stdout.split()
    assert "README.md" in files
    kinds = {"", ".cff", ".lock", ".md", ".toml"}
    assert [name for name in files if Path(name).suffix not in kinds] == []
