"""FastFill: its loss in every combination, what it learns about its own error, what it refuses."""

import math

import numpy as np
import pytest
import torch
from support.training import map_trainer
from torch import nn
from torch.nn import functional as F

from benchmark.contract.maps import squared_distance
from benchmark.contract.pairs import Pairs
from benchmark.metrics.statistics import kendall_tau
from benchmark.models.heads import Head
from benchmark.models.transformation import Transformation, Uncertain
from methods.fastfill import FastFill


def make_head(kind="arcface", dim=5, classes=4, seed=0, **options):
    head = Head(kind, dim, range(classes), scale=9.0, margin=0.3, **options)
    with torch.no_grad():
        head.weight.copy_(torch.randn(classes, dim, generator=torch.Generator().manual_seed(seed)))
    return head


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(1)
    new = torch.randn(200, 5, generator=rng)
    old = torch.randn(200, 6, generator=rng)
    return old, new, torch.randint(0, 4, (200,), generator=rng)


# --- the loss

COMBINATIONS = [
    {"losses": losses, "uncertainty": uncertainty, "diagonal": diagonal}
    for losses in ("both", "l2", "disc")
    for uncertainty in (True, False)
    for diagonal in (False, True)
]


def by_hand(error, disc, logs, lam, losses, uncertainty, **_):
    """Eq. 3 to 5 for one item, in plain numbers."""
    variances = [math.exp(s) for s in logs]
    if len(variances) == 1:
        variances = variances * len(error)
    mean = math.prod(variances) ** (1 / len(variances))
    total = 0.0
    if losses != "disc":
        total += sum(
            e * e / (v if uncertainty else 1) for e, v in zip(error, variances, strict=True)
        )
    if losses != "l2":
        total += disc / (mean if uncertainty else 1)
    if uncertainty:
        total += sum(math.log(v) for v in variances) / len(variances) / lam
    return total


@pytest.mark.parametrize("lam", [None, 0.3])
@pytest.mark.parametrize("chosen", COMBINATIONS)
def test_loss_of_every_combination(chosen, lam):
    rng = np.random.default_rng(0)
    error, disc = rng.standard_normal((7, 5)), rng.random(7) * 3
    logs = rng.standard_normal((7, 5 if chosen["diagonal"] else 1))
    got = FastFill(**chosen, lam=lam).loss(
        torch.from_numpy(error),
        None if chosen["losses"] == "l2" else torch.from_numpy(disc),
        torch.from_numpy(logs) if chosen["uncertainty"] else None,
    )
    wanted = [by_hand(*row, lam or 1 / 5, **chosen) for row in zip(error, disc, logs, strict=True)]
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)


def test_variance_four():
    """In numbers: neither sigma for sigma^2 nor the wrong sign of its logarithm."""
    error, disc = torch.tensor([[2.0, 0.0]]).double(), torch.tensor([4.0]).double()
    logs = torch.tensor([[math.log(4.0)]]).double()
    got = FastFill(lam=0.5).loss(error, disc, logs)
    assert got.item() == pytest.approx(8 / 4 + 2 * math.log(4))
    assert got.item() != pytest.approx(8 / 2 + 2 * math.log(4))
    assert got.item() != pytest.approx(8 * 4 - 2 * math.log(4))


# --- what is fitted: the loss with head, target and map as they are handed to the fit


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_whole_loss_with_arcface(handed, data, arcface, distance):
    """L_disc is the new classifier's own loss: with its margin, scale and normalisation."""
    old, new, labels = data
    head = make_head()
    handed.of(FastFill(width=16), Pairs(old, new, labels, head=head, distance=distance))
    with torch.no_grad():
        handed["module"].psi.weight.normal_()
        made, logs = handed["module"].estimates(old, None)
    made, logs, target = (x.double().numpy() for x in (made, logs, new))
    lengths = np.linalg.norm(made, axis=1)
    assert np.allclose(lengths, 1, atol=1e-6) == (distance == "cosine")
    if distance == "cosine":
        target = target / np.linalg.norm(target, axis=1, keepdims=True)
    disc = [arcface(head, made[i : i + 1], labels[i : i + 1].numpy()) for i in range(200)]
    each = [by_hand(made[i] - target[i], disc[i], logs[i], 1 / 5, "both", True) for i in range(200)]
    assert handed.loss.item() == pytest.approx(np.mean(each), rel=1e-4)


