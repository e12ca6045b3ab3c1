"""Rules for methods that train along: what learns, what stays, what lengths may not change."""

import pytest
import torch
from support.losses import Teacher, new_head
from support.objects import changed

from benchmark.contract.method import Generation
from methods.advbct import AdvBCT
from methods.bct import BCT
from methods.bt2 import BT2
from methods.contrast import Contrast
from methods.l2 import L2
from methods.lwf import LwF
from methods.mixbct import MixBCT
from methods.nccl import NCCL

KEPT = ["softmax", "norm-softmax", "cosface", "arcface"]
TRAININGS = [
    (BCT(), None), *((BCT(unknown=u), k) for k in KEPT for u in ("old", "distill", "synthesize")),
    (LwF(), "softmax"), (L2(), None), (Contrast(), None), (MixBCT(), None), (AdvBCT(), None),
    (BT2(extra=2), None), (NCCL(size=20), None), (NCCL(size=20), "cosface"),
]  # fmt: skip
LEARN = (BT2, AdvBCT)
"""Methods with weights of their own."""
MOVE = (NCCL, AdvBCT)
"""Methods that remember something of a batch."""


@pytest.mark.parametrize(("method", "kept"), TRAININGS, ids=str)
def test_nothing_old_learns_and_all_else_does(make_job, make_batch, method, kept):
    """Also where the caller forgot to freeze the old features, their classifier or a teacher."""
    teacher = Teacher(8)
    job = changed(make_job(kept), independent=Generation(teacher, None, torch.zeros(40, 8)))
    job.old.features.requires_grad_(True)
    old = [job.old.features, *teacher.parameters()]
    if kept is not None:
        old += job.old.head.requires_grad_(True).parameters()
    state = method.prepare(job)
    m, n, _ = method.sizes(job) if isinstance(method, BT2) else (6, 0, 0)
    batch = make_batch(job, d_new=m + n)
    batch.images, batch.progress = torch.rand(len(batch.index), 1, 8, 8), 0.5
    batch.old = batch.old.detach().requires_grad_(True)
    before = {name: value.clone() for name, value in state.named_buffers()}
    method.loss(batch, new_head(m), state).backward()
    assert batch.new.grad.abs().sum() > 0
    assert all(each.grad is None for each in (*old, batch.old))
    assert all(p.grad is not None for p in state.parameters())
    assert bool(list(state.parameters())) == isinstance(method, LEARN)
    if not isinstance(method, MOVE):
        assert all(torch.equal(value, before[name]) for name, value in state.named_buffers())


@pytest.mark.parametrize("method", [L2(), Contrast()])
def test_lengths_do_not_matter(make_job, make_batch, method):
    job, head = make_job(), new_head()
    batch, state = make_batch(job), method.prepare(job)
    values = []
    for _ in range(2):
        values.append(method.loss(batch, head, state) - head(batch.new, batch.labels))
        batch.new, batch.old = 3 * batch.new, 0.2 * batch.old
    torch.testing.assert_close(*values)
