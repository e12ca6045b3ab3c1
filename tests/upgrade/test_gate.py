"""``--fail-if``: a gate that ends with exit code 3."""

import pytest
from support.command import call
from support.upgrades import planted, write_upgrade

from benchmark.errors import BenchError
from benchmark.upgrade.decide.gate import Condition

KEPT = {"value": 0.85, "low": 0.8, "high": 0.9, "sampling": None}
LINEAR = {"name": "linear", "kept": KEPT, "score": KEPT, "to_keep": None,
          "cost": {"hours": 2.0, "money": 4.0}}  # fmt: skip
AGAIN = LINEAR | {"name": "re-embed", "kept": None, "to_keep": KEPT | {"value": 0.03}}
DOCUMENT = {"strategies": [LINEAR, AGAIN], "verdict": {"strategy": "linear"}}


@pytest.mark.parametrize(("text", "holds"), [
    ("share<0.9", True), ("share < 0.85", False), ("share<=0.85", True), ("score>0.8", True),
    ("upgrade<0.02", False), ("upgrade<5e-2", True), ("linear.hours>=2", True),
    ("re-embed.money>3", True), ("re-embed.share<0", True),  # which it has none of
])  # fmt: skip
def test_conditions(text, holds):
    condition = Condition.parse(text)
    assert condition.holds(DOCUMENT) == holds
    assert Condition.parse(str(condition)) == condition


def test_what_is_no_condition():
    for text, said in [
        ("share", "expected a condition as 'share<0.9', got 'share'"),
        ("shares<1", "did you mean 'share'"), ("share<1.2.3", "expected a number, got '1.2.3'"),
        ("", "expected a condition"), ("import os", "expected a condition"),
    ]:  # fmt: skip
        with pytest.raises(BenchError, match=r"expected|unknown") as caught:
            Condition.parse(text)
        assert said in str(caught.value)
    with pytest.raises(BenchError, match="unknown strategy 'linaer'"):
        Condition.parse("linaer.share<1").holds(DOCUMENT)
    nothing = {"strategies": [AGAIN], "verdict": {"strategy": None}}
    assert Condition.parse("share<0.1").holds(nothing)


def test_the_command_ends_with_three(tmp_path):
    words = write_upgrade(tmp_path, planted(n=400, q=30, dim=8))
    code, out, err = call(*words, "--fail-if", "score<1.5", "--fail-if", "hours>1000")
    assert code == 3 and "What to do" in out and err == "bench: failed: score<1.5\n"
    code, _, err = call(*words, "--fail-if", "score<-1")
    assert (code, err) == (0, "")
    code, out, err = call(*words, "--fail-if", "scores<1")
    assert code == 2 and out == "" and "did you mean 'score'" in err
