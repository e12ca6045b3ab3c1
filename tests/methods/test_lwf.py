"""LwF: distillation of the old classifier's answers on newly added images."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, OLD_CLASSES, log_softmax, new_head, unit

from methods.lwf import LwF


def logits(head, x):
    weight = head.weight.double().numpy()
    if head.kind == "softmax":
        return weight @ x + head.bias.double().numpy()
    return head.scale * unit(weight) @ unit(x)


@pytest.mark.parametrize("kept", ["softmax", "arcface"])
@pytest.mark.parametrize("knows", [OLD_CLASSES, CLASSES, [1, 2]])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_loss(make_job, make_batch, arcface, agrees, kept, knows, temperature):
    job = make_job(kept, old_classes=knows)
    batch = make_batch(job)
    method = LwF(weight=0.7, temperature=temperature)
    head = new_head()
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

    agrees(loss, batch, wanted)


def test_a_batch_of_known_classes_alone_is_classified_alone(make_job, make_batch):
    job = make_job("softmax")
    batch = make_batch(job, rows=(job.data.labels == 1).nonzero().squeeze(1))
    head, method = new_head(), LwF()
    loss = method.loss(batch, head, method.prepare(job))
    assert torch.equal(loss, head(batch.new, batch.labels))
