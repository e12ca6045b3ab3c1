"""BT2: Algorithm 1 and the four terms of section 4.3 in float64; lengths, bases and sequences."""

import numpy as np
import pytest
import torch
from support.losses import CLASSES, Teacher, double, new_head, unit
from support.objects import changed

from benchmark.config.recipes import ModelSpec
from benchmark.contract.method import Generation
from benchmark.models.basis import BasisTransformation
from benchmark.models.heads import Head
from benchmark.models.module import load_module, save_module
from methods.bt2 import BT2, head_of_phi_new
from methods.bt2_code import BT2Code

KINDS = ["softmax", "norm-softmax", "arcface"]


@pytest.fixture
def bt2_job(make_job):
    """An update from 6 old dimensions to ``m`` new ones."""

    def make(m=7, kept=None, **options):
        job = make_job(kept, **options)
        spec = changed(job.spec, dim=m)
        alone = Generation(Teacher(m), None, torch.zeros(len(job.data), m))
        return changed(job, spec=spec, independent=alone)

    return make


def made(method, job, make_batch, seed=2):
    torch.manual_seed(seed)
    state = method.prepare(job)
    m, n, d = method.sizes(job)
    batch = make_batch(job, d_new=m + n, size=4)
    batch.images = torch.rand(len(batch.index), 1, 8, 8)
    dim = m + d if state.whole else m
    return state, batch, new_head(dim)


def algorithm(state, phi_1, m, n, d, factor):
    """Algorithm 1, row by row."""
    basis = state.basis
    b1, b2 = (double(r.matrix) for r in (basis.first, basis.second))
    w = double(basis.project.weight)
    bias = double(basis.project.bias)
    rows = []
    for x in phi_1:
        phi_2 = unit(w @ x + bias)
        phi_3 = unit(x[:m])
        phi_4 = factor * b1 @ phi_3
        phi_5 = b2 @ np.concatenate([phi_2, phi_4[: n - d]])
        rows.append((phi_3, phi_5, np.concatenate([phi_5, phi_4[n - d :]])))
    return [np.array(part) for part in zip(*rows, strict=True)]


def old_classifier(job):
    """K, discarded or kept, on a direction at the length of the old vector."""
    kept, scale = job.old.head, job.spec.scale
    if kept is None:
        o, y = job.old.features.double().numpy(), job.data.labels.numpy()
        means = np.array([unit(o[y == c].mean(axis=0)) for c in range(5)])
        return lambda direction, length: scale * means @ direction
    weight = double(kept.weight)
    if kept.bias is None:
        return lambda direction, length: kept.scale * unit(weight) @ direction
    bias = double(kept.bias)
    return lambda direction, length: weight @ (direction * length) + bias


def scale_of_logits(job):
    """K multiplies a cosine by its scale, or the mean lengths of its rows and old vectors."""
    kept = job.old.head
    if kept is None:
        return job.spec.scale
    if kept.bias is None:
        return kept.scale
    rows, stored = double(kept.weight), job.old.features.double().numpy()
    return np.linalg.norm(rows, axis=1).mean() * np.linalg.norm(stored, axis=1).mean()


