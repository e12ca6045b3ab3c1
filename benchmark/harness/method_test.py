"""The test of a method, run in a process of its own, and what can be known of it."""

import ast
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from benchmark.errors import BenchError

_PATIENCE = 1800.0
"""Seconds that a method's test may take."""


def run_test(path: Path) -> int:
    """Run a test file; how many of its tests pass.

    Whether they compare the method with an equation of a paper, no program can know.

    Raises:
        BenchError: If it has no test, asserts nothing, or one fails or does not end.
    """
    if importlib.util.find_spec("pytest") is None:
        raise BenchError(f"{path.name}: cannot be run without the package pytest")
    if not _asserts(path):
        raise BenchError(f"{path.name}: asserts nothing: compare the method with its equation")
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as folder:
        report = Path(folder, "report.xml")
        words = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
            f"--junitxml={report}", str(path),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                words, cwd=path.parents[2], capture_output=True, text=True, timeout=_PATIENCE,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{path.name}: does not end within {_PATIENCE:.0f} s") from error
        if done.returncode or not report.is_file():
            said = [line for line in done.stdout.splitlines() if line.strip()][-1:] or ["no word"]
            raise BenchError(f"{path.name}: expected every test to pass, pytest says: {said[0]}")
        n_passed = _passed(report)
    if not n_passed:
        raise BenchError(f"{path.name}: expected a test that passes, all are skipped")
    return n_passed


def _asserts(path: Path) -> bool:
    """Tell a file that has a test with an assertion, or a call of one."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise BenchError(f"{path.name}: no Python: {error}") from error
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                name = getattr(node, "id", getattr(node, "attr", ""))
                if isinstance(node, ast.Assert) or name.startswith("assert") or name == "raises":
                    return True
    return False


def _passed(report: Path) -> int:
    """Tests that were neither skipped nor expected to fail."""
    cases = ElementTree.parse(report).iter("testcase")
    return sum(not len(case) or all(each.tag.startswith("system") for each in case)
               for case in cases)  # fmt: skip
