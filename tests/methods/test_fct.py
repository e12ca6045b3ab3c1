"""FCT: the architecture of appendix D.1, its loss, its fit, and what the gallery becomes."""

import numpy as np
import pytest
import torch
from support.losses import slope
from support.training import map_trainer
from torch import nn
from torch.nn import functional as F

from benchmark.contract.maps import kl_divergence, squared_distance
from benchmark.contract.pairs import Pairs
from benchmark.models.heads import Head
from benchmark.models.module import load_module, save_module
from benchmark.models.transformation import Transformation, WithSide
from methods.fct import FCT


def plan(module):
    """Layers as words, in order."""
    return [
        f"{m.in_features}-{m.out_features}" if isinstance(m, nn.Linear)
        else f"bn{m.num_features}" if isinstance(m, nn.BatchNorm1d) else type(m).__name__
        for m in module.modules() if not list(m.children())
    ]  # fmt: skip


def test_layers_of_appendix_d_1():
    made = Transformation(512, 64, 128, 2048, normalise=False)
    branch = ["256-256", "bn256", "ReLU"]
    assert plan(made.old) == ["512-256", "bn256", "ReLU", *branch]
    assert plan(made.side) == ["64-256", "bn256", "ReLU", *branch]
    assert plan(made.mixer) == [
        "512-2048", "bn2048", "ReLU", "2048-2048", "bn2048", "ReLU", "2048-128"
    ]  # fmt: skip
    assert all(m.bias is not None for m in made.modules() if isinstance(m, nn.Linear))


@pytest.mark.parametrize(
    ("width", "millions"), [(512, 0.79), (1024, 1.9), (2048, 5.7), (4096, 19.6)]
)
def test_capacities_of_table_11(width, millions):
    made = Transformation(128, 128, 128, width, normalise=False)
    count = sum(p.numel() for p in made.parameters()) / 1e6
    digits = 2 if millions < 1 else 1
    assert round(count, digits) == millions
    # By hand: two branches, two layers of the mixer, the output; a batch norm has two a unit.
    hand = 2 * (128 * 256 + 256 + 512 + 256 * 256 + 256 + 512)
    hand += 512 * width + width + 2 * width + width * width + width + 2 * width + width * 128 + 128
    assert count * 1e6 == hand


@pytest.fixture
def moved():
    """A map whose batch norms have seen something."""
    torch.manual_seed(0)
    made = Transformation(6, 4, 5, 16, normalise=False, branch=8)
    made(torch.randn(50, 6) * 3 + 1, torch.randn(50, 4))
    return made.eval()


def test_forward(moved, by_layers):
    old, side = torch.randn(7, 6), torch.randn(7, 4)
    with torch.inference_mode():
        out, kept = moved(old, side)
    assert kept is side
    wanted = by_layers(moved, old.double().numpy(), side.double().numpy())
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-5)
    moved.normalise = True
    with torch.inference_mode():
        out, _ = moved(old, side)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_no_side_information_is_a_vector_of_zeros(by_layers):
    made = Transformation(6, 0, 5, 16, normalise=False, branch=8).eval()
    old = torch.randn(7, 6)
    with torch.inference_mode():
        out, side = made(old, None)
    assert side is None
    wanted = by_layers(made, old.double().numpy(), np.zeros((7, 1)))
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim_side", [0, 4])
def test_side_information_is_there_or_not_as_in_the_fit(dim_side):
    made = Transformation(6, dim_side, 5, 16, normalise=False, branch=8).eval()
    with pytest.raises(ValueError, match="side-information"):
        made(torch.randn(7, 6), None if dim_side else torch.randn(7, 1))


def test_layer_normalisation_in_place_of_batch_normalisation():
    made = Transformation(6, 4, 5, 16, normalise=False, branch=8, norm="layer")
    kinds = [type(m).__name__ for m in made.modules()]
    assert (kinds.count("LayerNorm"), kinds.count("BatchNorm1d")) == (6, 0)
    # In training too, an item stands alone.
    old, side = torch.randn(7, 6), torch.randn(7, 4)
    torch.testing.assert_close(made.train()(old, side)[0][:2], made(old[:2], side[:2])[0])


