"""BCT against eq. 7 and 8, worked out row by row in float64."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, OLD_CLASSES, log_softmax, new_head, unit
from support.objects import changed

from benchmark.contract.classifiers import OldClassifier
from methods.bct import BCT

KEPT = ["softmax", "norm-softmax", "cosface", "arcface"]


def of(method, batch, state):
    """The influence loss alone: what the weight multiplies."""

    def head(features, labels):
        return 0.0

    return changed(method, weight=1.0).loss(batch, head, state)


def class_mean(job, label):
    rows = [i for i, y in enumerate(job.data.labels.tolist()) if y == label]
    return sum(job.old.features[i].double().numpy() for i in rows) / len(rows)


def naive_classifier(job, unknown):
    """A function from a feature to logits, and the row of each class id."""
    kept = job.old.head
    knows = [] if kept is None else kept.classes.tolist()
    if kept is None or (unknown == "synthesize" and not set(knows) & set(CLASSES)):
        means = np.array([unit(class_mean(job, c)) for c in range(len(CLASSES))])
        return lambda f: job.spec.scale * means @ unit(f), {c: i for i, c in enumerate(CLASSES)}
    weight = list(kept.weight.double().numpy())
    bias = None if kept.bias is None else list(kept.bias.double().numpy())
    rows = {c: i for i, c in enumerate(knows)}
    if unknown == "synthesize":
        for label, c in enumerate(CLASSES):
            if c not in knows:
                rows[c] = len(weight)
                length = np.mean([np.linalg.norm(w) for w in weight[: len(knows)]])
                weight.append(length * unit(class_mean(job, label)))
                if bias is not None:
                    bias.append(np.mean(bias[: len(knows)]))
    weight = np.array(weight)
    if kept.kind == "softmax":
        return lambda f: weight @ f + np.array(bias), rows
    # Its own scale, no margin.
    return lambda f: kept.scale * unit(weight) @ unit(f), rows


def influence(job, batch, new, unknown, temperature):
    logits, rows = naive_classifier(job, unknown)
    d_old = job.old.features.shape[1]
    total = 0.0
    for f, o, label in zip(new, batch.old.double().numpy(), batch.labels.tolist(), strict=True):
        row = rows.get(CLASSES[label])
        if row is not None:
            total -= log_softmax(logits(f[:d_old]))[row]
        elif unknown == "distill":
            target = np.exp(log_softmax(logits(o) / temperature))
            total -= target @ log_softmax(logits(f[:d_old]) / temperature)
    return total / len(new)


CASES = [(None, "synthesize")] + [(k, u) for k in KEPT for u in ("old", "distill", "synthesize")]


@pytest.mark.parametrize(("kept", "unknown"), CASES)
@pytest.mark.parametrize("d_new", [6, 9])
def test_loss_is_eq_7_and_8(make_job, make_batch, arcface, agrees, kept, unknown, d_new):
    job = make_job(kept)
    batch = make_batch(job, d_new=d_new)
    known = {CLASSES[y] in OLD_CLASSES for y in batch.labels.tolist()}
    assert known == {True, False}
    method = BCT(unknown=unknown, weight=0.7)
    head = new_head(d_new)
    loss = method.loss(batch, head, method.prepare(job))

    def wanted(new):
        own = arcface(head, new, batch.labels.tolist())
        return own + 0.7 * influence(job, batch, new, unknown, method.temperature)

    agrees(loss, batch, wanted)


@pytest.mark.parametrize("kept", KEPT)
def test_a_batch_without_a_known_class_gives_zero(make_job, make_batch, kept):
    job = make_job(kept)
    rows = (job.data.labels == 0).nonzero().squeeze(1)
    batch = make_batch(job, rows=rows)
    method = BCT(unknown="old")
    value = of(method, batch, method.prepare(job))
    assert value.item() == 0.0
    value.backward()
    assert torch.equal(batch.new.grad, torch.zeros_like(batch.new))


@pytest.mark.parametrize("shuffled", [[41, 3, 20, 7], [20, 41, 7, 3]])
def test_the_order_of_the_old_classes_does_not_matter(make_job, shuffled):
    job = make_job("softmax", old_classes=shuffled)
    state = OldClassifier.of(job, synthesize=False)
    rows = state.row_of.tolist()
    assert [shuffled[r] if r >= 0 else None for r in rows] == [None, 7, None, 20, None]


def test_a_synthesized_row_is_as_long_as_the_rows_of_a_kept_softmax(make_job):
    """Longer rows would outvote K's: on glyphs the loss began at 100 and the model was lost."""
    job = make_job("softmax")
    job.old.features.mul_(30)
    state = OldClassifier.of(job, synthesize=True)
    lengths = state.weight.norm(dim=1)
    known = len(job.old.head.weight)
    assert len(lengths) > known
    np.testing.assert_allclose(lengths[known:], lengths[:known].mean().item(), rtol=1e-5)


def test_a_kept_head_that_knows_nothing_is_synthesized_whole(make_job):
    """Open-class with a kept K: rows of one kind, cosines at the new head's scale."""
    strange, none = make_job("softmax", old_classes=[1, 2, 3, 8]), make_job(None)
    a = OldClassifier.of(strange, synthesize=True)
    assert a.scale == 16.0 and a.bias is None and a.weight.shape == (5, 6)
    torch.testing.assert_close(
        a.weight, torch.from_numpy(
            np.array([unit(class_mean(strange, c)) for c in range(5)])
        ).float(),
    )  # fmt: skip
    assert OldClassifier.of(none, synthesize=True).scale == 16.0


def test_distill_learns_where_the_old_classifier_knows_no_class(make_job, make_batch):
    job = make_job("softmax", old_classes=[1, 2, 3, 8])
    method = BCT(unknown="distill")
    state, batch = method.prepare(job), make_batch(job)
    assert (state.row_of < 0).all()
    wanted = influence(job, batch, batch.new.detach().double().numpy(), "distill", 1.0)
    assert wanted > 0
    value = of(method, batch, state)
    assert value.item() == pytest.approx(wanted, rel=1e-4)
    value.backward()
    assert (batch.new.grad.abs().sum(dim=1) > 0).all()
