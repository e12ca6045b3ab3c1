"""Intervals of one seed: worked cases, plain loops, and how often they hold the true score."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from support import naive
from support.problems import examples

from benchmark.metrics import backfill_curves, intervals, threshold_draws
from benchmark.metrics.intervals import (
    LEAST_GROUPS,
    Spread,
    mean_difference,
    mean_interval,
    mean_spread,
)
from benchmark.metrics.threshold_draws import Impostors

seeds = st.integers(0, 2**32 - 1)


def hall(u, skewness):
    """Hall's transformation of a studentised mean, forwards."""
    return u + skewness * u**2 / 3 + skewness**2 * u**3 / 27 + skewness / 6


def inverse(t, skewness):
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if hall(middle, skewness) < t else (low, middle)
    return low


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(20))
def test_one_group_has_no_spread(seed):
    """Its sum beside its mean leaves rounding, if anything."""
    values = np.random.default_rng(seed).random(100) / 30
    found = mean_spread(values, np.zeros(100, int))
    assert found.value == pytest.approx(values.mean())
    assert (found.deviation, found.skewness, found.interval()) == (0.0, 0.0, None)


def test_a_worked_mean():
    """Six classes with 2, 2, 1, 1, 0 and 0 hits of 2: sums deviate by sqrt(0.8)."""
    hits, classes = (
        np.tile([1.0, 1, 1, 0, 0, 0], 2),
        np.arange(12) // 2 % 3 + np.arange(12) // 6 * 3,
    )
    spread = mean_spread(hits, classes)
    deviation = math.sqrt(0.8 / 6) / 2
    assert spread == Spread(0.5, pytest.approx(deviation), pytest.approx(0.0), 6, 5.0)
    half = 2.570582 * deviation  # Student's t with five degrees of freedom
    assert spread.interval(share=False) == pytest.approx((0.5 - half, 0.5 + half))
    assert spread.interval() == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_groups_have_no_interval(n):
    """Three classes gave +-66.7 points, and differences of -24 to +160: nothing is said then."""
    values, groups = np.repeat(np.arange(n) % 2 * 1.0, 3), np.repeat(np.arange(n), 3)
    assert mean_interval(values, groups) is None and mean_spread(values, groups).p_value() == 1.0
    paired = mean_difference(values, groups)
    assert paired.interval() is None and paired.p_value() == paired.p_above(0.0) == 1.0
    more = np.append(values, np.ones(6)), np.append(groups, np.arange(6) + n)
    assert mean_interval(*more) is not None and mean_difference(*more).interval() is not None


@examples(100)
@given(seeds, st.sampled_from([0.8, 0.95]))
def test_a_mean_by_plain_loops(seed, level):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    values = rng.integers(0, 3, n) / 2
    names = rng.integers(0, rng.integers(2, 9), n)
    groups = [[float(v) for v, w in zip(values, names, strict=True) if w == g] for g in set(names)]
    mean = sum(map(sum, groups)) / n
    rest = [sum(group) - mean * len(group) for group in groups]
    k = len(groups)
    got = mean_spread(values, names)
    assert got.value == pytest.approx(mean)
    if k < LEAST_GROUPS:
        assert got.interval(level) is None
        return
    squares = sum(r**2 for r in rest)
    if squares < 1e-12:
        low, high = got.interval(level)
        assert low <= mean <= high and high - low > 0.05
        assert got.interval(level, share=False) == (got.value, got.value)
        return
    counts = [len(group) for group in groups]
    _, deviation = naive.clustered_mean([sum(group) for group in groups], counts)
    skewness = sum(r**3 for r in rest) / k / (squares / k) ** 1.5 / math.sqrt(k)
    freedom = naive.clustered_freedom(counts, naive.intraclass(groups))
    t = student.ppf(0.5 + level / 2, min(freedom, 4 / max(skewness**2, 1e-9)))
    ends = [mean - deviation * inverse(x, skewness) for x in (t, -t)]
    assert got.interval(level, share=False) == pytest.approx(tuple(ends), abs=1e-6)
    clipped = (max(0.0, ends[0]), min(1.0, ends[1]))
    assert got.interval(level) == pytest.approx(clipped, abs=1e-6)


