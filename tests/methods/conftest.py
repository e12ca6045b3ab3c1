"""Updates on small made-up features, for the losses; on toy images, for whole trainings."""

import numpy as np
import pytest
import torch
from support import losses
from support.losses import CLASSES, OLD_CLASSES, double, slope
from support.training import map_trainer, one_thread  # noqa: F401

from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.contract import maps
from benchmark.contract.method import Generation, UpdateJob
from benchmark.data.toy import Toy
from benchmark.models.heads import Head
from benchmark.training.data import TrainingData
from benchmark.training.device import Device
from benchmark.training.embedding import Batch
from benchmark.training.loop import Trainer


@pytest.fixture
def make_job():
    """Make an update whose old features are random; ``kept`` is the kind of the old head."""

    def make(kept=None, *, seed=0, n=40, d_old=6, old_classes=OLD_CLASSES, scale=16.0):
        rng = np.random.default_rng(seed)
        labels = torch.from_numpy(np.concatenate([np.arange(5), rng.integers(0, 5, n - 5)]))
        features = torch.from_numpy(rng.standard_normal((n, d_old)).astype(np.float32) * 3)
        head = None
        if kept is not None:
            head = Head(kept, d_old, old_classes, scale=11.0, margin=0.4)
            with torch.no_grad():
                head.weight.copy_(torch.from_numpy(rng.standard_normal(head.weight.shape)))
                if head.bias is not None:
                    head.bias.copy_(torch.from_numpy(rng.standard_normal(len(old_classes))))
            head.eval().requires_grad_(False)
        recipe = Recipe(epochs=1, batch_size=8)
        return UpdateJob(
            data=TrainingData(np.zeros((n, 1, 8, 8), np.uint8), labels, torch.tensor(CLASSES)),
            chain=(Generation(torch.nn.Identity(), head, features),),
            independent=None,
            spec=ModelSpec(backbone="convnet-2", dim=8, head="arcface", scale=scale, margin=0.2),
            distance="cosine",
            trainer=Trainer(recipe, 0, Device("cpu")),
        )

    return make


@pytest.fixture
def make_batch():
    """Make a batch of a job with random new features that want a gradient."""

    def make(job, *, seed=1, size=12, d_new=None, rows=None):
        rng = np.random.default_rng(seed)
        n, d_old = job.old.features.shape
        index = torch.from_numpy(rng.permutation(n)[:size]) if rows is None else rows
        new = rng.standard_normal((len(index), d_new or d_old)).astype(np.float32)
        return Batch(
            images=torch.zeros(len(index), 1, 8, 8),
            labels=job.data.labels[index],
            index=index,
            new=torch.from_numpy(new).requires_grad_(True),
            old=job.old.features[index],
            progress=0.0,
            rng=torch.Generator().manual_seed(seed),
        )

    return make


@pytest.fixture(scope="session")
def toy_job():
    """Make an update on 72 toy images, all of whose trainings start alike."""
    made = Toy(classes=9, images=8, size=16).load(None).train
    labels = torch.from_numpy(made.labels)
    features = torch.randn(72, 8, generator=torch.Generator().manual_seed(3))

    def make(folder=None, seed=5, kept=False):
        known = Head("softmax", 8, [0, 2, 6, 40]).eval() if kept else None
        if kept:
            known.weight.data = torch.eye(8)[:4]
        recipe = Recipe(
            epochs=2, batch_size=16, lr=0.05, augment=Augment(rotate=10, shift=0.1, contrast=0.2)
        )
        return UpdateJob(
            data=TrainingData(made.images, labels, torch.arange(9) * 2),
            chain=(Generation(torch.nn.Identity(), known, features),),
            independent=None,
            spec=ModelSpec(backbone="convnet-2", dim=8, head="arcface", scale=8.0, margin=0.2),
            distance="cosine",
            trainer=Trainer(recipe, seed, Device("cpu"), folder),
        )

    return make


@pytest.fixture(scope="session")
def agrees():
    """Compare a loss, and its gradient by a batch's new features, with a writing in float64."""

    def check(loss, batch, wanted, rel=1e-4, rtol=3e-3, atol=3e-4):
        new = double(batch.new)
        assert loss.item() == pytest.approx(wanted(new), rel=rel, abs=1e-5)
        loss.backward()
        np.testing.assert_allclose(batch.new.grad.numpy(), slope(wanted, new), rtol=rtol, atol=atol)

    return check


@pytest.fixture(scope="session")
def arcface():
    """The mean loss of an arcface head in float64, with acos."""
    return losses.arcface


@pytest.fixture(scope="session")
def by_layers():
    """FCT's map without its normalisation, in float64, layer by layer."""

    def forward(module, old, side):
        def branch(layers, x):
            for m in layers:
                if isinstance(m, torch.nn.Linear):
                    x = x @ m.weight.detach().double().numpy().T + m.bias.detach().double().numpy()
                elif isinstance(m, torch.nn.BatchNorm1d):
                    mean, var = m.running_mean.double().numpy(), m.running_var.double().numpy()
                    x = (x - mean) / np.sqrt(var + m.eps) * m.weight.detach().double().numpy()
                    x = x + m.bias.detach().double().numpy()
                else:
                    x = np.maximum(x, 0)
            return x

        both = np.concatenate([branch(module.old, old), branch(module.side, side)], axis=1)
        return branch(module.mixer, both)

    return forward


class Handed(dict):
    """Arguments that an adapter of a map hands to the fit."""

    def of(self, method, pairs):
        """Vectors that a method makes of pairs, without the fit itself."""
        return method.learn(pairs, map_trainer())

    @property
    def loss(self):
        """The loss of all rows."""
        return self["loss"](self["module"], *self["tensors"])

    def converted(self, old):
        """Vectors by the map, float64."""
        return double(self["module"](old, None)[0])


@pytest.fixture
def handed(monkeypatch):
    """Arguments that an adapter of a map hands to the fit, which is left out."""
    seen = Handed()

    def fit_map(make, loss, rows, n, trainer, **options):
        seen.update(module=make().eval(), loss=loss, tensors=rows(0), **options)
        assert all(len(each) == n for each in seen["tensors"] if each is not None)
        return seen["module"], {}

    monkeypatch.setattr(maps, "fit_map", fit_map)
    return seen
