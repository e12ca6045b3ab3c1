"""d-Simplex and HOC: the fixed classifier, both losses in float64, their own first generation."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, Teacher, cross_entropy, unit
from support.objects import changed
from support.toy_runs import ONE_EPOCH, run_toy
from torch import nn

from benchmark.contract.method import Generation
from benchmark.errors import BenchError
from benchmark.models.heads import SimplexHead, simplex
from benchmark.models.module import load_module, save_module
from methods.d_simplex import DSimplex, hoc_loss

POINTS = simplex(60).numpy()
HOC = DSimplex(hoc=True, weight=0.3, mu=3.0)


@pytest.mark.parametrize("count", [2, 3, 5, 60])
def test_a_regular_simplex(count):
    points = simplex(count).numpy()
    assert points.shape == (count, count - 1)
    gram = points @ points.T
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-12)
    np.testing.assert_allclose(gram[~np.eye(count, dtype=bool)], -1 / (count - 1), atol=1e-12)
    np.testing.assert_allclose(points.sum(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("kind", ["softmax", "norm-softmax", "cosface", "arcface"])
def test_the_head_never_learns_and_comes_back(kind, tmp_path):
    head = SimplexHead(kind, 6, 20.0, 0.3, 0.1)
    features = torch.randn(4, 5, requires_grad=True)
    head(features, torch.arange(4)).backward()
    assert head.weight.grad is None and features.grad.abs().sum() > 0
    assert not [p for p in head.parameters() if p.requires_grad]
    assert head.classes.tolist() == list(range(6)) and head.dim == 5
    save_module(head, tmp_path / "head")
    again = load_module(tmp_path / "head")
    assert torch.equal(again.weight, head.weight) and not again.weight.requires_grad
    assert (again.kind, again.scale, again.margin, again.smoothing) == (kind, 20.0, 0.3, 0.1)


@pytest.fixture
def case(make_job, make_batch):
    """An update whose simplex has 60 vertices; the data's classes are five of them."""
    job = make_job(d_old=59)
    # Few rows: the slope asks for each number of 59 a row.
    job = changed(job, n_classes=60, chain=(changed(
        job.old, model=Teacher(59)
    ),))  # fmt: skip
    batch = make_batch(job, d_new=59, size=4)
    batch.images = torch.rand(len(batch.index), 1, 8, 8)
    return job, batch


def of_vertices(new, labels):
    """Under vertices of all 60 classes, raw features, no bias."""
    return cross_entropy(new @ POINTS.T, [CLASSES[y] for y in labels])


def hoc(new, old, labels, mu):
    f, o = unit(new), unit(old)
    total = 0.0
    for i, y in enumerate(labels):
        others = [mu * o[i] @ f[j] for j, z in enumerate(labels) if z != y]
        total += np.logaddexp.reduce(others) - mu * o[i] @ f[i]
    return total / len(labels)


@pytest.mark.parametrize("method", [DSimplex(), HOC])
def test_loss_and_gradient(case, agrees, method):
    job, batch = case
    _, head = method.new_model(job)
    state = method.prepare(job)
    labels = batch.labels.tolist()
    old = job.old.model(batch.images).detach().double().numpy()

    def wanted(new):
        if not method.hoc:
            return of_vertices(new, labels)
        return 0.3 * of_vertices(new, labels) + 0.7 * hoc(new, old, labels, 3.0)

    agrees(method.loss(batch, head, state), batch, wanted, rel=1e-5, rtol=2e-3, atol=2e-5)
    assert all(p.grad is None for p in job.old.model.parameters())
    assert all(p.grad is None for p in head.parameters())


def test_every_generation_has_its_classes_at_the_same_places(case):
    job, _ = case
    other = changed(job, data=changed(job.data, classes=torch.tensor([1, 2, 4, 30, 59])), chain=())
    heads = [DSimplex().new_model(j)[1] for j in (job, other)]
    assert torch.equal(heads[0].weight, heads[1].weight)
    rows = [DSimplex().prepare(j).vertex.tolist() for j in (job, other)]
    assert rows == [CLASSES, [1, 2, 4, 30, 59]]


