"""AdvBCT: reversal, discriminator and elastic border, worked out in float64."""

import copy
import math

import numpy as np
import pytest
import torch
from support.losses import double, new_head, slope, unit

from methods.advbct import AdvBCT, Boundary, largest_usual, reversed_gradient


def spheres(features, labels, n_classes):
    """Centre and radius of each class, by the published recipe, element by element."""
    centres, radii = [], []
    for c in range(n_classes):
        own = unit(features[labels == c])
        centre = own.mean(axis=0)
        r = sorted(float(np.sqrt(((o - centre) ** 2).sum())) for o in own)
        if len(r) >= 4:
            q1, q3 = r[int(len(r) / 4)], r[int(3 * len(r) / 4)]
            r = [v for v in r if q1 - 1.5 * (q3 - q1) <= v <= q3 + 1.5 * (q3 - q1)]
        centres.append(centre)
        radii.append(max(r))
    return np.array(centres), np.array(radii)


def border_loss(new, labels, centres, radii, w, threshold):
    found = []
    for f, y in zip(unit(new), labels, strict=True):
        share = 1 / (1 + math.exp(-w[y])) * abs(radii[y] - threshold)
        rho = radii[y] + share if radii[y] < threshold else radii[y] - share
        beyond = math.sqrt(((f - centres[y]) ** 2).sum()) - rho
        if beyond > 0:
            found.append(beyond)
    return sum(found) / len(found) if found else 0.0


def discriminator_loss(net, new, old):
    """Cross-entropy of telling new (0) from old (1), each in a batch norm of its own."""
    p = {k: v.detach().double().numpy() for k, v in net.state_dict().items()}
    total = 0.0
    for answer, features in enumerate((new, old)):
        hidden = features @ p["0.weight"].T + p["0.bias"]
        hidden = (hidden - hidden.mean(0)) / np.sqrt(hidden.var(0) + net[1].eps)
        hidden = np.maximum(hidden * p["1.weight"] + p["1.bias"], 0)
        logits = hidden @ p["3.weight"].T + p["3.bias"]
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        total -= log_p[:, answer].mean()
    return total


@pytest.fixture
def case(make_job, make_batch):
    job = make_job()
    # Some classes wider than T, some narrower: both branches of the border.
    job.old.features[job.data.labels == 1] += 12 * torch.ones(6)
    torch.manual_seed(0)
    return job, make_batch(job, size=8), new_head()


@pytest.mark.parametrize(("progress", "threshold"), [(0.0, 1.0), (0.3, 0.7), (0.9, 1.0)])
def test_loss_and_gradient(case, arcface, progress, threshold):
    job, batch, head = case
    batch.progress = progress
    method = AdvBCT(threshold=threshold, adversarial=0.6, border=0.8)
    state = method.prepare(job)
    loss = method.loss(batch, head, state)
    labels = batch.labels.tolist()
    centres, radii = spheres(job.old.features.double().numpy(), job.data.labels.numpy(), 5)
    w = state.boundary.give.detach().double().numpy()
    old = batch.old.double().numpy()
    weight = 0.6 * (1 - progress)
    strength = 2 / (1 + math.exp(-10 * progress)) - 1

    def plain(new):
        beyond = border_loss(new, labels, centres, radii, w, threshold)
        return arcface(head, new, labels) + 0.8 * beyond

    def told(new):
        return discriminator_loss(state.discriminator, new, old)

    new = double(batch.new)
    assert border_loss(new, labels, centres, radii, w, threshold) > 0
    assert loss.item() == pytest.approx(plain(new) + weight * told(new), rel=1e-4)
    loss.backward()
    # What raises the discriminator's loss is descended by the features in the other direction.
    wanted = slope(plain, new) - strength * weight * slope(told, new)
    np.testing.assert_allclose(batch.new.grad.numpy(), wanted, rtol=5e-3, atol=5e-4)


def test_the_discriminator_itself_learns_unreversed(case):
    job, batch, head = case
    batch.progress = 0.5
    state = AdvBCT().prepare(job)
    AdvBCT(border=0.0).loss(batch, head, state).backward()
    net, place = state.discriminator, (1, 3)
    values = []
    for sign in (1, -1):
        moved = copy.deepcopy(net)
        with torch.no_grad():
            moved[3].weight[place] += sign * 1e-3
        args = (double(batch.new), batch.old.double().numpy())
        values.append(discriminator_loss(moved, *args))
    expected = 0.5 * (values[0] - values[1]) / 2e-3
    assert net[3].weight.grad[place].item() == pytest.approx(expected, rel=1e-2, abs=1e-5)


