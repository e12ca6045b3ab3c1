"""``--fail-if``: a gate that ends with exit code 3."""

from dataclasses import replace

import numpy as np
import pytest
from support.command import call
from support.upgrades import planted, write_upgrade

import benchmark
from benchmark.errors import BenchError
from benchmark.upgrade.decide.gate import Condition
from benchmark.upgrade.read.request import SCORE, UpgradeRequest
from benchmark.upgrade.run import require_figures, strategy_names

KEPT = {"value": 0.85, "low": 0.8, "high": 0.9, "sampling": None}
LINEAR = {"name": "linear", "kept": KEPT, "score": KEPT, "to_keep": None,
          "cost": {"hours": 2.0, "money": 4.0, "money_per_1000_queries": 0.5}}  # fmt: skip
AGAIN = LINEAR | {"name": "re-embed", "kept": None, "to_keep": KEPT | {"value": 0.03}}
OF = {"share_of": "the upgrade"}
DOCUMENT = {"strategies": [LINEAR, AGAIN], "verdict": {"strategy": "linear"} | OF,
            "left_out": {"linear": "two machines", "truncate": "of one size"}}  # fmt: skip


@pytest.mark.parametrize(("text", "holds"), [
    ("share<0.9", True), ("share < 0.85", False), ("share<=0.85", True), ("score>0.8", True),
    ("upgrade<0.02", False), ("upgrade<5e-2", True), ("linear.hours>=2", True),
    ("re-embed.upgrade<0.05", True), ("linear.upgrade>0", True),  # which has none here
    ("linear.money_per_1000_queries>0", True), ("money_per_1000_queries>0.5", False),
    ("re-embed.money>3", True), ("re-embed.share<0", True),  # which it has none of
    ("upgrade<0.5", True), ("upgrade>-0.5", True), ("money<90", True), ("share<1.1", True),
])  # fmt: skip
def test_conditions(text, holds):
    condition = Condition.parse(text)
    assert condition.holds(DOCUMENT) == holds
    assert Condition.parse(str(condition)) == condition


@pytest.mark.parametrize(("text", "said"), [
    ("share", "expected a condition as 'share<0.9', got 'share'"),
    ("shares<1", "did you mean 'share'"),
    ("share<1.2.3", "expected a finite number, got '1.2.3'"),
    ("score<1e400", "expected a finite number, got '1e400'"),
    ("", "expected a condition"), ("import os", "expected a condition"),
    ("linear.decided<1", "of no strategy, got 'linear.decided<1'"),
    ("decided<2", "as it is 1 or 0, got 'decided<2'"),
    *((text, "from -0.5 to 0.5, where 0.02 is 2 points, got 'upg")  # points are no upgrade
      for text in ("upgrade<1", "upgrade<1.5", "upgrade<2", "rrf.upgrade<-0.51")),
    *((text, "expected a share, as 0.9 for 90 percent, got")
      for text in ("share<90", "linear.score>50")),
])  # fmt: skip
def test_what_is_no_condition(text, said):
    with pytest.raises(BenchError) as caught:
        Condition.parse(text)
    assert said in str(caught.value) and str(caught.value).startswith("--fail-if: ")


def test_figures_that_a_report_has_not():
    with pytest.raises(BenchError, match=r"^--fail-if: unknown strategy 'linaer'"):
        Condition.parse("linaer.share<1").holds(DOCUMENT)
    of_another_model = Condition.parse("truncate.share<1")
    assert of_another_model.holds(DOCUMENT)
    assert of_another_model.said_of(DOCUMENT).endswith("(the report has no such figure)")
    assert Condition.parse("upgrade<0.1").holds(DOCUMENT | {"strategies": [LINEAR]})
    assert Condition.parse("share<0.9").said_of(DOCUMENT) == "share<0.9 (0.85)"
    said = "linear.upgrade<0 (the report has no such figure)"
    assert Condition.parse("linear.upgrade<0").said_of(DOCUMENT) == said
    nothing = {"strategies": [AGAIN], "verdict": {"strategy": None} | OF, "left_out": {}}
    assert Condition.parse("share<0.1").holds(nothing)


def test_a_share_of_no_upgrade_is_no_figure():
    """Nearly all of a worse model's score is no reason to pass."""
    verdict = {"strategy": "linear", "share_of": SCORE}
    assert Condition.parse("share<0.1").holds(DOCUMENT | {"verdict": verdict})
    assert not Condition.parse("score<0.1").holds(DOCUMENT | {"verdict": verdict})
    agreement = verdict | {"share_of": "re-embedding's results"}
    assert not Condition.parse("share<0.1").holds(DOCUMENT | {"verdict": agreement})


@pytest.mark.parametrize(("decided", "holds"), [(True, False), (False, True)])
def test_a_verdict_that_is_not_decided(decided, holds):
    """Nothing is recommended, perhaps: that may be decided, or not."""
    condition = Condition.parse("decided<1")
    for name in ("linear", None):
        document = DOCUMENT | {"verdict": {"strategy": name, "decided": decided} | OF}
        assert condition.holds(document) == holds
        assert condition.said_of(document) == f"decided<1 ({int(decided)})"


