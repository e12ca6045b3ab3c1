"""Counts on torch devices: those of the CPU path where every sum is exact."""

import numpy as np
import pytest
from hypothesis import given
from support.problems import examples, problems, same_bits

from benchmark.ranking import ranks


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
