"""UniBCT: its refinement by the inverse itself, its schedule, its loss."""

import numpy as np
import pytest
import torch
from support.losses import new_head, unit

from benchmark.training import prototypes
from benchmark.training.embedding import Epoch
from methods.unibct import UniBCT


def spread(old, new, a, tau, axis=1):
    """Old features of a class, mixed along its graph with the inverse."""
    f, o, n = unit(new), unit(old), len(new)
    edges = np.exp(f @ f.T / tau) * (1 - np.eye(n))
    edges /= np.maximum(edges.sum(axis=axis, keepdims=True), 1e-300)
    return (1 - a) * np.linalg.inv(np.eye(n) - a * edges) @ o


def refined(old, new, labels, a, tau, axis=1):
    """Class by class; ``axis`` 0 is the faulty column softmax."""
    rows = [np.flatnonzero(np.asarray(labels) == y) for y in range(max(labels) + 1)]
    return np.array([unit(spread(old[r], new[r], a, tau, axis).mean(axis=0)) for r in rows])


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    labels = np.array([0] * 9 + [1] * 2 + [2] * 14 + [3])
    order = rng.permutation(len(labels))
    return rng.standard_normal((26, 6)) * 3, rng.standard_normal((26, 4)), labels[order]


def made(case, a=0.9, tau=0.05, **options):
    old, new, labels = case
    return prototypes.refined_prototypes(
        torch.from_numpy(old), torch.from_numpy(new), torch.from_numpy(labels), 4, a, tau, **options
    ).numpy()


@pytest.mark.parametrize(("a", "tau"), [(0.9, 0.05), (0.5, 0.3)])
def test_refinement(case, a, tau):
    got = made(case, a, tau)
    np.testing.assert_allclose(got, refined(*case, a, tau), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, rtol=1e-6)


def test_trap_a_column_softmax_is_the_plain_mean(case):
    old, _, labels = case
    mean = np.array([unit(unit(old[labels == y]).mean(axis=0)) for y in range(4)])
    np.testing.assert_allclose(refined(*case, 0.9, 0.05, axis=0), mean, atol=1e-9)
    moved = np.abs(made(case) - mean).max(axis=1)
    # Two items are each other's only neighbour, one has none: there is nothing to refine.
    assert (moved[[0, 2]] > 0.01).all() and (moved[[1, 3]] < 1e-6).all()
    np.testing.assert_allclose(made(case, a=0.0), mean, atol=1e-6)


def test_a_large_class_goes_block_by_block(case):
    old, new, labels = case
    got = made(case, block=5)
    for y in range(4):
        rows = np.flatnonzero(labels == y)
        parts = [rows[i : i + 5] for i in range(0, len(rows), 5)]
        sums = [spread(old[p], new[p], 0.9, 0.05).sum(axis=0) for p in parts]
        np.testing.assert_allclose(got[y], unit(np.sum(sums, axis=0)), atol=1e-5)


class At(Epoch):
    """A moment of the training at which the model gives fixed features."""

    def embed(self, images):
        return torch.randn(len(images), 5, generator=torch.Generator().manual_seed(self.number))


def moment(progress, number=0):
    return At(number, progress, torch.nn.Identity(), torch.device("cpu"))


def test_when_it_refines(make_job):
    job, method = make_job(), UniBCT()
    state, seen = method.prepare(job), []
    for epoch in range(35):
        before = state.weight.clone()
        method.refresh(state, job, moment(epoch / 35, epoch))
        if not torch.equal(before, state.weight):
            seen.append(epoch)
    assert seen == [10, 20]
    few = method.prepare(job)
    method.refresh(few, job, moment(0.0))
    assert int(few.done) == 0
    method.refresh(few, job, moment(0.75))
    assert int(few.done) == 2, "two that fell due at once are one"
    assert few.weight.shape == (5, 6)


def test_what_it_refines(make_job):
    job, method = make_job(), UniBCT(drop=0.3)
    state = method.prepare(job)
    method.refresh(state, job, moment(0.5, 3))
    keep, new = state.keep.numpy(), moment(0.5, 3).embed(job.data.images).double().numpy()
    assert 0 < keep.sum() < len(keep)
    old, labels = job.old.features.double().numpy(), job.data.labels.numpy()
    wanted = refined(old[keep], new[keep], labels[keep], 0.9, 0.05)
    np.testing.assert_allclose(state.weight.numpy(), wanted, atol=1e-5)


def test_loss(make_job, make_batch, arcface, agrees):
    job, method = make_job(), UniBCT(weight=0.7)
    state, head = method.prepare(job), new_head()
    batch = make_batch(job)
    labels = batch.labels.tolist()
    warm = method.loss(batch, head, state)
    assert torch.equal(warm, head(batch.new, batch.labels)), "no influence in the warm-up"
    method.refresh(state, job, moment(0.5))
    loss = method.loss(batch, head, state)
    rows = state.weight.double().numpy()

    def wanted(new):
        logits = job.spec.scale * unit(new) @ rows.T
        terms = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(new)), labels]
        return arcface(head, new, labels) + 0.7 * terms.mean()

    agrees(loss, batch, wanted)
