"""Frozen toy backbones: their weights, the settings of a run, and what is trained behind them."""

from __future__ import annotations

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from benchmark.config.recipes import ModelSpec
from benchmark.data.base import read_options
from benchmark.data.features import Features, StoredViews
from benchmark.harness.features import ARRAY, ROWS, compute_features
from benchmark.harness.work import FeatureWork
from benchmark.models.backbones import trunk
from benchmark.models.parts import Frozen
from benchmark.training.data import TrainingData

HERE = torch.device("cpu")
BACKBONES = {"old": "convnet-4", "new": "convnet-6"}


def weights(folder, name, seed=0):
    """A file of weights of a small backbone, with statistics that are not those of a start."""
    torch.manual_seed(seed)
    made, _ = trunk(BACKBONES[name], 1, 32)
    made(torch.randn(64, 1, 32, 32))
    path = folder / f"{name}-{seed}.safetensors"
    save_file(made.state_dict(), path)
    return path


def settings(folder, **more):
    frozen = {
        f"{name}.{key}": value
        for name in BACKBONES
        for key, value in (
            ("backbone", BACKBONES[name]), ("weights", str(weights(folder, name))),
            ("frozen", True), ("hidden", [24]),
        )
    }  # fmt: skip
    small = {"data.classes": 12, "recipe.epochs": 2, "recipe.transform_steps": 6}
    return frozen | small | {"recipe.stored_views": 3, "recipe.augment.flip": True} | more


class Through(nn.Module):
    """A frozen trunk before the part that is trained."""

    def __init__(self, backbone, encoder):
        super().__init__()
        self.backbone, self.encoder = Frozen(backbone), encoder

    def forward(self, images):
        return self.encoder(self.backbone(images)[:, :, None, None])


def stored_toy(tmp_path):
    """A frozen model, the toy images, and their features as training data."""
    dataset = read_options("toy", {"classes": 12}).load(None)
    spec = ModelSpec(
        backbone="convnet-4", weights=str(weights(tmp_path, "old")), frozen=True, hidden=(24,),
        dim=8, head="norm-softmax", scale=8.0,
    )  # fmt: skip
    work = FeatureWork(data=tmp_path, spec={}, resampling="bilinear", precision="float32")
    compute_features(spec, dataset, work, tmp_path, HERE)
    with np.load(tmp_path / ROWS) as rows:
        stored = StoredViews(
            spec.features_key, (np.load(tmp_path / ARRAY, mmap_mode="r"),), (rows["of-train"],)
        )
    labels = torch.from_numpy(np.unique(dataset.train.labels, return_inverse=True)[1])
    classes = torch.from_numpy(np.unique(dataset.train.labels))
    return spec, dataset, TrainingData(Features.of([stored]), labels, classes)
