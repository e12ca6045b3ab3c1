"""Metrics from vectors to the number, against plain loops that share nothing with them.

Vectors whose cosines are multiples of 1/4 exactly, so that ties are ties on both sides.
"""

import itertools
import math
import statistics as stdlib
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from pytest import approx
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from support import naive
from support.problems import examples, units

from benchmark.metrics import (
    backfill_curves,
    compatibility,
    identification,
    intervals,
    retrieval,
    statistics,
    verification,
)
from benchmark.metrics.similarity import linear_cka
from benchmark.metrics.statistics import mean_score
from benchmark.ranking import pair_scores, ranks

seeds = st.integers(0, 2**32 - 1)
many = examples(100)
some = examples(40)


@many
@given(seeds)
def test_reidentification(seed):
    """Market-1501: identity -1 is dropped, 0 distracts, same identity and camera is left out."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(1, 50))
    q, g = units(rng, n), units(rng, m)
    who, whose = rng.integers(1, 5, n), rng.integers(-1, 5, m)
    seen, where = rng.integers(1, 4, n), rng.integers(1, 4, m)
    result = ranks.rank(
        q, g, who, whose, query_cameras=seen, gallery_cameras=where, junk=whose == -1
    )
    for i in range(n):
        scores, same = [], []
        for j in range(m):
            if whose[j] != -1 and not (whose[j] == who[i] and where[j] == seen[i]):
                scores.append(naive.score(q[i], g[j], False))
                same.append(whose[j] == who[i])
        first, ap, penalty, matches = naive.one_query(scores, same, [False] * len(scores))
        assert (result.first_rank[i], result.n_positives[i]) == (first, matches)
        np.testing.assert_allclose(result.average_precision[i], ap, rtol=1e-12)
        np.testing.assert_allclose(result.inverse_negative_penalty[i], penalty, rtol=1e-12)


def row_of(scores, subject, subjects):
    """A probe's own best score (None if it has none), its rank, and the best score of all."""
    pairs = list(zip(scores, subjects, strict=True))
    own = [s for s, name in pairs if name == subject]
    other = [s for s, name in pairs if name != subject]
    rank = 1 + sum(s >= max(own) for s in other) if own else 0
    return max(own, default=None), rank, max(scores)


def tpir(rows, target):
    """TPIR and FPIR at the smallest threshold that is allowed, tried one after the other."""
    bad = [best for own, _, best in rows if own is None]
    good = [(own, rank) for own, rank, _ in rows if own is not None]
    tried = sorted({*bad, *(own for own, _ in good), 9.0})
    t = next(t for t in tried if sum(b >= t for b in bad) <= target * len(bad))
    hits = [own >= t and rank == 1 for own, rank in good]
    return sum(hits) / len(hits), sum(b >= t for b in bad) / len(bad)


def people(rng):
    n, m = int(rng.integers(4, 25)), int(rng.integers(1, 20))
    ps, gs = rng.integers(0, 9, n), rng.integers(0, 6, m)
    ps[0], ps[1:4] = gs[0], 99
    return n, m, ps, gs


@many
@given(seeds, st.sampled_from([0.4, 0.5, 1.0]))
def test_identification(seed, target):
    rng = np.random.default_rng(seed)
    n, m, ps, gs = people(rng)
    p, g = units(rng, n), units(rng, m)
    result = identification.search(p, ps, g, gs)
    rows = [row_of([naive.score(p[i], y, False) for y in g], ps[i], gs) for i in range(n)]
    assert result.rank.tolist() == [rank for _, rank, _ in rows]
    assert result.best.tolist() == [best for _, _, best in rows]
    assert result.own[result.mated].tolist() == [own for own, _, _ in rows if own is not None]
    (point,) = identification.tpir_at_fpir(result, [target])
    assert (point.tpir, point.fpir) == tpir(rows, target)


