"""NCCL: its loss pair by pair in float64, its memory, its selection."""

import numpy as np
import pytest
import torch
from support.losses import double, new_head, unit

from benchmark.errors import BenchError
from benchmark.training.credibility import near_one_class
from methods.nccl import NCCL


def logits(head, x):
    weight = double(head.weight)
    if head.kind == "softmax":
        return x @ weight.T + double(head.bias)
    return head.scale * unit(x) @ unit(weight).T


def contrast(asking, memory, weight, positive, tau):
    """Pair by pair; an item without a positive counts nothing."""
    total = 0.0
    for i in range(len(asking)):
        scores = memory @ asking[i] / tau
        share = scores - np.logaddexp.reduce(scores)
        found = [weight[i, j] * share[j] for j in range(len(memory)) if positive[i, j]]
        total -= sum(found) / max(1, len(found))
    return total / len(asking)


@pytest.mark.parametrize("kept", [None, "softmax", "cosface"])
def test_loss_and_gradient(make_job, make_batch, arcface, agrees, kept):
    job, head = make_job(kept), new_head()
    method = NCCL(features=0.7, logits=0.4, tau=0.3, size=20)
    state = method.prepare(job)
    state.credible[:] = torch.arange(40) % 4 != 0
    judge = head if kept is None else job.old.head
    first, batch = make_batch(job, seed=2), make_batch(job, seed=1)
    batch.old.requires_grad_(True)
    method.loss(first, head, state)
    loss = method.loss(batch, head, state)
    # The memory has the credible rows of both batches, and of them the last 20.
    stored, labels = [], []
    for each in (first, batch):
        good = state.credible[each.index]
        stored.append(each.old[good].detach().double().numpy())
        labels += each.labels[good].tolist()
    stored, labels = np.concatenate(stored)[-20:], np.array(labels[-20:])
    assert len(labels) < 20 and not state.credible[batch.index].all()
    old = unit(batch.old.detach().double().numpy())
    weight = (old @ unit(stored).T + 1) / 2
    positive = batch.labels.numpy()[:, None] == labels

    def wanted(new):
        near = contrast(unit(new), unit(stored), weight, positive, 0.3)
        answers = unit(logits(judge, stored)), unit(logits(judge, new))
        alike = contrast(answers[1], answers[0], weight, positive, 0.3)
        return arcface(head, new, batch.labels.tolist()) + 0.7 * near + 0.4 * alike

    agrees(loss, batch, wanted)


@pytest.mark.parametrize("kept", [None, "softmax"])
def test_trap_the_logits_have_a_gradient(make_job, make_batch, kept):
    job, head = make_job(kept), new_head()
    batch, method = make_batch(job), NCCL(features=0.0, logits=1.0)
    loss = method.loss(batch, head, method.prepare(job)) - head(batch.new, batch.labels)
    grad = torch.autograd.grad(loss, [batch.new, head.weight], allow_unused=True)
    assert grad[0].abs().sum() > 1e-3
    assert (kept is None) == (grad[1] is not None and grad[1].abs().sum() > 1e-6)


def test_trap_an_unfilled_memory_has_no_zeros(make_job, make_batch):
    """The loss does not hang on how much room there is."""
    values, head = [], new_head()
    for size in (12, 30, 40):
        job = make_job()
        method = NCCL(size=size)
        state = method.prepare(job)
        state.credible[:] = True
        values.append(method.loss(make_batch(job), head, state).item())
    assert values[0] == pytest.approx(values[1], rel=1e-6) == pytest.approx(values[2], rel=1e-6)


def test_a_memory_that_nothing_has_entered(make_job, make_batch):
    job, method, head = make_job(), NCCL(), new_head()
    state = method.prepare(job)
    state.credible[:] = False
    batch = make_batch(job)
    loss = method.loss(batch, head, state)
    assert loss.item() == head(batch.new, batch.labels).item()
    loss.backward()
    assert batch.new.grad.isfinite().all()


@pytest.fixture
def crowd():
    """Two far classes, and some items half-way between them."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 30)
    old = 4 * np.eye(8)[labels] + 0.2 * rng.standard_normal((180, 8))
    unclear = np.arange(0, 180, 15)
    old[unclear] = 2 * (np.eye(8)[labels[unclear]] + np.eye(8)[(labels[unclear] + 1) % 6])
    return old.astype(np.float32), labels, unclear


def entropies(crowd):
    old, labels, _ = crowd
    centres = np.array([unit(old.astype(float))[labels == y].mean(axis=0) for y in range(6)])
    distance = np.linalg.norm(unit(old.astype(float))[:, None] - centres, axis=2)
    p = np.exp(-distance / distance.var())
    p /= p.sum(axis=1, keepdims=True)
    return -(p * np.log(p)).sum(axis=1)


@pytest.mark.parametrize("block", [7, 1024])
def test_selection(crowd, block):
    old, labels, _ = crowd
    values = entropies(crowd)
    for doubt in (0.1, 0.3, 0.5, 0.9):
        got = near_one_class(torch.from_numpy(old), torch.from_numpy(labels), doubt, block)
        np.testing.assert_array_equal(got.numpy(), values <= doubt * np.log(6))


def test_trap_a_softmax_over_one_centre_keeps_everything(crowd):
    old, labels, unclear = crowd
    middle = (values := entropies(crowd))[unclear].min()
    doubt = (middle + np.delete(values, unclear).max()) / 2 / np.log(6)
    kept = near_one_class(torch.from_numpy(old), torch.from_numpy(labels), doubt).numpy()
    assert not kept[unclear].any() and np.delete(kept, unclear).all()
    # The faulty form: as if there were one class at a time.
    for y in range(6):
        alone = torch.from_numpy(old[labels == y])
        assert near_one_class(alone, torch.zeros(30, dtype=torch.long), doubt).all()


def test_nothing_credible_is_said_before_training(make_job):
    with pytest.raises(BenchError, match="no old feature has an entropy"):
        NCCL(doubt=0.0).prepare(make_job())