def test_whole_loss_with_softmax(handed, data):
    """A softmax classifier reads lengths: features go in as they are; smoothing is its own."""
    old, new, labels = data
    head = make_head("softmax", smoothing=0.1)
    method = FastFill(losses="disc", uncertainty=False, width=16)
    handed.of(method, Pairs(old, 5 * new, labels, head=head))
    logits = handed.converted(old) @ head.weight.detach().double().numpy().T
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    wanted = -0.9 * logs[np.arange(200), labels] - 0.1 * logs.mean(1)
    assert handed.loss.item() == pytest.approx(wanted.mean(), rel=1e-4)


def test_without_uncertainty_and_classifier_it_is_fct(handed, data):
    old, new, _ = data
    method = FastFill(losses="l2", uncertainty=False, width=16)
    fitted = handed.of(method, Pairs(old, new, distance="l2"))
    wanted = squared_distance(fitted.convert(old, None)[0], new)
    torch.testing.assert_close(handed.loss, wanted)
    assert fitted.priority is None and handed["frozen"] == (None,)


def test_the_classifier_stays(data):
    """No gradient, no change, and what the caller holds may still learn."""
    old, new, labels = data
    head = make_head()
    before = head.weight.detach().clone()
    fitted = FastFill(width=16).learn(Pairs(old, new, labels, head=head), map_trainer(20))
    assert torch.equal(head.weight, before)
    assert head.weight.grad is None and head.weight.requires_grad and head.training
    bare = Uncertain(Transformation(6, 0, 5, 16, normalise=True), 5)
    assert set(fitted.priority.state_dict()) == set(bare.state_dict())
    assert set(fitted.convert.state_dict()) == set(bare.map.state_dict())


@pytest.mark.parametrize("chosen", COMBINATIONS)
def test_all_that_is_built_learns(handed, data, chosen):
    """Trap: several devices refuse a parameter that the loss does not read."""
    old, new, labels = data
    handed.of(FastFill(**chosen, width=16), Pairs(old, new, labels, head=make_head()))
    module = handed["module"]
    handed.loss.backward()
    assert [n for n, p in module.named_parameters() if p.grad is None] == []
    assert isinstance(module, Uncertain) == chosen["uncertainty"]


# --- sigma