@many
@given(seeds, st.integers(2, 6), st.sampled_from([0.4, 0.5, 1.0]))
def test_identification_while_the_gallery_is_backfilled(seed, points, target):
    rng = np.random.default_rng(seed)
    n, m, ps, gs = people(rng)
    old_p, old_g, new_p, new_g = (units(rng, k) for k in (n, m, n, m))
    order = rng.permutation(m)
    result = backfill_curves.search_curves(old_p, old_g, new_p, new_g, ps, gs, order, points=points)
    curve = result.tpir_at_fpir([target])[0]
    old, new = (
        [[naive.score(x, y, False) for y in g] for x in p]
        for p, g in ((old_p, old_g), (new_p, new_g))
    )
    for point, count in enumerate(result.filled):
        done = set(order[:count].tolist())
        rows = []
        for i in range(n):
            scores = [new[i][j] if j in done else old[i][j] for j in range(m)]
            rows.append(row_of(scores, ps[i], gs))
        assert curve[point] == tpir(rows, target)[0]


@many
@given(seeds, st.sampled_from([0.1, 0.25, 0.5, 1.0]), st.booleans())
def test_verification(seed, target, by_id):
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(1, 14, 2))
    x, y = units(rng, n), units(rng, m)
    a, b = rng.integers(0, 4, n), rng.integers(0, 4, m)
    ids = {"left_ids": np.arange(n), "right_ids": np.arange(m)} if by_id else {}
    good, bad = [], []
    for i in range(n):
        for j in range(m):
            if not (by_id and i == j):
                (good if a[i] == b[j] else bad).append(naive.score(x[i], y[j], False))
    result = pair_scores.all_pairs(x, y, a, b, **ids)
    assert [side.tolist() for side in result] == [good, bad]
    pairs = rng.integers(0, n, 9), rng.integers(0, m, 9)
    listed = [naive.score(x[i], y[j], False) for i, j in zip(*pairs, strict=True)]
    assert pair_scores.listed(x, y, *pairs).tolist() == listed
    if not good or target * len(bad) < 1:
        return
    (point,) = verification.tar_at_far(*result, [target])
    t = next(t for t in sorted({*good, *bad, 9.0}) if sum(s >= t for s in bad) / len(bad) <= target)
    assert point.tar == sum(s >= t for s in good) / len(good)
    assert point.far == sum(s >= t for s in bad) / len(bad)


@many
@given(seeds)
def test_compatibility(seed):
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(1, 12, 2))
    old, new, g = units(rng, n), units(rng, n), units(rng, m)
    ql, gl = rng.integers(0, 3, n), rng.integers(0, 3, m)
    kept = 0
    for i in range(n):
        for j in range(m):
            before, after = (naive.score(x[i], g[j], False) for x in (old, new))
            kept += after >= before if ql[i] == gl[j] else after <= before
    assert compatibility.pairwise(old, g, new, ql, gl) == kept / (n * m)

    size = int(rng.integers(2, 7))
    matrix = rng.integers(0, 5, (size, size)) / 8
    better = pairs = total = 0
    for i in range(size):
        for j in range(i + 1):
            total += matrix[i, j]
            pairs += i > j
            better += i > j and matrix[i, j] > matrix[j, j]
    assert compatibility.average_compatibility(matrix) == better / pairs
    assert compatibility.average_accuracy(matrix) == total / (pairs + size)


@many
@given(seeds)
def test_cka_in_gram_form(seed):
    """HSIC of the centred n x n kernels; the code under test knows features only."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 10))
    x, y = (rng.integers(-3, 4, (n, int(rng.integers(1, 5)))).astype(float) for _ in range(2))
    assume(np.ptp(x, 0).any() and np.ptp(y, 0).any())

    def centred(z):
        k = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in z] for u in z]
        mean = [sum(row) / n for row in k]
        return [[k[i][j] - mean[i] - mean[j] + sum(mean) / n for j in range(n)] for i in range(n)]

    def hsic(k, m):
        return sum(k[i][j] * m[i][j] for i in range(n) for j in range(n))

    k, m = centred(x), centred(y)
    expected = hsic(k, m) / math.sqrt(hsic(k, k) * hsic(m, m))
    cut = int(rng.integers(0, n + 1))
    result = linear_cka([(x[:cut], y[:cut]), (x[cut:], y[cut:])])
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


@many
@given(seeds, st.booleans())
def test_mean_difference(seed, grouped):
    """Each end by a loop over the groups, and one more: the fewer differ, the more by a whole."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 20))
    values = rng.integers(-2, 3, size).astype(float)
    names = rng.integers(0, 8, size) if grouped else np.arange(size)
    members = [values[names == name] for name in sorted(set(names.tolist()))]
    found = intervals.mean_difference(values, names)
    assert found.value == approx(float(np.mean(values)))
    if len(members) < intervals.LEAST_GROUPS:
        assert found.interval() is None and found.p_value() == 1.0
        return
    differ = [m.mean() for m in members if m.sum() != 0]
    agree = 1 - len(differ) / len(members)
    step = math.sqrt((sum(d * d for d in differ) + agree) / (len(differ) + agree))
    ends = []
    for side in (-1, 1):
        sums = [m.sum() for m in members] + [side * step * size / len(members)]
        counts = [len(m) for m in members] + [size / len(members)]
        mean, deviation = naive.clustered_mean(sums, counts)
        freedom = naive.clustered_freedom(counts, naive.intraclass(members))
        ends.append(mean + side * student.ppf(0.975, freedom) * deviation)
    assert found.interval() == approx(tuple(ends), abs=1e-9)