@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
def test_groups_of_other_sizes_by_regression(alike):
    """Bell and McCaffrey's variance and freedom from matrices over the queries of a regression."""
    sizes = [9, 1, 1, 4, 2, 1]
    names = np.repeat(np.arange(len(sizes)), sizes)
    n = len(names)
    values = np.random.default_rng(3).normal(size=n)
    residual, matrix = np.eye(n) - np.full((n, n), 1 / n), []
    for group in range(len(sizes)):
        mine = names == group
        block = residual[np.ix_(mine, mine)]  # the inverse root of I - H of the group
        roots, vectors = np.linalg.eigh(block)
        inverse_root = vectors @ np.diag(roots**-0.5) @ vectors.T
        matrix.append(residual[mine].T @ inverse_root @ np.full(mine.sum(), 1 / n))
    matrix = np.array(matrix)
    deviation = np.linalg.norm(matrix @ values)
    working = alike * (names[:, None] == names) + (1 - alike) * np.eye(n)
    eigen = np.linalg.eigvalsh(matrix @ working @ matrix.T)
    counts = np.array(sizes, float)
    got = intervals.sums_spread(np.bincount(names, values), counts, alike)
    assert got.deviation == pytest.approx(deviation)
    assert got.freedom == pytest.approx(eigen.sum() ** 2 / (eigen**2).sum())
    assert got.freedom == pytest.approx(naive.clustered_freedom(sizes, alike))


@pytest.mark.parametrize(
    ("sizes", "alike"),
    [
        ([200, 100] + [1] * 300, 0.1),
        ([200, 100] + [1] * 300, 0.6),
        ([300] + [10] * 30, 0.3),
        ([50] + [1] * 300, 0.4),
        ([40] * 5 + [2] * 60, 0.0),
        ([20] * 24, 0.3),
    ],
)
def test_a_few_large_groups_are_held(sizes, alike):
    """Score and difference: by the number of groups, two of 200 and 100 were held in 46 to 83 %."""
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(len(sizes)), sizes)
    held = []
    for _ in range(400):
        luck = math.sqrt(alike) * rng.normal(size=len(sizes))[names]
        values = luck + math.sqrt(1 - alike) * rng.normal(size=len(names))
        spans = (mean_spread(values, names).interval(share=False), mean_difference(values, names))
        low, high = spans[1].interval()
        held.append([spans[0][0] <= 0 <= spans[0][1], low <= 0 <= high])
    assert (np.mean(held, axis=0) > 0.92).all()


def test_a_known_variance_beside_the_groups():
    """Skewness and freedom by the share of the deviation that drawing groups makes."""
    spread = Spread(0.5, 0.03, 0.4, 100, 8.0)
    assert spread.with_variance(0.0) == spread
    got = spread.with_variance(0.04**2)
    assert got == Spread(0.5, *map(pytest.approx, (0.05, 0.4 * 0.6**3)), 100, 8 / 0.6**4)
    assert Spread(0.5, 0.0, 0.0, 9).with_variance(0.04**2).interval(share=False) == pytest.approx(
        (0.5 - 0.04 * student.ppf(0.975, 8), 0.5 + 0.04 * student.ppf(0.975, 8))
    )


