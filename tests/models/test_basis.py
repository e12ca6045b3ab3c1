"""Changes of basis: the exponential and its gradient beside those of torch in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrizations import orthogonal

from benchmark.models.basis import Rotation, exponential


def skew(d: int, norm: float, seed: int) -> torch.Tensor:
    drawn = torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    made = drawn - drawn.T
    return made * (norm / torch.linalg.matrix_norm(made, 2)) if d > 1 else made


def both(function, matrix: torch.Tensor, weights: torch.Tensor) -> list[torch.Tensor]:
    matrix = matrix.clone().requires_grad_()
    made = function(matrix)
    return [made.detach(), *torch.autograd.grad((made * weights).sum(), matrix)]


@settings(max_examples=30, deadline=None)
@given(d=st.integers(1, 40), norm=st.floats(0, 6), seed=st.integers(0, 99))
def test_the_exponential_is_torch_s_and_so_is_its_gradient(d, norm, seed):
    a = skew(d, norm, seed)
    weights = torch.randn(d, d, generator=torch.Generator().manual_seed(seed)).double()
    for mine, theirs in zip(
        both(exponential, a, weights), both(torch.matrix_exp, a, weights), strict=True
    ):
        # The first term left out is x^9 / 9! at a norm of 1/2, once for each halving.
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=3e-7 * d)


@pytest.mark.parametrize("norm", [0.01, 0.4, 3.0])
def test_it_is_orthonormal_in_float32(norm):
    made = exponential(skew(200, norm, 0).float())
    assert (made @ made.T - torch.eye(200)).abs().max() < 1e-5


def test_a_rotation_starts_and_is_stored_as_torch_s_parametrization():
    """Models of earlier versions come back."""
    torch.manual_seed(1)
    mine = Rotation(7)
    torch.manual_seed(1)
    theirs = orthogonal(nn.Linear(7, 7, bias=False), orthogonal_map="matrix_exp")
    torch.testing.assert_close(mine.matrix, theirs.weight)
    with torch.no_grad():
        theirs.parametrizations.weight.original.normal_()
    mine.linear.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(mine.matrix, theirs.weight, rtol=1e-5, atol=1e-5)
