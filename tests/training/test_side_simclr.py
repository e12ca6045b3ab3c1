"""SimCLR: its loss against a double loop, and its local crops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.losses import slope
from support.objects import changed

from benchmark.config.recipes import Augment
from benchmark.training import side_simclr
from benchmark.training.side_simclr import SideEncoder, nt_xent


def naive(first, second, tau):
    """SimCLR eq. 1, averaged over the 2n views."""
    views = [*first.astype(np.float64), *second.astype(np.float64)]
    n = len(first)

    def sim(a, b):
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    total = 0.0
    for i in range(2 * n):
        j = i + n if i < n else i - n
        below = sum(math.exp(sim(views[i], views[k]) / tau) for k in range(2 * n) if k != i)
        total -= math.log(math.exp(sim(views[i], views[j]) / tau) / below)
    return total / (2 * n)


@given(
    n=st.integers(1, 7),
    d=st.integers(2, 6),
    tau=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_nt_xent(n, d, tau, seed):
    rng = np.random.default_rng(seed)
    first, second = (rng.standard_normal((n, d)).astype(np.float32) for _ in range(2))
    got = nt_xent(torch.from_numpy(first), torch.from_numpy(second), tau).item()
    assert got == pytest.approx(naive(first, second, tau), rel=1e-4, abs=1e-5)


def test_nt_xent_gradient():
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((4, 3)) for _ in range(2))
    a, b = (torch.from_numpy(x).requires_grad_(True) for x in (first, second))
    nt_xent(a, b, 0.5).backward()
    for grad, moved in ((a.grad, first), (b.grad, second)):
        wanted = slope(lambda _: naive(first, second, 0.5), moved, 1e-6)
        np.testing.assert_allclose(grad, wanted, atol=1e-6)


def test_views_and_optimiser_are_the_recipe_s(data, spec, trainer, monkeypatch):
    """Whole images have the views, local crops those without geometry; LARS learns too."""
    seen = []
    change = side_simclr.augment
    monkeypatch.setattr(
        side_simclr, "augment", lambda x, how, rng: (seen.append(how), change(x, how, rng))[1]
    )
    views = Augment(crop=0.3, aspect=1.5, contrast=0.3, jitter=0.8, blur=0.5, flip=True)
    own = {"augment": views.model_dump(), "optimizer": "lars", "lr": 2.0}
    recipe = changed(trainer(epochs=6).recipe, simclr=own).for_simclr()
    made = changed(trainer(), recipe=recipe)
    _, curve = side_simclr.train(changed(spec, backbone="convnet-8"), data, made, dim=16, crops=1)
    assert seen[:2] == [views, views]
    assert seen[2] == Augment(contrast=0.3, jitter=0.8, blur=0.5, flip=True)
    assert curve.loss[-1] < curve.loss[0]


def test_size_and_last_layer():
    model = SideEncoder("convnet-2", 1, 16, 64)
    assert model(torch.rand(3, 1, 16, 16)).shape == (3, 64)
    assert isinstance(list(model.children())[-1], torch.nn.BatchNorm1d)


def test_multi_crop():
    """Whole with whole, whole with local; never two local crops."""
    rng = np.random.default_rng(0)
    a, b, c, d, e = (rng.standard_normal((4, 3)) for _ in range(5))
    pairs = [(a, b), (a, c), (a, d), (a, e), (b, c), (b, d), (b, e)]
    wanted = np.mean([naive(x, y, 0.5) for x, y in pairs])
    whole, local = ([torch.from_numpy(x) for x in part] for part in ((a, b), (c, d, e)))
    assert side_simclr.multi_crop(whole, local, 0.5).item() == pytest.approx(wanted, rel=1e-10)
    alone = side_simclr.multi_crop(whole, [], 0.5).item()
    assert alone == pytest.approx(naive(a, b, 0.5), rel=1e-10)


def test_local_crops_are_square_parts_of_the_image():
    """An image whose two channels are its own coordinates shows where a crop was taken."""
    n, side, size = 400, 64, 27
    place = (torch.arange(side) + 0.5) / side * 2 - 1
    image = torch.stack([place.expand(side, side), place[:, None].expand(side, side)])
    crops = side_simclr.local_crops(image.expand(n, -1, -1, -1), size, torch.Generator())
    assert crops.shape == (n, 2, size, size)
    middle = size // 2
    width = crops[:, 0, middle, -1] - crops[:, 0, middle, 0]
    height = crops[:, 1, -1, middle] - crops[:, 1, 0, middle]
    torch.testing.assert_close(width, height, atol=1e-3, rtol=0)
    area = (width / 2 * size / (size - 1)) ** 2
    assert area.min() > 0.045 and area.max() < 0.405
    assert area.min() < 0.07 and area.max() > 0.38
    corners = crops[:, 0, 0, 0]
    assert corners.min() < -0.9 and corners.max() > 0.3 and len(corners.unique()) > 350


@pytest.mark.parametrize("crops", [3, 0])
def test_crops_go_through_the_network_at_their_own_size(data, spec, trainer, crops):
    seen = []

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, images):
            seen.append(tuple(images.shape))
            return self.scale * images.mean((2, 3)).repeat(1, 4) + images.flatten(1)[:, :4]

    def compare(whole, local):
        assert (len(whole), len(local)) == (2, crops)
        return side_simclr.multi_crop(whole, local, 0.1)

    side_simclr.train_network(Network(), compare, spec, data, trainer(epochs=1), crops)
    # 96 of 224 pixels are 7 of 16.
    assert seen[:2] == [(32, 1, 16, 16), (48, 1, 7, 7) if crops else (32, 1, 16, 16)]


def test_running_statistics_are_of_whole_images(data, spec, trainer):
    """Statistics of local crops among them would move everything that is stored."""
    made = trainer(epochs=20)
    model = side_simclr.SideEncoder(spec.backbone, 1, 16, 4)
    optimised = changed(made.recipe, lr=0.0, weight_decay=0.0)
    system = changed(made, recipe=optimised)
    compare = lambda whole, local: side_simclr.multi_crop(whole, local, 0.1)  # noqa: E731
    side_simclr.train_network(model, compare, spec, data, system, 2)
    images = torch.from_numpy(data.images).float() / 127.5 - 1
    with torch.inference_mode():
        shift = model.norm(model.encoder(images)).mean(0).abs()
    # Views are changed at random, so the means are near, not equal.
    assert model.norm.momentum == 0.1 and shift.max() < 0.35