def test_near_one_it_does_not_collapse():
    """Of 40 hits none is wrong: Wilson's interval of 40 trials, or of a trial a class."""
    z = student.ppf(0.975, 39) ** 2
    assert mean_interval(np.ones(40)) == (pytest.approx(40 / (40 + z)), pytest.approx(1.0))
    low, high = mean_interval(np.ones(40), np.arange(40) // 4)
    assert low == pytest.approx(10 / (10 + student.ppf(0.975, 9) ** 2)) and high == 1.0
    low, high = mean_interval(np.zeros(40))
    assert (low, high) == (0.0, pytest.approx(z / (40 + z)))


def test_a_share_of_a_hundred_is_held():
    """0.99 of 100: percentiles of draws held it in 64 % of samples."""
    rng = np.random.default_rng(0)
    spans = [mean_interval((rng.random(100) < 0.99).astype(float)) for _ in range(600)]
    assert 0.93 < np.mean([low <= 0.99 <= high for low, high in spans]) <= 1.0


def test_queries_of_a_class_share_its_luck():
    """Over classes the true mean is held; over queries as if they were independent it is not."""
    rng = np.random.default_rng(1)
    classes, held = np.repeat(np.arange(30), 20), {True: 0, False: 0}
    for _ in range(300):
        luck = rng.random(30)[classes]
        hits = (rng.random(600) < luck).astype(float)
        for grouped in held:
            low, high = mean_interval(hits, classes if grouped else None)
            held[grouped] += low <= 0.5 <= high
    assert held[True] >= 270 and held[False] < 200


def test_blocks_of_weights_do_not_change_draws(monkeypatch):
    whole = np.concatenate(list(intervals.weights(7, 20, 3)))
    assert (whole.sum(1) == 7).all()
    monkeypatch.setattr(intervals, "_BLOCK", 7 * 3)
    np.testing.assert_array_equal(np.concatenate(list(intervals.weights(7, 20, 3))), whole)


def test_the_spread_of_draws():
    """Variance of draws of 5 groups, times 5/4; a quarter of the skewness that a threshold adds."""
    draws = np.array([0.1, 0.2, 0.2, 0.5])
    centred = draws - 0.25
    deviation = math.sqrt((centred**2).mean() * 5 / 4)
    skewness = (centred**3).mean() / (centred**2).mean() ** 1.5
    kept = Spread(0.3, deviation / 2, 0.4, 5)
    got = intervals.drawn_spread(0.3, draws, 5, kept)
    assert (got.value, got.n_groups) == (0.3, 5)
    assert got.deviation == pytest.approx(deviation)
    assert got.skewness == pytest.approx((skewness + 3 * 0.4 / 8) / 4)
    assert intervals.drawn_spread(1.0, np.ones(9), 5, kept) == Spread(1.0, 0.0, 0.0, 5)


def people(rng):
    """Scores of all pairs of probes and enrolled of some identities, the genuine ones higher."""
    size = int(rng.integers(8, 12))
    left, right = np.repeat(np.arange(size), int(rng.integers(3, 5))), np.arange(size)
    scores = rng.random((len(left), size)) + 0.6 * (left[:, None] == right)
    same = left[:, None] == right
    i, j = np.nonzero(~same)
    return size, scores[same], left, scores[~same], left[i], right[j]


@examples(15)
@given(seeds, st.booleans())
def test_a_threshold_in_draws_by_plain_loops(seed, pairs):
    rng = np.random.default_rng(seed)
    size, good, who, bad, left, right = people(rng)
    sides = [left, right] if pairs else [left]
    k = int(rng.integers(30, 40))
    target = k / len(bad)
    totals = [sum(int((side == p).sum()) for side in sides) for p in range(size)]
    impostors = Impostors(bad, lambda at: np.stack([s[at] for s in sides]), np.array(totals, float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_draws, "_STEPS", 100_000)  # every impostor's score
        got = threshold_draws.threshold_draws(good, who, impostors, target, n=6, seed=seed)

    order = sorted(range(len(bad)), key=lambda p: -bad[p])
    taken = order[:k]
    shrink = 1.0
    if pairs:
        rest = [sum((s[p] == q) for s in sides for p in taken) - target * totals[q]
                for q in range(size)]  # fmt: skip
        both = [tuple(sorted((int(left[p]), int(right[p])))) for p in taken]
        alone = sum(both.count(pair) ** 2 for pair in set(both))
        drawn = sum(r**2 for r in rest)
        shrink = math.sqrt(min(1.0, max(drawn - alone, alone) / drawn))
    places = np.random.default_rng([seed, 0]).integers(0, size, (6, size))
    for row, share in zip(places.tolist(), got, strict=True):
        w = [row.count(p) for p in range(size)]
        counts = [1 + shrink * sum(w[s[p]] - 1 for s in sides) for p in range(len(bad))]
        weight = [w[p] for p in who]
        reached, before, highest = None, None, 0.0
        thresholds = [bad[p] for p in order[: 4 * k + 1]] + [-math.inf] * (len(bad) <= 4 * k + 1)
        for threshold in thresholds:
            far = sum(c for c, s in zip(counts, bad, strict=True) if s > threshold) / sum(counts)
            highest = max(highest, far)
            tar = sum(x for x, s in zip(weight, good, strict=True) if s > threshold)
            here = (highest, tar / max(sum(weight), 1e-12))
            if highest > target * (1 + 1e-12):
                reached = here
                break
            before = here
        if reached is None:
            continue  # beyond what is kept
        part = (target - before[0]) / (reached[0] - before[0])
        expected = before[1] + min(1.0, max(0.0, part)) * (reached[1] - before[1])
        assert share == pytest.approx(expected, abs=1e-9)


def test_fewer_than_thirty_impostors_decide_nothing():
    rng = np.random.default_rng(0)
    size, good, who, bad, left, right = people(rng)
    totals = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
    impostors = Impostors(bad, lambda at: np.stack([left[at], right[at]]), totals.astype(float))
    draw = threshold_draws.threshold_draws
    assert draw(good, who, impostors, 29.5 / len(bad)) is None
    draws = draw(good, who, impostors, 30 / len(bad))
    assert len(draws) == intervals.DRAWS and np.ptp(draws) > 0


def test_a_drawn_threshold_moves_with_the_impostors():
    """Genuine scores that no draw changes: all that varies is the threshold."""
    rng = np.random.default_rng(0)
    good = np.linspace(0, 1, 200)
    outside = np.arange(40).repeat(20)
    bad = rng.random(800)
    impostors = Impostors(bad, lambda at: outside[None, at], np.bincount(outside) * 1.0)
    draws = threshold_draws.threshold_draws(good, np.full(200, 39), impostors, 0.1)
    kept = [d for d in draws if d > 0]  # draws that have the genuine scores' identity
    # The 80th of 800 uniform scores, drawn by 40 groups: near sqrt(80) / 800, as each draws twenty.
    assert np.std(kept) == pytest.approx(math.sqrt(80) / 800, rel=0.35)


@examples(40)
@given(seeds)
def test_backfilling_by_plain_loops(seed):
    rng = np.random.default_rng(seed)
    points, n = int(rng.integers(2, 6)), int(rng.integers(2, 30))
    values, before = rng.integers(0, 2, (points, n)) * 1.0, rng.integers(0, 2, n) * 1.0
    groups = rng.integers(0, 8, n)
    means = [sum(row) / n for row in values]
    assert backfill_curves.worst(means) == min(means)
    spans = [mean_spread(row - before, groups).interval(share=False) for row in values]

    def first(above):
        for p in range(points):
            if all(above[p:]):
                return p / (points - 1)
        return None

    share = backfill_curves.share_above(means, float(before.mean()))
    assert share == first([mean > before.mean() for mean in means])
    got = backfill_curves.share_above_interval(values, before, groups)
    worst = backfill_curves.worst_interval(values, groups)
    if len(set(groups.tolist())) < LEAST_GROUPS:
        assert got is None and worst is None
        return
    assert worst == mean_interval(values[means.index(min(means))], groups)
    if np.mean(values[-1] - before) <= 0:
        assert got is None
        return
    low, high = first([s[1] > 0 for s in spans]), first([s[0] > 0 for s in spans])
    assert got == (1.0 if low is None else low, 1.0 if high is None else high)
    assert got[0] <= got[1]


def test_a_worked_curve():
    assert backfill_curves.share_above([0.6, 0.6], 0.5) == 0.0
    assert backfill_curves.share_above([0.6, 0.4, 0.5, 0.6, 0.7], 0.5) == 0.75
    assert backfill_curves.share_above([0.6, 0.7, 0.5], 0.5) is None  # not above at the end