def test_reversal():
    x = torch.randn(3, 2, requires_grad=True)
    y = reversed_gradient(x, 0.4)
    assert torch.equal(x, y)
    y.backward(torch.ones(3, 2))
    torch.testing.assert_close(x.grad, torch.full((3, 2), -0.4))


def test_rho_is_the_formula_on_both_sides():
    border = Boundary(torch.randn(20, 4), torch.arange(20) % 2, 2, 1.0)
    border.radius.copy_(torch.tensor([0.4, 1.5]))
    with torch.no_grad():
        border.give.copy_(torch.tensor([0.3, -1.2]))
    s = [1 / (1 + math.exp(-0.3)), 1 / (1 + math.exp(1.2))]
    wanted = [0.4 + s[0] * 0.6, 1.5 - s[1] * 0.5]
    np.testing.assert_allclose(border.elastic().detach().numpy(), wanted, rtol=1e-6)


def test_the_border_gives_way_where_that_lowers_the_loss():
    border = Boundary(torch.randn(20, 4), torch.arange(20) % 2, 2, 1.0)
    border.radius.copy_(torch.tensor([0.1, 1.5]))
    border(-torch.cat([border.centre, border.centre]), torch.tensor([0, 1, 0, 1])).backward()
    # Narrow: a larger w widens it. Wide: a larger w narrows it, unless nothing is beyond.
    assert border.give.grad[0] < 0 <= border.give.grad[1]


def test_far_features_do_not_stretch_the_radius():
    usual = [1.0, 1.1, 1.2, 1.3, 1.4]
    assert largest_usual(torch.tensor([*usual, 9.0])) == pytest.approx(1.4)
    assert largest_usual(torch.tensor([*usual, 0.1])) == pytest.approx(1.4)
    assert largest_usual(torch.tensor([1.0, 1.1, 9.0])) == pytest.approx(9.0), "too few to judge"


def test_trap_the_mean_of_no_violator(case):
    job, batch, _ = case
    border = AdvBCT().prepare(job).boundary
    batch.new = border.centre[batch.labels].clone().requires_grad_(True)
    value = border(batch.new * 3, batch.labels)
    border.radius.fill_(2.0)
    value = border(batch.new * 3, batch.labels)
    value.backward()
    assert value.item() == 0.0 and torch.equal(batch.new.grad, torch.zeros_like(batch.new))


def test_features_inside_are_not_averaged_in(case):
    border = AdvBCT().prepare(case[0]).boundary
    border.radius.fill_(0.5)
    inside = border.centre + 0.0
    inside = inside / inside.norm(dim=1, keepdim=True)
    border.centre.copy_(inside)
    labels = torch.arange(5)
    alone = border(-inside[:1], labels[:1])
    among = border(torch.cat([-inside[:1], inside[1:]]), labels)
    torch.testing.assert_close(alone, among)


def test_a_class_of_one_image_has_no_border():
    border = Boundary(torch.randn(5, 3), torch.tensor([0, 0, 0, 0, 1]), 2, 1.0)
    far = -border.centre[1:] * 5
    assert border(far, torch.tensor([1])).item() == 0.0


def test_trap_one_batch_norm_shows_mean_and_length(case):
    """Moved or stretched as a whole, new features are no easier to tell: shape alone counts."""
    job, batch, head = case
    method, state = AdvBCT(border=0.0), AdvBCT().prepare(job)
    state.eval()  # what is left is the batch norm's own doing
    state.discriminator.train()
    batch.progress = 0.5
    before = method.loss(batch, head, state) - head(batch.new, batch.labels)
    batch.new = batch.new.detach() * 3 + 20
    after = method.loss(batch, head, state) - head(batch.new, batch.labels)
    assert after.item() == pytest.approx(before.item(), rel=1e-3)


def test_progress_moves_step_by_step(toy_job):
    seen = []

    class Watched(AdvBCT):
        def loss(self, batch, head, state):
            seen.append(batch.progress)
            return super().loss(batch, head, state)

    Watched().update(toy_job())
    np.testing.assert_allclose(seen, np.arange(len(seen)) / len(seen), atol=1e-9)
    assert len(set(seen)) == 8
