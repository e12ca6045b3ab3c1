"""From a clone to what is handed in: the templates pass, and the script of hosted repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.stored import write

from benchmark.harness.submission import PROMISED, VERIFIED, checklist
from benchmark.records.files import read_record

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
ENDS_IN_IT = (GITHUB / "pull_request_template.md", GITHUB / "ISSUE_TEMPLATE" / "method.md")


def test_templates_end_in_the_checklist_that_the_command_verifies():
    for path in ENDS_IN_IT:
        assert path.read_text().endswith(f"\n\n{checklist()}"), path
    done = checklist("my_map", "my-map", VERIFIED).splitlines()
    assert [line[:5] for line in done] == ["- [x]"] * len(VERIFIED) + ["- [ ]"] * len(PROMISED)
    assert any("equation" in line for line in PROMISED) and "equation" not in "".join(VERIFIED)
    assert "test_my_map.py" in done[1] and "bench check my-map" in done[0]


def test_every_template_ends_in_a_checklist():
    paths = [*GITHUB.rglob("*.md")]
    assert len(paths) == 4
    for path in paths:
        lines = path.read_text().strip().splitlines()
        assert lines[-1].startswith("- [ ] "), path


class Clone:
    """A clone of this checkout's last commit, with a branch ``base`` at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        self.call("git", "branch", "base")

    def call(self, *words: object, code: int = 0) -> str:
        """Everything that a command prints; it must end with ``code``."""
        done = subprocess.run(
            list(map(str, words)), cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(self.folder),
                 "BIN": str(Path(sys.executable).parent), "COMPATBENCH_STORE": "../store"},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def bench(self, *words: object) -> str:
        return self.call(sys.executable, "-m", "benchmark.cli.app", *words)

    def commit(self, words: str = "Change") -> None:
        self.call("git", "add", "-A")
        self.call("git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-m", words)

    def script(self, base: str = "base", code: int = 0) -> str:
        """The workflow of hosted repositories, for a pull request of all that is committed."""
        return self.call("bash", ".ci/submission", base, code=code)


@pytest.fixture
def clone(tmp_path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.mark.slow
def test_a_new_method_passes_the_script(clone):
    """Both templates: written, committed, and looked at as a pull request is."""
    for name, kind in (("my-loss", "training"), ("my-map", "map")):
        clone.bench("new-method", name, "--kind", kind)
    clone.commit("Add two methods")
    out = clone.script()
    assert "records, 0 of them new or changed: nothing is wrong" in out
    assert "my-loss is fine" in out and "my-map is fine" in out and "a reviewer" not in out
    (clone.folder / "tests" / "methods" / "test_my_map.py").unlink()
    clone.commit("Without its test")
    assert "my_map.py: expected a test" in clone.script(code=2)


@pytest.mark.slow
def test_records_in_a_pull_request(clone):
    """Three seeds are added, a score is then changed silently, a record removed."""
    words = ("run", "-m", "procrustes", "-p", "open-class", "-t", "toy", "--out", "results")
    clone.bench(*words, "--seeds", "0-1")
    clone.commit()
    places = clone.folder / "results" / "measured" / "open-class" / "toy"
    out = clone.script(code=2)
    assert f"{places.relative_to(clone.folder)}/procrustes: expected seeds 0 to 2, without 2" in out
    clone.bench(*words, "--seeds", "0-2")
    clone.commit("Add records")
    assert "6 of them new or changed: nothing is wrong" in clone.script()
    clone.call("git", "branch", "--force", "base")
    # As somebody would who knows how seals are made.
    path = places / "procrustes" / "seed-1.json"
    record = read_record(path).as_json()
    record["scores"]["new/old"]["map"] += 0.001
    write(path, record)
    clone.commit()
    out = clone.script(code=2)
    assert f"{path.relative_to(clone.folder)}: new/old map: changed from" in out
    assert "though the work is the same" in out
    path.unlink()
    clone.commit()
    assert f"{path.relative_to(clone.folder)}: removed; records stay" in clone.script(code=2)


@pytest.mark.slow
def test_other_files_of_a_pull_request(clone):
    assert clone.script() == "no method and no record is added or changed\n"
    assert "mian: expected a branch" in clone.script("mian", code=2)
    (clone.folder / "README.md").write_text("Mine\n")
    clone.commit()
    out = clone.script()
    assert out.startswith("README.md: neither a method, its test nor a record; a reviewer")
    assert out.endswith("no method and no record is added or changed\n")
    clone.call("git", "mv", "methods/bct.py", "methods/mine.py")
    clone.commit()
    assert "methods/bct.py: removed, and results/measured has records of it" in clone.script(code=2)
