"""SimCLR: its loss against a double loop, and a small training."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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
        for place in np.ndindex(4, 3):
            kept, values = moved[place], []
            for sign in (1, -1):
                moved[place] = kept + sign * 1e-6
                values.append(naive(first, second, 0.5))
            moved[place] = kept
            assert grad[place].item() == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_training(data, spec, trainer):
    made = trainer(epochs=8, precision="bf16-mixed")
    wide = changed(spec, backbone="convnet-8")
    state = torch.get_rng_state()
    model, curve = side_simclr.train(wide, data, made, dim=64, crops=0)
    assert isinstance(model, SideEncoder) and not model.training
    assert curve.loss[-1] < 0.8 * curve.loss[0]
    assert len(curve.loss) == 8 and curve.steps_an_epoch == 4
    torch.set_rng_state(state)
    torch.rand(3)
    again, _ = side_simclr.train(wide, data, made, dim=64, crops=0)
    for key, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key


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


def test_labels_are_not_seen(data, spec, trainer):
    made = trainer(epochs=1)
    blind = changed(data, labels=torch.zeros_like(data.labels))
    a, _ = side_simclr.train(spec, data, made, dim=64, crops=2)
    b, _ = side_simclr.train(spec, blind, made, dim=64, crops=2)
    assert all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())


def test_size_and_last_layer():
    model = SideEncoder("convnet-2", 1, 16, 64)
    assert model(torch.rand(3, 1, 16, 16)).shape == (3, 64)
    assert isinstance(list(model.children())[-1], torch.nn.BatchNorm1d)
