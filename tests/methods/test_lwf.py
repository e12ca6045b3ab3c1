"""LwF: distillation of the old classifier's answers on newly added images."""

import numpy as np
import pytest
import torch
from support.losses import log_softmax, unit

from benchmark.config.recipes import ModelSpec
from benchmark.contract.method import Step
from benchmark.models.heads import Head
from methods.lwf import LwF

# As in conftest.py.
CLASSES, OLD_CLASSES = [4, 7, 9, 20, 55], [3, 7, 20, 41]


def logits(head, x):
    weight = head.weight.double().numpy()
    if head.kind == "softmax":
        return weight @ x + head.bias.double().numpy()
    return head.scale * unit(weight) @ unit(x)


@pytest.mark.parametrize("kept", ["softmax", "arcface"])
@pytest.mark.parametrize("knows", [OLD_CLASSES, CLASSES, [1, 2]])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_loss(make_job, make_batch, arcface, slope, kept, knows, temperature):
    job = make_job(kept, old_classes=knows)
    batch = make_batch(job)
    method = LwF(weight=0.7, temperature=temperature)
    head = Head("arcface", 6, CLASSES, 16.0, 0.2)
    loss = method.loss(batch, head, method.prepare(job))
    old = batch.old.double().numpy()
    # Where every class is known, all images count as added.
    added = [CLASSES[y] not in knows or knows == CLASSES for y in batch.labels.tolist()]

    def wanted(new):
        total = 0.0
        for f, o, counts in zip(new, old, added, strict=True):
            target = np.exp(log_softmax(logits(job.old.head, o) / temperature))
            total -= counts * target @ log_softmax(logits(job.old.head, f) / temperature)
        return arcface(head, new, batch.labels.tolist()) + 0.7 * total / len(new)

    new = batch.new.detach().double().numpy()
    assert loss.item() == pytest.approx(wanted(new), rel=1e-4)
    loss.backward()
    np.testing.assert_allclose(batch.new.grad.numpy(), slope(wanted, new), rtol=3e-3, atol=3e-4)


def test_nothing_old_learns(make_job, make_batch):
    job = make_job("softmax")
    job.old.head.requires_grad_(True)
    method = LwF()
    state = method.prepare(job)
    batch = make_batch(job)
    batch.old.requires_grad_(True)
    method.loss(batch, Head("arcface", 6, CLASSES, 16.0, 0.2), state).backward()
    assert batch.old.grad is None and batch.new.grad.abs().sum() > 0
    assert job.old.head.weight.grad is None and not list(state.parameters())


def test_a_batch_of_known_classes_alone_is_classified_alone(make_job, make_batch):
    job = make_job("softmax")
    batch = make_batch(job, rows=(job.data.labels == 1).nonzero().squeeze(1))
    head, method = Head("arcface", 6, CLASSES, 16.0, 0.2), LwF()
    loss = method.loss(batch, head, method.prepare(job))
    assert torch.equal(loss, head(batch.new, batch.labels))


def test_what_it_needs():
    """It also works where the old classifier knows no class: all images are then new."""
    method, spec = LwF(), ModelSpec(backbone="convnet-2", dim=8)
    assert (method.weight, method.temperature) == (1.0, 1.0)
    assert method.needs == ("old_head",)
    assert method.refuses(Step(spec, spec, shared_classes=False)) is None