@many
@given(st.lists(st.sampled_from([0.0, 0.01, 0.02, 0.3, 0.5, 1.0]), min_size=1, max_size=7))
def test_holm(p):
    """Each value: the largest, among those up to it, of p times the hypotheses that are left."""
    for value, got in zip(p, statistics.holm(np.array(p)).tolist(), strict=True):
        steps = [q * (len(p) - sum(o < q for o in p)) for q in p if q <= value]
        assert got == min(1.0, max(steps))


@many
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_t_test(values):
    deviation = np.std(values, ddof=1)
    assume(deviation > 1e-6)
    expected = ttest_1samp(values, 0).pvalue
    assert statistics.t_test(values) == approx(expected, abs=1e-9)
    assert (statistics.t_test([0.5, 0.5]), statistics.t_test([0.0, 0.0])) == (0.0, 1.0)


def far_of(t, bad):
    return sum(s >= t for s in bad) / len(bad)


@many
@given(seeds, st.sampled_from([0.1, 0.25, 0.5]))
def test_rates_of_scores(seed, target):
    """The nearest FAR, of two the larger; and where the lines between the points cross."""
    rng = np.random.default_rng(seed)
    steps = int(rng.choice([2, 6, 100]))
    good, bad = (
        (rng.integers(-steps, steps + 1, int(rng.integers(1, 25))) / steps).tolist()
        for _ in range(2)
    )
    thresholds = [math.inf, *sorted({*good, *bad}, reverse=True)]
    if target * len(bad) >= 1:
        (point,) = verification.tar_at_nearest_far(good, bad, [target])
        steps = itertools.pairwise((sum(s >= t for s in good), sum(s >= t for s in bad))
                                   for t in thresholds[1:])  # fmt: skip
        steps = [(c - a, d - b) for (a, b), (c, d) in steps]
        inside = {t for t, a, b in zip(thresholds[2:], steps, steps[1:], strict=False) if a == b}
        corners = [t for t in thresholds if t not in inside]
        t = min(corners, key=lambda t: (abs(far_of(t, bad) - target), -far_of(t, bad), t))
        assert (point.far, point.tar) == (far_of(t, bad), far_of(t, good))
    rates = [(Fraction(sum(s >= t for s in bad), len(bad)),
              Fraction(sum(s < t for s in good), len(good))) for t in thresholds]  # fmt: skip
    for (a, b), (c, d) in itertools.pairwise(rates):
        if c >= d:
            expected = a + (c - a) * (b - a) / ((b - a) + (c - d))
            break
    assert abs(verification.equal_error_rate(good, bad) - expected) < 1e-12


