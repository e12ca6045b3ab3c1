"""BCT(+32) against BCT: on softmax logits with a padded K, and the same with nothing extra."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, OLD_CLASSES, new_head

from benchmark.models.parts import FirstDims
from methods.bct_extra import BCTExtra


def test_loss_is_that_of_a_padded_classifier(make_job, make_batch, arcface, agrees):
    job = make_job("softmax")
    batch = make_batch(job, d_new=10)
    method = BCTExtra(extra=4, unknown="old", weight=0.7)
    head = new_head(10)
    loss = method.loss(batch, head, method.prepare(job))
    padded = np.zeros((4, 10))
    padded[:, :6] = job.old.head.weight.double().numpy()
    bias = job.old.head.bias.double().numpy()

    def wanted(new):
        total = 0.0
        for f, y in zip(new, batch.labels.tolist(), strict=True):
            if CLASSES[y] in OLD_CLASSES:
                logits = padded @ f + bias
                total += np.logaddexp.reduce(logits) - logits[OLD_CLASSES.index(CLASSES[y])]
        return arcface(head, new, batch.labels.tolist()) + 0.7 * total / len(new)

    agrees(loss, batch, wanted)


@pytest.mark.parametrize("kept", [None, "arcface"])
def test_trap_extra_dimensions_do_not_dilute_the_cosines(make_job, make_batch, kept):
    """The cross-test normalises the first d_old dimensions alone, so K does too."""
    job = make_job(kept)
    batch = make_batch(job, d_new=10)
    method = BCTExtra(extra=4)
    state, head = method.prepare(job), torch.nn.Module()
    head.forward = lambda features, labels: torch.zeros(())
    before = method.loss(batch, head, state)
    batch.new = torch.cat([batch.new[:, :6], 100 * batch.new[:, 6:]], dim=1)
    assert torch.equal(method.loss(batch, head, state), before)


def test_the_model_it_leaves_behind(toy_job):
    job = toy_job()
    made = BCTExtra(extra=3).update(job)
    assert made.head.dim == 11
    images = torch.zeros(2, *job.data.images.shape[1:])
    vectors = made.model(images)
    assert vectors.shape == (2, 11) and isinstance(made.query_view, FirstDims)
    assert torch.equal(made.query_view(vectors), vectors[:, :8])
