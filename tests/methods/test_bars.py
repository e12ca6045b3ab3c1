"""The bars: maps of vectors alone, against closed forms that are written or bought elsewhere."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import Ridge
from support.losses import slope
from support.training import map_trainer
from torch.nn import functional as F

from benchmark.config import registry
from benchmark.contract.maps import fit_map
from benchmark.contract.pairs import Pairs
from benchmark.models.parts import Affine
from benchmark.training import closed_form
from methods.lambda_orthogonal import LambdaOrthogonal
from methods.linear import Linear
from methods.low_rank import LowRank
from methods.procrustes import Procrustes
from methods.residual_mlp import Residual, ResidualMLP

trainer = partial(map_trainer, precision="32-true")
BARS = [Procrustes, Linear, LowRank, ResidualMLP, LambdaOrthogonal]


def pairs(d_in=8, d_out=8, n=200, noise=0.2, seed=0):
    """A stretched rotation off the origin, with noise."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((max(d_in, d_out),) * 2))[0][:d_out, :d_in]
    x = rng.standard_normal((n, d_in)) + 3
    y = x @ turn.T * np.linspace(0.5, 1.5, d_out) + noise * rng.standard_normal((n, d_out)) - 2
    return torch.from_numpy(x).float(), torch.from_numpy(y).float()


def error(made, x, y):
    with torch.inference_mode():
        return float((made(x) - y).double().square().sum(1).mean())


def weight_of(made):
    return made.linear.weight.detach().double().numpy()


# --- procrustes


def test_procrustes_is_scipys_on_centred_vectors():
    x, y = pairs()
    made, curves = Procrustes().fit_vectors(x, y, trainer())
    a, b = x.double().numpy(), y.double().numpy()
    wanted, _ = orthogonal_procrustes(a - a.mean(0), b - b.mean(0))
    np.testing.assert_allclose(weight_of(made).T, wanted, atol=1e-6)
    moved = (a - a.mean(0)) @ wanted + b.mean(0)
    np.testing.assert_allclose(made(x).detach().numpy(), moved, atol=1e-5)
    assert not curves
    # Without the means it would be another rotation.
    uncentred, _ = orthogonal_procrustes(a, b)
    assert np.abs(uncentred - wanted).max() > 0.05


def test_procrustes_is_orthogonal():
    x, y = pairs(64, 64)
    exact, _ = closed_form.rotation(x, y)
    np.testing.assert_allclose(exact @ exact.T, np.eye(64), atol=1e-12)
    stored = weight_of(Procrustes().fit_vectors(x, y, trainer())[0])
    np.testing.assert_allclose(stored.T @ stored, np.eye(64), atol=1e-6)


@pytest.mark.parametrize("mirrored", [False, True])
def test_procrustes_finds_the_planted_rotation(mirrored):
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    if (np.linalg.det(turn) < 0) != mirrored:
        turn[:, 0] *= -1
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0)) + 1
    y = x @ torch.from_numpy(turn).float().T + torch.arange(8)
    made, _ = Procrustes().fit_vectors(x, y, trainer())
    np.testing.assert_allclose(weight_of(made), turn, atol=1e-5)
    assert error(made, x, y) < 1e-9


@pytest.mark.parametrize(("d_in", "d_out"), [(5, 8), (8, 5)])
def test_procrustes_between_unequal_dimensions(d_in, d_out):
    x, y = pairs(d_in, d_out)
    a = weight_of(Procrustes().fit_vectors(x, y, trainer())[0])
    gram = a.T @ a if d_out > d_in else a @ a.T
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-6)
    # No semi-orthogonal map near it agrees better with the pairs.
    cross = ((y - y.mean(0)).T @ (x - x.mean(0))).double().numpy()
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, _, v = np.linalg.svd(a + 0.1 * rng.standard_normal(a.shape), full_matrices=False)
        assert np.sum((u @ v) * cross) <= np.sum(a * cross) + 1e-6


# --- ridge


