"""LCE: angles, borders of classes, the loss of the forward map."""

import math

import numpy as np
import pytest
import torch

from benchmark.config.recipes import Recipe
from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.training.device import Device
from benchmark.training.loop import Trainer
from benchmark.training.prototypes import ClassCones, angles, largest_usual
from methods.lce import LCE


def trainer(steps=10):
    recipe = Recipe(epochs=1, transform_steps=steps, transform_batch=64)
    return Trainer(recipe, 0, Device("cpu"))


@pytest.fixture
def data():
    """Old vectors, new ones around four centres with an outlier a class, labels, the classifier."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 4
    centres = rng.standard_normal((4, 5)) * 3
    new = centres[labels] + 0.4 * rng.standard_normal((200, 5))
    new[:4] = -centres
    old = new @ rng.standard_normal((5, 6)) + rng.standard_normal((200, 6))
    head = Head("arcface", 5, range(4), scale=9.0, margin=0.3)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(centres))
    made = [torch.from_numpy(x.astype(np.float32)) for x in (old, new)]
    return *made, torch.from_numpy(labels), head


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def cones(new, labels):
    """Centre and angle of each class, by acos and sorting."""
    centres, thetas = [], []
    for c in range(labels.max() + 1):
        own = unit(new[labels == c])
        centres.append(unit(own.mean(axis=0)))
        found = np.sort(np.arccos(np.clip(own @ centres[-1], -1, 1)))
        low, high = np.percentile(found, [25, 75])
        thetas.append(max(a for a in found if a <= high + 1.5 * (high - low)))
    return np.array(centres), np.array(thetas)


def test_angles():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 50, 4))
    got = angles(torch.from_numpy(left), torch.from_numpy(right))
    np.testing.assert_allclose(got, np.arccos((unit(left) * unit(right)).sum(1)), rtol=1e-9)
    x = torch.tensor([[1.0, 0.0]])
    for y, wanted in (([2.0, 0.0], 0), ([0.0, 3.0], math.pi / 2), ([-1.0, 0.0], math.pi)):
        assert angles(x, torch.tensor([y])).item() == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("other", [[1.0, 0.0], [-1.0, 0.0], [1.0, 1e-6]])
def test_gradient_of_the_angle_is_finite(other):
    """Where an arccosine's is not: the trap of a member that is its own centre."""
    x = torch.tensor([[3.0, 0.0]], requires_grad=True)
    angles(x, torch.tensor([other])).sum().backward()
    assert x.grad.isfinite().all() and x.grad.norm() < 2
    trap = torch.tensor([[1.0, 0.0]], requires_grad=True)
    torch.acos((trap * torch.tensor([[1.0, 0.0]])).sum(1)).sum().backward()
    assert not trap.grad.isfinite().all()


def test_gradient_of_the_angle(slope):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 3, 4))
    x = torch.from_numpy(left.copy()).requires_grad_()
    angles(x, torch.from_numpy(right)).sum().backward()
    of = lambda a: np.arccos((unit(a) * unit(right)).sum(1)).sum()  # noqa: E731
    np.testing.assert_allclose(x.grad, slope(of, left), atol=1e-6)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2, 3, 4, 5, 100], 5),  # quartiles 2.25 and 4.75: up to 8.5
        ([1, 2, 3, 4, 5, 8.5], 8.5),
        ([1, 2, 3, 4, 5, 8.6], 5),
        ([7], 7),
        ([1, 9], 9),
        ([3, 3, 3, 3, 3, 4], 3),
        ([-50, 1, 2, 3, 4, 5], 5),  # an outlier below is no border
        ([], 0),
    ],
)
def test_largest_usual(values, wanted):
    if len(values) > 4:
        low, high = np.percentile(values, [25, 75])
        wanted_by_hand = max(v for v in values if v <= high + 1.5 * (high - low))
        assert wanted_by_hand == wanted
    assert largest_usual(torch.tensor(values, dtype=torch.float32)) == pytest.approx(wanted)


def test_borders(data):
    _, new, labels, _ = data
    borders = ClassCones(new, labels, 5)
    centres, thetas = cones(new.double().numpy(), labels.numpy())
    np.testing.assert_allclose(unit(borders.centre[:4].double().numpy()), centres, atol=1e-6)
    np.testing.assert_allclose(borders.theta[:4], thetas, atol=1e-5)
    assert borders.theta[4] == 0  # a class without items
    # Without the filter the outlier would open the cone to nearly all directions.
    whole = angles(new, borders.centre[labels])
    assert max(thetas) < 1.2 < 2.5 < whole.max()


def test_only_what_lies_outside_counts(data):
    _, new, labels, _ = data
    borders = ClassCones(new, labels, 4)
    inside = borders.centre[labels].clone().requires_grad_()
    loss = borders(inside, labels)
    loss.backward()
    assert loss.item() == 0 and not inside.grad.any()
    centres, thetas = cones(new.double().numpy(), labels.numpy())
    rng = np.random.default_rng(1)
    made = new.double().numpy() + 2 * rng.standard_normal(new.shape)
    found = np.arccos((unit(made) * centres[labels]).sum(1))
    wanted = np.mean([max(a - thetas[y], 0) for a, y in zip(found, labels, strict=True)])
    got = borders(torch.from_numpy(made).float(), labels).item()
    assert got == pytest.approx(wanted, rel=1e-4) and wanted > 0.1


@pytest.mark.parametrize("map_", ["rbt", "mlp"])
def test_whole_loss(handed, data, arcface, map_):
    old, new, labels, head = data
    LCE(map=map_, weight=0.7, width=16).learn(Pairs(old, new, labels, head=head), trainer())
    with torch.no_grad():
        got = handed["loss"](handed["module"], *handed["tensors"]).item()
        made = handed["module"](old, None)[0].double().numpy()
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    centres, thetas = cones(new.double().numpy(), labels.numpy())
    beyond = np.arccos(np.clip((made * centres[labels]).sum(1), -1, 1)) - thetas[labels]
    wanted = arcface(head, made, labels.numpy()) + 0.7 * np.maximum(beyond, 0).mean()
    assert got == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("map_", ["rbt", "mlp"])
def test_fit(data, map_):
    """The map itself learns (published code leaves it out of the optimiser), the rest stays."""
    old, new, labels, head = data
    weight = head.weight.detach().clone()
    pairs = Pairs(old, new, labels, head=head)
    fitted = LCE(map=map_, width=32, lr=5e-3).learn(pairs, trainer(80))
    losses = fitted.curves["map"].loss
    assert losses[-1] < 0.5 * losses[0]
    assert torch.equal(head.weight, weight) and head.weight.grad is None
    with torch.inference_mode():
        made, side = fitted.convert(old, None)
    assert side is None
    assert (head.logits(made).argmax(1) == labels).float().mean() > 0.85


def test_classifier_and_labels_are_needed(data):
    old, new, labels, head = data
    for pairs in (Pairs(old, new), Pairs(old, new, labels), Pairs(old, new, head=head)):
        with pytest.raises(
            BenchError, match=r"^lce: needs the new classifier \(head\) and labels$"
        ):
            LCE().learn(pairs, trainer())
