"""The README says what is so: its example runs, its commands exist, its table is a run's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.cli.snippets import renewed

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def block(language: str, holding: str) -> str:
    found = [b for b in re.findall(rf"```{language}\n(.*?)```", TEXT, re.S) if holding in b]
    assert len(found) == 1
    return found[0]


@pytest.fixture
def package(tmp_path) -> Path:
    """The README's method as a package of somebody else."""
    (tmp_path / "cosine_method.py").write_text(block("python", "CompatibleTraining"))
    info = tmp_path / "cosine_method-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cosine-method\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[compatbench.methods]\ncosine = cosine_method:Cosine\n")
    return tmp_path


def test_method_example(bench, package) -> None:
    path = f"{ROOT}{os.pathsep}{package}"
    code, out, err = bench("check", "cosine", PYTHONPATH=path)
    assert code == 0, err
    assert "cosine is fine" in out
    assert "weight" in bench("info", "cosine", PYTHONPATH=path)[1]
    assert "Cosine: each new feature" in bench("list", "methods", PYTHONPATH=path)[1]


def test_python_example_names_exist() -> None:
    import benchmark

    code = block("python", "import benchmark\n")
    for name in re.findall(r"benchmark\.(\w+)\(", code):
        assert callable(getattr(benchmark, name))


def test_own_vectors(tmp_path, monkeypatch) -> None:
    """The block on plain arrays runs, and its file is what its array is."""
    import numpy as np

    rng = np.random.default_rng(0)
    for name, shape in {
        "old": (50, 6),
        "new": (50, 5),
        "gallery": (700, 6),
        "queries": (9, 5),
    }.items():
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block("python", "get_method"), names)
    assert names["converted"].shape == (700, 5) and names["queries"].shape == (9, 5)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.load("converted.npy"), names["converted"])


def test_commands_exist(bench) -> None:
    verbs = set(re.findall(r"`bench (\w+)", TEXT))
    assert verbs >= {"run", "list", "info", "table", "plot", "check", "doctor", "perf"}
    assert verbs >= {"show", "compare", "published", "schema"}
    for verb in verbs:
        assert bench(verb, "--help")[0] == 0


def test_every_protocol_has_its_section_and_its_command() -> None:
    from benchmark.config.registry import protocol_files

    text = (ROOT / "protocols" / "README.md").read_text()
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    for name in protocol_files():
        found = [part for heading, part in sections.items() if f"`{name}`" in heading]
        assert len(found) == 1, name
        assert re.search(rf"^    bench run -p {name} -m \S+$", found[0], re.M), name


@pytest.mark.slow
def test_sweeps_of_the_papers_can_be_planned(bench) -> None:
    text = (ROOT / "protocols" / "README.md").read_text()
    commands = re.findall(r"`bench (run [^`]*--sweep [^`]*)`", text)
    assert len(commands) == 3
    for command in commands:
        code, said = bench(*command.split(), "--dry-run")[:2]
        assert code == 0 and " stages, " in said, command


@pytest.mark.parametrize("name", ["README.md", "results/README.md", "protocols/README.md"])
def test_tables_are_those_of_the_committed_records(name, monkeypatch) -> None:
    """What stands between the marks is what the command beside it prints."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / name).read_text()
    assert "<!-- bench table" in text or "<!-- rows: bench table" in text
    assert renewed(text) == text, "run `make tables`"


def test_make_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"run", "test", "lint", "format", "site", "tables"} <= targets
    done = subprocess.run(
        ["make", "-n", "run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "bench run --methods bct,fct,mixbct --protocol open-class" in done.stdout
    assert sys.version_info >= (3, 11)