@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("d_out", [8, 5])
def test_linear_is_sklearns_ridge(share, d_out):
    x, y = pairs(8, d_out)
    made, _ = Linear(share=share).fit_vectors(x, y, trainer())
    a, b = x.double().numpy(), y.double().numpy()
    strength = share * a.var(axis=0).mean() * len(a)
    wanted = Ridge(alpha=strength).fit(a, b)
    np.testing.assert_allclose(weight_of(made), wanted.coef_, atol=1e-5)
    np.testing.assert_allclose(made(x).detach().numpy(), wanted.predict(a), atol=1e-4)
    # And the normal equations by hand: the bias is not held back.
    centred = a - a.mean(0)
    normal = centred.T @ centred + strength * np.eye(8)
    by_hand = np.linalg.solve(normal, centred.T @ (b - b.mean(0)))
    np.testing.assert_allclose(weight_of(made).T, by_hand, atol=1e-5)


def test_the_strength_has_the_least_leave_one_out_error():
    x, y = pairs(8, 3, n=20, noise=1.0)
    _, _, chosen = closed_form.ridge(x, y)
    a, b = x.double().numpy(), y.double().numpy()

    def left_out(share):
        strength = share * a.var(axis=0).mean() * len(a)
        total = 0.0
        for i in range(len(a)):
            rest = np.arange(len(a)) != i
            fitted = Ridge(alpha=strength).fit(a[rest], b[rest])
            total += np.sum((fitted.predict(a[i : i + 1])[0] - b[i]) ** 2)
        return total

    errors = [left_out(share) for share in closed_form.SHARES]
    assert chosen == closed_form.SHARES[int(np.argmin(errors))]
    assert min(closed_form.SHARES) < chosen < max(closed_form.SHARES)


@pytest.mark.parametrize("kind", ["more dimensions than pairs", "copies", "rounded", "constant"])
def test_without_a_penalty_a_direction_without_variance_is_left_out(kind):
    """Trap: one over what rounding leaves of a variance of zero makes weights of 1e13 and more."""
    x, y = pairs(8, 3, n=6 if kind.startswith("more") else 200)
    if kind == "copies":
        x = torch.cat([x, x[:, :4]], dim=1)
    elif kind == "rounded":
        x = x @ torch.randn(8, 20, generator=torch.Generator().manual_seed(0))
    elif kind == "constant":
        x = torch.full_like(x, 0.1)
    weight, bias, _ = closed_form.ridge(x, y, share=0.0)
    a, b = x.double().numpy(), y.double().numpy()
    wanted = np.linalg.lstsq(a - a.mean(0), b - b.mean(0), rcond=1e-6)[0].T
    if kind == "constant":
        wanted = np.zeros((3, 8))
    np.testing.assert_allclose(weight, wanted, atol=1e-6)
    np.testing.assert_allclose(bias, b.mean(0) - wanted @ a.mean(0), atol=1e-5)


def test_more_dimensions_than_pairs():
    x, y = pairs(30, 4, n=10)
    made, _ = Linear().fit_vectors(x, y, trainer())
    assert torch.isfinite(made(x)).all()


# --- low rank


@pytest.mark.parametrize(("d_in", "d_out"), [(8, 8), (8, 6), (6, 8)])
def test_low_rank(d_in, d_out):
    x, y = pairs(d_in, d_out)
    full, _ = Linear(share=0.1).fit_vectors(x, y, trainer())
    for rank in (1, 3):
        made, _ = LowRank(rank=rank, share=0.1).fit_vectors(x, y, trainer())
        whole = made.up.weight @ made.down.weight
        assert np.linalg.matrix_rank(whole.detach().numpy(), tol=1e-5) == rank
    made, _ = LowRank(rank=99, share=0.1).fit_vectors(x, y, trainer())
    torch.testing.assert_close(made(x), full(x), rtol=1e-4, atol=1e-4)