@pytest.mark.parametrize(
    ("classify", "m", "extra", "kept"),
    [
        ("phi_3", 7, 2, None), ("phi_3", 6, 3, "softmax"), ("phi_3", 5, 2, "norm-softmax"),
        ("phi_3", 6, 6, None), ("phi_new", 7, 2, "softmax"), ("phi_new", 5, 2, None),
    ],
)  # fmt: skip
def test_loss_and_gradient(bt2_job, make_batch, arcface, agrees, classify, m, extra, kept):
    # A kept K that knows all classes of the data, in its own order.
    order = [20, 4, 55, 9, 7]
    job = bt2_job(m, kept, old_classes=order)
    row = list(range(5)) if kept is None else [order.index(c) for c in CLASSES]
    method = BT2(
        extra=extra, factor=1.7, match_new=0.6, influence=0.9, match_old=0.8, classify=classify
    )
    state, batch, head = made(method, job, make_batch)
    sizes = method.sizes(job)
    old = batch.old.double().numpy()
    teacher = unit(job.independent.model(batch.images).detach().double().numpy())
    labels = batch.labels.tolist()
    judge = old_classifier(job)
    scale = scale_of_logits(job)

    def wanted(phi_1):
        phi_3, phi_5, phi_new = algorithm(state, phi_1, *sizes, 1.7)
        total = arcface(head, phi_3 if classify == "phi_3" else phi_new, labels)
        for i, y in enumerate(labels):
            direction = unit(phi_5[i])
            logits = judge(direction, np.linalg.norm(old[i]))
            terms = (
                0.6 * (1 - phi_3[i] @ teacher[i])
                + 0.9 / scale * (np.logaddexp.reduce(logits) - logits[row[y]])
                + 0.8 * (1 - direction @ unit(old[i]))
            )
            total += terms / len(labels)
        return total

    agrees(method.loss(batch, head, state), batch, wanted, rtol=5e-3, atol=5e-4)


def test_a_relu_before_phi_2_as_the_code_has_it(bt2_job, make_batch):
    """The same start as bt2, whose phi_2 alone it changes; where nothing is negative it is bt2."""
    job, plain, code = bt2_job(7), BT2(extra=2), BT2Code(extra=2)
    state, batch, head = made(plain, job, make_batch)
    torch.manual_seed(2)
    rectified = code.prepare(job)
    for name, start in state.state_dict().items():
        assert rectified.state_dict()[name].equal(start), name
    x = batch.new.detach()
    parts, plain_parts = rectified.basis.parts(x), state.basis.parts(x)
    positive = np.maximum(x.double().numpy(), 0)
    w, b = (double(p) for p in state.basis.project.parameters())
    phi_4 = plain_parts[2][:, 6:]
    assert parts[0].equal(plain_parts[0]) and parts[2][:, 6:].equal(phi_4)
    phi_2 = parts[1] @ rectified.basis.second.matrix
    np.testing.assert_allclose(phi_2[:, :2].detach(), unit(positive @ w.T + b), atol=1e-5)
    assert not parts[1].allclose(plain_parts[1])
    assert code.loss(batch, head, rectified) != plain.loss(batch, head, state)
    batch.new = x.abs()
    assert code.loss(batch, head, rectified).equal(plain.loss(batch, head, state))
    reader = rectified.basis.reader()
    phi_3 = rectified.basis.parts(x)[2] @ reader.T
    torch.testing.assert_close(phi_3, parts[0], atol=1e-5, rtol=0)


def test_the_relu_is_saved_with_the_model(tmp_path):
    for rectified in (False, True):
        basis = BasisTransformation(7, 6, 2, 2.0, *([True] if rectified else []))
        assert ("rectified" in basis.arguments) == rectified, "or files of before would differ"
        save_module(basis, tmp_path / "b.safetensors")
        again, x = load_module(tmp_path / "b.safetensors"), -torch.ones(3, 13)
        assert again(x).equal(basis(x)) and again.rectified == rectified


@pytest.mark.parametrize(("m", "extra", "size"), [(7, 2, 9), (6, 3, 9), (5, 2, 8), (6, 32, 12)])
def test_sizes_and_lengths(bt2_job, make_batch, m, extra, size):
    job = bt2_job(m)
    method = BT2(extra=extra)
    state, batch, _ = made(method, job, make_batch)
    phi_3, phi_5, phi_new = state.basis.parts(batch.new)
    assert phi_new.shape[1] == size and phi_5.shape[1] == 6
    torch.testing.assert_close(phi_new.square().sum(dim=1), torch.full((4,), 5.0))
    torch.testing.assert_close(phi_3, phi_new @ state.basis.reader().T, atol=1e-5, rtol=1e-4)
    # phi_new tells new items apart as phi_3 does, but for phi_2 (Lemma 3).
    phi_2 = torch.nn.functional.normalize(state.basis.project(batch.new))
    torch.testing.assert_close(phi_new @ phi_new.T, 4 * phi_3 @ phi_3.T + phi_2 @ phi_2.T)


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_it_leaves_reads_phi_new_as_its_own_read_phi_3(bt2_job, make_batch, kind):
    job = bt2_job()
    state, batch, _ = made(BT2(extra=2), job, make_batch)
    head = Head(kind, 7, CLASSES, 16.0, 0.2)
    phi_3, _, phi_new = state.basis.parts(batch.new)
    left = head_of_phi_new(head, state.basis)
    torch.testing.assert_close(left.logits(phi_new), head.logits(phi_3), atol=1e-4, rtol=1e-4)
    assert left.dim == 9 and left.classes.tolist() == CLASSES and left.margin == 0.2