def test_side_information_alone(by_layers):
    """Section 5.2: the map then says the same whatever the old embedding was."""
    blind, both = (
        Transformation(6, 4, 5, 16, normalise=False, branch=8, inputs=i).eval()
        for i in ("side", "both")
    )
    first, second, side = torch.randn(7, 6), torch.randn(7, 6), torch.randn(7, 4)
    with torch.inference_mode():
        assert torch.equal(blind(first, side)[0], blind(second, side)[0])
        assert not torch.equal(blind(first, side)[0], blind(first, -side)[0])
        assert not torch.equal(both(first, side)[0], both(second, side)[0])
    zeros = by_layers(blind, np.zeros((7, 6)), side.double().numpy())
    np.testing.assert_allclose(blind(first, side)[0].detach(), zeros, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="side-information"):
        Transformation(6, 0, 5, 16, normalise=False, inputs="side")
    with pytest.raises(ValueError, match="side: none"):
        FCT(inputs="side")


def test_directions_in_directions_out():
    """Stored at one update or embedded afterwards: the next map sees them alike."""
    made = Transformation(6, 0, 5, 16, normalise=True, branch=8, normalise_old=True).eval()
    raw = torch.randn(7, 6) * 5
    with torch.inference_mode():
        torch.testing.assert_close(made(raw, None), made(F.normalize(raw), None))
        made.normalise_old = False
        assert not torch.allclose(made(raw, None)[0], made(F.normalize(raw), None)[0])


def test_squared_distance():
    """Summed over dimensions, averaged over items (section 3.3)."""
    old, new = torch.randn(9, 3), torch.randn(9, 3)
    wanted = np.mean([
        sum((float(a) + 1 - float(b)) ** 2 for a, b in zip(x, y, strict=True))
        for x, y in zip(old, new, strict=True)
    ])  # fmt: skip
    assert squared_distance(old + 1, new).item() == pytest.approx(wanted, rel=1e-5)


def classifier(kind):
    torch.manual_seed(1)
    head = Head(kind, 3, [0, 1, 2, 3], scale=4.0, margin=0.3)
    nn.init.normal_(head.weight)
    if head.bias is not None:
        nn.init.normal_(head.bias)
    return head


def shares(head, x):
    """Softmax of the classifier without margin, in float64."""
    weight = head.weight.detach().double().numpy()
    if head.bias is None:
        weight = weight / np.linalg.norm(weight, axis=1, keepdims=True)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        logits = head.scale * x @ weight.T
    else:
        logits = x @ weight.T + head.bias.detach().double().numpy()
    raised = np.exp(logits)
    return raised / raised.sum(axis=1, keepdims=True)


def kl(p, q):
    return (p * np.log(p / q)).sum(axis=1).mean()


@pytest.mark.parametrize("kind", ["softmax", "arcface"])
@pytest.mark.parametrize("loss", ["kl", "reversed-kl"])
def test_divergence_of_what_the_new_classifier_makes_of_both(kind, loss):
    """KL(new || h), and with the two exchanged; the one is not the other (appendix E.1)."""
    head, old, new = classifier(kind), torch.randn(9, 3), torch.randn(9, 3)
    made = FCT(loss=loss).distance(old + 1, new, head)
    p, q = (shares(head, x.double().numpy()) for x in (new, old + 1))
    right, wrong = (kl(p, q), kl(q, p)) if loss == "kl" else (kl(q, p), kl(p, q))
    assert made.item() == pytest.approx(right, rel=1e-5)
    assert made.item() != pytest.approx(wrong, rel=1e-2)