def test_low_rank_is_the_best_of_its_rank():
    """Theorem of reduced-rank regression: no other rank-2 map has a smaller penalised error."""
    x, y = pairs(6, 5)
    made, _ = LowRank(rank=2, share=0.3).fit_vectors(x, y, trainer())
    a = (x - x.mean(0)).double().numpy()
    b = (y - y.mean(0)).double().numpy()
    strength = 0.3 * a.var(axis=0).mean()

    def cost(w):
        return np.mean(np.sum((a @ w.T - b) ** 2, axis=1)) + strength * np.sum(w**2)

    u, v = made.up.weight.detach().double().numpy(), made.down.weight.detach().double().numpy()
    best = cost(u @ v)
    rng = np.random.default_rng(0)
    for size in (0.001, 0.01, 0.1, 1.0):
        for _ in range(50):
            other = (u + size * rng.standard_normal(u.shape)) @ (
                v + size * rng.standard_normal(v.shape)
            )
            assert cost(other) > best - 1e-9


# --- residual MLP


def test_residual_starts_as_the_skip():
    x = torch.randn(7, 5)
    assert torch.equal(Residual(5, 16, 5)(x), x)
    made = Residual(5, 16, 3)
    # To rounding: a linear layer and a product may take different kernels.
    torch.testing.assert_close(made(x), x @ made.skip.weight.T)


@pytest.mark.parametrize("d_out", [8, 5])
def test_residual_mlp_learns_what_no_affine_map_can(d_out):
    x, _ = pairs(8, 8)
    x = x - 3
    y = torch.tanh(2 * x[:, :d_out]) + x[:, :d_out].abs()
    linear, _ = Linear().fit_vectors(x, y, trainer())
    made, curves = ResidualMLP(hidden=64, lr=1e-2).fit_vectors(x, y, trainer(150))
    assert error(made, x, y) < 0.7 * error(linear, x, y)
    assert curves["map"].loss[-1] < curves["map"].loss[0]


# --- lambda-orthogonal


def by_hand(a, b, x, y, weight, threshold):
    gram = a.T @ a if a.shape[0] >= a.shape[1] else a @ a.T
    excess = np.sqrt(np.sum((gram - np.eye(len(gram))) ** 2)) - threshold
    total = np.mean([np.sum((a @ p + b - q) ** 2) for p, q in zip(x, y, strict=True)])
    return total + weight * max(excess, 0.0)


@pytest.mark.parametrize(("d_in", "d_out"), [(6, 6), (6, 4), (4, 6)])
@pytest.mark.parametrize("threshold", [0.0, 1.0, 50.0])
def test_lambda_loss(d_in, d_out, threshold):
    x, y = pairs(d_in, d_out, n=9)
    torch.manual_seed(0)
    made = Affine(d_in, d_out)
    method = LambdaOrthogonal(threshold=threshold, weight=2.5)
    wanted = by_hand(
        weight_of(made), made.linear.bias.detach().double().numpy(), x.double().numpy(),
        y.double().numpy(), 2.5, threshold,
    )  # fmt: skip
    assert method.loss(made, x, y).item() == pytest.approx(wanted, rel=1e-5)
    # Matrix products in bfloat16 would lose A^T A - I.
    with torch.autocast("cpu", torch.bfloat16):
        assert method.loss(made, x, y).item() == pytest.approx(wanted, rel=1e-5)


def test_lambda_gradient():
    x, y = pairs(3, 3, n=5)
    torch.manual_seed(0)
    made = Affine(3, 3)
    LambdaOrthogonal(threshold=0.5, weight=2.0).loss(made, x, y).backward()
    a, b = weight_of(made).copy(), made.linear.bias.detach().double().numpy()
    x, y = x.double().numpy(), y.double().numpy()
    wanted = slope(lambda w: by_hand(w, b, x, y, 2.0, 0.5), a)
    np.testing.assert_allclose(made.linear.weight.grad.numpy(), wanted, rtol=1e-3, atol=1e-3)


