"""RBT: the architecture in float64, both losses, the fit."""

import numpy as np
import pytest
import torch
from published_scripts import rbt_block
from support.losses import double, unit
from support.training import map_trainer
from torch import nn
from torch.nn import functional as F

from benchmark.contract.pairs import Pairs
from benchmark.models.heads import Head
from benchmark.models.transformation import Bottlenecks, ParallelBottlenecks
from methods.rbt import RBT


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(0)
    new = torch.randn(200, 5, generator=rng)
    old = torch.tanh(new @ torch.randn(5, 6, generator=rng)) * 4
    head = Head("arcface", 5, range(4), scale=9.0, margin=0.3)
    with torch.no_grad():
        head.weight.copy_(torch.randn(4, 5, generator=rng))
    return old, new, head


def by_hand(made, x):
    """The map in float64, layer by layer."""
    if isinstance(made.first, nn.Linear):
        x = x @ double(made.first.weight).T + double(made.first.bias)
    for down, norm, prelu, up in made.blocks:
        y = x @ double(down.weight).T + double(down.bias)
        y = (y - double(norm.running_mean)) / np.sqrt(double(norm.running_var) + norm.eps)
        y = y * double(norm.weight) + double(norm.bias)
        y = np.maximum(y, 0) + double(prelu.weight) * np.minimum(y, 0)
        x = x + y @ double(up.weight).T + double(up.bias)
    return x


@pytest.mark.parametrize("kind", [Bottlenecks, ParallelBottlenecks])
@pytest.mark.parametrize("dim_new", [6, 5])
@pytest.mark.parametrize("normalise", [False, True])
def test_forward(kind, dim_new, normalise):
    """A chain layer by layer, and paths side by side as in the published code."""
    torch.manual_seed(0)
    made = kind(6, dim_new, 3, 4, normalise, normalise_old=normalise)
    made(torch.randn(50, 6) * 3 + 1, None)
    old, side = torch.randn(7, 6), torch.randn(7, 2)
    x = F.normalize(old) if normalise else old
    with torch.inference_mode():
        out, kept = made.eval()(old, side)
        if kind is Bottlenecks:
            wanted = by_hand(made, x.double().numpy())
        else:
            wanted = rbt_block(made.first(x), made.paths.state_dict(), 3)
    assert kept is side
    np.testing.assert_allclose(out, unit(wanted) if normalise else wanted, rtol=1e-4, atol=1e-5)


def test_which_map(handed, data):
    old, new, _ = data
    for params, kind in (({}, ParallelBottlenecks), (RBT.variants["chain"], Bottlenecks)):
        handed.of(RBT(**params), Pairs(old, new))
        assert type(handed["module"]) is kind


def test_blocks_are_residual():
    """With nothing coming up from the bottleneck, what went in comes out."""
    made = Bottlenecks(6, 6, 4, 3, normalise=False)
    for *_, up in made.blocks:
        nn.init.zeros_(up.weight)
        nn.init.zeros_(up.bias)
    old = torch.randn(9, 6)
    assert torch.equal(made(old, None)[0], old)


def test_size():
    """A linear layer only between unequal dimensions; four blocks of 64-16-64."""
    count = lambda made: sum(p.numel() for p in made.parameters())  # noqa: E731
    block = 64 * 16 + 16 + 2 * 16 + 16 + 16 * 64 + 64
    assert count(ParallelBottlenecks(64, 64, 4, 16, True)) == 10368
    assert count(ParallelBottlenecks(128, 64, 4, 16, True)) == 10368 + 128 * 64 + 64
    assert count(Bottlenecks(64, 64, 4, 16, True)) == 4 * block
    assert count(Bottlenecks(128, 64, 4, 16, True)) == 4 * block + 128 * 64 + 64


@pytest.mark.parametrize("kind", ["arcface", "softmax"])
@pytest.mark.parametrize("kl", [0.0, 1.0, 0.4])
def test_losses(handed, data, kind, kl):
    """KL(p(f) || p(h(o))), no margin; the other way round it would be another number."""
    old, new, head = data
    head.kind = kind
    handed.of(RBT(kl=kl), Pairs(old, new, head=head))
    got, made = handed.loss.item(), handed.converted(old)
    target, weight = new.double().numpy(), head.weight.detach().double().numpy()
    if kind == "arcface":
        target /= np.linalg.norm(target, axis=1, keepdims=True)
        weight = 9 * weight / np.linalg.norm(weight, axis=1, keepdims=True)
    p, q = (np.exp(x @ weight.T) for x in (target, made))
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    squared = ((made - target) ** 2).sum(1).mean()
    assert got == pytest.approx(squared + kl * (p * np.log(p / q)).sum(1).mean(), rel=1e-4)
    if kl:
        assert got != pytest.approx(squared + kl * (q * np.log(q / p)).sum(1).mean(), rel=1e-3)


@pytest.mark.parametrize("kl", [0.0, 1.0])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_fit(data, kl, precision):
    old, new, head = data
    weight = head.weight.detach().clone()
    made = RBT(kl=kl, lr=5e-3).learn(
        Pairs(old, new, head=head), map_trainer(60, precision=precision)
    )
    losses = made.curves["map"].loss
    assert losses[-1] < 0.6 * losses[0]
    assert torch.equal(head.weight, weight) and head.weight.grad is None
    with torch.inference_mode():
        out, _ = made.convert(old, None)
    if not kl:
        assert (out - F.normalize(new)).square().sum(1).mean() < 0.8
