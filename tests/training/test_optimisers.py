"""The optimisers of the loop, against rules written out and PyTorch's own loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from benchmark.config.recipes import Recipe
from benchmark.training.loop import Trainer


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_optimisers_are_the_recipe_s(trainer, optimizer):
    made = trainer(optimizer=optimizer, lr=0.2, momentum=0.7, weight_decay=0.01)
    got = made._optimizer([nn.Parameter(torch.zeros(2))])
    group = got.param_groups[0]
    assert type(got).__name__.lower() == optimizer
    assert (group["lr"], group["weight_decay"]) == (0.2, 0.01)
    assert group.get("momentum", 0.7) == 0.7


@given(
    kind=st.sampled_from(["adam", "adamw"]),
    shapes=st.lists(st.sampled_from([(1,), (7, 5), (33,), (64, 31), (3, 2, 3, 3)]), min_size=1),
    seed=st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=30, derandomize=True)
def test_adam_ends_where_tensor_after_tensor_does(kind, shapes, seed):
    """Records of before and after were fitted alike, to a few last bits.

    torch may divide or take roots in another order where all tensors are stepped at once, and a
    processor round each otherwise: an ulp or two in each of four steps of 0.01.
    """
    rng = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(shape, generator=rng) for shape in shapes]
    got, wanted = ([nn.Parameter(d.clone()) for d in drawn] for _ in range(2))
    optimizer = Trainer(Recipe(epochs=1, optimizer=kind, lr=0.01, weight_decay=0.02), 0)._optimizer(
        got
    )
    peer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](
        wanted, lr=0.01, weight_decay=0.02, foreach=False
    )
    for step in range(4):
        for group in optimizer.param_groups + peer.param_groups:
            group["lr"] = 0.01 / (1 + step)
        for a, b in zip(got, wanted, strict=True):
            a.grad = torch.randn(a.shape, generator=rng)
            b.grad = a.grad.clone()
        optimizer.step()
        peer.step()
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


def test_lars(trainer):
    """You et al., eq. 6, of matrices; biases and norms as SGD without decay (SimCLR's code)."""
    made = trainer(optimizer="lars", lr=0.2, momentum=0.7, weight_decay=0.01)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in ((3, 4), (4,), (2, 3, 1, 1))]
    got = [nn.Parameter(torch.from_numpy(v.copy())) for v in values]
    optimizer, moved = made._optimizer(got), [np.zeros_like(v) for v in values]
    for _ in range(3):
        for i, value in enumerate(values):
            gradient = rng.standard_normal(value.shape)
            got[i].grad = torch.from_numpy(gradient)
            if value.ndim > 1:
                norm, of_gradient = np.linalg.norm(value), np.linalg.norm(gradient)
                trust = 0.001 * norm / (of_gradient + 0.01 * norm)
                gradient = trust * (gradient + 0.01 * value)
            moved[i] = 0.7 * moved[i] + gradient
            values[i] = value - 0.2 * moved[i]
        optimizer.step()
    for parameter, value in zip(got, values, strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), value, rtol=1e-6)
