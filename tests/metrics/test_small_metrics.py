"""Compatibility, similarity, agreement, statistics and the catalogue."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from support.problems import examples

from benchmark.metrics import catalog, compatibility, statistics
from benchmark.metrics.similarity import LinearCKA, linear_cka
from benchmark.metrics.statistics import kendall_tau
from benchmark.report.card import MEASURED
from benchmark.tasks.base import key

some = examples(100)


def test_compatibility_by_hand():
    assert compatibility.compatible(0.5, 0.4)
    assert not compatibility.compatible(0.4, 0.4)
    assert compatibility.not_hurting(0.6, 0.6)
    assert not compatibility.not_hurting(0.59, 0.6)
    assert compatibility.update_gain(0.5, 0.25, 0.75) == 0.5
    assert compatibility.update_gain(0.25, 0.25, 0.75) is None
    assert compatibility.update_gain(0.5, 0.25, 0.25) is None
    assert compatibility.absolute_gain(0.5, 0.25) == 0.25
    one = {"tar_at_far_1e-4": 0.5, "tpir_at_fpir_1e-2": 0.25}
    two = {"tar_at_far_1e-4": 1.0, "tpir_at_fpir_1e-2": 0.75}
    assert compatibility.average(one, two) == 0.625
    with pytest.raises(ValueError, match="tpir_at_fpir_1e-2"):
        compatibility.average({"tar_at_far_1e-4": 0.5}, two)
    with pytest.raises(ValueError, match="new_old: expected a finite"):
        compatibility.compatible(math.nan, 0.1)


def test_matrices():
    matrix = [[0.4, np.nan, np.nan], [0.5, 0.6, np.nan], [0.4, 0.7, 0.8]]
    assert compatibility.average_compatibility(matrix) == pytest.approx(2 / 3)
    assert compatibility.average_accuracy(matrix) == pytest.approx(3.4 / 6)
    for bad in ([[1.0]], [[1.0, 2.0]], [[0.1, 0.1], [np.nan, 0.2]]):
        with pytest.raises(ValueError, match="matrix"):
            compatibility.average_compatibility(bad)


@some
@given(st.integers(0, 2**32 - 1))
def test_pairwise_agrees_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 15, 2)
    old, new, g = (rng.normal(size=(k, 4)).astype(np.float32) for k in (n, n, m))
    ql, gl = rng.integers(0, 3, n), rng.integers(0, 3, m)
    kept = 0
    for i in range(n):
        for j in range(m):
            a, b = (x[i].astype(float) @ g[j] / np.linalg.norm(x[i]) for x in (old, new))
            kept += b >= a if ql[i] == gl[j] else b <= a
    assert compatibility.pairwise(old, g, new, ql, gl) == pytest.approx(kept / (n * m))
    assert compatibility.pairwise(old, g, old, ql, gl) == 1.0


@some
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_cka_on_a_stream_is_the_whole(seed, parts):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 5)) + 100
    y = x[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(40, 4))
    batches = zip(np.array_split(x, parts), np.array_split(y, parts), strict=True)
    xc, yc = x - x.mean(0), y - y.mean(0)
    cross = (xc.T @ yc) ** 2
    own = np.linalg.norm(xc.T @ xc) * np.linalg.norm(yc.T @ yc)
    assert linear_cka(batches) == pytest.approx(cross.sum() / own, rel=1e-9)


def test_cka_edges():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert linear_cka([(x, 3 * x @ turn + 7)]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="constant side"):
        linear_cka([(x, np.ones((30, 2)))])
    with pytest.raises(ValueError, match="at least 2 items"):
        LinearCKA().value()
    with pytest.raises(ValueError, match="as many rows"):
        linear_cka([(x, x[:3])])
    with pytest.raises(ValueError, match="expected dimensions"):
        linear_cka([(x, x), (x[:, :3], x)])
    with pytest.raises(ValueError, match="finite"):
        linear_cka([(x * np.nan, x)])


@some
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30))
def test_kendall_tau_agrees_with_counting(pairs):
    x, y = (np.array(side, float) for side in zip(*pairs, strict=True))
    concordant = tied_x = tied_y = total = 0
    for i in range(len(x)):
        for j in range(i):
            concordant += np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
            tied_x += x[i] != x[j]
            tied_y += y[i] != y[j]
            total += 1
    got = kendall_tau(x, y)
    if not tied_x or not tied_y:
        assert got is None
    else:
        assert got == pytest.approx(concordant / math.sqrt(tied_x * tied_y))
        assert got == pytest.approx(kendalltau(x, y).statistic)


def test_bootstrap():
    rng = np.random.default_rng(0)
    x = rng.normal(0.5, 0.1, 400)
    low, high = statistics.bootstrap(x, n=2000)
    assert low < x.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.15)
    assert statistics.bootstrap(x) == statistics.bootstrap(x)
    assert statistics.bootstrap(x, seed=1) != statistics.bootstrap(x)
    groups = np.repeat(np.arange(20), 20)
    wide = statistics.bootstrap(np.repeat(rng.normal(size=20), 20), groups)
    narrow = statistics.bootstrap(np.repeat(rng.normal(size=20), 20))
    assert wide[1] - wide[0] > narrow[1] - narrow[0]
    for bad in ({"level": 1.0}, {"n": 0}):
        with pytest.raises(ValueError, match="expected"):
            statistics.bootstrap(x, **bad)
    with pytest.raises(ValueError, match="values: expected at least one"):
        statistics.bootstrap(np.zeros(0))


def test_paired():
    rng = np.random.default_rng(0)
    x = rng.random(300)
    better = statistics.paired(x + 0.05 + 0.01 * rng.normal(size=300), x)
    assert better.low > 0
    assert better.p_value < 0.01
    same = statistics.paired(x, x)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    with pytest.raises(ValueError, match="right: expected 300"):
        statistics.paired(x, x[:9])


def test_t_interval_and_holm():
    low, high = statistics.t_interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == (pytest.approx(2 - 2.4841, abs=1e-3), pytest.approx(4.4841, abs=1e-3))
    assert statistics.t_interval(np.array([1.0])) is None
    assert statistics.holm(np.array([0.01, 0.04, 0.03])).tolist() == [0.03, 0.06, 0.06]
    assert statistics.holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="p_values"):
        statistics.holm(np.array([1.5]))


@pytest.mark.parametrize("key", catalog.EXAMPLES)
def test_every_metric_is_described(key):
    metric = catalog.describe(key)
    assert metric.key == key
    assert metric.label
    assert metric.rules.endswith(".")
    assert metric.low is None or metric.low < metric.high


def test_catalogue_parses_and_refuses():
    assert catalog.describe("offline_area_cmc_at_1").label == "offline area of CMC@1"
    assert catalog.describe("g1_tpir_at_fpir_1e-2").label == "TPIR@FPIR 1e-2 (G1)"
    assert not catalog.describe("eer").higher_is_better
    for bad in ("cmc_at_0", "cmc_at_", "tar_at_far_x", "area_", "area_nothing", "mpa"):
        with pytest.raises(ValueError, match="key: expected a known metric"):
            catalog.describe(bad)
    with pytest.raises(ValueError, match="did you mean 'minp'"):
        catalog.describe("mimp")
    for value in (1e-6, 1e-1, 5e-2, 1.0, 0.125, 0.025, 2.5e-5):
        assert catalog.describe(key("tar_at_far", value)).label.startswith("TAR@FAR ")
        assert float(catalog.rate(value)) == value


def test_every_metric_of_the_committed_records_is_in_the_catalogue():
    found = set()
    for path in MEASURED.glob("*/*/*/seed-0.json"):
        value = json.loads(path.read_text())
        for scores in (*value["scores"].values(), *value["bounds"].values()):
            found |= set(scores)
        for order in value["backfilling"].get("orders", {}).values():
            found |= {f"area_{metric}" for metric in order["area"]}
    assert {"map", "rank_1", "area_map"} <= found
    for metric in found:
        assert catalog.describe(metric).rules
