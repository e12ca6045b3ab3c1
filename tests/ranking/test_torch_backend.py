"""Counts on torch devices: those of the CPU path where every sum is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples, problems, same_bits

from benchmark.metrics.backfill_curves import curves, search_curves
from benchmark.metrics.identification import search
from benchmark.ranking import pair_scores, ranks
from benchmark.ranking.device import on_device


@pytest.fixture(scope="module")
def small_tiles():
    """Several tiles even for small problems."""
    pytest.importorskip("torch")
    from benchmark.ranking import torch_backend

    before = torch_backend._ROWS, torch_backend._COLUMNS
    torch_backend._ROWS, torch_backend._COLUMNS = 16, 32
    yield
    torch_backend._ROWS, torch_backend._COLUMNS = before


@examples(40)
@given(p=problems())
def test_torch_path_counts_the_same_on_integers(small_tiles, p):
    cpu = ranks.rank(p.q, p.g, p.ql, p.gl, distance="l2", **p.rules())
    other = ranks.rank(p.q, p.g, p.ql, p.gl, distance="l2", device="torch:cpu", **p.rules())
    same_bits(cpu, other)


@pytest.mark.gpu
def test_cuda_counts_the_same_on_integers():
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("needs a CUDA device")
    rng = np.random.default_rng(0)
    q, g = (rng.integers(-4, 5, (n, 32)).astype(np.float32) for n in (1500, 9000))
    ql, gl = rng.integers(0, 50, 1500), rng.integers(0, 50, 9000)
    cpu = ranks.rank(q, g, ql, gl, distance="l2")
    same_bits(cpu, ranks.rank(q, g, ql, gl, distance="l2", device="cuda"))


def test_unknown_device():
    with pytest.raises(ValueError, match="device: expected"):
        ranks.rank(np.eye(1, 2), np.eye(1, 2), [1], [1], device="abacus")


@pytest.fixture
def on_torch(small_tiles):
    from benchmark.ranking.device import on_device

    with on_device("torch:cpu"):
        yield


@examples(25)
@given(p=problems(), seed=st.integers(0, 99))
def test_backfilling_curves_are_the_same_on_integers(small_tiles, p, seed):
    rng = np.random.default_rng(seed)
    old = [rng.integers(-3, 4, x.shape).astype(np.float32) for x in (p.q, p.g)]
    order, rules = rng.permutation(len(p.g)), p.rules()
    rules.pop("junk", None)
    arguments = (*old, p.q, p.g, p.ql, p.gl, order)
    rules["points"] = 5
    cpu = curves(*arguments, distance="l2", **rules)
    with on_device("torch:cpu"):
        other = curves(*arguments, distance="l2", **rules)
    same_bits(cpu, other)


def test_scores_and_searches_are_near_those_of_the_cpu(small_tiles):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, 24)).astype(np.float32) for n in (70, 90))
    la, lb = rng.integers(0, 9, 70), rng.integers(0, 12, 90)
    rows = rng.integers(0, 70, 4000), rng.integers(0, 90, 4000)  # as many as all pairs: by tiles
    calls = [
        lambda: pair_scores.listed(a, b, *rows),
        lambda: pair_scores.all_pairs(a, b, la, lb)[0],
        lambda: pair_scores.all_pairs(a, b, la, lb)[1],
        lambda: search(a, la, b, lb).own,
        lambda: search(a, la, b, lb).best,
        lambda: search_curves(a, b, a[:, :8], b[:, :8], la, lb, rng_order(90), points=7).other,
    ]
    for call in calls:
        exact = call()
        with on_device("torch:cpu"):
            np.testing.assert_allclose(call(), exact, atol=2e-6)


def rng_order(n):
    return np.random.default_rng(1).permutation(n)


def test_a_ranking_takes_the_chosen_device(on_torch, monkeypatch):
    from benchmark.ranking import torch_backend

    used = []
    count = torch_backend.count
    monkeypatch.setattr(torch_backend, "count", lambda *a: used.append(a[2]) or count(*a))
    x, labels = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])
    ranks.rank(x, x, labels, labels)
    ranks.rank(x, x, labels, labels, device="cpu")
    assert used == ["torch:cpu"]


def test_a_device_that_is_not_there_is_refused():
    from benchmark.ranking.device import current

    with pytest.raises(ValueError, match="device: expected"), on_device("abacus"):
        pass
    assert current() == "cpu"


@pytest.mark.gpu
def test_curves_on_cuda():
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("needs a CUDA device")
    rng = np.random.default_rng(0)
    sides = [rng.integers(-4, 5, (n, 32)).astype(np.float32) for n in (600, 5000, 600, 5000)]
    ql, gl = rng.integers(0, 50, 600), rng.integers(0, 50, 5000)
    arguments = (*sides, ql, gl, rng.permutation(5000))
    cpu = curves(*arguments, distance="l2")
    with on_device("cuda"):
        same_bits(cpu, curves(*arguments, distance="l2"))
