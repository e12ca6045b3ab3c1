"""Small training data and a trainer, for what is trained here."""

import numpy as np
import pytest
import torch

from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.data.toy import Toy
from benchmark.training.data import TrainingData
from benchmark.training.device import Device
from benchmark.training.loop import Trainer
from support.objects import changed


def map_trainer(steps=20, seed=0, batch=64, folder=None, **changes):
    """A trainer of maps; keywords change its recipe."""
    recipe = Recipe(epochs=1, transform_steps=steps, transform_batch=batch, **changes)
    return Trainer(recipe, seed, Device("cpu"), folder)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Tiny products on a busy machine: two threads would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data() -> TrainingData:
    """70 images of 9 classes, whose ids are neither 0 to 8 nor in steps of one."""
    made = Toy(classes=9, images=8, size=16).load(None).train
    rows = np.arange(70)
    classes = torch.tensor([2, 3, 5, 7, 11, 13, 17, 19, 23])
    return TrainingData(made.images[rows], torch.from_numpy(made.labels[rows]), classes)


@pytest.fixture(scope="session")
def spec() -> ModelSpec:
    return ModelSpec(backbone="convnet-2", dim=8, head="arcface", scale=8.0, margin=0.2)


@pytest.fixture
def trainer(tmp_path):
    """Make a trainer; keywords change its recipe."""

    def make(*, seed=5, folder=None, progress=lambda share: None, **changes) -> Trainer:
        recipe = Recipe(
            epochs=3, batch_size=16, lr=0.05, transform_steps=12, transform_batch=16,
            augment=Augment(rotate=10, scale=0.1, shift=0.1, contrast=0.2), warmup=0.1,
        )  # fmt: skip
        recipe = changed(recipe, **changes)
        return Trainer(recipe, seed, Device("cpu"), folder, progress)

    return make
