"""Embedding models: initial weights, training, and what may not matter."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.objects import changed
from torch import nn

from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.training.data import TrainingData
from benchmark.training.embedding import embed, fit_of, load_images, new_model, train_embedding


def fit(data, spec, trainer, **options):
    encoder, head = new_model(spec, data, trainer)
    curve = train_embedding(encoder, head, data, trainer, **options)
    return {**encoder.state_dict(), **{f"head.{k}": v for k, v in head.state_dict().items()}}, curve


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_equal_starts(data, spec, trainer):
    torch.manual_seed(1)
    a = new_model(spec, data, trainer(seed=3))
    torch.manual_seed(2)
    torch.rand(7)
    before = torch.get_rng_state()
    b = new_model(spec, data, trainer(seed=3))
    assert torch.equal(torch.get_rng_state(), before), "moved somebody else's stream"
    c = new_model(spec, data, trainer(seed=4))
    for x, y, z in zip(a, b, c, strict=True):
        assert same(x.state_dict(), y.state_dict())
        assert not same(x.state_dict(), z.state_dict())


def seen_at(data, height, width):
    return replace(data, images=np.resize(data.images, (len(data), 1, height, width)))


@pytest.mark.parametrize(
    ("backbone", "size", "words"),
    [
        ("timm:deit_tiny_patch16_224", (16, 16), "16 x 16; input_size=224 of the model may help"),
        ("timm:vit_tiny_patch16_224", (16, 16), ""),
        ("timm:efficientvit_b0", (32, 32), ""),
        ("vit-16x1", (32, 16), "32 x 16; input_size=32 of the model may help"),
        ("vit-t", (8, 8), "8 x 8; input_size=112 of the model may help"),
        ("iresnet-18", (32, 16), "32 x 16; input_size=112 of the model may help"),
        ("convnet-4", (32, 16), ""),
    ],
)
def test_a_backbone_that_does_not_fit_the_images(data, spec, trainer, backbone, size, words):
    given, spec = seen_at(data, *size), changed(spec, backbone=backbone)
    if not words:
        new_model(spec, given, trainer())
        return
    with pytest.raises(BenchError, match=f"^backbone '{backbone}': does not fit images of {words}"):
        new_model(spec, given, trainer())
    if backbone.startswith("vit-16"):
        for side in size:
            encoder, _ = new_model(changed(spec, input_size=side), given, trainer())
            assert encoder(torch.rand(2, 1, *size)).shape == (2, spec.dim)


def test_one_image_a_step_is_not_normalised_over_a_batch(data, spec, trainer):
    with pytest.raises(BenchError, match=r"^recipe.batch_size: expected at least 2, as the model"):
        new_model(changed(spec, hidden=(8,)), data, trainer(batch_size=1))
    new_model(changed(spec, hidden=(8,)), data, trainer(batch_size=2))
    new_model(spec, data, trainer(batch_size=1))


def test_a_try_leaves_a_model_as_it_was(data, spec, trainer):
    encoder, _ = new_model(changed(spec, hidden=(8,)), data, trainer())
    assert encoder.training and encoder.trunk[2].num_batches_tracked == 0
    assert encoder.trunk[2].running_var.tolist() == [1.0] * 8


def test_the_head_knows_its_classes(data, spec, trainer):
    encoder, head = new_model(spec, data, trainer(label_smoothing=0.1), dim=spec.dim + 4)
    assert head.classes.tolist() == data.classes.tolist()
    assert (head.kind, head.scale, head.margin, head.smoothing) == ("arcface", 8.0, 0.2, 0.1)
    assert head.weight.shape == (9, 12)
    assert encoder(torch.rand(2, 1, 16, 16)).shape == (2, 12)


def test_the_fit_is_that_of_a_classifier_of_these_classes(data, spec, trainer):
    encoder, head = new_model(spec, data, trainer())
    found = fit_of(encoder, head, data, torch.device("cpu"))
    logits = head.logits(torch.from_numpy(embed(encoder, data.images, torch.device("cpu"))))
    loss_of = torch.nn.functional.cross_entropy
    every = [loss_of(logits, torch.full_like(data.labels, c)).item() for c in range(9)]
    assert found == {
        "loss": pytest.approx(loss_of(logits, data.labels).item()),
        "chance": pytest.approx(math.log(9)),
        "random_labels": pytest.approx(sum(every) / 9),
    }
    plain = Head("softmax", spec.dim, data.classes.tolist())  # may have all logits equal
    assert fit_of(encoder, plain, data, torch.device("cpu")).keys() == {"loss", "chance"}
    fewer = Head("arcface", spec.dim, data.classes.tolist()[:4])  # as of an old model that goes on
    assert fit_of(encoder, fewer, data, torch.device("cpu")) == {}


def test_training_learns(data, spec, trainer):
    _, curve = fit(data, spec, trainer(epochs=12, lr=0.1))
    assert curve.loss[-1] < 0.8 * curve.loss[0]


def test_training_does_not_hang_on_the_global_stream(data, spec, trainer):
    torch.manual_seed(1)
    a, _ = fit(data, spec, trainer())
    torch.manual_seed(2)
    b, _ = fit(data, spec, trainer())
    c, _ = fit(data, spec, trainer(seed=6))
    assert same(a, b)
    assert not same(a, c)


@pytest.mark.parametrize("kill_at", [1, 2])
def test_a_kill_changes_nothing(data, spec, trainer, tmp_path, kill_at):
    """With augmentation, draws of the loss, and a state whose buffer the loss moves."""

    class State(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(()))
            self.register_buffer("seen", torch.zeros(8))

    def loss(batch, head, state):
        state.seen.mul_(0.5).add_(batch.new.detach().mean(0))
        noise = torch.randn(batch.new.shape, generator=batch.rng)
        return head(state.gain * batch.new + 0.1 * noise + state.seen, batch.labels)

    def run(folder=None, kill=None):
        def on_epoch(epoch):
            if epoch.number == kill:
                raise KeyboardInterrupt

        state = State()
        weights, curve = fit(
            data, spec, trainer(folder=folder), loss=loss, state=state, on_epoch=on_epoch
        )
        return weights | {f"state.{k}": v for k, v in state.state_dict().items()}, curve

    wanted, wanted_curve = run()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, kill_at)
    got, curve = run(tmp_path)
    assert same(got, wanted) and curve == wanted_curve
    assert not torch.equal(wanted["state.seen"], torch.zeros(8))
    assert wanted["state.gain"] != 1.0


def test_what_a_loss_sees(data, spec, trainer):
    seen = []

    def loss(batch, head, state):
        seen.append(batch)
        assert not torch.is_autocast_enabled("cpu")
        return head(batch.new, batch.labels)

    old = torch.arange(70 * 3, dtype=torch.float32).view(70, 3)
    fit(data, spec, trainer(precision="bf16-mixed"), loss=loss, old=old)
    assert len(seen) == 3 * 4
    for batch in seen:
        assert batch.images.shape == (16, 1, 16, 16) and batch.new.dtype == torch.float32
        assert batch.new.requires_grad and not batch.old.requires_grad
        assert torch.equal(batch.labels, data.labels[batch.index])
        assert torch.equal(batch.old, old[batch.index])
    assert [b.progress for b in seen[::4]] == pytest.approx([0.0, 1 / 3, 2 / 3])


def test_without_an_old_generation_old_is_empty(data, spec, trainer):
    shapes = set()

    def loss(batch, head, state):
        shapes.add(tuple(batch.old.shape))
        return head(batch.new, batch.labels)

    fit(data, spec, trainer(epochs=1), loss=loss)
    assert shapes == {(16, 0)}


def test_what_a_method_draws_does_not_change_its_images(data, spec, trainer):
    images = {}

    def loss_that_draws(times):
        def loss(batch, head, state):
            images.setdefault(times, []).append(batch.images.clone())
            torch.rand(times, generator=batch.rng)
            return head(batch.new, batch.labels)

        return loss

    for times in (0, 5):
        fit(data, spec, trainer(), loss=loss_that_draws(times))
    assert all(torch.equal(a, b) for a, b in zip(images[0], images[5], strict=True))


def test_a_method_s_draws_differ_from_epoch_to_epoch_and_from_batch_to_batch(data, spec, trainer):
    drawn = []

    def loss(batch, head, state):
        drawn.append(torch.rand(1, generator=batch.rng).item())
        return head(batch.new, batch.labels)

    fit(data, spec, trainer(), loss=loss)
    first = list(drawn)
    fit(data, spec, trainer(), loss=loss)
    assert drawn[len(first) :] == first
    assert len(set(first)) == len(first)


def test_an_empty_container_is_a_state(data, spec, trainer):
    state, seen = nn.ModuleList(), []

    def loss(batch, head, own):
        seen.append(own is state)
        return head(batch.new, batch.labels)

    fit(data, spec, trainer(epochs=1), loss=loss, state=state)
    assert seen and all(seen)


@pytest.mark.parametrize("n", [2, 5, 15, 16, 17])
def test_fewer_images_than_a_batch(data, spec, trainer, n):
    few = TrainingData(data.images[:n], data.labels[:n], data.classes)
    weights, curve = fit(few, spec, trainer())
    assert len(curve.loss) == 3 and curve.steps_an_epoch == 1
    assert all(w.isfinite().all() for w in weights.values() if w.is_floating_point())


def test_trained_modules_evaluate(data, spec, trainer):
    made = trainer(epochs=1)
    encoder, head = new_model(spec, data, made)
    train_embedding(encoder, head, data, made)
    assert not any(m.training for m in (*encoder.modules(), *head.modules()))


def test_embed(data, spec, trainer):
    encoder, _ = new_model(spec, data, trainer())
    whole = embed(encoder, data.images, torch.device("cpu"))
    assert whole.shape == (70, 8) and whole.dtype == "float32"
    pieces = embed(encoder, data.images, torch.device("cpu"), batch=9)
    assert abs(whole - pieces).max() < 1e-5
    again = embed(encoder, data.images, torch.device("cpu"))
    assert (whole == again).all()


def test_load_images(data):
    rows = torch.tensor([5, 1, 60])
    got = load_images(data.images, rows, torch.device("cpu"))
    assert got.is_contiguous(memory_format=torch.channels_last)
    wanted = torch.from_numpy(data.images[rows.numpy()]).double() / 127.5 - 1
    torch.testing.assert_close(got.double(), wanted, atol=1e-6, rtol=0)
