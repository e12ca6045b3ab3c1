"""Maps learned from augmented views: one picture for all models, cached, or anew in each epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmark.config.recipes import Augment
from benchmark.config.registry import method
from benchmark.config.seeds import generator
from benchmark.contract import Generation, Portable, UpdateJob
from benchmark.contract.views import job_pairs
from benchmark.harness.execution import Compute
from benchmark.training.augment import augment
from benchmark.training.embedding import embed, embed_view, load_images

CPU, HERE = Compute("cpu"), torch.device("cpu")
CHANGES = Augment(rotate=20, shift=0.1, flip=True, contrast=0.3)


class Pixels(Portable):
    """An embedding by which a picture can be told: its first pixels, times a number."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.times = times

    def forward(self, images):
        return self.times * images.flatten(1)[:, :7]


def test_a_view_is_the_augmented_picture(data):
    made = embed_view(Pixels(1.0), data.images, HERE, CHANGES, 3, 2)
    images = load_images(data.images, torch.arange(70), HERE)
    wanted = augment(images, CHANGES, generator(3, "view", 2)).flatten(1)[:, :7]
    np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-6)
    assert not np.allclose(made, embed_view(Pixels(1.0), data.images, HERE, CHANGES, 3, 1))
    assert not np.allclose(made, embed_view(Pixels(1.0), data.images, HERE, CHANGES, 4, 2))


@pytest.fixture
def job(data, spec, trainer):
    """An update from embeddings by pixels to their double, with side-information, in a recipe."""

    def made(**changes):
        device = torch.device("cpu")
        one = torch.from_numpy(embed(Pixels(1.0), data.images, device))
        old = Generation(Pixels(1.0), None, one, 3 * one, Pixels(3.0))
        new = Generation(Pixels(2.0), None, 2 * one, 4 * one, Pixels(4.0))
        return UpdateJob(data, (old,), new, spec, "l2", trainer(**{"augment": CHANGES, **changes}))

    return made


def test_every_epoch_embeds_the_same_new_pictures_by_all_models(job):
    pairs = job_pairs(job(transform_views="epoch"))
    first, again, second = (pairs.of_epoch(number) for number in (0, 0, 1))
    for seen in (first, second):
        torch.testing.assert_close(seen.new, 2 * seen.old)
        torch.testing.assert_close(seen.side, 3 * seen.old)
        torch.testing.assert_close(seen.new_side, 4 * seen.old)
        assert torch.equal(seen.labels, pairs.labels)
    assert torch.equal(first.old, again.old)
    assert not torch.allclose(first.old, second.old)
    assert not torch.allclose(first.old, pairs.old)


def test_one_view_is_the_picture_as_it_is(job):
    one = job()
    pairs = job_pairs(one)
    assert pairs.of_epoch(3) is pairs and pairs.old is one.old.features


@pytest.mark.parametrize("label", ["fct", "residual-mlp"])
def test_new_views_in_each_epoch_reach_the_map(job, label):
    """Without augmentation they are the pictures as they are, and the map is the same."""

    def fitted(**changes):
        params = {"width": 16} if label == "fct" else {"hidden": 8}
        update = method(label, params).update(job(**changes))
        return update.convert(torch.ones(1, 7), torch.ones(1, 7))[0]

    plain = fitted()
    assert torch.equal(plain, fitted(transform_views="epoch", augment=Augment()))
    assert not torch.allclose(plain, fitted(transform_views="epoch"))
