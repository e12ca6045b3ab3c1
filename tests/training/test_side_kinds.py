"""Every kind of side-information: its loss by hand, and a small training."""

import importlib
import math

import numpy as np
import pytest
import torch
from support.objects import changed

from benchmark.config.recipes import Augment
from benchmark.errors import RefusedError
from benchmark.models.module import load_module, save_module
from benchmark.training import side_alternative, side_autoencoder, side_binary
from benchmark.training.data import TrainingData, resized
from benchmark.training.embedding import new_model, train_embedding
from benchmark.training.side_kinds import SIDES

UNLABELLED = [kind for kind, made in SIDES.items() if made.module != "alternative"]
MODULES = {(made.module, "mixup" in made.options): kind for kind, made in SIDES.items()}

VIEWS = Augment(rotate=15, scale=0.3, shift=0.1, contrast=0.4, brightness=0.2)


def trained(kind, spec, data, trainer):
    made = SIDES[kind]
    options = {**made.options, **({"crops": 2} if "crops" in made.options else {})}
    if made.contrastive:  # as a track of characters has it; the supervised views differ too little
        trainer = changed(trainer, recipe=changed(trainer.recipe, augment=VIEWS))
    module = importlib.import_module(f"benchmark.training.side_{made.module}")
    model, curve = module.train(spec, data, trainer, **options)
    return model, curve


def same(a, b):
    return all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())


# --- all kinds


@pytest.mark.parametrize("kind", MODULES.values())
def test_the_loss_falls(kind, data, spec, trainer):
    """By thirds of the training: a contrastive loss moves with the views drawn in an epoch."""
    _, curve = trained(kind, spec, data, trainer(epochs=12, precision="bf16-mixed"))
    first, *_, last = np.reshape(curve.loss, (3, 4)).mean(axis=1)
    assert last < first


@pytest.mark.parametrize("kind", MODULES.values())
def test_training(kind, data, spec, trainer, tmp_path):
    """The same seed gives the same bytes, another seed another model."""
    made = trainer(epochs=3, precision="bf16-mixed")
    state = torch.get_rng_state()
    model, curve = trained(kind, spec, data, made)
    assert not model.training
    assert len(curve.loss) == 3
    torch.set_rng_state(state)
    torch.rand(3)
    again, _ = trained(kind, spec, data, made)
    save_module(model, tmp_path / "a"), save_module(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    other, _ = trained(kind, spec, data, trainer(epochs=3, seed=6))
    assert not same(model, other)
    images = torch.rand(4, 1, 16, 16) * 2 - 1
    with torch.inference_mode():
        out = model(images)
        assert out.shape == (4, SIDES[kind].options.get("dim", spec.dim))
        torch.testing.assert_close(out, load_module(tmp_path / "a").eval()(images))


@pytest.mark.parametrize("kind", MODULES.values())
def test_labels_are_seen_only_by_old_models(kind, data, spec, trainer):
    made = trainer(epochs=1)
    turned = changed(data, labels=data.labels.roll(5))
    a, b = (trained(kind, spec, d, made)[0] for d in (data, turned))
    assert same(a, b) == (kind in UNLABELLED)


# --- another old model


def test_an_alternative_differs_by_its_seed_only(data, spec, trainer):
    """With the old model's seed it would start as the old model does."""
    recipe = {"epochs": 1}
    model, _ = side_alternative.train(spec, data, trainer(seed=5, **recipe))
    same_seed = trainer(seed=5, **recipe)
    old, head = new_model(spec, data, same_seed)
    train_embedding(old, head, data, same_seed, name="side")
    assert same(model, old)


def test_mixed_images():
    images, other, share = np.random.default_rng(0).random((5, 2, 3, 3)), [3, 0, 0, 4, 1], 0.7
    wanted = np.stack([share * images[i] + 0.3 * images[j] for i, j in enumerate(other)])
    got = side_alternative.mix(torch.from_numpy(images), torch.tensor(other), share)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)


def test_labels_stay_those_of_the_larger_share(monkeypatch):
    """FCT 5.1: images are mixed, labels are not."""
    seen = []
    mixing = side_alternative._Mixing(torch.nn.Identity(), 0.2)
    mix = side_alternative.mix
    monkeypatch.setattr(
        side_alternative, "mix", lambda x, o, share: (seen.append(share), mix(x, o, share))[1]
    )
    images = torch.eye(6)[:, :, None, None]
    torch.manual_seed(0)
    for _ in range(50):
        mixed = mixing(images)[:, :, 0, 0]
        # Row i is still mostly image i, so its label is still label i.
        assert (mixed.diagonal() >= 0.5 - 1e-6).all()
        torch.testing.assert_close(mixed.sum(1), torch.ones(6))
    assert len({round(s, 4) for s in seen}) > 20 and min(seen) >= 0.5
    # Beta(0.2, 0.2) is U-shaped: most shares are near 1.
    assert np.mean(np.array(seen) > 0.9) > 0.5
    assert torch.equal(mixing.eval()(images), images)


# --- autoencoder


def test_reconstruction():
    rng = np.random.default_rng(0)
    drawn, images = (rng.standard_normal((3, 2, 4, 5)) for _ in range(2))
    total = sum((drawn[i] - images[i]) ** 2 for i in np.ndindex(3, 2, 4, 5))
    got = side_autoencoder.reconstruction(torch.from_numpy(drawn), torch.from_numpy(images))
    assert got.item() == pytest.approx(total / 120, rel=1e-12)


