"""Exact ranking against plain loops, scikit-learn, worked cases, and itself cut differently."""

import itertools
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from support import naive
from support.problems import examples, problems, same_bits

from benchmark.metrics import retrieval
from benchmark.ranking import arrays, ranks

many = examples(150)
few = examples(40)


@many
@given(problems(), st.integers(1, 3))
def test_agrees_with_plain_loops(p, threads):
    result = ranks.rank(p.q, p.g, p.ql, p.gl, distance="l2", threads=threads, **p.rules())
    table = naive.table(p.q, p.g, l2=True)
    expected = naive.ranking(table, p.ql, p.gl, p.ids, p.cameras, p.junk)
    np.testing.assert_array_equal(result.first_rank, expected[0])
    np.testing.assert_allclose(result.average_precision, expected[1], rtol=1e-12)
    np.testing.assert_allclose(result.inverse_negative_penalty, expected[2], rtol=1e-12)
    np.testing.assert_array_equal(result.n_positives, expected[3])
    assert result.n_excluded == int((expected[3] == 0).sum())


@many
@given(problems(), st.data())
def test_shards_and_permutations_change_nothing(p, data):
    whole = ranks.rank(p.q, p.g, p.ql, p.gl, **p.rules())
    order = p.rng.permutation(len(p.g))
    same_bits(whole, ranks.rank(p.q, p.g[order], p.ql, p.gl[order], **p.rules(order)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(p.g)), max_size=3)))
    edges = [0, *cuts, len(p.g)]
    parts = [np.arange(a, b) for a, b in itertools.pairwise(edges)]
    shards = [ranks.Shard(p.q, p.g[i], p.ql, p.gl[i], **p.rules(i)) for i in parts]
    joined = ranks.join([shard.matches for shard in shards])
    same_bits(whole, ranks.ranking_of(joined.scores, sum(shard.count(joined) for shard in shards)))


@few
@given(problems())
def test_scores_beside_each_other_in_float32(p):
    """Cosine on real-valued vectors: ranks follow from one chain of fused multiply-adds."""
    q = p.q + p.rng.normal(size=p.q.shape).astype(np.float32)
    g = p.g + p.rng.normal(size=p.g.shape).astype(np.float32)
    unit = [
        (x.astype(float) * (1 / np.sqrt((x.astype(float) ** 2).sum(1, keepdims=True))))
        for x in (q, g)
    ]
    a, b = (x.astype(np.float32).astype(np.float64) for x in unit)
    table = np.zeros((len(q), len(g)), np.float32)
    for k in range(q.shape[1]):  # float64 rounds a product of float32 values exactly, the sum once
        exact = a[:, k, None].astype(np.longdouble) * b[:, k] + table
        table = exact.astype(np.float32)
    result = ranks.rank(q, g, p.ql, p.gl, **p.rules())
    expected = naive.ranking(table, p.ql, p.gl, p.ids, p.cameras, p.junk)
    np.testing.assert_array_equal(result.first_rank, expected[0])
    np.testing.assert_allclose(result.average_precision, expected[1], rtol=1e-12)


@few
@given(problems(junk=False))
def test_average_precision_is_sklearns(p):
    result = ranks.rank(p.q, p.g, p.ql, p.gl, distance="l2")
    for i in np.flatnonzero(result.answered):
        scores = naive.table(p.q[[i]], p.g, l2=True)[0]
        expected = average_precision_score(p.gl == p.ql[i], scores)
        assert result.average_precision[i] == pytest.approx(expected, rel=1e-12)


@few
@given(problems(), st.integers(1, 5))
def test_identities(p, k):
    result = ranks.rank(p.q, p.g, p.ql, p.gl, **p.rules())
    np.testing.assert_array_equal(retrieval.reciprocal_rank(result, 1), retrieval.cmc(result, 1))
    assert (retrieval.cmc(result, k) <= retrieval.cmc(result, k + 1)).all()
    assert (retrieval.cmc(result, len(p.g)) == 1).all()
    assert (retrieval.inverse_negative_penalty(result) <= 1).all()