def test_label_smoothing_is_the_recipe_s(bt2_job):
    """A trap: the authors' other methods were trained with another smoothing."""
    job = bt2_job()
    recipe = changed(job.trainer.recipe, label_smoothing=0.13)
    job = changed(job, trainer=changed(job.trainer, recipe=recipe))
    _, head = BT2(extra=2).new_model(job)
    assert head.smoothing == 0.13 == job.new_model()[1].smoothing


def test_phi_5_feels_the_old_space_only(bt2_job, make_batch):
    """The classification loss reaches neither phi_2 nor B_2; L_old does not reach phi_4's rest."""
    job = bt2_job()
    only_new = BT2(extra=2, influence=0.0, match_old=0.0)
    state, batch, head = made(only_new, job, make_batch)
    only_new.loss(batch, head, state).backward()
    assert batch.new.grad[:, 7:].abs().max() < 1e-7
    rotation = state.basis.second.linear.parametrizations.weight.original
    assert rotation.grad.abs().max() < 1e-7
    # Without classification and teacher, what is left is of phi_5: 6 - 2 dimensions of phi_4.
    only_old = BT2(extra=2, match_new=0.0)
    state, batch, _ = made(only_old, job, make_batch)
    seen = []
    state.basis.first.register_forward_hook(lambda _, __, phi_4: seen.append(phi_4))
    nothing = Head("softmax", 7, CLASSES, 0.0)  # reads 0 times phi_3
    loss = only_old.loss(batch, nothing, state)
    slope = torch.autograd.grad(loss, seen[-1])[0]
    assert slope.shape == (4, 7) and torch.equal(slope[:, 4:], torch.zeros(4, 3))
    assert slope[:, :4].abs().min() > 0


@pytest.fixture(scope="module")
def taught(toy_job):
    """A toy update with a teacher, from any old generation."""

    def make(folder=None, old=None):
        job = toy_job(folder)
        alone = Generation(Teacher(8), None, torch.zeros(72, 8))
        chain = job.chain if old is None else (*job.chain, old)
        return changed(job, independent=alone, chain=chain)

    return make


METHOD = BT2(extra=3)


@pytest.fixture(scope="module")
def second(taught):
    """The update from the first to the second generation, with what each epoch saw."""
    errors = []

    class Watched(BT2):
        def refresh(self, state, job, epoch):
            errors.append([off_orthonormal(r) for r in (state.basis.first, state.basis.second)])

    job = taught()
    return job, Watched(extra=3).update(job), errors


def off_orthonormal(rotation):
    p = rotation.matrix.detach()
    return (p.T @ p - torch.eye(len(p))).abs().max().item()


def embedded(model, job):
    with torch.no_grad():
        return model(torch.from_numpy(job.data.images).float() / 127.5 - 1)


def test_bases_stay_orthonormal_and_move(second, taught):
    job, update, errors = second
    basis = update.model.outer
    assert np.max(errors) < 1e-5
    assert max(off_orthonormal(basis.first), off_orthonormal(basis.second)) < 1e-5
    again = METHOD.update(changed(job))
    assert torch.equal(again.model.outer.first.matrix, basis.first.matrix)
    for rotation in (basis.first, basis.second):
        start = rotation.linear.parametrizations.weight[0].base
        assert not torch.allclose(start, rotation.matrix, atol=1e-4), "it trains along"
    squares = embedded(update.model, job).square().sum(dim=1)
    torch.testing.assert_close(squares, torch.full((72,), 1 + 2.0**2), atol=1e-4, rtol=1e-5)