@pytest.fixture(scope="module")
def noisy():
    """Old vectors whose first number tells how much noise is in the others."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 600)
    centres = rng.standard_normal((4, 5)) * 2
    new = centres[labels] + 0.3 * rng.standard_normal((600, 5))
    level = rng.random(600)
    old = new @ rng.standard_normal((5, 6)) + 4 * level[:, None] * rng.standard_normal((600, 6))
    old = np.concatenate([10 * level[:, None], old], axis=1)
    made = [torch.from_numpy(x.astype(np.float32)) for x in (old, new, centres)]
    return *made, torch.from_numpy(labels)


@pytest.mark.parametrize(
    ("chosen", "precision"),
    [
        *((each, "32-true") for each in ({}, {"losses": "l2"}, {"diagonal": True})),
        *((each, "bf16-mixed") for each in ({}, {"losses": "disc"}, {"diagonal": True})),
    ],
    ids=str,
)
def test_expected_sigma_ranks_items(noisy, chosen, precision):
    """On items it was not fitted to; far from what chance gives (0 +- 0.05 of 200 items)."""
    old, new, centres, labels = noisy
    head = Head("softmax", 5, range(4))
    with torch.no_grad():
        head.weight.copy_(centres)
    pairs = Pairs(old[:400], new[:400], labels[:400], head=head, distance="l2")
    fitted = FastFill(width=64, lr=5e-3, **chosen).learn(
        pairs, map_trainer(80, precision=precision)
    )
    with torch.inference_mode():
        made, _ = fitted.convert(old[400:], None)
        true = (made - new[400:]).square().sum(1)
        if chosen.get("losses") == "disc":
            true = head(made, labels[400:], reduction="none")
        expected = fitted.priority(old[400:], None)
    assert expected.shape == (200,)
    assert kendall_tau(expected.numpy(), true.numpy()) > 0.15


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
def test_psi_is_linear_in_the_vector_before_normalisation(by_layers, normalise, diagonal):
    torch.manual_seed(0)
    made = Uncertain(Transformation(6, 4, 5, 16, normalise, branch=8), 5, diagonal)
    made.map(torch.randn(50, 6) * 3 + 1, torch.randn(50, 4))  # batch norms have seen something
    nn.init.normal_(made.psi.bias)
    old, side = torch.randn(7, 6), torch.randn(7, 4)
    with torch.inference_mode():
        vectors, logs = made.eval().estimates(old, side)
        priority = made(old, side)
    raw = by_layers(made.map, old.double().numpy(), side.double().numpy())
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    weight, bias = (p.detach().double().numpy() for p in (made.psi.weight, made.psi.bias))
    wanted = raw @ weight.T + bias
    assert wanted.shape == (7, 5 if diagonal else 1)
    assert np.abs(unit @ weight.T + bias - wanted).max() > 0.1
    np.testing.assert_allclose(vectors, unit if normalise else raw, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logs, wanted, rtol=1e-4, atol=1e-5)
    mean = np.log(np.exp(wanted).mean(axis=1))
    np.testing.assert_allclose(priority, mean, rtol=1e-4, atol=1e-5)


def test_sigma_starts_at_about_one(handed):
    """Far from log d = 4.2 or from what a biased start would give, in the fit's first step too."""
    rng = torch.Generator().manual_seed(0)
    old, new = (3 * torch.randn(256, 64, generator=rng) for _ in range(2))
    handed.of(FastFill(losses="l2"), Pairs(old, new))
    made = handed["module"]
    assert not made.psi.bias.any()
    with torch.no_grad():
        for module in (made.train(), made.eval()):
            logs = module.estimates(old, None)[1]
            assert abs(logs.mean()) < 0.4 and logs.abs().max() < 1.5


def test_priority_of_several_variances_is_the_expected_squared_distance():
    made = Uncertain(Transformation(6, 3, 5, 16, True), 5, diagonal=True)
    with torch.no_grad():
        made.psi.weight.zero_()
        made.psi.bias.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0, 10.0]).log())
        np.testing.assert_allclose(made(torch.randn(4, 6), torch.randn(4, 3)), math.log(4.0), 1e-6)


def test_variants_change_what_they_say(data):
    old, new, labels = data
    pairs = Pairs(old, new, labels, head=make_head())
    for name, chosen in FastFill.variants.items():
        method = FastFill(**chosen, width=16)
        assert ("uncertainty" in name) == (not method.uncertainty)
        if method.side == "none":
            fitted = method.learn(pairs, map_trainer(3))
            assert (fitted.priority is None) == (not method.uncertainty)
            if fitted.priority is not None:
                assert fitted.priority.psi.out_features == (5 if name == "diagonal" else 1)


def test_side_information_along_a_chain(data):
    """Before a further update g brings the side-information along (FCT section 4.4)."""
    old, new, labels = data
    side, new_side = new[:, :3] * 2, old[:, :4] + 1
    pairs = Pairs(old, new, labels, side=side, head=make_head(), new_side=new_side)
    fitted = FastFill(side="simclr", width=16, lr=5e-3).learn(pairs, map_trainer(60))
    assert set(fitted.curves) == {"map", "side"}
    with torch.inference_mode():
        vectors, moved = fitted.convert(old, side)
        assert fitted.priority(old, side).shape == (200,)
    torch.testing.assert_close(vectors, F.normalize(vectors))
    assert moved.shape == (200, 4)
    spread = (new_side - new_side.mean(0)).square().sum()
    assert (moved - new_side).square().sum() < 0.8 * spread
