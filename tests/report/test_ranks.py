import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmark.report.ranks import RULE, apart, front, places

THREE = {0: 0.6, 1: 0.7, 2: 0.65}


def three(score):
    """Three seeds about a score, whatever the method the same apart from it."""
    return {seed: score + 0.01 * seed for seed in range(3)}


def ranks(values, **options):
    return {method: place.rank for method, place in places(values, **options).items()}


def test_the_score_gives_the_rank_and_equal_ones_share_one():
    values = {m: three(v) for m, v in {"a": 0.6, "b": 0.7, "c": 0.6, "d": 0.5}.items()}
    assert ranks(values) == {"b": 1, "a": 2, "c": 2, "d": 4}
    assert list(ranks(values)) == ["b", "a", "c", "d"]


def test_errors_rank_upside_down():
    values = {"a": three(0.1), "b": three(0.2)}
    assert ranks(values, higher=False) == {"a": 1, "b": 2}
    assert ranks(values, higher=False, reference=three(0.15)) == {"a": 1, "b": None}


def test_fewer_than_three_models_have_no_rank():
    values = {"a": {0: 0.9, 1: 0.9}, "b": {0: 0.8, 1: 0.8}}
    assert ranks(values) == {"a": None, "b": None}
    assert places(values)["a"].score == 0.9
    assert any("fewer than three" in sentence for sentence in RULE)


def test_who_is_no_better_than_doing_without_has_no_rank():
    values = {"good": three(0.7), "same": three(0.6), "bad": three(0.5)}
    assert ranks(values, reference=three(0.6)) == {"good": 1, "same": None, "bad": None}
    rounded = {seed: score - 1e-7 for seed, score in three(0.6).items()}
    assert ranks(values, reference=rounded) == {"good": 1, "same": None, "bad": None}


def test_what_is_missing_has_no_rank():
    values = {"a": three(0.6), "b": three(0.7), "c": {}}
    found = places(values)
    assert [found[m].rank for m in "bac"] == [1, 2, None]
    assert found["c"].score is None


def test_a_method_needs_the_seeds_that_half_of_the_others_have():
    values = {"a": THREE, "b": THREE, "lucky": {0: 0.9}, "more": {**THREE, 3: 0.99}}
    found = places(values)
    assert found["lucky"].rank is None
    assert found["more"].score == pytest.approx(0.65)  # nobody else has the fourth seed


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
    before = places(scores)[method]
    fewer = {s: v for s, v in scores[method].items() if s != left_out}
    after = places({**scores, method: fewer}).get(method)
    assert after is None or after.score in (None, before.score)


@settings(max_examples=60, deadline=None)
@given(TABLE)
def test_places_against_a_plain_count(values):
    """Ranked are exactly those of three seeds; each rank counts who is better."""
    found = places(values)
    scored = {m: p.score for m, p in found.items() if p.rank is not None}
    assert all(len(values[m]) == 3 for m in scored)
    for method, score in scored.items():
        better = sum(other > score for other in scored.values())
        assert found[method].rank == better + 1
        ties = [m for m in scored if m != method and not apart(values[method], values[m])]
        assert found[method].tied == len(ties)
        first, last = found[method].span
        assert first <= found[method].rank <= last and last - first == len(ties)


def test_several_seeds_are_compared_seed_by_seed():
    """Seeds differ by far more than methods do: only the paired interval tells them apart."""
    seeds = {s: 0.3 + 0.1 * s for s in range(4)}
    better = {s: v + 0.01 + 0.0001 * s for s, v in seeds.items()}
    found = places({"a": better, "b": seeds})
    assert (found["a"].tied, found["b"].tied) == (0, 0)
    shaky = {s: v + (0.02 if s % 2 else -0.01) for s, v in seeds.items()}
    found = places({"a": shaky, "b": seeds})
    assert (found["a"].tied, found["b"].tied) == (1, 1)


def test_only_seeds_that_count_tell_methods_apart():
    """Six seeds that most methods lack have no say: a is above b in these alone."""
    a = {s: 0.5 + 0.0001 * s for s in range(10)}
    b = {s: 0.5002 + 0.0001 * s if s < 4 else 0.30 + 0.001 * s for s in range(10)}
    few = {
        m: {s: v + 0.01 * (s % 2) for s in range(4)}
        for m, v in (("c", 0.4), ("d", 0.3), ("e", 0.2))
    }
    found = places({"a": a, "b": b} | few)
    assert apart(a, b) and sum(a.values()) > sum(b.values())
    assert (found["b"].rank, found["b"].span) == (1, (1, 1))
    assert (found["a"].rank, found["a"].span) == (2, (2, 2))
    assert found["a"].seeds == {0, 1, 2, 3} and found["a"].score == pytest.approx(0.50015)


def test_scores_equal_but_for_rounding_share_a_rank():
    parts = (0.1, 0.2, 0.3)
    values = {"a": {0: sum(parts), 1: 0.5, 2: 0.1}, "b": {0: sum(parts[::-1]), 1: 0.5, 2: 0.1}}
    assert sum(parts) != sum(parts[::-1])
    found = places(values)
    assert [found[m].rank for m in "ab"] == [1, 1] and found["a"].tied == 1


def test_an_interval_by_hand():
    """Differences 1, 2 and 3 points: 2 +- 4.303 * 1 / sqrt(3) leaves in zero."""
    right = {0: 0.5, 1: 0.5, 2: 0.5}
    assert 4.303 / math.sqrt(3) > 2
    assert not apart({0: 0.51, 1: 0.52, 2: 0.53}, right)
    assert apart({0: 0.52, 1: 0.53, 2: 0.54}, right)


def test_the_front_is_what_nothing_beats():
    points = {"a": (1, 3), "b": (2, 2), "c": (1, 2), "d": (3, 1), "e": (2, 2)}
    assert front(points) == ["a", "b", "e", "d"]
    assert front(points, higher=False) == ["c", "d"]