def test_lambda_zero_and_a_large_weight_tend_to_procrustes():
    x, y = (F.normalize(v - v.mean(0)) for v in pairs())
    rotation, bias = closed_form.rotation(x, y)
    tight = LambdaOrthogonal(threshold=0.0, weight=10.0, lr=1e-2)
    made, _ = tight.fit_vectors(x, y, trainer(60))
    np.testing.assert_allclose(weight_of(made), rotation, atol=0.01)
    # The rotation is the least point of the loss: whatever is near it costs more.
    at_rotation = tight.loss(Affine.of(rotation, bias), x, y).item()
    rng = torch.Generator().manual_seed(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(30):
            near = rotation + size * torch.randn(8, 8, generator=rng)
            assert tight.loss(Affine.of(near, bias), x, y).item() > at_rotation
            turned = torch.linalg.matrix_exp(near.T @ rotation - rotation.T @ near) @ rotation
            assert tight.loss(Affine.of(turned, bias), x, y).item() > at_rotation - 1e-5
    # From no rotation at all training comes to it, by the gentler of two weights and the other.
    start = rotation + 0.1 * torch.randn(8, 8, generator=rng)
    away = np.linalg.norm(start - rotation)
    made = Affine.of(start)
    for method, steps, lr in ((LambdaOrthogonal(threshold=0.0), 400, 3e-2), (tight, 100, 1e-2)):
        made, _ = fit_map(
            lambda before=made: before, method.loss, lambda _: (x, y), len(x),
            trainer(steps, batch=200), lr=lr, weight_decay=0.0, warmup=0.0,
        )  # fmt: skip
        a = weight_of(made)
        assert np.linalg.norm(a.T @ a - np.eye(8)) < 0.001
        assert np.linalg.norm(a - rotation.numpy()) < 0.03 * away
    np.testing.assert_allclose(made.linear.bias.detach(), bias, atol=0.01)


def test_lambda_is_how_far_it_may_go():
    x, y = (F.normalize(v - v.mean(0)) for v in pairs())
    free = error(Linear(share=0.0).fit_vectors(x, y, trainer())[0], x, y)
    errors = []
    for threshold in (0.0, 1.0, 100.0):
        method = LambdaOrthogonal(threshold=threshold, weight=3.0, lr=1e-2)
        made, _ = method.fit_vectors(x, y, trainer(120))
        a = weight_of(made)
        assert np.linalg.norm(a.T @ a - np.eye(8)) < threshold + 0.02
        errors.append(error(made, x, y))
    assert errors == sorted(errors, reverse=True)
    assert errors[2] == pytest.approx(free, rel=0.02)


# --- all


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_both_directions(bar, distance):
    old, new = pairs(6, 8)
    made = bar().learn(Pairs(old, new, distance=distance), trainer())
    assert made.query_view is None and made.priority is None
    assert bar().changes == ("gallery",)
    side = torch.ones(200, 2)
    with torch.inference_mode():
        out, kept = made.convert(old, side)
    assert out.shape == (200, 8) and torch.equal(kept, side)
    # Queries are brought to the old space: the roles are swapped.
    query = registry.method(f"{bar.__module__.removeprefix('methods.').replace('_', '-')}:query")
    assert query.direction == "query" and query.changes == ("queries",)
    there = query.learn(Pairs(old, new, distance=distance), trainer())
    swapped = bar().learn(Pairs(new, old, distance=distance), trainer())
    assert there.convert is None
    with torch.inference_mode():
        assert torch.equal(there.query_view(new), swapped.convert(new, None)[0])


@pytest.mark.parametrize("bar", BARS)
def test_only_directions_count_by_cosine(bar):
    old, new = pairs(6, 8)
    lengths = torch.rand(200, 1) + 0.5
    made = [bar().learn(Pairs(old * k, new * k), trainer()).convert for k in (1, lengths)]
    with torch.inference_mode():
        torch.testing.assert_close(
            made[0](old, None)[0], made[1](old * 3, None)[0], rtol=1e-3, atol=1e-4
        )