@some
@given(seeds)
def test_detection_and_identification_rate(seed):
    rng = np.random.default_rng(seed)
    n, m, ps, gs = people(rng)
    p, g = units(rng, n), units(rng, m)
    rows = [row_of([naive.score(p[i], y, False) for y in g], ps[i], gs) for i in range(n)]
    bad = [best for own, _, best in rows if own is None]
    good = [(own, rank) for own, rank, _ in rows if own is not None]
    # Just above each score of an outsider, from the highest on, and at last no threshold.
    steps = [*sorted(set(bad), reverse=True), -9.0]
    fpir, tpir = identification.dir_curve(identification.search(p, ps, g, gs))
    assert len(fpir) == len(tpir) == len(steps)
    for t, x, y in zip(steps, fpir, tpir, strict=True):
        assert x == sum(s > t for s in bad) / len(bad)
        assert y == sum(s > t and rank == 1 for s, rank in good) / len(good)


@some
@given(seeds, st.sampled_from([0.1, 0.25, 1.0]))
def test_pooled_galleries_and_the_script_without_ranks(seed, target):
    rng = np.random.default_rng(seed)
    n, m, ps, gs = people(rng)
    p, g = units(rng, n), units(rng, m)
    cut = int(rng.integers(0, m + 1))
    parts = [(g[:cut], gs[:cut]), (g[cut:], gs[cut:])]
    table = [[naive.score(x, y, False) for y in g] for x in p]
    result = identification.pooled(p, ps, parts)
    rows = [row_of(table[i], ps[i], gs) for i in range(n)]
    assert result.rank.tolist() == [rank for _, rank, _ in rows]
    good, bad = [], []
    for i in range(n):
        for j in range(m):
            (good if ps[i] == gs[j] else bad).append(table[i][j])
    place = math.ceil(n * target)
    if not good or place > len(bad):
        return
    (point,) = identification.all_pairs_tpir_at_fpir(p, ps, parts, [target])
    t = sorted(bad, reverse=True)[place - 1]
    assert (point.tar, point.threshold) == (sum(s > t for s in good) / len(good), t)
    assert point.far == sum(s > t for s in bad) / n


@some
@given(seeds, st.integers(1, 6))
def test_cut_offs(seed, k):
    """CMC and MRR from the items that come before the first match, one after the other."""
    rng = np.random.default_rng(seed)
    q, g = units(rng, 6), units(rng, int(rng.integers(1, 30)))
    ql, gl = rng.integers(0, 4, 6), rng.integers(0, 4, len(g))
    result = ranks.rank(q, g, ql, gl)
    hits, inverse, whole = [], [], []
    for x, y in zip(q, ql, strict=True):
        first = 1
        for _, match in sorted(
            (-naive.score(x, z, False), label == y) for z, label in zip(g, gl, strict=True)
        ):
            if match:  # of equal scores the other classes come first
                hits.append(float(first <= k))
                inverse.append(1 / first if first <= k else 0.0)
                whole.append(1 / first)
                break
            first += 1
    assert retrieval.cmc(result, k).tolist() == hits
    assert retrieval.reciprocal_rank(result, k).tolist() == inverse
    assert retrieval.reciprocal_rank(result).tolist() == whole


@many
@given(st.lists(st.integers(0, 8), min_size=4, max_size=4))
def test_gains(eighths):
    low, cross, self_test, high = (Fraction(x, 8) for x in eighths)
    values = [float(x) for x in (cross, low)]
    assert compatibility.compatible(*values) == (cross > low)
    assert compatibility.not_hurting(float(self_test), float(high)) == (self_test >= high)
    assert compatibility.absolute_gain(*values) == cross - low
    expected = float((cross - low) / (high - low)) if cross > low and high > low else None
    assert compatibility.update_gain(*values, float(high)) == expected
    tar, tpir = compatibility.AVERAGED
    cases = {tar: values[0]}, {tpir: values[1]}, {tar: float(self_test), tpir: float(high)}
    assert compatibility.average(*cases) == (low + cross + self_test + high) / 4


@many
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8))
def test_mean_over_seeds(values):
    result = mean_score([float(v) for v in values]).ends
    mean, deviation = stdlib.mean(values), stdlib.stdev(values)
    half = student.ppf(0.975, len(values) - 1) * deviation / math.sqrt(len(values))
    np.testing.assert_allclose(result, (mean - half, mean + half), rtol=1e-9, atol=1e-12)


def test_cka_of_a_turned_space_is_one():
    x = np.random.default_rng(0).normal(size=(30, 4))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    assert linear_cka([(x, 3 * x @ turn + 7)]) == approx(1.0)
