"""The heads against their equations, with acos, in float64, row by row."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.losses import slope

from benchmark.config.recipes import ModelSpec
from benchmark.errors import BenchError
from benchmark.models.heads import Head, add_angle

KINDS = ["softmax", "norm-softmax", "cosface", "arcface"]


def reference(kind, f, weight, bias, labels, scale, margin, smoothing):
    """Mean loss over the rows of ``f``; every argument float64."""
    losses = []
    for x, y in zip(f, labels, strict=True):
        logits = []
        for j, w in enumerate(weight):
            if kind == "softmax":
                logits.append(float(x @ w + bias[j]))
                continue
            cosine = float(np.clip(x @ w / (np.linalg.norm(x) * np.linalg.norm(w)), -1, 1))
            if j == y and kind == "cosface":
                cosine -= margin
            elif j == y and kind == "arcface":
                theta = math.acos(cosine)
                if theta + margin < math.pi:
                    cosine = math.cos(theta + margin)
                else:
                    cosine -= margin * math.sin(math.pi - margin)
            logits.append(scale * cosine)
        log_p = np.array(logits) - np.logaddexp.reduce(logits)
        losses.append(-(1 - smoothing) * log_p[y] - smoothing * log_p.mean())
    return float(np.mean(losses))


def make(kind, seed, *, n=6, dim=5, classes=7, scale=30.0, margin=0.5, smoothing=0.0):
    rng = np.random.default_rng(seed)
    head = Head(kind, dim, list(range(10, 10 + classes)), scale, margin, smoothing)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(rng.standard_normal((classes, dim))))
        if head.bias is not None:
            head.bias.copy_(torch.from_numpy(rng.standard_normal(classes)))
    f = rng.standard_normal((n, dim)).astype(np.float32)
    labels = rng.integers(0, classes, n)
    # Some features look away from their class, so that theta + m passes pi.
    far = rng.random(n) < 0.4
    away = -head.weight.detach().numpy()[labels] + 0.1 * rng.standard_normal((n, dim))
    f[far] = away[far]
    return head, f, labels


def doubles(head):
    bias = None if head.bias is None else head.bias.detach().double().numpy()
    return head.weight.detach().double().numpy(), bias


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**31),
    scale=st.floats(1, 64),
    margin=st.floats(0, 1.2),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_loss_is_the_equation(kind, seed, scale, margin, smoothing):
    head, f, labels = make(kind, seed, scale=scale, margin=margin, smoothing=smoothing)
    got = head(torch.from_numpy(f), torch.from_numpy(labels)).item()
    weight, bias = doubles(head)
    wanted = reference(kind, f.astype(np.float64), weight, bias, labels, scale, margin, smoothing)
    assert got == pytest.approx(wanted, rel=2e-5, abs=2e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_the_slope_of_the_equation(kind, seed):
    head, f, labels = make(kind, seed, scale=8.0, smoothing=0.1)
    x = torch.from_numpy(f).requires_grad_(True)
    head(x, torch.from_numpy(labels)).backward()
    weight, bias = doubles(head)
    f64 = f.astype(np.float64)

    def wanted(_):
        return reference(kind, f64, weight, bias, labels, 8.0, 0.5, 0.1)

    for got, array in ((x, f64), (head.weight, weight), (head.bias, bias)):
        if got is not None:
            np.testing.assert_allclose(got.grad, slope(wanted, array), rtol=2e-3, atol=2e-4)


@given(theta=st.floats(0.001, math.pi - 0.001), margin=st.floats(0, 1.5))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_added_angle_in_float64(theta, margin):
    got = add_angle(torch.tensor(math.cos(theta), dtype=torch.float64), margin).item()
    if theta + margin < math.pi:
        wanted = math.cos(theta + margin)
    else:
        wanted = math.cos(theta) - margin * math.sin(math.pi - margin)
    assert got == pytest.approx(wanted, abs=1e-6)


def test_linear_continuation_has_slope_one():
    cosine = torch.tensor([-0.999, -0.95], dtype=torch.float64, requires_grad=True)
    add_angle(cosine, 0.5).sum().backward()
    torch.testing.assert_close(cosine.grad, torch.ones(2, dtype=torch.float64))


def test_margin_never_helps():
    """With the continuation the target's logit falls at every angle, so the loss rises."""
    cosine = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    moved = add_angle(cosine, 0.5)
    assert (moved < cosine).all()


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradient_is_finite_at_cosine_one_and_minus_one(kind, sign):
    head, _, _ = make(kind, 0, scale=64.0)
    x = (sign * head.weight.detach()).clone().requires_grad_(True)
    loss = head(x, torch.arange(len(x)))
    loss.backward()
    assert loss.isfinite() and x.grad.isfinite().all() and head.weight.grad.isfinite().all()
    direct = torch.tensor([1.0, -1.0], requires_grad=True)
    add_angle(direct, 0.5).sum().backward()
    assert direct.grad.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_of_zeros_gives_a_finite_loss_and_gradient(kind):
    head, f, labels = make(kind, 0)
    x = torch.zeros_like(torch.from_numpy(f)).requires_grad_(True)
    loss = head(x, torch.from_numpy(labels))
    loss.backward()
    assert loss.isfinite() and x.grad.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_float32_inside_autocast(kind):
    """At scale 64 bfloat16 steps by a quarter: logits that differ would be equal."""
    head, f, labels = make(kind, 3, scale=64.0)
    x, y = torch.from_numpy(f), torch.from_numpy(labels)
    plain, loss = head.logits(x), head(x, y)
    with torch.autocast("cpu", torch.bfloat16):
        cast = head.logits(x)
        assert cast.dtype == torch.float32
        assert torch.equal(cast, plain)
        assert torch.equal(head(x, y), loss)
    assert head.logits(x.bfloat16()).dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_logits_have_no_margin(kind):
    head, f, _ = make(kind, 1, margin=0.7)
    bare, _, _ = make(kind, 1, margin=0.0)
    assert torch.equal(head.logits(torch.from_numpy(f)), bare.logits(torch.from_numpy(f)))