@pytest.mark.parametrize(("channels", "size"), [(1, 16), (3, 29), (1, 32)])
def test_what_is_drawn_has_the_shape_of_the_image(channels, size):
    encoder = side_autoencoder.PixelEncoder(channels, size, 10)
    decoder = side_autoencoder.PixelDecoder(channels, size, 10)
    images = torch.rand(2, channels, size, size)
    codes = encoder(images)
    assert codes.shape == (2, 10)
    assert decoder(codes).shape == images.shape


def test_blocks_of_mobilenet():
    """Expanded six times, one filter a channel, and no activation after the narrow layer."""
    block = side_autoencoder.PixelEncoder(1, 32, 10).maps[3].conv
    expand, depthwise, narrow = block[0][0], block[1][0], block[2]
    assert (expand.in_channels, expand.out_channels) == (16, 96)
    assert (depthwise.groups, depthwise.stride) == (96, (2, 2))
    assert narrow.out_channels == 24 and isinstance(block[-1], torch.nn.BatchNorm2d)


def test_an_autoencoder_of_images_that_are_not_square_is_refused(data, spec, trainer):
    flat = TrainingData(data.images[:, :, :8], data.labels, data.classes)
    with pytest.raises(RefusedError, match="'autoencoder': expected square images, got 8 x 16"):
        side_autoencoder.train(spec, flat, trainer(), dim=4)


def test_recipe_of_appendix_d_4_2(data, spec, trainer, monkeypatch):
    asked = {}

    def adam(parameters, **options):
        asked.update(options)
        return torch.optim.SGD(parameters, lr=options["lr"])

    monkeypatch.setattr(torch.optim, "Adam", adam)
    few = TrainingData(data.images[:16], data.labels[:16], data.classes)  # a step an epoch
    _, curve = side_autoencoder.train(spec, few, trainer(epochs=20), dim=4)
    assert asked == {"lr": 3e-4}  # torch's own weight decay is none
    # Linear from 0 in a twentieth of the steps, then half a cosine.
    assert curve.lr[:2] == [0.0, pytest.approx(3e-4)]
    assert curve.lr[19] == pytest.approx(3e-4 * 0.5 * (1 + math.cos(math.pi * 18 / 19)))


# --- bits


def test_bits_are_drawn_with_their_probability():
    logits = torch.tensor([-2.0, 0.0, 1.0]).repeat(20000, 1)
    noise = torch.rand(logits.shape, generator=torch.Generator().manual_seed(0))
    drawn = side_binary.draw(logits, noise, 1.0)
    assert set(drawn.unique().tolist()) == {-1.0, 1.0}
    share = (drawn > 0).double().mean(0).numpy()
    np.testing.assert_allclose(share, [1 / (1 + math.exp(-x)) for x in (-2, 0, 1)], atol=0.015)


def test_the_gradient_is_the_relaxed_draws(seed=0):
    """Binary concrete: sigmoid((logit + logistic noise) / relaxation), as a sign 2 s - 1."""
    rng = np.random.default_rng(seed)
    logits, noise = rng.standard_normal((3, 4)), rng.uniform(0.05, 0.95, (3, 4))
    x = torch.from_numpy(logits).requires_grad_(True)
    weights = rng.standard_normal((3, 4))
    (side_binary.draw(x, torch.from_numpy(noise), 0.7) * torch.from_numpy(weights)).sum().backward()

    def relaxed(z):
        return 2 / (1 + np.exp(-(z + np.log(noise) - np.log1p(-noise)) / 0.7)) - 1

    slope = (relaxed(logits + 1e-6) - relaxed(logits - 1e-6)) / 2e-6
    np.testing.assert_allclose(x.grad.numpy(), weights * slope, rtol=1e-6)


def test_divergence():
    logits = np.random.default_rng(0).standard_normal((5, 3)) * 3
    total = 0.0
    for logit in logits.ravel():
        p = 1 / (1 + math.exp(-logit))
        total += p * math.log(p / 0.5) + (1 - p) * math.log((1 - p) / 0.5)
    got = side_binary.divergence(torch.from_numpy(logits)).item()
    assert got == pytest.approx(total / 5, rel=1e-10)
    sure = torch.full((2, 3), 200.0, requires_grad=True)
    value = side_binary.divergence(sure)
    value.backward()
    assert value.item() == pytest.approx(3 * math.log(2), rel=1e-6) and sure.grad.isfinite().all()


def test_what_is_stored_has_two_values(data, spec, trainer):
    model, _ = trained("simclr-binary", spec, data, trainer(epochs=8))
    images = torch.from_numpy(data.images).float() / 127.5 - 1
    with torch.inference_mode():
        bits = model(images)
    assert set(bits.unique().tolist()) == {-1.0, 1.0} and bits.shape == (70, 128)
    # The last batch norm keeps bits from being the same for every image.
    assert (bits.std(0) > 0).float().mean() > 0.8


# --- another domain


def test_images_of_another_dataset_take_the_shape(data):
    made = resized(data, (3, 24, 24))
    assert made.images.shape == (70, 3, 24, 24) and made.images.dtype == np.uint8
    assert (made.images[:, 0] == made.images[:, 2]).all()
    assert made.images.mean() == pytest.approx(data.images.mean(), abs=1)
    back = resized(made, (1, 16, 16))
    assert np.abs(back.images.astype(int) - data.images).mean() < 12
    assert np.array_equal(resized(data, (1, 16, 16)).images, data.images)
    assert torch.equal(made.labels, data.labels)
