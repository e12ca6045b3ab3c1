"""The rule of the verdict on situations made by hand, each worked out beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmark.metrics.kept_share import measured
from benchmark.upgrade.decide.verdict import Decision, Evidence, decide, serving
from benchmark.upgrade.measure.evaluation import AGREEMENT
from benchmark.upgrade.measure.study import StrategyOutcome
from benchmark.upgrade.read.request import KEEP, REEMBED, Constraints
from benchmark.upgrade.search.strategies import Strategy

METRIC = "ndcg_at_10"
QUERY_MAP = Strategy("linear:query", "map the queries", fitted=None)
GALLERY_MAP = Strategy("linear", "convert", frozenset({"index"}), effort=0, rebuild=True)
FUSED = Strategy("slerp", "between", frozenset({"old_model", "extra_runs"}), effort=1)
CASCADE = Strategy("cascade", "rescored", frozenset({"rescoring", "sources"}), effort=2)
OLD = Strategy(KEEP, "keep", frozenset({"old_model"}))
NEW = Strategy(REEMBED, "again", frozenset({"sources", "index"}), effort=3, rebuild=True)
EVERYTHING = Constraints(rescoring=True)


def evidence(*scored: tuple[Strategy, list[float]]) -> Evidence:
    """Of 100 queries: the given scores, again and again."""
    return of_scores({s: np.resize(np.array(v, float), 100) for s, v in scored})


def of_scores(scored: dict[Strategy, np.ndarray]) -> Evidence:
    outcomes = {
        s.name: StrategyOutcome(s, {METRIC: measured(v)}, v, False) for s, v in scored.items()
    }
    return Evidence.of(outcomes, METRIC, None)


def verdict(
    found: Evidence, constraints: Constraints = EVERYTHING, wanted: float = 0.9
) -> Decision:
    return decide(found, constraints, wanted)


def of_ten(n: int) -> list[float]:
    """The old model answers 2 of 10 queries, the new one 8: who answers n keeps (n - 2) / 6."""
    return [1.0] * n + [0.0] * (10 - n)


def test_shares_kept_are_of_the_way_from_old_to_new():
    found = evidence((OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(5)))
    assert found.better and found.what == "the upgrade"
    shares = found.shares
    assert shares["linear:query"].value == pytest.approx(0.5)
    assert shares["linear:query"].low < 0.5 < shares["linear:query"].high
    assert (shares[KEEP].value, shares[REEMBED].value) == (0.0, 1.0)
    assert shares[REEMBED].low == shares[REEMBED].high == 1.0


def test_agreement_tells_of_no_upgrade():
    """The old model agrees on 2 of 10, a map on 9.5: it keeps 95 %, and nothing is decided."""
    scored = (OLD, [0.2]), (QUERY_MAP, [0.9, 1.0]), (NEW, [1.0])
    outcomes = {
        s.name: StrategyOutcome(s, {AGREEMENT: measured(np.resize(v, 100))}, np.empty(0), False)
        for s, v in scored
    }
    found = Evidence.of(outcomes, AGREEMENT, None)
    assert (found.upgrade, found.likely, found.better) == (None, None, None)
    assert found.what == "re-embedding's results"
    assert found.shares[KEEP].value == pytest.approx(0.2)
    for wanted, name in ((0.9, "linear:query"), (0.99, REEMBED)):
        said = decide(found, EVERYTHING, wanted)
        assert said.name == name and not said.decided
    held = replace(EVERYTHING, sources=False, index=False)
    said = decide(found, held, 0.99)
    assert (said.name, said.reason) == ("linear:query", "it agrees most of what can be done")
    del outcomes["linear:query"]
    said = decide(found, held, 0.99)
    assert (said.name, said.reason) == (KEEP, "nothing that can be done agrees measurably more")
    assert not said.decided


def test_little_is_kept_by_what_is_cheap():
    """Half of the upgrade: embed again; the map where a third is enough or items are gone."""
    found = evidence((OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(5)))
    said = verdict(found)
    assert (said.name, said.runner_up) == (REEMBED, "linear:query")
    assert "nothing cheaper surely keeps 90 % of the upgrade" in said.reason
    assert dict(said.changes) == {
        "if the items were not kept": "linear:query",
        "if the index had to stay as it is": "linear:query",
    }
    assert verdict(found, wanted=0.3).name == "linear:query"


def test_the_least_effort_that_keeps_enough_is_taken():
    """The map loses 1 of 60 fixed queries, the others none: it comes before them."""
    nearly = [*([1.0] * 10)[:8], 0.0, 0.0] * 9 + [*([1.0] * 10)[:7], 0.0, 0.0, 0.0]
    found = evidence(
        (OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, nearly), (FUSED, of_ten(8)),
        (CASCADE, of_ten(8)),
    )  # fmt: skip
    assert found.shares["linear:query"].value == pytest.approx(59 / 60)
    said = verdict(found)
    assert (said.name, said.runner_up) == ("linear:query", "slerp")
    assert said.reason == "it keeps 90 % of the upgrade or more"
    assert ("if 99 % of the upgrade were wanted", REEMBED) in said.changes  # 0.99^60 is 0.55
    gone = verdict(found, replace(EVERYTHING, old_model=False))
    assert (gone.name, gone.runner_up) == ("linear:query", "cascade")


@pytest.mark.parametrize(
    ("gallery", "taken"),
    [
        ([*of_ten(8)] * 9 + of_ten(7), "linear:query"),  # the map of queries is no worse
        (of_ten(8), "linear:query"),  # both alike: the index stays as it is
    ],
)
def test_of_two_alike_the_one_that_leaves_the_index(gallery, taken):
    found = evidence(
        (OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(8)), (GALLERY_MAP, gallery)
    )
    assert verdict(found).name == taken


def test_a_better_map_of_the_gallery_goes_before_one_of_queries():
    """50 of 60 beside 60 of 60: both keep enough, and the difference is above 0 (10 of 100)."""
    found = evidence(
        (OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(7)), (GALLERY_MAP, of_ten(8))
    )
    said = verdict(found, wanted=0.6)
    assert (said.name, said.runner_up) == ("linear", "linear:query")
    assert ("if the index had to stay as it is", "linear:query") in said.changes


def test_no_upgrade_keeps_the_old_model():
    found = evidence((OLD, of_ten(8)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(7)))
    assert found.better is False
    said = verdict(found)
    assert said.name == KEEP and not said.decided  # by the rule of three 3 of 100 may differ
    assert dict(said.changes)["if the old model were gone"] == REEMBED


def test_a_retired_model_that_was_as_good():
    """No upgrade to keep a share of: the map is judged by what it keeps of the new score."""
    nearly = [*of_ten(8)] * 9 + of_ten(7)
    found = evidence((OLD, of_ten(8)), (NEW, of_ten(8)), (QUERY_MAP, nearly))
    assert found.shares["linear:query"].value == pytest.approx(79 / 80)
    said = verdict(found, replace(EVERYTHING, old_model=False))
    assert (said.name, said.runner_up) == ("linear:query", REEMBED)
    assert said.reason == "it keeps 90 % of re-embedding's score or more"
    assert ("if the old model still ran", KEEP) in said.changes


def test_without_old_queries_shares_are_of_the_new_score():
    found = evidence((NEW, of_ten(8)), (QUERY_MAP, of_ten(6)))
    assert found.better is None and found.shares["linear:query"].value == pytest.approx(0.75)
    assert verdict(found).name == REEMBED
    assert verdict(found, wanted=0.5).name == "linear:query"


def test_what_is_left_where_nothing_can_be_embedded_again():
    """The best that beats the old model; else the old model; without it the best there is."""
    stuck = Constraints(sources=False, index=False, extra_runs=False)
    helps = evidence((OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(4)))
    assert verdict(helps, stuck).name == "linear:query"
    hurts = evidence((OLD, of_ten(2)), (NEW, of_ten(8)), (QUERY_MAP, of_ten(1)))
    said = verdict(hurts, stuck)
    assert said.name == KEEP and "nothing that can be done is measurably better" in said.reason
    assert verdict(hurts, replace(stuck, old_model=False)).name == "linear:query"
    nothing = evidence((OLD, of_ten(2)), (NEW, of_ten(8)))
    assert verdict(nothing, replace(stuck, old_model=False)) == Decision(
        None, "nothing is left that can be done", None, ()
    )


def test_what_is_left_is_the_old_model_whose_queries_nobody_has():
    """It still runs, so that doing nothing is possible, and not found to be the best."""
    stuck = Constraints(sources=False, index=False, extra_runs=False)
    said = verdict(evidence((NEW, of_ten(8))), stuck)
    assert said.name is None and not said.decided
    assert said.reason == "nothing is left but the old model, whose queries would tell more of maps"


def test_next_to_nothing_serves_nobody():
    """Not in place of anything, nor until an index is filled."""
    stuck = Constraints(sources=False, index=False, extra_runs=False, old_model=False)
    found = evidence((NEW, of_ten(10)), (QUERY_MAP, [0.09] * 10))
    said = verdict(found, stuck)
    assert (said.name, said.reason) == (None, "nothing is left that can be done")
    free = replace(stuck, sources=True, index=True)
    assert serving(found, free) is None
    assert "linear:query" not in {to for _, to in verdict(found, free).changes}
    assert serving(evidence((NEW, of_ten(10)), (QUERY_MAP, [0.11] * 10)), free) == "linear:query"


def few(n: int, of: int) -> np.ndarray:
    """The new model answers ``n`` queries of some more than the old one, which answers half."""
    scores = np.resize([1.0, 0.0], of)
    scores[1 : 2 * n : 2] = 1.0
    return scores


def test_three_queries_of_five_hundred_are_no_upgrade():
    """And a map that equals the new model is then no reason to embed everything again."""
    old, new = few(0, 500), few(3, 500)
    found = of_scores({OLD: old, NEW: new, QUERY_MAP: new})
    assert found.better is False and found.upgrade.value == pytest.approx(3 / 500)
    assert verdict(found).name == KEEP


def test_an_upgrade_that_is_likely_but_not_sure_is_taken_and_not_decided():
    """8 of 100 win, 3 lose: 5 points, 3.3 its standard error; where 6 lose, 2 are not likely."""
    new = few(8, 100)
    new[:6:2] = 0.0
    found = of_scores({OLD: few(0, 100), NEW: new, QUERY_MAP: few(0, 100)})
    assert found.better is False and found.likely and found.what == "the upgrade"
    assert found.upgrade.low < 0 < found.upgrade.value
    said = verdict(found)
    assert said.name == REEMBED and not said.decided
    assert "which is likely, but not sure (the models differ on 11 of 100; some " in said.reason
    new[6:12:2] = 0.0
    found = of_scores({OLD: few(0, 100), NEW: new, QUERY_MAP: few(0, 100)})
    assert found.likely is False
    said = verdict(found)
    assert said.name == KEEP and not said.decided


def test_what_equals_embedding_again_is_taken():
    old, new = few(0, 500), few(60, 500)
    said = verdict(of_scores({OLD: old, NEW: new, QUERY_MAP: new.copy()}))
    assert said.name == "linear:query"
    assert said.reason == "it answers every query as well as with everything embedded again does"


@pytest.mark.parametrize(("changed", "tried", "taken"), [
    (35, 1, REEMBED), (36, 1, "linear:query"),  # 0.9^35 = 0.0250, 0.9^36 = 0.0225: 0.025 at most
    (63, 20, REEMBED), (64, 20, "linear:query"),  # the least of twenty: 0.00125 at most
])  # fmt: skip
def test_what_equals_embedding_again_on_few_changed_queries(changed, tried, taken):
    """All others are at 0: by Holm the equal one, whose chance is the least, must pass first."""
    old, new = few(0, 500), few(changed, 500)
    others = {replace(QUERY_MAP, name=f"map {k}"): few(0, 500) for k in range(tried - 1)}
    said = verdict(of_scores({OLD: old, NEW: new, QUERY_MAP: new.copy()} | others))
    assert said.name == taken
    if taken == REEMBED:
        assert f"linear:query answers every query as well, but only {changed} are" in said.reason


@pytest.mark.parametrize(("old", "new", "reason", "decided"), [
    # Nothing differs on 2,000 queries: at most some 3 / 2,000 of them do.
    (few(0, 2000), few(0, 2000), "the new model is not better by 2 points here", True),
    (few(60, 2000), few(0, 2000), "the new model is worse here", True),
    (few(0, 2000), few(40, 2000), None, True),
    (few(0, 5000), few(60, 5000), "the new model is better by less than 2 points", True),
])  # fmt: skip
def test_why_the_old_model_is_kept(old, new, reason, decided):
    said = verdict(of_scores({OLD: old, NEW: new}))
    assert (said.name, said.decided) == (KEEP if reason else REEMBED, decided)
    assert reason in (None, said.reason)


def test_a_small_upgrade_of_few_queries_is_not_decided_to_be_small():
    """12 of 600 win, 4 lose: 1.3 points, likely an upgrade, and the interval holds 0 and 2."""
    new = few(12, 600)
    new[:8:2] = 0.0
    found = of_scores({OLD: few(0, 600), NEW: new})
    assert found.likely and found.upgrade.low < 0 and found.upgrade.high > 0.02
    said = verdict(found)
    assert said.name == KEEP and not said.decided
    less = "the new model is better by less than 2 points here, but on too few queries: "
    assert said.reason.startswith(f"{less}the models differ on 16 of 600; some ")


def test_an_upgrade_that_may_be_worthwhile_is_not_decided_to_be_small():
    """38 of 2,000 win and none lose: surely better, by 1.9 points, and perhaps by 2 or more."""
    found = of_scores({OLD: few(0, 2000), NEW: few(38, 2000)})
    assert found.better and found.upgrade.known < 0.02 < found.upgrade.high
    said = verdict(found)
    assert said.name == KEEP and not said.decided
    assert said.reason.startswith("the new model is better by less than 2 points here, but on too")


def test_what_embeds_everything_is_not_cheaper_than_that():
    old, new = few(0, 500), few(200, 500)
    short = replace(QUERY_MAP, name="re-embed-short", effort=3)
    said = verdict(of_scores({OLD: old, NEW: new, short: new.copy(), QUERY_MAP: old}))
    assert said.name == REEMBED and "answers every query as well" not in said.reason


def test_few_queries_decide_nothing():
    """Five of forty queries fixed, four broken: by McNemar's exact test p is 1."""
    old, new = few(0, 40), few(5, 40)
    new[[10, 12, 14, 16]] = 0.0
    said = verdict(of_scores({OLD: old, NEW: new}))
    assert said.name == KEEP and not said.decided
    assert "too few queries to tell: the models differ on 9 of 40; some " in said.reason
    enough = int(said.reason.split("some ")[1].split(" like")[0].replace(",", ""))
    # 2.8 deviations of sqrt(9 / 40) a query in 2 points: 4,410 queries, one query more aside.
    assert 4410 <= enough <= 5200
    gone = verdict(of_scores({OLD: old, NEW: new}), replace(EVERYTHING, old_model=False))
    assert gone.name == REEMBED and gone.decided