def test_normalised_kinds_see_directions_only():
    for kind in KINDS[1:]:
        head, f, labels = make(kind, 2)
        x, y = torch.from_numpy(f), torch.from_numpy(labels)
        torch.testing.assert_close(head(x, y), head(7 * x, y))
        assert head.normalised and head.bias is None
    head, f, labels = make("softmax", 2)
    x, y = torch.from_numpy(f), torch.from_numpy(labels)
    assert not torch.allclose(head(x, y), head(7 * x, y))


def test_unknown_kind_names_the_nearest():
    with pytest.raises(BenchError, match="arcface"):
        Head("arcfase", 4, [0, 1])


def test_margins_by_default_are_of_each_head():
    """Arcface's in radians, cosface's of a cosine."""
    spec = ModelSpec(backbone="convnet-2", dim=5)
    assert spec.margin is None
    for kind, margin in (("arcface", 0.5), ("cosface", 0.35), ("softmax", 0.0)):
        assert Head(kind, 5, range(3), margin=spec.margin).margin == margin
        assert Head(kind, 5, range(3), margin=0.2).margin == 0.2
    angle, cosine = (Head(kind, 2, range(2), scale=1.0) for kind in ("arcface", "cosface"))
    for head in (angle, cosine):
        with torch.no_grad():
            head.weight.copy_(torch.eye(2))
    x, y = torch.tensor([[0.6, 0.8]]), torch.tensor([1])
    for head, target in ((angle, math.cos(math.acos(0.8) + 0.5)), (cosine, 0.8 - 0.35)):
        wanted = math.log(math.exp(0.6) + math.exp(target)) - target
        assert head(x, y).item() == pytest.approx(wanted, rel=1e-5)