def test_trap_pairs_of_one_class_stay_out_of_the_sum():
    """As zeros after masking they would still weigh exp(0)."""
    torch.manual_seed(0)
    new, old, labels = torch.randn(6, 4), torch.randn(6, 4), torch.tensor([0, 0, 0, 0, 0, 1])
    value = hoc_loss(new, old, labels, 10.0).item()
    assert value == pytest.approx(hoc(new.numpy(), old.numpy(), labels.tolist(), 10.0), rel=1e-5)
    scores = 10 * nn.functional.normalize(old) @ nn.functional.normalize(new).T
    zeros = (scores * (labels[:, None] != labels)).logsumexp(dim=1) - scores.diagonal()
    assert abs(zeros.mean().item() - value) > 0.1


def test_a_batch_of_one_class_is_only_pulled():
    new = torch.randn(3, 4, requires_grad=True)
    old = torch.randn(3, 4)
    value = hoc_loss(new, old, torch.zeros(3, dtype=torch.long), 2.0)
    cosines = (nn.functional.normalize(new) * nn.functional.normalize(old)).sum(dim=1)
    assert value.item() == pytest.approx(-2 * cosines.mean().item(), rel=1e-5)
    value.backward()
    assert new.grad.isfinite().all()


def test_hoc_sees_the_old_features_of_the_augmented_images(case):
    job, batch = case
    _, head = HOC.new_model(job)
    state = HOC.prepare(job)
    before = HOC.loss(batch, head, state)
    batch.old = batch.old * 0
    assert torch.equal(HOC.loss(batch, head, state), before)
    batch.images = -batch.images
    assert not torch.isclose(HOC.loss(batch, head, state), before)


def test_pre_allocated_vertices(case):
    job, _ = case
    encoder, head = DSimplex(vertices=70).new_model(job)
    assert head.dim == 69 and encoder.project.out_features == 69
    with pytest.raises(BenchError, match="expected 60 or more"):
        DSimplex(vertices=59).new_model(job)


def test_the_track_s_head_on_request(case):
    job, _ = case
    _, head = DSimplex(head="track").new_model(job)
    assert (head.kind, head.scale, head.margin) == ("arcface", 16.0, 0.2)
    assert DSimplex().new_model(job)[1].kind == "softmax"


@pytest.fixture(scope="module")
def generations(toy_job):
    """A first generation of its own, and an update from it."""

    def make(method, folder=None):
        job = changed(toy_job(folder), n_classes=20, chain=())
        first = method.first(job)
        with torch.no_grad():
            vectors = first.model(torch.from_numpy(job.data.images).float() / 127.5 - 1)
        return first, changed(job, chain=(Generation(first.model, None, vectors),))

    return make


def test_a_killed_hoc_update_ends_the_same(generations, tmp_path):
    class Dies(DSimplex):
        def refresh(self, state, job, epoch):
            if epoch.number == 1:
                raise KeyboardInterrupt

    first, job = generations(HOC)
    assert first.head.dim == 19 and first.query_view is None
    killed = changed(job.trainer, folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Dies(hoc=True, weight=0.3, mu=3.0).update(changed(job, trainer=killed))
    got, wanted = HOC.update(changed(job, trainer=killed)), HOC.update(job)
    state = wanted.model.state_dict()
    assert all(torch.equal(v, state[k]) for k, v in got.model.state_dict().items())
    assert torch.equal(got.head.weight, first.head.weight), "the classifier never moves"
    plain = DSimplex().update(job).model.state_dict()
    assert not all(torch.equal(v, state[k]) for k, v in plain.items())


def test_own_first_generation_through_the_harness(tmp_path):
    """Its own old/old is shown; criterion and gain use the bounds that all methods share."""
    records = run_toy(["d-simplex", "bt2"], tmp_path, **ONE_EPOCH)
    shared, own, longer = records["independent"], records["d-simplex"], records["bt2"]
    assert {"old/old", "new/old", "old/new", "new/new"} <= set(own.scores)
    assert own.scores["old/old"] != shared.scores["old/old"]
    assert own.bounds == shared.bounds
    for metric, low in own.bounds["lower"].items():
        assert own.compatible[metric] == (own.scores["new/old"][metric] > low)
    assert longer.scores["old/old"] == shared.scores["old/old"]
    assert longer.scores["new/new"] != shared.scores["new/new"] and "new/old" in longer.scores