def test_gradient_of_the_divergence():
    head, p, q = classifier("softmax"), torch.randn(4, 3), torch.randn(4, 3, requires_grad=True)
    kl_divergence(head, p, q).backward()
    wanted = slope(
        lambda x: kl(shares(head, p.double().numpy()), shares(head, x)), q.detach().double().numpy()
    )
    np.testing.assert_allclose(q.grad, wanted, rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def pairs():
    rng = torch.Generator().manual_seed(0)
    new = torch.randn(200, 5, generator=rng)
    old = torch.tanh(new @ torch.randn(5, 6, generator=rng)) * 4
    return old, new


@pytest.mark.parametrize(
    ("distance", "precision"), [("cosine", "bf16-mixed"), ("l2", "bf16-mixed"), ("l2", "32-true")]
)
def test_fit(pairs, distance, precision):
    old, new = pairs
    method = FCT(width=32)
    fitted = method.learn(
        Pairs(old, new, distance=distance), map_trainer(precision=precision, steps=90)
    )
    convert, loss = fitted.convert, fitted.curves["map"].loss
    assert loss[-1] < 0.5 * loss[0]
    with torch.inference_mode():
        out, _ = convert(old, None)
    target = F.normalize(new) if distance == "cosine" else new
    own = (out - target).square().sum(1).mean()
    assert own < 0.6 * (target - target.mean(0)).square().sum(1).mean()
    lengths = out.norm(dim=1)
    if distance == "cosine":
        torch.testing.assert_close(lengths, torch.ones(200))
    else:
        assert lengths.std() > 0.01


@pytest.mark.parametrize("loss", ["kl", "reversed-kl"])
def test_fit_through_the_frozen_classifier(loss):
    rng = torch.Generator().manual_seed(0)
    new, head = torch.randn(200, 3, generator=rng), classifier("softmax")
    before = head.weight.detach().clone()
    given = Pairs(new @ torch.randn(3, 6, generator=rng), new, head=head)
    fitted = FCT(width=32, loss=loss).learn(given, map_trainer(steps=100))
    curve = fitted.curves["map"].loss
    assert curve[-1] < 0.5 * curve[0]
    # What the caller holds may still learn, and what is stored is the map alone.
    assert torch.equal(head.weight, before) and head.weight.grad is None
    assert head.weight.requires_grad and head.training
    bare = Transformation(6, 0, 3, 32, normalise=True)
    assert set(fitted.convert.state_dict()) == set(bare.state_dict())


@pytest.mark.parametrize("kind", [None, "softmax", "arcface"])
@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_what_is_normalised(pairs, kind, distance):
    """Appendix D.7: the output, for a margin classifier, where directions are compared."""
    old, new = pairs
    heads = [None if kind is None else Head(kind, len(x[0]), [0, 1]) for x in (old, new)]
    wanted = distance == "cosine" and kind != "softmax"
    for chained in (False, True):
        given = Pairs(
            old, new, distance=distance, old_head=heads[0], head=heads[1], chained=chained
        )
        convert = FCT(width=8).learn(given, map_trainer(steps=2)).convert
        # Lengths of fresh embeddings say something, so only a chain does without them.
        assert (convert.normalise, convert.normalise_old) == (wanted, wanted and chained)


def test_statistics_are_frozen_from_half_way(pairs):
    old, new = pairs
    convert = FCT(width=32).learn(Pairs(old, new), map_trainer(steps=40)).convert
    norms = [m for m in convert.modules() if isinstance(m, nn.BatchNorm1d)]
    assert [int(m.num_batches_tracked) for m in norms] == [20] * 6


def test_side_information_is_used(pairs):
    """Old vectors that say nothing, side-information that says everything."""
    _, new = pairs
    blind = Pairs(torch.randn(200, 6), new, side=2 * new)
    fitted = FCT(width=32, side="simclr").learn(blind, map_trainer(steps=90))
    convert, curves = fitted.convert, fitted.curves
    assert curves["map"].loss[-1] < 0.3 * curves["map"].loss[0]
    assert convert.dim_side == 5


def test_a_map_of_side_information_where_a_later_update_follows(pairs, tmp_path):
    """Section 4.4: g is a network of its own, fitted with squared error to the new side."""
    old, new = pairs
    side = torch.randn(200, 4, generator=torch.Generator().manual_seed(1))
    wanted = torch.tanh(torch.cat([old, side], dim=1)[:, 3:10]) * 2
    given = Pairs(old, new, side=side, new_side=wanted)
    method = FCT(width=32, side="simclr")
    fitted = method.learn(given, map_trainer(steps=90))
    made = fitted.convert
    assert isinstance(made, WithSide) and set(fitted.curves) == {"map", "side"}
    with torch.inference_mode():
        vectors, carried = made(old, side)
    # Not normalised, though the embedding is.
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(200))
    spread = (wanted - wanted.mean(0)).square().sum(1).mean()
    assert (carried - wanted).square().sum(1).mean() < 0.4 * spread
    # h is the one of an update without a successor: g takes nothing from it.
    alone = method.learn(Pairs(old, new, side=side), map_trainer(steps=90)).convert
    assert isinstance(alone, Transformation)
    states = [m.state_dict() for m in (alone, made.h, made.g)]
    assert all(torch.equal(v, states[1][k]) for k, v in states[0].items())
    assert not torch.equal(*(s["old.0.weight"] for s in states[1:]))
    save_module(made, tmp_path / "convert.safetensors")
    again = load_module(tmp_path / "convert.safetensors").eval()
    with torch.inference_mode():
        assert torch.equal(again(old, side)[1], carried)


def test_side_information_by_squared_error_under_any_loss(pairs):
    """Only h goes through the classifier: side-information has none."""
    old, new = pairs
    given = Pairs(old, new, side=old[:, :4], new_side=old[:, 2:5], head=Head("softmax", 5, [0, 1]))
    made = [
        FCT(width=8, side="simclr", loss=loss).learn(given, map_trainer(steps=5))
        for loss in ("mse", "kl")
    ]
    assert made[0].curves["side"].loss == made[1].curves["side"].loss
    assert made[0].curves["map"].loss != made[1].curves["map"].loss