def problem(seed, n, m, d, classes, clusters=True):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(classes, d)).astype(np.float32)
    ql, gl = rng.integers(0, classes, n), rng.integers(0, classes, m)
    noise = [rng.normal(size=(size, d)).astype(np.float32) for size in (n, m)]
    if not clusters:
        return *noise, ql, gl
    return centre[ql] + 2 * noise[0], centre[gl] + 2 * noise[1], ql, gl


@pytest.mark.parametrize(
    ("n", "m", "classes", "clusters"),
    [(130, 5000, 3, True), (700, 3000, 40, True), (50, 4000, 2, False), (600, 600, 300, True)],
)
def test_large_enough_for_every_path(n, m, classes, clusters, monkeypatch):
    """Full buffers, several table steps, several superblocks and chunks: still the same bits."""
    q, g, ql, gl = problem(1, n, m, 24, classes, clusters)
    whole = ranks.rank(q, g, ql, gl, threads=1)
    from benchmark.ranking import engine

    scores = q[:2].astype(np.float64) @ g.T / np.linalg.norm(g, axis=1)
    rough = naive.ranking(scores, ql[:2], gl)
    np.testing.assert_allclose(whole.average_precision[:2], rough[1], rtol=1e-3)
    monkeypatch.setattr(engine, "_PACKED", 1 << 16)
    monkeypatch.setattr(ranks, "_PAIRS", 5000)
    for threads in (1, 3):
        same_bits(whole, ranks.rank(q, g, ql, gl, threads=threads))


def test_clustered_and_extreme_thresholds():
    """One far match and many nearly equal ones: table steps hold several thresholds."""
    rng = np.random.default_rng(0)
    g = np.concatenate([1e-4 * rng.normal(size=(900, 4)), [[9.0, 0, 0, 0]]]).astype(np.float32)
    g = np.round(g * 2**14) / np.float32(2**14)
    gl = np.concatenate([np.arange(900) % 3, [0]])
    q, ql = np.zeros((2, 4), np.float32), np.array([0, 1])
    result = ranks.rank(q, g, ql, gl, distance="l2")
    expected = naive.ranking(naive.table(q, g, l2=True), ql, gl)
    np.testing.assert_array_equal(result.first_rank, expected[0])
    np.testing.assert_allclose(result.average_precision, expected[1], rtol=1e-12)


HAND = [
    ("perfect", [0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0], 1, 1.0, 1.0),
    ("worst", [0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], 3, (1 / 3 + 2 / 4) / 2, 2 / 4),
    ("partial", [0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0], 1, (1 + 2 / 3) / 2, 2 / 3),
    ("tie lost", [0.9, 0.9, 0.2, 0.1], [1, 0, 0, 0], 2, 1 / 2, 1 / 2),
    ("all tied", [0.5, 0.5, 0.5, 0.5], [1, 1, 0, 0], 3, 1 / 2, 1 / 2),
    ("single", [0.1], [1], 1, 1.0, 1.0),
]


@pytest.mark.parametrize(("scores", "match", "rank", "ap", "inp"), [c[1:] for c in HAND])
def test_hand_worked(scores, match, rank, ap, inp):
    g = -np.array(scores, np.float32)[:, None]  # the query at -1: nearer is larger
    result = ranks.rank(np.full((1, 1), -1, np.float32), g, [1], match, distance="l2")
    assert result.first_rank.tolist() == [rank]
    assert result.average_precision[0] == pytest.approx(ap)
    assert result.inverse_negative_penalty[0] == pytest.approx(inp)


def test_self_matches_go_by_id_not_position():
    x, y = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])
    ids = np.array(["a", "b", "c", "d"])
    turned = np.array([2, 0, 3, 1])
    result = ranks.rank(x, x[turned], y, y[turned], query_ids=ids, gallery_ids=ids[turned])
    assert result.first_rank.tolist() == [3, 3, 3, 3]
    assert result.n_positives.tolist() == [1, 1, 1, 1]


