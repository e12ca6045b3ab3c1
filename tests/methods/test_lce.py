"""LCE: angles, borders of classes, the loss of the forward map."""

import math

import numpy as np
import pytest
import torch
from published_scripts import lce_borders, lce_terms
from support.losses import slope, unit
from support.training import map_trainer

from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.training.prototypes import (
    CentreAlignment,
    ClassBorders,
    ClassCones,
    angles,
    largest_usual,
)
from methods.lce import LCE
from methods.lce_published import LCEPublished


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
    """An arccosine's is not finite: the trap of a member that is its own centre."""
    x = torch.tensor([[3.0, 0.0]], requires_grad=True)
    angles(x, torch.tensor([other])).sum().backward()
    assert x.grad.isfinite().all() and x.grad.norm() < 2
    trap = torch.tensor([[1.0, 0.0]], requires_grad=True)
    torch.acos((trap * torch.tensor([[1.0, 0.0]])).sum(1)).sum().backward()
    assert not trap.grad.isfinite().all()


def test_gradient_of_the_angle():
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


def test_classes_of_one_image_have_no_cone(data):
    _, new, labels, _ = data
    alone = torch.randn(1, new.shape[1], generator=torch.Generator().manual_seed(2))
    made, own = torch.cat([new, alone]), torch.cat([labels, torch.tensor([4])])
    borders, fewer = ClassCones(made, own, 5), ClassCones(new, labels, 4)
    moved = made + torch.linspace(-1, 1, made.numel()).reshape(made.shape)
    assert borders(moved, own) == fewer(moved[:-1], labels) > 0
    assert borders(-alone, torch.tensor([4])) == 0


def test_borders_of_the_published_code(data):
    """No outlier rule: the smallest cosine counts, that of the outlier."""
    _, new, labels, _ = data
    borders = ClassBorders(new, labels, 5)
    centres, lowest = lce_borders(new, labels.numpy())
    np.testing.assert_allclose(borders.centre[:4], centres, atol=1e-6)
    np.testing.assert_allclose(borders.lowest[:4], lowest, atol=1e-6)
    assert lowest.max() < 0 and (borders.centre[4] == 0).all()
    assert borders(new, labels).item() == pytest.approx(0, abs=1e-6)


def test_border_by_hand():
    """A class of two at 0 and 60 degrees has its border 30 degrees off its centre."""
    members = torch.tensor([[2.0, 0], [0.5, math.sqrt(0.75)]])
    borders = ClassBorders(members, torch.tensor([0, 0]), 1)
    assert borders.lowest.item() == pytest.approx(math.cos(math.pi / 6))
    beyond = torch.tensor([[0.5, -math.sqrt(0.75)]])  # 90 degrees off it
    inside = torch.tensor([[3.0, 1.0]])
    label = torch.tensor([0])
    assert borders(beyond, label).item() == pytest.approx(math.sqrt(0.75))
    assert borders(inside, label).item() == 0


def test_alignment_by_hand():
    """Centres (1, 1) / sqrt 2 at length 2 and (0, 1) at length 3; a class of none is left out."""
    old = torch.tensor([[2.0, 0], [0, 2], [0, 3]])
    weight = torch.tensor([[5.0, 0], [7, 7], [0, 2]])
    alignment = CentreAlignment(old, torch.tensor([0, 0, 2]), weight)
    root = math.sqrt(2)
    np.testing.assert_allclose(alignment.centre, [[root, root], [0, 3]], rtol=1e-6)

    class Same(torch.nn.Module):
        def forward(self, vectors, side):
            return vectors, side

    # (1 / root - 1)^2 + (1 / root)^2 of the first, nothing of the second; four numbers in all.
    assert alignment(Same()).item() == pytest.approx(((1 / root - 1) ** 2 + 0.5) / 4)
    # As published: (root - 1)^2 + root^2 of the first, (3 - 1)^2 of the second.
    alone = CentreAlignment(old, torch.tensor([0, 0, 2]), weight, unit_output=False)
    assert alone(Same()).item() == pytest.approx(((root - 1) ** 2 + 2 + 4) / 4)


@pytest.mark.parametrize("map_", ["published", "parallel", "chain", "mlp"])
@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_whole_loss_of_the_published_code(handed, data, arcface, map_, weight):
    """As published, and with the map's output at length 1 as ``lce`` has it."""
    old, new, labels, head = data
    old = torch.nn.functional.normalize(old)
    weights = {"weight": weight, "align": 100 * weight}
    published = map_ == "published"
    made = LCEPublished(**weights) if published else LCE(map=map_, width=16, **weights)
    handed.of(made, Pairs(old, new, labels, head=head))
    converted = handed.converted(old)
    centres = torch.from_numpy(lce_borders(old, labels.numpy())[0]).float()
    mapped = handed.converted(centres)
    mapped = mapped if published else unit(mapped)
    rows = head.weight.detach()
    terms = lce_terms(converted, labels, lce_borders(new, labels), mapped, rows)
    wanted = arcface(head, converted, labels.numpy()) + weight * terms
    assert handed.loss.item() == pytest.approx(wanted, rel=1e-4)
    assert terms > 0.1


def test_alignment_of_one_class_is_refused(data):
    old, new, labels, head = data
    pairs = Pairs(old, new, torch.zeros_like(labels), head=head)
    with pytest.raises(BenchError, match="alignment: expected items of two classes or more"):
        LCE().learn(pairs, map_trainer())


@pytest.mark.parametrize("map_", ["chain", "mlp"])
def test_whole_loss_of_the_angle(handed, data, arcface, map_):
    old, new, labels, head = data
    params = {**LCE.variants["advbct"], "map": map_, "weight": 0.7, "width": 16}
    handed.of(LCE(**params), Pairs(old, new, labels, head=head))
    made = handed.converted(old)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    centres, thetas = cones(new.double().numpy(), labels.numpy())
    beyond = np.arccos(np.clip((made * centres[labels]).sum(1), -1, 1)) - thetas[labels]
    wanted = arcface(head, made, labels.numpy()) + 0.7 * np.maximum(beyond, 0).mean()
    assert handed.loss.item() == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("params", [{}, LCE.variants["mlp"], LCE.variants["advbct"]])
def test_fit(data, params):
    """The map itself learns (published code leaves it out of the optimiser), the rest stays."""
    old, new, labels, head = data
    weight = head.weight.detach().clone()
    pairs = Pairs(old, new, labels, head=head)
    fitted = LCE(**{**params, "width": 32, "lr": 5e-3}).learn(pairs, map_trainer(80))
    losses = fitted.curves["map"].loss
    assert losses[-1] < 0.5 * losses[0]
    assert torch.equal(head.weight, weight) and head.weight.grad is None
    with torch.inference_mode():
        made, side = fitted.convert(old, None)
    assert side is None
    assert (head.logits(made).argmax(1) == labels).float().mean() > 0.85
