"""OCA, asymmetric, CSD, Matryoshka partners, BCT with linear: float64 writings and identities."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, Teacher, cross_entropy, double, new_head, unit
from support.objects import changed
from torch.nn import functional as F

from benchmark.config.recipes import ModelSpec
from benchmark.contract.method import Generation, Step
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from methods.asymmetric import Asymmetric
from methods.bct import BCT
from methods.bct_linear import BCTLinear
from methods.bt2 import BT2
from methods.csd import CSD, Neighbourhoods
from methods.linear import Linear
from methods.matryoshka_bct import MatryoshkaBCT
from methods.matryoshka_bt2 import MatryoshkaBT2
from methods.oca import OCA

# --- oca


@pytest.mark.parametrize("scale", [None, 1.0])
def test_oca(make_job, make_batch, arcface, agrees, scale):
    job = make_job()
    batch = make_batch(job, d_new=10)
    method = OCA(extra=4, classify=2.0, influence=3.0, match=0.7, scale=scale)
    torch.manual_seed(0)
    state, head = method.prepare(job), new_head(10)
    loss = method.loss(batch, head, state)
    old, labels = unit(double(job.old.features)), job.data.labels.numpy()
    means = np.array([old[labels == c].mean(0) for c in range(5)])
    mine, layer, s = batch.labels.numpy(), double(state.layer.matrix), scale or 16.0

    def wanted(new):
        z = unit(new)
        start = unit(z[:, :6])
        influence = cross_entropy(s * start @ means.T, mine)
        match = np.mean([1 - unit(means[y]) @ x for x, y in zip(start, mine, strict=True)])
        return 2 * arcface(head, z @ layer.T, mine) + 3 / s * influence + 0.7 * match

    agrees(loss, batch, wanted)


@pytest.mark.parametrize("kind", ["softmax", "arcface"])
def test_ocas_classifier_reads_what_is_stored(toy_job, kind):
    job = toy_job()
    object.__setattr__(job.spec, "head", kind)
    made = OCA(extra=3).update(job)
    images = torch.randn(5, *job.data.images.shape[1:])
    vectors = made.model(images)
    assert vectors.shape == (5, 11)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(5))
    assert torch.equal(made.query_view(vectors), vectors[:, :8])
    state = OCA(extra=3).prepare(job)
    head = Head(kind, 11, job.data.classes.tolist(), 8.0, 0.2)
    with torch.no_grad():
        wanted = head.logits(head.scale * state.layer(vectors))
        folded = OCA(extra=3).finish(job, made.model, head, state).head
        torch.testing.assert_close(folded.logits(vectors), wanted, rtol=1e-4, atol=1e-4)


# --- asymmetric


def test_regression_is_half_the_squared_distance(make_job, make_batch, agrees):
    job = make_job()
    batch = make_batch(job)
    loss = Asymmetric().loss(batch, Head("softmax", 6, CLASSES), torch.nn.Module())
    old = unit(double(batch.old))

    def wanted(new):
        return np.mean([1 - p @ q for p, q in zip(unit(new), old, strict=True)])

    agrees(loss, batch, wanted, rel=1e-5, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("negatives", [2, 50])
def test_contrastive_anchors_are_new_and_the_rest_old(make_job, make_batch, agrees, negatives):
    job = make_job()
    batch = make_batch(job)
    method = Asymmetric(objective="contrastive", margin=1.3, negatives=negatives)
    loss = method.loss(batch, Head("softmax", 6, CLASSES), torch.nn.Module())
    old, labels = unit(double(batch.old)), batch.labels.tolist()

    def wanted(new):
        total = 0.0
        for f, y in zip(unit(new), labels, strict=True):
            distances = [np.linalg.norm(f - o) for o in old]
            near = [d**2 for d, k in zip(distances, labels, strict=True) if k == y]
            far = sorted(d for d, k in zip(distances, labels, strict=True) if k != y)[:negatives]
            total += 0.5 * np.mean(near) + 0.5 * sum(max(1.3 - d, 0) ** 2 for d in far)
        return total / len(labels)

    agrees(loss, batch, wanted, rel=1e-5, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "method", [Asymmetric(), Asymmetric(objective="contrastive"), CSD(tau_gallery=0.1)]
)
def test_the_old_vectors_themselves(make_job, make_batch, method):
    """The gradient is finite; regression and neighbourhoods of one temperature ask nothing."""
    job = make_job()
    batch = make_batch(job)
    batch.new = (2 * batch.old).requires_grad_(True)
    loss = method.loss(batch, Head("softmax", 6, CLASSES), method.prepare(job))
    loss.backward()
    assert batch.new.grad.isfinite().all()
    if method != Asymmetric(objective="contrastive"):
        assert loss.item() == pytest.approx(0.0, abs=1e-6)
        assert batch.new.grad.abs().max() < 1e-5


@pytest.mark.parametrize("method", [Asymmetric(), CSD(neighbours=9)])
def test_a_student_has_no_classifier(toy_job, method):
    job = toy_job()
    made = method.update(job)
    assert made.head is None and made.query_view is None
    curve = made.curves["model"].loss
    assert curve[-1] < curve[0]
    assert method.refuses(Step(job.spec, ModelSpec(backbone="convnet-2", dim=9))) is not None


# --- csd


def test_neighbours_by_sorting(make_job):
    old = make_job().old.features
    made = Neighbourhoods(old, 7)
    scores = unit(double(old)) @ unit(double(old)).T
    wanted = np.argsort(-scores, axis=1)[:, :7]
    np.testing.assert_array_equal(made.nearest.numpy(), wanted)
    assert (made.nearest[:, 0] == torch.arange(len(old))).all()
    assert Neighbourhoods(old, 99).nearest.shape == (40, 40)
    assert not made.state_dict()  # a checkpoint of every epoch would hold them


def test_csd(make_job, make_batch, agrees):
    job = make_job()
    batch = make_batch(job)
    method = CSD(neighbours=6, tau_query=0.5, tau_gallery=0.2)
    loss = method.loss(batch, Head("softmax", 6, CLASSES), method.prepare(job))
    stored = unit(double(job.old.features))

    def softmax(x):
        return np.exp(x - np.logaddexp.reduce(x))

    def wanted(new):
        total = 0.0
        for f, row in zip(unit(new), batch.index.tolist(), strict=True):
            near = sorted(range(40), key=lambda j: -(stored[row] @ stored[j]))[:6]
            p = softmax(stored[near] @ stored[row] / 0.2)
            q = softmax(stored[near] @ f / 0.5)
            total += np.sum(p * (np.log(p) - np.log(q)))
        return total / len(new)

    agrees(loss, batch, wanted, rel=1e-4, rtol=1e-3, atol=1e-4)


# --- matryoshka


@pytest.mark.parametrize("kept", [None, "softmax", "arcface"])
def test_matryoshka_bct(make_job, make_batch, arcface, kept):
    job = make_job(kept)
    batch = make_batch(job, d_new=10)
    method = MatryoshkaBCT(extra=4, weight=0.7, halvings=2)
    torch.manual_seed(0)
    state, head = method.prepare(job), new_head(10)
    assert [each.dim for each in state.classifiers] == [6, 3, 1]
    assert [each.dim for each in state.olds] == [6, 3, 1]
    loss = method.loss(batch, head, state).item()
    whole = BCT().prepare(job)
    weight, rows = double(whole.weight), whole.row_of[batch.labels].numpy()
    new, labels = double(batch.new), batch.labels.tolist()
    wanted = arcface(head, new, labels)
    for nested in state.classifiers:
        wanted += arcface(nested, new[:, : nested.dim], labels)
    for m in (6, 3, 1):
        x, w = new[:, :m], weight[:, :m]
        if whole.scale is not None:  # cut first, normalised then
            x, w = whole.scale * unit(x), unit(w)
        bias = 0 if whole.bias is None else double(whole.bias)
        wanted += 0.7 * cross_entropy(x @ w.T + bias, rows)
    assert loss == pytest.approx(wanted, rel=1e-4)


def test_a_prefix_is_the_beginning_of_the_whole(toy_job):
    images = torch.randn(6, *toy_job().data.images.shape[1:])
    whole, half = (
        MatryoshkaBCT(extra=3, halvings=2, prefix=prefix).update(toy_job())
        for prefix in (None, 0.5)
    )  # fmt: skip
    vectors = whole.model(images)
    assert vectors.shape == (6, 11)
    assert torch.equal(whole.query_view(vectors), vectors[:, :8])
    assert torch.equal(half.model(images), vectors[:, :4])
    stored = torch.randn(6, 8)
    assert torch.equal(half.convert(stored, None)[0], stored[:, :4])
    assert half.head.dim == 4 and half.query_view is None
    assert whole.head.dim == 11


@pytest.mark.parametrize("kept", [None, "softmax", "arcface"])
def test_matryoshka_bt2_is_bt2_and_its_prefixes(make_job, make_batch, arcface, kept):
    job = changed(make_job(kept), independent=Generation(Teacher(8), None, torch.zeros(40, 8)))
    torch.manual_seed(0)
    nested = MatryoshkaBT2(extra=3, halvings=1)
    state, head = nested.prepare(job), new_head(11)
    batch = make_batch(job, d_new=14)
    loss = nested.loss(batch, head, state).item()
    plain = BT2(extra=3, classify="phi_new")
    same = plain.prepare(job)
    same.basis.load_state_dict(state.basis.state_dict())
    assert state.scale == pytest.approx(same.scale)
    wanted = plain.loss(batch, head, same).item()
    phi_5 = double(state.basis.parts(batch.new)[1])
    old, labels = double(batch.old), batch.labels.tolist()
    for each in state.classifiers:
        wanted += arcface(each, phi_5[:, : each.dim], labels)
    whole = same.old_classifier
    new, short = unit(phi_5[:, :3]), old[:, :3]
    w, rows = double(whole.weight)[:, :3], whole.row_of[batch.labels].numpy()
    if whole.scale is None:
        logits = new * np.linalg.norm(short, axis=1)[:, None] @ w.T + double(whole.bias)
    else:
        logits = whole.scale * new @ unit(w).T
    wanted += 10 / state.scale * cross_entropy(logits, rows)
    wanted += 5 * np.mean([1 - p @ q for p, q in zip(new, unit(short), strict=True)])
    assert loss == pytest.approx(wanted, rel=1e-4)


def test_matryoshka_bt2_leaves_behind(toy_job):
    job = changed(toy_job(), independent=Generation(Teacher(8), None, torch.zeros(72, 8)))
    images = torch.randn(6, *job.data.images.shape[1:])
    whole, half = (MatryoshkaBT2(extra=3, prefix=p).update(job) for p in (None, 0.5))
    vectors = whole.model(images)
    assert vectors.shape == (6, 11) and whole.head.dim == 11
    assert torch.equal(whole.query_view(vectors), vectors[:, :8])
    assert torch.equal(half.model(images), vectors[:, :4]) and half.head.dim == 4
    assert half.convert(torch.ones(2, 8), None)[0].shape == (2, 4)


class Given(Portable):
    """A network that gives its input back."""

    def forward(self, features):
        """``[n, d]`` -> ``[n, d]``."""
        return features


@pytest.mark.parametrize(
    "method",
    [OCA(extra=3), BT2(extra=3), BT2(extra=3, classify="phi_new"), MatryoshkaBT2(extra=3),
     MatryoshkaBT2(extra=3, prefix=0.5)],
)  # fmt: skip
def test_a_softmax_classifier_reads_directions_at_their_scale(make_job, make_batch, method):
    """Its logits of what is stored are those of training; at length 1 it would hardly learn."""
    alone = Generation(Teacher(8), None, torch.zeros(40, 8))
    job = changed(make_job(), independent=alone)
    job = changed(job, spec=changed(job.spec, head="softmax", scale=7.0, dim=8))
    torch.manual_seed(0)
    state = method.prepare(job)
    dim, given, length = (
        (9, 9, 1.0) if isinstance(method, OCA)
        else (8, 14, 1.0) if method == BT2(extra=3) else (11, 14, 5**0.5)
    )  # fmt: skip
    head, batch, seen = Head("softmax", dim, CLASSES, 7.0), make_batch(job, d_new=given), {}
    heads = [head, *getattr(state, "heads", [])]
    for each in heads:
        each.register_forward_hook(lambda it, inputs, _: seen.update({it.dim: inputs[0]}))
    method.loss(batch, head, state)
    lengths = seen[dim].norm(dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 7.0 * length))
    trained = {each.dim: each.logits(seen[each.dim]) for each in heads}
    update = method.finish(job, Given(), head, state)
    stored = update.model(batch.new)
    wanted = trained.get(update.head.dim, trained[head.dim])
    torch.testing.assert_close(update.head.logits(stored), wanted, rtol=1e-4, atol=1e-4)


# --- bct and linear


@pytest.mark.parametrize("unknown", ["synthesize", "distill"])
def test_bct_linear_trains_as_bct_and_converts_as_linear(toy_job, unknown):
    kept = unknown == "distill"
    job = toy_job(kept=kept)
    made = BCTLinear(unknown=unknown).update(job)
    alone = BCT(unknown=unknown).update(toy_job(kept=kept))
    for part in ("model", "head"):
        a, b = (getattr(m, part).state_dict() for m in (made, alone))
        assert all(torch.equal(v, b[k]) for k, v in a.items())
    assert made.query_view is None and made.model.training is False
    new = alone.model.eval()(
        torch.from_numpy(job.data.images).float() / 127.5 - 1
    ).detach()  # fmt: skip
    ends = F.normalize(job.old.features), F.normalize(new)
    wanted, _ = Linear().fit_vectors(*ends, job.trainer)
    stored = 3 * job.old.features[:5]
    torch.testing.assert_close(
        made.convert(stored, None)[0], wanted(F.normalize(stored)), rtol=1e-3, atol=1e-4
    )
