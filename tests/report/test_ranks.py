import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.records import make_record

from benchmark.metrics import statistics
from benchmark.records.details import Details, QueryResults
from benchmark.report.paired import PairedIntervals
from benchmark.report.ranks import letter_groups, mean_ranks, places
from benchmark.report.scores import make_table

KEY, CASE = "cmc_at_1", "new/old"


def board(scores):
    """Records of ``{method: {seed: score}}``."""
    return [make_record(m, v, seed=s) for m, mine in scores.items() for s, v in mine.items()]


def ranks(scores, **options):
    found = places(board(scores), KEY, CASE, **options)
    return {method: place.rank for method, place in found.items()}


def test_the_cross_test_gives_the_rank_and_ties_share_one():
    one = {m: {0: v} for m, v in {"a": 0.6, "b": 0.7, "c": 0.6, "d": 0.5}.items()}
    assert ranks(one) == {"b": 1, "a": 2, "c": 2, "d": 4}
    assert list(ranks(one)) == ["b", "a", "c", "d"]


def test_errors_rank_upside_down():
    records = [make_record("a", {"eer": 0.1}), make_record("b", {"eer": 0.2})]
    assert [p.method for p in places(records, "eer", CASE).values()] == ["a", "b"]


def test_what_is_missing_has_no_rank():
    records = [*board({"a": {0: 0.6}, "b": {0: 0.7}}), make_record("c", reason="no old head")]
    records.append(make_record("d", {KEY: None}))
    found = places(records, KEY, CASE)
    assert [found[m].rank for m in "bacd"] == [1, 2, None, None]
    assert found["c"].letters == ""


def test_a_method_with_an_unsealed_record_has_no_rank():
    scores = {"a": {0: 0.6, 1: 0.6}, "b": {0: 0.9, 1: 0.9}, "c": {0: 0.5, 1: 0.5}}
    records = board(scores)
    records[3] = records[3].model_copy(update={"seal": None})
    found = places(records, KEY, CASE)
    assert {m: place.rank for m, place in found.items()} == {"a": 1, "c": 2, "b": None}
    assert make_table(records).best(KEY, CASE) == {"a"}
    note = "Unsealed, so without a rank and never marked as the best: b"
    assert sum(line.startswith(note) for line in make_table(records).notes) == 1


def test_bounds_and_controls_have_no_place():
    scores = {"independent": {0: 0.9}, "random": {0: 0.8}, "a": {0: 0.6}}
    assert ranks(scores, unranked=frozenset(["random"])) == {"a": 1}


def test_a_method_needs_the_seeds_that_half_of_the_others_have():
    three = {0: 0.6, 1: 0.6, 2: 0.6}
    scores = {"a": three, "b": three, "lucky": {0: 0.9}, "more": {**three, 3: 0.9}}
    found = places(board(scores), KEY, CASE)
    assert found["lucky"].rank is None
    assert found["more"].score == pytest.approx(0.6)  # nobody else has the fourth seed


TABLE = st.dictionaries(
    st.sampled_from("abcdef"),
    st.dictionaries(st.integers(0, 2), st.sampled_from([0.4, 0.5, 0.6, 0.7]), min_size=1),
    min_size=2,
)
# With a method and one of its seeds, which is left out.
LEFT_OUT = TABLE.flatmap(
    lambda scores: st.tuples(
        st.just(scores), st.sampled_from([(m, seed) for m in sorted(scores) for seed in scores[m]])
    )
)
# No seed has half of the others: e must not choose its own.
FEW = {"a": {0: 0.4}, "b": {1: 0.4}, "c": {0: 0.4}, "d": {1: 0.4}, "f": {2: 0.4}}


@settings(max_examples=60, deadline=None)
@given(LEFT_OUT)
@example(({**FEW, "e": {0: 0.4, 1: 0.5}}, ("e", 0)))
def test_leaving_a_seed_out_never_changes_ones_own_score(drawn):
    """The other methods decide which seeds count: without one of these there is no score."""
    scores, (method, left_out) = drawn
    before = places(board(scores), KEY, CASE)[method]
    fewer = {s: v for s, v in scores[method].items() if s != left_out}
    after = places(board({**scores, method: fewer}), KEY, CASE).get(method)
    assert after is None or after.score in (None, before.score)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**16))
def test_letters_are_shared_by_exactly_those_that_cannot_be_told_apart(n, seed):
    draws = random.Random(seed)
    names = [f"m{i}" for i in range(n)]
    apart = {(a, b): draws.random() < 0.5 for i, a in enumerate(names) for b in names[i + 1 :]}
    letters = letter_groups(names, lambda a, b: apart[a, b])
    for (a, b), different in apart.items():
        assert bool(set(letters[a]) & set(letters[b])) is not different
    assert letters[names[0]].startswith("a")


def test_several_seeds_are_compared_seed_by_seed():
    """Seeds differ by far more than methods do: only the paired interval tells them apart."""
    seeds = {s: 0.3 + 0.1 * s for s in range(4)}
    better = {s: v + 0.01 + 0.0001 * s for s, v in seeds.items()}
    found = places(board({"a": better, "b": seeds}), KEY, CASE)
    assert (found["a"].letters, found["b"].letters) == ("a", "b")
    worse = {s: v + (0.01 if s % 2 else -0.01) for s, v in seeds.items()}
    found = places(board({"a": worse, "b": seeds}), KEY, CASE)
    assert found["a"].letters == found["b"].letters == "a"


def test_one_seed_without_details_needs_intervals_that_do_not_overlap():
    found = places(board({"a": {0: 0.60}, "b": {0: 0.61}, "c": {0: 0.70}}), KEY, CASE)
    assert [found[m].letters for m in "cba"] == ["a", "b", "b"]


def test_pairs_have_the_intervals_of_a_comparison():
    rng = np.random.default_rng(0)
    identity = np.repeat(np.arange(40), 5)
    values = {"a": rng.random(200), "b": rng.random(200), "c": rng.random(10)}
    records = {m: make_record(m) for m in values}

    def find(record):
        mine = values[record.method]
        rows = np.arange(len(mine))
        answers = QueryResults(mine, identity[: len(mine)], rows, len(mine))
        return Details({(CASE, KEY): answers})

    pairs = PairedIntervals(find)
    by_hand = statistics.paired(values["a"], values["b"], identity)
    assert pairs(records["a"], records["b"], CASE, KEY) == pytest.approx(
        (by_hand.low, by_hand.high), abs=1e-12
    )
    assert pairs(records["a"], records["c"], CASE, KEY) is None  # other queries
    assert pairs(records["a"], records["b"], CASE, "map") is None


def test_pairs_decide_before_intervals_do():
    records = board({"a": {0: 0.60}, "b": {0: 0.61}})
    found = places(records, KEY, CASE, paired=lambda *_: (-0.02, -0.001))
    assert (found["b"].letters, found["a"].letters) == ("a", "b")


def test_a_mean_rank_is_none_where_one_is_missing():
    found = {"a": {"x": 1, "y": 3}, "b": {"x": 2}, "c": {"x": 3, "y": None}}
    assert mean_ranks(found, ["x", "y"]) == {"a": 2.0, "b": None, "c": None}
    assert mean_ranks(found, []) == {"a": None, "b": None, "c": None}
