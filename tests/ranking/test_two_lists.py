"""Two lists as one ranking, streamed, against plain loops over whole tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import naive
from support.problems import examples, problems, same_bits

from benchmark.contract.fusion import RankFusion, RankMerge, RescoredList, ScoreMerge
from benchmark.metrics import backfill_curves
from benchmark.ranking import backfill_engine, ranks, two_lists
from benchmark.ranking.score_scale import Scale

some = examples(40)


def by_ranks(lists, same, out):
    """First rank and AP of lists without common items, merged by rank: the worst of tied places."""
    keep, good, bad = ~np.asarray(out), [], []
    for scores, there in lists:
        rows = np.flatnonzero(keep & there)
        for j in rows:
            (good if same[j] else bad).append(sum(scores[k] >= scores[j] for k in rows))
    if not good:
        return 0, float("nan")
    good, bad = np.array(good), np.array(bad)
    right = [(good <= r).sum() for r in good]
    parts = [n / (n + (bad <= r).sum()) for n, r in zip(right, good, strict=True)]
    return 1 + (bad <= good.min()).sum(), np.mean(parts)


def undeclared(merge):
    """The same merge, of which nothing is known but what it does with whole score blocks."""
    slow = type(merge).__new__(type(merge))
    slow.__dict__.update(merge.__dict__)
    slow.fused_by = slow.places_by = "merge"
    return slow


def old_side(p):
    """Other vectors of the same rows: small integers, exact with l2."""
    return tuple(p.rng.integers(-2, 3, x.shape).astype(np.float32) for x in (p.q, p.g))


def tables(p, old):
    return naive.table(*old, l2=True), naive.table(p.q, p.g, l2=True)


@some
@given(problems(most=40, junk=False), st.integers(2, 6), st.integers(1, 3))
def test_lists_merged_by_rank_take_turns(p, points, threads):
    old, order = old_side(p), p.rng.permutation(len(p.g))
    result = backfill_curves.curves(
        *old, p.q, p.g, p.ql, p.gl, order, points=points, merge=RankFusion(), distance="l2",
        threads=threads, **p.rules(),
    )  # fmt: skip
    first, second = tables(p, old)
    for point, count in enumerate(result.filled):
        done = np.isin(np.arange(len(p.g)), order[:count])
        for i in range(len(p.q)):
            out = naive.left_out(i, p.ql, p.gl, p.ids, p.cameras)
            expected = by_ranks([(first[i], ~done), (second[i], done)], p.ql[i] == p.gl, out)
            assert result.first_rank[point, i] == expected[0]
            np.testing.assert_allclose(result.average_precision[point, i], expected[1], rtol=1e-12)
        alone = two_lists.rank(
            old, (p.q, p.g), (p.ql, p.gl), RankFusion(), filled=done, distance="l2", **p.rules()
        )
        np.testing.assert_array_equal(alone.first_rank, result.first_rank[point])
        same = result.average_precision[point]
        np.testing.assert_allclose(alone.average_precision, same, rtol=1e-12)


@pytest.mark.parametrize("bits", [3, 8, 64])
def test_the_curve_of_rank_fusion_is_its_merge_where_scores_tie(bits):
    """Vectors of signs, as binary indexes hold them: most scores are those of many items."""
    rng = np.random.default_rng(bits)
    first, second = (
        [rng.choice([-1.0, 1.0], (n, bits)).astype(np.float32) for n in (12, 90)] for _ in range(2)
    )
    labels = rng.integers(0, 12, 12), rng.integers(0, 12, 90)
    order = rng.permutation(90)
    found = backfill_curves.curves(*first, *second, *labels, order, points=5, merge=RankFusion())
    for point, count in enumerate(found.filled):
        done = np.isin(np.arange(90), order[:count])
        merged = undeclared(RankFusion())
        direct = two_lists.rank(first, second, labels, merged, filled=done)
        np.testing.assert_array_equal(found.first_rank[point], direct.first_rank)
        np.testing.assert_allclose(
            found.average_precision[point], direct.average_precision, rtol=1e-12
        )


@some
@given(problems(most=40, junk=False), st.integers(2, 6), st.integers(2, 9))
def test_old_scores_are_brought_to_the_scale_of_new_ones(p, points, knots):
    old, order = old_side(p), p.rng.permutation(len(p.g))
    scale = Scale.checked(-40.0, 40.0 / (knots - 1), np.sort(p.rng.integers(-40, 3, knots)))
    result = backfill_curves.curves(
        *old, p.q, p.g, p.ql, p.gl, order, points=points, merge=ScoreMerge.of(scale),
        distance="l2", **p.rules(),
    )  # fmt: skip
    first, second = tables(p, old)
    for point, count in enumerate(result.filled):
        done = np.isin(np.arange(len(p.g)), order[:count])
        table = np.where(done, second, scale(first))
        expected = naive.ranking(table, p.ql, p.gl, p.ids, p.cameras)
        np.testing.assert_array_equal(result.first_rank[point], expected[0])
        np.testing.assert_allclose(result.average_precision[point], expected[1], rtol=1e-12)
        alone = two_lists.rank(
            old, (p.q, p.g), (p.ql, p.gl), ScoreMerge.of(scale), filled=done, distance="l2",
            **p.rules(),
        )  # fmt: skip
        same_bits(alone.first_rank, result.first_rank[point])
        same_bits(alone.average_precision, result.average_precision[point])


@some
@given(problems(), st.integers(1, 30), st.integers(1, 3))
def test_a_cascade_ranks_its_window_anew(p, window, threads):
    old = old_side(p)
    merge = RescoredList(window)
    found = two_lists.rank(
        old, (p.q, p.g), (p.ql, p.gl), merge, distance="l2", threads=threads, **p.rules()
    )
    first, second = tables(p, old)
    table = np.empty(first.shape)
    for i in range(len(p.q)):
        out = np.array(naive.left_out(i, p.ql, p.gl, p.ids, p.cameras, p.junk))
        place = np.array([(first[i][~out] >= s).sum() for s in first[i]])
        table[i] = np.where(place <= window, 1e6 + second[i], -place)
    expected = naive.ranking(table, p.ql, p.gl, p.ids, p.cameras, p.junk)
    np.testing.assert_array_equal(found.first_rank, expected[0])
    np.testing.assert_allclose(found.average_precision, expected[1], rtol=1e-12)


@some
@given(problems())
def test_a_cascade_of_all_items_is_the_new_ranking(p):
    found = two_lists.rank(old_side(p), (p.q, p.g), (p.ql, p.gl), RescoredList(1000), **p.rules())
    same_bits(found, ranks.rank(p.q, p.g, p.ql, p.gl, **p.rules()))


@some
@given(problems(most=40))
def test_two_whole_lists_by_the_sum_of_reciprocal_ranks(p):
    old = old_side(p)
    found = two_lists.rank(old, (p.q, p.g), (p.ql, p.gl), RankFusion(), distance="l2", **p.rules())
    table = np.zeros((len(p.q), len(p.g)))
    for i in range(len(p.q)):
        kept = ~np.array(naive.left_out(i, p.ql, p.gl, p.ids, p.cameras, p.junk))
        for scores in tables(p, old):
            table[i] += [1 / (60 + (scores[i][kept] >= s).sum()) for s in scores[i]]
    expected = naive.ranking(table, p.ql, p.gl, p.ids, p.cameras, p.junk)
    np.testing.assert_array_equal(found.first_rank, expected[0])
    np.testing.assert_allclose(found.average_precision, expected[1], rtol=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_a_mean_of_scores_where_one_list_has_zeros(distance):
    """A vector of zeros has the cosine 0, and no length that both lists could share."""
    query, one = np.array([[1.0, 0.0]], np.float32), np.array([[0.8, 0.6], [1.0, 3.0]], np.float32)
    two = np.array([[0.0, 0.0], [0.6, 0.8]], np.float32)
    sides, labels = ((query, one), (query, two)), (np.array([0]), np.array([0, 1]))
    found = two_lists.rank(*sides, labels, ScoreMerge(), distance=distance)
    direct = two_lists.rank(*sides, labels, undeclared(ScoreMerge()), distance=distance)
    assert found.first_rank == direct.first_rank == (2 if distance == "cosine" else 1)


@pytest.mark.parametrize("merge", [RankMerge(), RankFusion(), ScoreMerge(), RescoredList(5)])
def test_ends_of_a_curve(merge):
    """Nothing filled: the first list alone; all filled: the second one, to the last bit."""
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, d)).astype(np.float32) for n, d in ((9, 4), (60, 4), (9, 7), (60, 7))]
    ql, gl = rng.integers(0, 5, 9), rng.integers(0, 5, 60)
    found = backfill_curves.curves(*x, ql, gl, rng.permutation(60), points=4, merge=merge)
    ends = [ranks.rank(x[2], x[3], ql, gl)]
    if merge.searches:
        ends.insert(0, ranks.rank(x[0], x[1], ql, gl))
    for point, alone in zip((0, -1)[-len(ends) :], ends, strict=True):
        at = backfill_curves.at(found, point)
        np.testing.assert_array_equal(at.first_rank, alone.first_rank)
        assert at.average_precision.tobytes() == alone.average_precision.tobytes()


@pytest.mark.parametrize("merge", [RankMerge(), RankFusion(), ScoreMerge()])
def test_counting_and_score_blocks_agree(merge):
    """Counts without blocks are those of the merge of whole score blocks."""
    rng = np.random.default_rng(1)
    x = [rng.normal(size=(n, 6)).astype(np.float32) for n in (20, 150, 20, 150)]
    ql, gl, order = rng.integers(0, 5, 20), rng.integers(0, 5, 150), rng.permutation(150)
    counted = backfill_curves.curves(*x, ql, gl, order, points=5, merge=merge)
    for point, count in enumerate(counted.filled):
        filled = np.isin(np.arange(150), order[:count])
        dense = two_lists.rank(x[:2], x[2:], (ql, gl), undeclared(merge), filled=filled)
        np.testing.assert_array_equal(counted.first_rank[point], dense.first_rank)
        np.testing.assert_allclose(
            counted.average_precision[point], dense.average_precision, rtol=1e-12
        )


def test_threads_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, 16)).astype(np.float32) for n in (150, 2500, 150, 2500)]
    ql, gl, order = rng.integers(0, 6, 150), rng.integers(0, 6, 2500), rng.permutation(2500)
    merges = [RankFusion(), ScoreMerge.of(Scale.checked(-1.0, 0.5, [-1.0, -0.9, 0.0, 0.3, 1.0]))]
    whole = [
        backfill_curves.curves(*x, ql, gl, order, points=11, threads=1, merge=m) for m in merges
    ]
    monkeypatch.setattr(backfill_engine, "CELLS", 1 << 20)
    monkeypatch.setattr(backfill_engine, "_PACKED", 1 << 15)
    for merge, expected in zip(merges, whole, strict=True):
        same_bits(
            backfill_curves.curves(*x, ql, gl, order, points=11, threads=3, merge=merge), expected
        )


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_a_score_reaches_a_goal_where_its_image_does(values, seed):
    rng = np.random.default_rng(seed)
    scale = Scale.checked(float(rng.normal()), float(rng.uniform(0.01, 2)), np.sort(values))
    scores = rng.normal(scale=3, size=50).astype(np.float32)
    goals = np.concatenate([rng.normal(scale=3, size=20).astype(np.float32), scale(scores[:5])])
    assert (np.diff(scale(np.sort(scores))) >= 0).all()
    least = scale.reaching(goals)
    np.testing.assert_array_equal(scores[:, None] >= least, scale(scores)[:, None] >= goals)


@pytest.mark.parametrize(
    ("values", "step", "words"),
    [([1.0], 1.0, "at least two"), ([1.0, 0.0], 1.0, "ascend"), ([0.0, 1.0], 0.0, "step")],
)
def test_a_map_that_is_none_is_refused(values, step, words):
    with pytest.raises(ValueError, match=words):
        Scale.checked(0.0, step, values)


def test_lists_of_other_sizes_are_refused():
    x = np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match="second_gallery: expected 3 rows, got 2"):
        two_lists.rank((x, x), (x, x[:2]), ([0, 1, 2], [0, 1, 2]), RankMerge())


def test_a_flat_map_keeps_the_order_of_a_list():
    """Scores a float32 step apart, whose images are nearer: float64 tells them apart."""
    scale = Scale.checked(-1.0, 2.0, [0.5, 0.5 + 1e-6])
    rng = np.random.default_rng(0)
    g = np.ones((200, 3), np.float32) + rng.normal(scale=1e-3, size=(200, 3)).astype(np.float32)
    q, ql, gl = g[:20].copy(), rng.integers(0, 4, 20), rng.integers(0, 4, 200)
    sides = q, g, *(-x for x in (q, g))
    found = backfill_curves.curves(
        *sides, ql, gl, np.arange(200), points=3, merge=ScoreMerge.of(scale)
    )
    np.testing.assert_array_equal(found.first_rank[0], ranks.rank(q, g, ql, gl).first_rank)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_a_weighted_sum_is_one_list_of_longer_vectors(distance):
    rng = np.random.default_rng(2)
    x = [
        rng.normal(size=(n, d)).astype(np.float32) for n, d in ((30, 5), (90, 5), (30, 8), (90, 8))
    ]
    labels = rng.integers(0, 6, 30), rng.integers(0, 6, 90)
    merge = ScoreMerge.of(Scale.checked(0.3, 2.0, [0.1, 1.5]))
    assert merge.scale.slope == pytest.approx(0.7)
    found = two_lists.rank(x[:2], x[2:], labels, merge, distance=distance)
    tables = [naive.table(q, g, l2=distance == "l2") for q, g in (x[:2], x[2:])]
    expected = naive.ranking(0.7 * tables[0] + tables[1], *labels)
    np.testing.assert_array_equal(found.first_rank, expected[0])
    np.testing.assert_allclose(found.average_precision, expected[1], rtol=1e-9)
    steps = ScoreMerge.of(Scale.checked(-40.0, 20.0, [-28.0, -14.0, 0.0]))  # the same line, bent
    assert steps.scale.slope is None


def problem_of_rows(rng, *, ties):
    """Two lists of some thousand items, with ids, cameras and junk; small integers tie."""
    n, m = 25, 3000
    sizes = ((n, 6), (m, 6), (n, 9), (m, 9))
    x = [rng.normal(size=size).astype(np.float32) for size in sizes]
    if ties:
        x = [rng.integers(-2, 3, size).astype(np.float32) for size in sizes]
    labels = rng.integers(0, 7, n), rng.integers(0, 8, m)
    rules = {
        "query_ids": np.arange(n), "gallery_ids": rng.integers(0, 60, m),
        "query_cameras": rng.integers(0, 3, n), "gallery_cameras": rng.integers(0, 3, m),
        "junk": rng.random(m) < 0.1, "distance": "l2" if ties else "cosine",
    }  # fmt: skip
    return x, labels, rules


BENT = Scale.checked(-1.0, 0.02, np.sort(np.random.default_rng(5).uniform(-1, 1, 101)))
BENT_L2 = Scale.checked(-60.0, 1.5, np.sort(np.random.default_rng(6).integers(-40, 1, 41)))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("matches", ["as they are", "few", "many"])
@pytest.mark.parametrize(
    "merge",
    [RankMerge(), RankFusion(), RankFusion(k=0.0), RescoredList(20), RescoredList(700), "bent"],
    ids=["raw", "ranks", "ranks, k 0", "window 20", "window 700", "bent"],
)  # fmt: skip
def test_rows_and_score_blocks_agree(merge, matches, ties):
    """Declared merges give what the merge of whole score blocks gives, ties included."""
    x, (ql, gl), rules = problem_of_rows(np.random.default_rng(3), ties=ties)
    if matches == "few":
        gl = np.where(np.arange(len(gl)) % 500 == 0, gl, 99)
    elif matches == "many":
        gl = np.where(np.arange(len(gl)) % 3 == 0, gl, 3)
    if merge == "bent":
        merge = ScoreMerge.of(BENT_L2 if ties else BENT)
    found = two_lists.rank(x[:2], x[2:], (ql, gl), merge, threads=2, **rules)
    expected = two_lists.rank(x[:2], x[2:], (ql, gl), undeclared(merge), **rules)
    assert expected.answered.any()
    np.testing.assert_array_equal(found.n_positives, expected.n_positives)
    np.testing.assert_array_equal(found.first_rank, expected.first_rank)
    np.testing.assert_allclose(found.average_precision, expected.average_precision, rtol=1e-12)
    np.testing.assert_array_equal(found.inverse_negative_penalty, expected.inverse_negative_penalty)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("merge", ["raw", "bent"])
def test_one_partly_filled_ranking(merge, ties):
    """It is what the merge says of score blocks, and that point of a curve to the last bit."""
    x, labels, rules = problem_of_rows(np.random.default_rng(7), ties=ties)
    x = [side[:, :6] for side in x]  # curves by l2 need equal dimensions
    merge = RankMerge() if merge == "raw" else ScoreMerge.of(BENT_L2 if ties else BENT)
    order = np.random.default_rng(8).permutation(len(x[1]))
    filled = np.isin(np.arange(len(order)), order[: len(order) // 2])
    found = two_lists.rank(x[:2], x[2:], labels, merge, filled=filled, threads=2, **rules)
    expected = two_lists.rank(x[:2], x[2:], labels, undeclared(merge), filled=filled, **rules)
    np.testing.assert_array_equal(found.first_rank, expected.first_rank)
    np.testing.assert_array_equal(found.inverse_negative_penalty, expected.inverse_negative_penalty)
    np.testing.assert_allclose(found.average_precision, expected.average_precision, rtol=1e-12)
    del rules["junk"]
    found = two_lists.rank(x[:2], x[2:], labels, merge, filled=filled, **rules)
    curves = backfill_curves.curves(*x, *labels, order, points=3, merge=merge, **rules)
    point = backfill_curves.at(curves, 1)
    assert curves.filled[1] == filled.sum()
    np.testing.assert_array_equal(found.first_rank, point.first_rank)
    assert found.average_precision.tobytes() == point.average_precision.tobytes()


@some
@given(problems(most=40, junk=False), st.integers(1, 12), st.integers(2, 6), st.integers(1, 3))
def test_curves_of_a_cascade(p, window, points, threads):
    old, order = old_side(p), p.rng.permutation(len(p.g))
    merge = RescoredList(window)
    found = backfill_curves.curves(
        *old, p.q, p.g, p.ql, p.gl, order, points=points, merge=merge, distance="l2",
        threads=threads, **p.rules(),
    )  # fmt: skip
    for point, count in enumerate(found.filled):
        filled = np.isin(np.arange(len(p.g)), order[:count])
        expected = two_lists.rank(
            old, (p.q, p.g), (p.ql, p.gl), merge, filled=filled, distance="l2", **p.rules()
        )
        np.testing.assert_array_equal(found.first_rank[point], expected.first_rank)
        np.testing.assert_allclose(
            found.average_precision[point], expected.average_precision, rtol=1e-12
        )


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("window", [20, 700])
def test_curves_of_a_cascade_of_thousands(window, ties):
    x, labels, rules = problem_of_rows(np.random.default_rng(4), ties=ties)
    del rules["junk"]
    order, merge = np.random.default_rng(5).permutation(len(x[1])), RescoredList(window)
    found = backfill_curves.curves(*x, *labels, order, points=7, merge=merge, **rules)
    for point, count in enumerate(found.filled):
        filled = np.isin(np.arange(len(order)), order[:count])
        expected = two_lists.rank(x[:2], x[2:], labels, merge, filled=filled, **rules)
        np.testing.assert_array_equal(found.first_rank[point], expected.first_rank)
        np.testing.assert_allclose(
            found.average_precision[point], expected.average_precision, rtol=1e-12
        )
