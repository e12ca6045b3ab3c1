"""From a clone to what is handed in: the templates pass, and the script of hosted repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.harness.submission import PROMISED, VERIFIED, checklist

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
ENDS_IN_IT = (GITHUB / "pull_request_template.md", GITHUB / "ISSUE_TEMPLATE" / "method.md")


def test_templates_end_in_the_checklist_that_the_command_verifies():
    for path in ENDS_IN_IT:
        assert path.read_text().endswith(f"\n\n{checklist()}"), path
    done = checklist("my_map", "my-map", done=True).splitlines()
    assert [line[:5] for line in done] == ["- [x]"] * len(VERIFIED) + ["- [ ]"] * len(PROMISED)
    assert "test_my_map.py" in done[1] and "bench check my-map" in done[0]


def test_every_template_ends_in_a_checklist():
    paths = [*GITHUB.rglob("*.md")]
    assert len(paths) == 4
    for path in paths:
        lines = path.read_text().strip().splitlines()
        assert lines[-1].startswith("- [ ] "), path


@pytest.mark.slow
def test_a_new_method_passes_the_script(tmp_path):
    """Both templates: written, committed, and looked at as a pull request is."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {
        **os.environ, "PYTHONPATH": str(clone), "BIN": str(Path(sys.executable).parent)
    }  # fmt: skip

    def call(*words: object, code: int = 0) -> str:
        done = subprocess.run(
            list(map(str, words)), cwd=clone, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(words: str) -> None:
        call("git", "add", "-A")
        call("git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-m", words)

    call("git", "branch", "base")
    for name, kind in (("my-loss", "training"), ("my-map", "map")):
        call(sys.executable, "-m", "benchmark.cli.app", "new-method", name, "--kind", kind)
    commit("Add two methods")
    out = call("bash", ".ci/submission", "base")
    assert "records, 0 of them new or changed: nothing is wrong" in out
    assert "my-loss is fine" in out and "my-map is fine" in out
    (clone / "tests" / "methods" / "test_my_map.py").unlink()
    (record, *_) = sorted(clone.glob("results/measured/open-class/glyphs/bct/seed-0.*"))
    commit("Without its test")
    assert "my_map.py: expected a test" in call("bash", ".ci/submission", "base", code=2)
    record.unlink()
    commit("Without a record")
    assert "removed" in call("bash", ".ci/submission", "base", code=2)