def test_what_is_worthwhile_is_asked():
    """An upgrade of 1.2 points, sure and small."""
    found = of_scores({OLD: few(0, 5000), NEW: few(60, 5000)})
    outcomes = found.outcomes
    assert found.better and found.upgrade.value == pytest.approx(0.012)
    assert decide(Evidence.of(outcomes, METRIC, None, 0.01), EVERYTHING).name == REEMBED
    assert decide(Evidence.of(outcomes, METRIC, None, 0.02), EVERYTHING).name == KEEP


def test_without_embedding_nothing_else_embeds():
    """An index of everything embedded is no way out for users who cannot embed everything."""
    both = replace(FUSED, name="rrf", uses=("old", "new"), effort=3)
    found = evidence((OLD, of_ten(2)), (NEW, of_ten(8)), (both, of_ten(7)), (FUSED, of_ten(4)))
    said = verdict(found)
    assert (said.name, said.runner_up) == (REEMBED, "slerp")


def test_the_best_of_many_is_no_better_than_the_old_model_by_luck():
    """Eight of 200 queries fixed and none broken is sure alone, and luck among twenty."""
    stuck = Constraints(sources=False, index=False)
    base = {OLD: few(0, 200), NEW: few(60, 200)}
    lucky = few(8, 200)
    others = {replace(QUERY_MAP, name=f"map {k}"): few(0, 200) for k in range(19)}
    assert verdict(of_scores(base | {QUERY_MAP: lucky}), stuck).name == "linear:query"
    assert verdict(of_scores(base | {QUERY_MAP: lucky} | others), stuck).name == KEEP