def test_orthonormal_at_the_paper_s_size_after_large_steps():
    torch.manual_seed(0)
    from benchmark.models.basis import Rotation

    rotation = Rotation(128)
    pull = torch.optim.SGD(rotation.parameters(), lr=30.0)
    target = torch.randn(128, 128) / 11
    for _ in range(10):
        pull.zero_grad()
        (rotation.matrix - target).square().mean().backward()
        pull.step()
    assert off_orthonormal(rotation) < 1e-5


def test_three_generations(second, taught):
    """Each update adds ``extra`` dimensions, and each view is the beginning of a longer vector."""
    job, update, _ = second
    assert update.model.outer.factor == 2.0 and update.head.dim == 8 + 3
    vectors = embedded(update.model, job)
    assert vectors.shape[1] == 11 and update.query_view(vectors).shape[1] == 8
    assert torch.equal(update.query_view(vectors), vectors[:, :8])
    old = Generation(update.model, update.head, vectors)
    later = taught(old=old)
    third = METHOD.update(later)
    longer = embedded(third.model, later)
    assert longer.shape[1] == 14 and third.query_view(longer).shape[1] == 11
    assert update.query_view(third.query_view(longer)).shape[1] == 8
    torch.testing.assert_close(longer.square().sum(dim=1), torch.full((72,), 5.0))
    assert third.head.dim == 14
    # Some of phi_4 stays out of what the old space sees.
    assert third.model.outer.shared == 8 - 3


def test_model_and_head_come_back_from_disk(second, tmp_path):
    job, update, _ = second
    for name in ("model", "head", "query_view"):
        save_module(getattr(update, name), tmp_path / name)
    loaded = load_module(tmp_path / "model").eval()
    # Trained channels last, loaded as it comes: sums of another order.
    torch.testing.assert_close(embedded(loaded, job), embedded(update.model, job))
    assert load_module(tmp_path / "head").dim == 11
    assert load_module(tmp_path / "query_view").dim == 8


@pytest.mark.parametrize(("backbone", "dim"), [("vit-16x1", 11), ("convnet-2", 8)])
def test_the_backbone_decides_what_is_classified(taught, backbone, dim):
    """Phi_new, of 8 + 3 numbers, on a transformer (4.3); else phi_3, of 8."""
    job = taught()
    job = changed(job, spec=job.spec.model_copy(update={"backbone": backbone}))
    method = BT2(extra=3)
    encoder, head = method.new_model(job)
    assert head.dim == dim
    state = method.prepare(job)
    features = encoder(torch.rand(3, 1, *job.data.images.shape[2:]))
    phi_3, _, phi_new = state.basis.parts(features)
    assert (phi_3.shape[1], phi_new.shape[1]) == (8, 11)
    assert state.whole == (dim == 11)
    kept = method.finish(job, encoder, head, state).head
    assert kept.dim == 11 and (kept is head) == (dim == 11)


@pytest.mark.parametrize(
    ("backbone", "found"),
    [
        ("vit-64", True), ("timm:vit_base_patch16_224", True), ("timm:swin_tiny", True),
        ("timm:deit3_small", True), ("timm:resnet50", False), ("convnet-16", False),
        ("torchvision:alexnet", False), ("timm:vgg13_bn", False),
    ],
)  # fmt: skip
def test_which_backbones_are_transformers(backbone, found):
    assert ModelSpec(backbone=backbone, dim=8).is_transformer == found


def test_transformer_variant_leaves_the_trained_head(taught):
    update = BT2(extra=3, **BT2.variants["transformer"]).update(taught())
    assert update.head.dim == 11
    assert BT2.variants["transformer"] == {"classify": "phi_new"}


def test_without_the_independent_model_there_is_no_teacher(bt2_job):
    with pytest.raises(ValueError, match=r"^job\.independent: expected the independent new model"):
        BT2().prepare(changed(bt2_job(), independent=None))
