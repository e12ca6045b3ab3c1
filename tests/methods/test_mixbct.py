"""MixBCT against eq. 9 to 12: which rows are replaced, and what learns from them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.losses import new_head

from methods.mixbct import MixBCT, chosen_rows


class Spy(torch.nn.Module):
    """A head that shows what it was given."""

    def forward(self, features, labels):
        self.features, self.labels = features, labels
        return features.square().sum()


def replaced(batch, mixed):
    """Mask of the old rows of the mixture; the others must be the new ones."""
    old = (mixed == batch.old).all(dim=1)
    assert torch.equal(mixed[~old], batch.new[~old])
    return old


@given(
    size=st.integers(1, 130),
    percent=st.integers(0, 100),
    credible=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_chosen_rows(size, percent, credible, seed):
    mask = torch.rand(size, generator=torch.Generator().manual_seed(seed)) < credible
    rows = chosen_rows(mask, percent / 100, torch.Generator().manual_seed(seed)).tolist()
    assert len(set(rows)) == len(rows) == min(percent * size // 100, int(mask.sum()))
    assert all(mask[rows])
    again = chosen_rows(mask, percent / 100, torch.Generator().manual_seed(seed)).tolist()
    assert rows == again


@pytest.mark.parametrize(
    ("ratio", "size", "count"), [(0.57, 100, 57), (0.29, 100, 29), (0.3, 128, 38), (0.1, 9, 0)]
)
def test_floor_of_the_ratio(ratio, size, count):
    rows = chosen_rows(torch.ones(size, dtype=torch.bool), ratio, torch.Generator())
    assert len(rows) == count


def test_every_credible_row_gets_its_turn():
    mask = torch.arange(20) % 4 != 0
    rng = torch.Generator().manual_seed(0)
    counts = torch.zeros(20)
    for _ in range(600):
        counts[chosen_rows(mask, 0.3, rng)] += 1
    assert (counts[~mask] == 0).all()
    # 6 of 15 credible rows each time: 240 of 600, with a deviation of 12.
    assert ((counts[mask] - 240).abs() < 60).all()


def test_the_mixture(make_job, make_batch):
    job = make_job()
    method = MixBCT(ratio=0.5, drop=0.3)
    state = method.prepare(job)
    batch, spy = make_batch(job, size=24), Spy()
    method.loss(batch, spy, state)
    rows = replaced(batch, spy.features)
    assert rows.sum() == 12
    assert state.keep[batch.index][rows].all()
    assert torch.equal(spy.labels, batch.labels)
    assert not torch.equal(batch.new, spy.features), "the batch itself must not change"


def test_fewer_credible_rows_than_asked(make_job, make_batch):
    job = make_job()
    method = MixBCT(ratio=0.9)
    state = method.prepare(job)
    batch, spy = make_batch(job, size=20), Spy()
    state.keep[:] = False
    state.keep[batch.index[[3, 8]]] = True
    method.loss(batch, spy, state)
    assert replaced(batch, spy.features).nonzero().flatten().tolist() == [3, 8]
    state.keep[:] = False
    method.loss(batch, spy, state)
    assert torch.equal(spy.features, batch.new)


def test_loss_and_gradient(make_job, make_batch, arcface, agrees):
    job = make_job()
    method = MixBCT(ratio=0.4)
    state, own = method.prepare(job), new_head()
    batch, spy = make_batch(job), Spy()
    method.loss(batch, spy, state)
    rows = replaced(batch, spy.features).numpy()
    batch.rng.manual_seed(1)
    batch.old.requires_grad_(True)
    loss = method.loss(batch, own, state)
    labels, old = batch.labels.tolist(), batch.old.detach().double().numpy()

    def wanted(new):
        mixed = np.where(rows[:, None], old, new)
        return arcface(own, mixed, labels)

    agrees(loss, batch, wanted, rel=1e-5)
    grad = batch.new.grad.numpy()
    assert (grad[rows] == 0).all() and (np.abs(grad[~rows]).sum(axis=1) > 0).all()
    assert own.weight.grad.abs().sum() > 0
    assert batch.old.grad is None


def test_the_stream_decides(make_job, make_batch):
    job = make_job()
    method, spies = MixBCT(), []
    state = method.prepare(job)
    for seed in (0, 0, 1):
        torch.manual_seed(len(spies))  # nothing may hang on the global stream
        batch, spy = make_batch(job, size=30), Spy()
        batch.rng.manual_seed(seed)
        method.loss(batch, spy, state)
        spies.append(replaced(batch, spy.features).tolist())
    assert spies[0] == spies[1] != spies[2]


def test_denoising_as_the_code_and_as_the_text(make_job):
    job = make_job()
    old = job.old.features
    lengths = torch.arange(1, len(old) + 1, dtype=old.dtype)[:, None]
    longer = make_job()
    longer.old.features.mul_(lengths)
    by_code, by_text = MixBCT(drop=0.3), MixBCT(drop=0.3, **MixBCT.variants["text"])
    assert torch.equal(by_code.prepare(job).keep, by_code.prepare(longer).keep)
    assert not torch.equal(by_text.prepare(job).keep, by_text.prepare(longer).keep)


def test_plain_variant_keeps_all(make_job):
    method = MixBCT(**MixBCT.variants["plain"])
    assert method.prepare(make_job()).keep.all()
