"""L2 regression against MixBCT eq. 8."""

import numpy as np
import pytest
import torch
from support.losses import new_head, unit

from methods.l2 import L2


def gap(new, old):
    return np.mean(np.linalg.norm(unit(new) - unit(old), axis=1))


@pytest.fixture
def case(make_job, make_batch):
    job = make_job()
    return make_batch(job), new_head(), L2().prepare(job)


@pytest.mark.parametrize("weight", [10.0, 0.3])
def test_loss_is_eq_8(case, arcface, agrees, weight):
    batch, head, state = case
    loss = L2(weight=weight).loss(batch, head, state)
    old, labels = batch.old.double().numpy(), batch.labels.tolist()

    def wanted(new):
        return arcface(head, new, labels) + weight * gap(new, old)

    agrees(loss, batch, wanted, rel=1e-5)


def test_the_norm_is_not_squared(case):
    """Opposite directions are 2 apart, not 4; right angles sqrt 2, not 2."""
    batch, head, state = case
    batch.old = torch.eye(6)[torch.zeros(12, dtype=torch.long)] * 5
    own = []
    for new, apart in ((-batch.old, 2.0), (batch.old.roll(1, 1), 2**0.5)):
        batch.new = new
        own = head(batch.new, batch.labels)
        assert (L2().loss(batch, head, state) - own).item() == pytest.approx(10 * apart, rel=1e-4)


def test_trap_the_classification_loss_stays(case):
    batch, head, state = case
    L2().loss(batch, head, state).backward()
    assert head.weight.grad.abs().sum() > 0
    batch.new = batch.old.clone()
    assert L2().loss(batch, head, state).item() == pytest.approx(
        head(batch.old, batch.labels).item()
    )


def test_gradient_at_equality_is_finite(case):
    batch, head, state = case
    batch.new = batch.old.clone().requires_grad_(True)
    L2().loss(batch, head, state).backward()
    assert batch.new.grad.isfinite().all()
    batch.new = torch.zeros_like(batch.old, requires_grad=True)
    L2().loss(batch, head, state).backward()
    assert batch.new.grad.isfinite().all()


def test_denoised_leaves_the_noisy_ones_out(make_job, make_batch, arcface):
    job, head = make_job(), new_head()
    method = L2(**L2.variants["denoised"])
    assert method.drop == 0.1 and method.prepare(job).keep.sum() < 40
    method = L2(drop=0.4)
    state, batch = method.prepare(job), make_batch(job, size=20)
    keep = state.keep[batch.index]
    assert 0 < keep.sum() < 20
    loss = method.loss(batch, head, state)
    new, old = batch.new.detach().double().numpy(), batch.old.double().numpy()
    wanted = arcface(head, new, batch.labels.tolist()) + 10 * gap(new[keep], old[keep])
    assert loss.item() == pytest.approx(wanted, rel=1e-5)
    term = loss - head(batch.new, batch.labels)
    grad = torch.autograd.grad(term, batch.new)[0]
    assert (grad[~keep].abs() < 1e-5).all() and (grad[keep].abs().sum(1) > 1e-2).all()
    state.keep[:] = False
    assert method.loss(batch, head, state) == head(batch.new, batch.labels)
