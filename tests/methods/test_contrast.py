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


@pytest.mark.parametrize("hardest", [0, 10])
def test_a_batch_of_one_class_has_no_contrast(make_job, make_batch, hardest):
    job = make_job()
    batch = make_batch(job, rows=(job.data.labels == 2).nonzero().squeeze(1))
    value = influence(Contrast(hardest=hardest), batch)
    assert value.item() == pytest.approx(0.0, abs=1e-5)
    assert torch.autograd.grad(value, batch.new)[0].abs().max() < 1e-5