def test_market_rules():
    """Same identity and camera is dropped, distractors stay, junk goes."""
    q = np.array([[1.0, 0.0]])
    g = np.array([[1, 0], [1, 0.1], [1, 0.2], [1, 0.3], [1, 0.4]])
    result = ranks.rank(
        q, g, [7], [7, -1, 0, 7, 3],
        query_cameras=[1], gallery_cameras=[1, 2, 2, 2, 1],
        junk=[False, True, False, False, False],
    )  # fmt: skip
    assert result.first_rank.tolist() == [2]
    assert result.average_precision.tolist() == [0.5]


def test_no_query_no_item_no_match():
    x = np.ones((3, 2), np.float32)
    none = ranks.rank(x[:0], x, np.zeros(0, int), [0, 0, 0])
    assert len(none.first_rank) == 0
    empty = ranks.rank(x, x[:0], [0, 0, 0], np.zeros(0, int))
    assert empty.n_excluded == 3
    assert np.isnan(empty.average_precision).all()
    assert len(retrieval.cmc(empty, 1)) == 0


def test_zero_vector_scores_zero():
    result = ranks.rank(np.eye(1, 2), [[0.0, 0.0], [-1.0, 0.0]], [1], [1, 0])
    assert result.first_rank.tolist() == [1]


def test_input_types():
    q, g, ql, gl = problem(3, 20, 30, 8, 4)
    half = ranks.rank(q.astype(np.float16), g.astype(np.float16), ql, gl)
    same_bits(half, ranks.rank(q.astype(np.float16).astype(float), g.astype(np.float16), ql, gl))
    torch = pytest.importorskip("torch")
    tq, tg = (torch.from_numpy(x).bfloat16() for x in (q, g))
    bits = [arrays.from_bfloat16(x.view(torch.uint16).numpy()) for x in (tq, tg)]
    same_bits(ranks.rank(tq, tg, ql, gl), ranks.rank(*bits, ql, gl))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": [[np.nan, 1.0]]}, "query: expected finite"),
        ({"gallery": [[np.inf, 1.0]]}, "gallery: expected finite"),
        ({"gallery": [[1.0, 2.0, 3.0]]}, "gallery: expected dimension 2, got 3"),
        ({"gallery": [[1, 2]]}, "gallery: expected 2-D floats"),
        ({"query_labels": [1, 2]}, r"query_labels: expected shape \(1,\)"),
        ({"gallery_labels": ["a"]}, "gallery_labels: expected"),
        ({"gallery_labels": [0.5]}, "gallery_labels: expected integers or strings"),
        ({"distance": "p1"}, "distance: expected 'cosine', 'dot' or 'l2'"),
        ({"query_ids": [1]}, "gallery_ids: expected both sides"),
        ({"threads": 0}, "threads: expected at least 1"),
    ],
)
def test_refusals(change, message):
    given_ = {"query": [[0.0, 1.0]], "gallery": [[0.0, 1.0]], "query_labels": [1]}
    with pytest.raises(ValueError, match=message):
        ranks.rank(**{**given_, "gallery_labels": [1], **change})