def test_who_can_do_more_is_not_told_to_do_worse():
    """Every strategy that was tried counts, whether the user may run two models or not."""
    stuck = Constraints(sources=False, index=False, extra_runs=False)
    base = {OLD: few(0, 200), NEW: few(60, 200)}
    base |= {replace(FUSED, name=f"way {k}"): few(0, 200) for k in range(19)}
    for fixed, name in ((8, KEEP), (16, "linear:query")):
        found = of_scores(base | {QUERY_MAP: few(fixed, 200)})
        assert verdict(found, stuck).name == name
        assert verdict(found, replace(stuck, extra_runs=True)).name == name


def test_one_of_many_that_keeps_enough_by_luck_is_not_taken():
    """Alone it surely keeps 75 %; beside nine that were tried, too, it may be luck."""
    new, lost = few(60, 200), few(60, 200)
    lost[1:15:2] = 0.0  # 7 of 60 fixed ones
    alone = {OLD: few(0, 200), NEW: new, QUERY_MAP: lost}
    others = {replace(QUERY_MAP, name=f"map {k}"): few(10 + k, 200) for k in range(9)}
    assert verdict(of_scores(alone), wanted=0.75).name == "linear:query"
    said = verdict(of_scores(alone | others), wanted=0.75)
    assert said.name == REEMBED
    assert "linear:query does by its own interval, but not surely as one of the" in said.reason


