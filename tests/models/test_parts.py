"""Parts of updates: what they compute, and that they come back from a file."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmark.errors import BenchError
from benchmark.models.module import Portable, load_module, save_module
from benchmark.models.parts import Affine, Directions, FirstDims, Frozen, KeepSide

X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))


def test_affine():
    weight, bias = torch.randn(3, 5), torch.randn(3)
    made = Affine.of(weight, bias)
    torch.testing.assert_close(made(X), X @ weight.T + bias)
    torch.testing.assert_close(Affine.of(weight)(X), X @ weight.T)


def test_first_dims():
    assert torch.equal(FirstDims(2)(X), X[:, :2])


def test_nested_modules_come_back(tmp_path):
    made = KeepSide(Directions(Affine.of(torch.randn(3, 5)), True))
    save_module(made, tmp_path / "convert.safetensors")
    loaded = load_module(tmp_path / "convert.safetensors")
    side = torch.ones(7, 2)
    out, kept = loaded(X, side)
    assert torch.equal(out, made(X, side)[0])
    assert torch.equal(kept, side)
    torch.testing.assert_close(out, loaded.map.map(F.normalize(X)))


def test_a_local_class_is_refused(tmp_path):
    class Local(Portable):
        pass

    with pytest.raises(BenchError, match="class at module level"):
        save_module(Local(), tmp_path / "x.safetensors")


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(5, 5)
        self.teacher = Frozen(nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.5), nn.BatchNorm1d(5)))


def test_frozen_stays_as_it_is():
    holder = Holder().train()
    assert not holder.teacher.module.training
    assert set(holder.state_dict()) == {"own.weight", "own.bias"}
    assert {n for n, _ in holder.named_parameters()} == {"own.weight", "own.bias"}
    x = X.clone().requires_grad_(True)
    out = holder.teacher(x)
    assert torch.equal(out, holder.teacher(x))
    out.sum().backward()
    assert x.grad is not None
    assert all(p.grad is None for p in holder.teacher.module.parameters())


def test_frozen_moves_along():
    holder = Holder().to(torch.float64)
    assert holder.teacher.module[0].weight.dtype is torch.float64