def test_the_command_ends_with_three(tmp_path):
    words = write_upgrade(tmp_path, planted(n=400, q=30, dim=8))
    code, out, err = call(*words, "--fail-if", "score<1.5", "--fail-if", "hours>1000")
    assert code == 3 and "What to do" in out and err.startswith("bench: failed: score<1.5 (0.")
    code, _, err = call(*words, "--fail-if", "score<-1")
    assert (code, err) == (0, "")
    without = [*words]
    at = without.index("--old-queries")
    del without[at : at + 2]
    code, out, err = call(*without, "--fail-if", "score<-1", "--fail-if", "decided<1")
    assert code == 3 and "Not known" in out and err == "bench: failed: decided<1 (0)\n"
    code, out, err = call(*words, "--fail-if", "scores<1")
    assert code == 2 and out == "" and "did you mean 'score'" in err


def test_an_unknown_strategy_is_refused_before_vectors_are_read(tmp_path, monkeypatch):
    words = write_upgrade(tmp_path, planted(n=400, q=30, dim=8))
    with monkeypatch.context() as patch:
        patch.setattr("benchmark.upgrade.run.report_on", None)
        code, out, err = call(*words, "--fail-if", "procustes.score<1")
    said = "bench: --fail-if: unknown strategy 'procustes'; did you mean 'procrustes'?\n"
    assert (code, out, err) == (2, "", said)


@pytest.mark.parametrize(("times", "name", "said"), [
    (1, "truncate", "vectors are of equal size"), (2, "naive", "vectors have 8 and 16 numbers"),
    (1, "re-embed-short", "it needs longer vectors by the new model, got 8 numbers"),
    (2, "truncate", None), (1, "naive", None), (2, "re-embed-short", None),
])  # fmt: skip
def test_what_sizes_leave_out_is_told_before_the_work(tmp_path, monkeypatch, times, name, said):
    made = planted(n=400, q=30, dim=8)
    longer = {side: np.tile(getattr(made, side), times) for side in ("new", "queries")}
    words = write_upgrade(tmp_path, replace(made, **longer))
    if said is not None:
        monkeypatch.setattr("benchmark.upgrade.run.report_on", None)
    code, out, err = call(*words, "--fail-if", f"{name}.share<-9")
    if said is None:
        assert (code, err) == (0, "")
    else:
        assert (code, out, err) == (2, "", f"bench: --fail-if: {name} is left out: {said}\n")


@pytest.mark.parametrize(("change", "names", "why"), [
    ({"old_queries": None}, "keep-old,rrf,cascade,midpoint",
     "there are no queries by the old model"),
    ({"distance": "l2"}, "slerp,midpoint", "only for cosine, not l2"),
    ({"maps": "linear:query"}, "rrf-converted", "there is no map of stored vectors"),
    ({"maps": "linear"}, "cascade-mapped", "there is no map of queries"),
    ({"gone": True}, "re-embed,re-embed-short,rrf,cascade-mapped", "no item has a new vector"),
    ({"gone": True}, "slerp", "only with new vectors of items"),
])  # fmt: skip
def test_what_else_leaves_out_is_told_before_the_work(change, names, why):
    """As the report itself has it."""
    made = planted(n=400, q=30, dim=8)
    given = made.arguments(np.arange(400)) | change
    if given.pop("gone", False):
        new = given.pop("new_gallery")
        given["ids"] = {"old_gallery": np.arange(400)}
        given |= {"pairs_old": made.old[:300], "pairs_new": new[:300]}
    given = {"maps": "linear,linear:query"} | given
    left_out = benchmark.upgrade(**given).document["left_out"]
    for name in names.split(","):
        with pytest.raises(BenchError) as caught:
            require_figures(UpgradeRequest(**given), [Condition.parse(f"{name}.score<1")])
        assert str(caught.value) == f"--fail-if: {name} is left out: {why}"
        assert left_out[name] == why


def test_of_several_models_one_may_have_a_strategy():
    made = planted(n=400, q=30, dim=8)
    given = made.arguments(np.arange(400))
    models = {"a": (made.new, made.queries), "b": (np.tile(made.new, 2), np.tile(made.queries, 2))}
    del given["new_gallery"], given["queries"]
    request = UpgradeRequest(**given, models=models)
    for name in ("naive", "truncate"):
        require_figures(request, [Condition.parse(f"{name}.score<1")])
    without = replace(request, old_queries=None)
    with pytest.raises(BenchError, match="keep-old is left out: there are no queries"):
        require_figures(without, [Condition.parse("keep-old.score<1")])


def test_names_are_known_before_a_report_has_them():
    short = planted(n=400, q=30, dim=8)
    long = {"new_gallery": np.tile(short.new, 2), "queries": np.tile(short.queries, 2)}
    for change in ({}, long):
        given = short.arguments(np.arange(400)) | change
        found = benchmark.upgrade(**given).document
        names = {each["name"] for each in found["strategies"]} | found["left_out"].keys()
        assert names <= {*strategy_names(UpgradeRequest(**given))}
