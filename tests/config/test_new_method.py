"""A new method from a template: whole or not at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import call

from benchmark.config import registry
from benchmark.config.entry_points import METHODS
from benchmark.config.new_method import PLACEHOLDERS, placeholders, write_method
from benchmark.errors import BenchError
from benchmark.harness.checking import method

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path) -> Path:
    for folder in ("methods", "tests/methods"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return tmp_path


@pytest.mark.parametrize("kind", ["training", "map"])
def test_both_files_are_written_and_clean(kind, checkout):
    paths = write_method("my-new-idea", kind, checkout)
    assert [str(p.relative_to(checkout)) for p in paths] == [
        "methods/my_new_idea.py", "tests/methods/test_my_new_idea.py",
    ]  # fmt: skip
    (cls,) = [n for n in ast.parse(paths[0].read_text()).body if isinstance(n, ast.ClassDef)]
    assert cls.name == "MyNewIdea"
    assert "from methods.my_new_idea import MyNewIdea" in paths[1].read_text()
    left = placeholders(paths[0].read_text())
    assert all(f"'{words.strip()}'" in left for words in PLACEHOLDERS), "what is left tells them"
    ours = 'lint.isort.known-first-party=["benchmark", "methods"]'
    for words in (["check", "--config", ours], ["format", "--check"]):
        subprocess.run([sys.executable, "-m", "ruff", *words, *paths], check=True, cwd=checkout)
    with pytest.raises(BenchError, match="exists already"):
        write_method("my-new-idea", kind, checkout)


@pytest.mark.parametrize(
    "name", ["", "My-idea", "my_idea", "-idea", "my--idea", "../idea", "class", "x" * 41, "1st"]
)
def test_names_that_cannot_be(name, checkout):
    with pytest.raises(BenchError, match="expected lower-case letters"):
        write_method(name, "training", checkout)
    assert not list(checkout.rglob("*.py"))


def test_taken_names_and_other_folders(checkout, tmp_path):
    for kind, name in (("method", "bct"), ("protocol", "open-class"), ("track", "toy")):
        with pytest.raises(BenchError, match=f"a {kind} '{name}' already"):
            write_method(name, "map", checkout)
    (checkout / "tests" / "methods" / "test_other.py").write_text("mine")
    with pytest.raises(BenchError, match=r"test_other\.py exists already"):
        write_method("other", "map", checkout)
    assert not (checkout / "methods" / "other.py").exists()
    with pytest.raises(BenchError, match=f"no checkout.*{METHODS}"):
        write_method("other", "map", tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["new", "old", "recipe", "data", "v2"])
def test_names_of_models_and_of_what_is_set_are_refused(name, checkout):
    """A protocol has them: every later run would fail, or `--set` change something else."""
    with pytest.raises(BenchError, match=f"expected another name than those .* got '{name}'"):
        write_method(name, "map", checkout)
    assert not [*(checkout / "methods").iterdir()]


def test_a_check_tells_what_is_left_of_the_template(checkout, monkeypatch):
    """Before records are computed, of which the paper's name is a part."""
    path, _ = write_method("idea", "training", checkout)
    file = registry.MethodFile("idea", "methods.idea", path)
    monkeypatch.setattr(registry, "method_file", lambda _: file)
    monkeypatch.setattr(method, "check_method", lambda *_: iter(["idea is fine"]))
    left = f"the words of the template in idea.py: {placeholders(path.read_text())}"
    code, out, _ = call("check", "idea")
    assert code == 0 and left in " ".join(out.split())
    for words in PLACEHOLDERS:
        path.write_text(path.read_text().replace(words, "mine"))
    assert call("check", "idea")[:2] == (0, "idea is fine\n")