def test_what_is_better_than_both_models_is_named():
    """Neither model is better, and a mixture of both answers a tenth of the queries more."""
    old, new, both = few(0, 400), few(0, 400), few(40, 400)
    said = verdict(of_scores({OLD: old, NEW: new, QUERY_MAP: both}))
    assert said.name == KEEP
    assert said.reason.endswith(
        "; but linear:query is measurably better on these queries: try it on others"
    )
    said = verdict(of_scores({OLD: old, NEW: new, QUERY_MAP: few(1, 400)}))
    assert "linear:query" not in said.reason


def test_a_handful_of_queries_is_the_reason():
    said = verdict(of_scores({OLD: few(0, 3), NEW: few(1, 3)}))
    assert (said.name, said.decided) == (KEEP, False)
    assert "too few queries to tell: they are 3, expected 5 or more" in said.reason


def test_few_groups_of_queries_are_the_reason():
    old, new = few(0, 40), few(20, 40)
    found = Evidence.of(of_scores({OLD: old, NEW: new}).outcomes, METRIC, np.arange(40) // 10)
    said = verdict(found)
    assert (said.name, said.decided) == (KEEP, False)
    assert "they are of 4 groups of common relevant items, expected 5 or more" in said.reason
    one = verdict(Evidence.of(found.outcomes, METRIC, np.zeros(40, int))).reason
    assert "they are of 1 group of common relevant items, expected 5 or more" in one
    large = np.maximum(np.arange(40) - 29, 0)  # one of 30 queries, ten of one
    found = Evidence.of(of_scores({OLD: old, NEW: few(1, 40)}).outcomes, METRIC, large)
    assert verdict(found).reason.endswith("most are of a few groups of common relevant items")
