"""Contrast against its sum over a batch, in float64."""

import numpy as np
import pytest
import torch
from support.losses import new_head, unit

from methods.contrast import Contrast


def term(new, old, labels, tau, hardest, stored=None):
    """The batch's own negatives have no gradient, so they may be ``stored`` apart from ``new``."""
    new, old, stored = unit(new), unit(old), unit(new if stored is None else stored)
    total = 0.0
    for i, y in enumerate(labels):
        logits = [new[i] @ old[i] / tau]
        for others in (old, stored):
            apart = sorted(new[i] @ others[k] / tau for k, z in enumerate(labels) if z != y)
            logits += apart[-hardest:] if hardest else apart
        total += np.logaddexp.reduce(logits) - logits[0]
    return total / len(labels)


CASES = [(0.5, 0), (0.01, 10), (0.2, 3), (0.2, 99)]


@pytest.mark.parametrize(("tau", "hardest"), CASES)
def test_loss_and_gradient(make_job, make_batch, arcface, agrees, tau, hardest):
    job, head = make_job(), new_head()
    batch = make_batch(job)
    method = Contrast(weight=0.7, tau=tau, hardest=hardest)
    loss = method.loss(batch, head, method.prepare(job))
    labels, old = batch.labels.tolist(), batch.old.double().numpy()
    stored = batch.new.detach().double().numpy()

    def wanted(new):
        return arcface(head, new, labels) + 0.7 * term(new, old, labels, tau, hardest, stored)

    agrees(loss, batch, wanted, rtol=5e-3, atol=1e-3)


def influence(method, batch, head=new_head()):  # noqa: B008
    return method.loss(batch, head, torch.nn.Module()) - head(batch.new, batch.labels)


@pytest.mark.parametrize(("tau", "hardest"), CASES[:2])
def test_trap_the_positive_is_the_same_image(make_job, make_batch, tau, hardest):
    """Not the first image of the class in the batch; other images of the class do not matter."""
    job = make_job()
    rows = torch.cat([(job.data.labels == y).nonzero()[:4, 0] for y in (0, 1)])
    batch = make_batch(job, rows=rows)
    method = Contrast(tau=tau, hardest=hardest)
    value = influence(method, batch)
    new, old = batch.new.detach().double().numpy(), batch.old.double().numpy()
    labels = batch.labels.tolist()
    assert value.item() == pytest.approx(term(new, old, labels, tau, hardest), rel=1e-3)
    first = [labels.index(y) for y in labels]
    assert value.item() != pytest.approx(term(new, old[first], labels, tau, hardest), rel=5e-3)
    # What stands beside an image of its own class may be anything.
    mixed = batch.old.clone()
    mixed[[1, 2, 3]] = torch.randn(3, 6)
    before = torch.autograd.grad(influence(method, batch), batch.new)[0]
    batch.old = mixed
    after = torch.autograd.grad(influence(method, batch), batch.new)[0]
    assert torch.equal(before[0], after[0])


def test_the_order_of_the_batch_does_not_matter(make_job, make_batch):
    job = make_job()
    batch = make_batch(job, size=20)
    value = influence(Contrast(), batch)
    turn = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    for name in ("new", "old", "labels", "index"):
        setattr(batch, name, getattr(batch, name)[turn])
    torch.testing.assert_close(influence(Contrast(), batch), value)


@pytest.mark.parametrize("hardest", [0, 10])
def test_a_batch_of_one_class_has_no_contrast(make_job, make_batch, hardest):
    job = make_job()
    batch = make_batch(job, rows=(job.data.labels == 2).nonzero().squeeze(1))
    value = influence(Contrast(hardest=hardest), batch)
    assert value.item() == pytest.approx(0.0, abs=1e-5)
    assert torch.autograd.grad(value, batch.new)[0].abs().max() < 1e-5
