"""The test of a method that is handed in: run, and known for no more than it is."""

import pytest

from benchmark.errors import BenchError
from benchmark.harness import submission
from benchmark.harness.submission import (
    COMPARED,
    PROMISED,
    TESTED,
    VERIFIED,
    checklist,
    gather,
    run_test,
)

GOOD = """
import numpy as np
import pytest

def test_values():
    np.testing.assert_allclose([1.0], [1.0])

@pytest.mark.parametrize("n", [1, 2])
def test_n(n):
    assert n > 0

@pytest.mark.skip
def test_later():
    assert False
"""
BAD = {
    "nothing": ("", "asserts nothing"),
    "no test": ("x = 1\nassert x\n", "asserts nothing"),
    "no assertion": ("def test_x():\n    pass\n", "asserts nothing"),
    "one of two fails": (GOOD.replace("n > 0", "n > 1"), "pytest says: 1 failed, 2 passed"),
    "it cannot be imported": ("import nosuch\ndef test_x():\n    assert True\n", "1 error"),
    "skipped": ("import pytest\n@pytest.mark.skip\ndef test_x():\n    assert True\n", "skipped"),
    "meant to fail": (
        "import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert False\n", "all are skipped"
    ),
    "no name of a test": ("def check_x():\n    assert True\n", "no tests ran"),
    "no Python": ("def (\n", "no Python: invalid syntax"),
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    """A text -> a test of a checkout."""

    def made(text):
        path = tmp_path / "tests" / "methods" / "test_mine.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return made


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_test_or_fails(written, kind):
    text, said = BAD[kind]
    with pytest.raises(BenchError, match=said) as caught:
        run_test(written(text))
    assert "\n" not in str(caught.value) and str(caught.value).startswith("test_mine.py: ")


@pytest.mark.parametrize(("text", "passes"), [(GOOD, True), ("", False)], ids=["good", "nothing"])
def test_it_is_ticked_when_it_has_passed_and_no_more_is_said(
    monkeypatch, tmp_path, written, text, passes
):
    monkeypatch.setattr(submission, "check_method", lambda *_: iter(["checked"]))
    monkeypatch.setattr(submission, "test_file", lambda _: written(text))
    said = []
    missing = gather("l2", tmp_path, said.append).missing
    assert any(line.startswith("test_mine.py: ") for line in missing) == (not passes)
    assert any("3 tests pass" in line and "no command can know" in line for line in said) == passes


def test_what_a_checklist_ticks():
    every = checklist("mine", "mine", VERIFIED)
    assert "- [x] `tests/methods/test_mine.py` passes" in every
    assert (
        "- [ ] `tests/methods/test_mine.py` compares the method with its paper's equation" in every
    )
    elsewhere = checklist("mine", "mine", VERIFIED, (TESTED, COMPARED))
    assert "test_mine" not in elsewhere and elsewhere.count("[x]") == len(VERIFIED) - 1
    assert checklist().count("- [ ] ") == len(VERIFIED) + len(PROMISED)