PROGRAM = """
import hashlib, numpy as np
from benchmark.ranking import ranks
rng = np.random.default_rng(5)
q, g = (rng.normal(size=(n, 17)).astype(np.float32) for n in (61, 260))
ql, gl = rng.integers(0, 5, 61), rng.integers(0, 5, 260)
out = hashlib.sha256()
for distance in ("cosine", "l2"):
    r = ranks.rank(q, g, ql, gl, distance=distance)
    out.update(r.first_rank.tobytes() + r.average_precision.tobytes())
print(out.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize("features", ["+avx,+avx2,+fma", "+sse2"])
def test_other_processors_give_the_same_bits(features, tmp_path):
    """8 or 4 lanes, with and without FMA instructions: the chain rounds alike."""
    plain = dict(os.environ)
    other = {
        **plain,
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": features,
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    digests = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=env, check=True, capture_output=True, text=True
        ).stdout
        for env in (plain, other)
    ]
    assert digests[0] == digests[1]


@examples(40)
@given(problems(), st.sampled_from(["float16", "bfloat16"]), st.sampled_from(["cosine", "l2"]))
def test_half_precision_ranks_as_the_same_values_in_float32(p, kind, distance):
    torch = pytest.importorskip("torch")
    q, g = (torch.from_numpy(x).to(getattr(torch, kind)) for x in (p.q + 0.3, p.g + 0.3))
    half = ranks.rank(q, g, p.ql, p.gl, distance=distance, **p.rules())
    wide = ranks.rank(q.float(), g.float(), p.ql, p.gl, distance=distance, **p.rules())
    assert half.first_rank.tobytes() == wide.first_rank.tobytes()
    assert half.average_precision.tobytes() == wide.average_precision.tobytes()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_and_junk_copy_no_gallery(kind):
    torch = pytest.importorskip("torch")
    n = 400_000
    g = torch.ones((n, 64), dtype=getattr(torch, kind))
    labels = np.arange(n) % 1000
    tracemalloc.start()
    ranks.rank(g[:12], g, labels[:12], labels, junk=labels == 7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 90 << 20  # the gallery in float32 alone has 98 MiB


def test_memory_does_not_grow_with_the_gallery(monkeypatch):
    """Beyond the packed items, which are bounded; the rules and junk hold nothing either."""
    from benchmark.ranking import engine

    monkeypatch.setattr(engine, "_PACKED", 1 << 18)
    g = np.random.default_rng(0).normal(size=(400_000, 8)).astype(np.float32)
    ids = np.arange(len(g))
    peaks = []
    for m in (40_000, 400_000):
        labels, cameras = ids[:m] % (m // 100), ids[:m] % 6
        sides = (g[:50], g[:m], labels[:50], labels)
        rules = {"query_ids": ids[:50], "gallery_ids": ids[:m], "junk": np.zeros(m, bool)}
        rules.update(query_cameras=cameras[:50], gallery_cameras=cameras)
        ranks.rank(*sides, **rules)
        tracemalloc.start()
        ranks.rank(*sides, **rules)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (256 << 10)  # one byte an item would add 352 KiB


def test_nothing_but_junk():
    result = ranks.rank(np.eye(2), np.eye(2), [0, 1], [0, 1], junk=[True, True])
    assert result.n_excluded == 2


@pytest.mark.parametrize("size", [1e19, 1e-30, 1e-14])
def test_l2_refuses_lengths_whose_squares_float32_does_not_hold(size):
    """Else all distances are equal, infinite or 0, and every CMC is 0."""
    x = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    labels = np.arange(20) // 2
    ids = np.arange(20)
    rules = {"query_ids": ids, "gallery_ids": ids}
    far = x.copy()
    far[7] *= np.float32(size)
    with pytest.raises(ValueError, match=r"gallery: expected lengths of 1e-12 to 1e\+18"):
        ranks.rank(x, far, labels, labels, distance="l2", **rules)
    ranks.rank(x, far, labels, labels, **rules)  # a cosine has no length
    far[7] = 0
    ranks.rank(x, far, labels, labels, distance="l2", **rules)


@pytest.mark.parametrize("size", [2e-12, 1e17])
def test_l2_ranks_alike_at_any_length_that_it_takes(size):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(30, 1)).astype(np.float32), rng.integers(0, 4, 30)
    x += np.sign(x)
    plain = ranks.rank(x[:9], x[9:], labels[:9], labels[9:], distance="l2")
    scaled = x * np.float32(2.0 ** np.round(np.log2(size)))
    made = ranks.rank(scaled[:9], scaled[9:], labels[:9], labels[9:], distance="l2")
    assert made.first_rank.tolist() == plain.first_rank.tolist()


def test_values_that_float32_takes_for_zero_are_refused():
    x = np.full((3, 2), 1e-50)
    x[0] = 1
    with pytest.raises(ValueError, match="query: expected values that float32 tells from 0"):
        ranks.rank(x, x, [0, 1, 2], [0, 1, 2])
