"""Fitting a map on pairs: batches, schedule, frozen statistics, kills."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from benchmark.contract.maps import fit_map
from benchmark.models.module import Portable
from benchmark.training import loop
from benchmark.training.loop import rate


class Map(Portable):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return self.linear(self.norm(x)).float()


@pytest.fixture(scope="module")
def pairs():
    rng = torch.Generator().manual_seed(0)
    old = torch.randn(50, 4, generator=rng) + torch.arange(50)[:, None] / 10
    return old, old @ torch.randn(4, 4, generator=rng)


def squared(module, old, new):
    return (module(old) - new).square().sum(1).mean()


def fit_rows(make, loss, tensors, trainer, **options):
    """The same pairs in every epoch."""
    return fit_map(make, loss, lambda _: tensors, len(tensors[0]), trainer, **options)


OPTIONS = {"lr": 0.05, "weight_decay": 0.0, "warmup": 0.1}


def same(a, b):
    return all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())


def test_it_fits(pairs, trainer):
    made = trainer(transform_steps=200, transform_batch=25)
    module, curves = fit_rows(lambda: Map(4), squared, pairs, made, **OPTIONS)
    assert curves["map"].loss[-1] < 0.05 * curves["map"].loss[0]
    assert not module.training and not module.norm.training


def test_pairs_stay_pairs_and_none_is_handed_on(trainer):
    seen = []

    def loss(module, rows, nothing, doubled):
        assert nothing is None
        assert torch.equal(2 * rows, doubled)
        seen.append(len(rows))
        return module(rows).square().mean()

    rows = torch.randn(50, 4)
    fit_rows(lambda: Map(4), loss, (rows, None, 2 * rows), trainer(), **OPTIONS)
    assert seen == [16] * 12


@pytest.mark.parametrize(("n", "batch"), [(16, 16), (50, 16), (400, 16), (20, 3)])
def test_statistics_stay_from_half_way(n, batch, trainer):
    """The steps may be many epochs or a part of one."""
    modes, counts = [], []

    def loss(module, x):
        out = module(x)
        modes.append((module.norm.training, module.linear.training))
        counts.append(int(module.norm.num_batches_tracked))
        return out.square().mean()

    made = trainer(transform_steps=20, transform_batch=batch)
    module, _ = fit_rows(
        lambda: Map(4), loss, (torch.randn(n, 4),), made, freeze_norm=0.5, **OPTIONS
    )
    assert modes == [(True, True)] * 10 + [(False, True)] * 10
    assert counts == [*range(1, 11), *[10] * 10]
    assert module.norm.num_batches_tracked == 10


def test_statistics_move_to_the_end_unless_asked(trainer):
    module, _ = fit_rows(
        lambda: Map(4), lambda m, x: m(x).square().mean(), (torch.randn(50, 4),), trainer(),
        **OPTIONS,
    )  # fmt: skip
    assert module.norm.num_batches_tracked == 12


def test_adam_with_the_schedule(trainer):
    """One weight, a slope of one: Adam moves by the rate, so its path shows the schedule."""

    class One(Portable):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(()))

    places = []

    def loss(module, x):
        places.append(module.w.item())
        return module.w * 1.0

    made = trainer(transform_steps=10, transform_batch=4)
    module, _ = fit_rows(
        One, loss, (torch.zeros(8, 1),), made, lr=0.1, weight_decay=0.0, warmup=0.2
    )
    places.append(module.w.item())
    moved = [a - b for a, b in pairwise(places)]
    wanted = [0.1 * rate(step / 10, "cosine", 0.2) for step in range(10)]
    assert moved == pytest.approx(wanted, abs=1e-5)


def test_a_kill_changes_nothing(pairs, trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_SAVE_EVERY_S", 0.0)
    calls = 0

    def fit(folder=None, kill=None):
        nonlocal calls
        calls = 0

        def loss(module, old, new):
            nonlocal calls
            calls += 1
            if calls == kill:
                raise KeyboardInterrupt
            return squared(module, old, new)

        made = trainer(folder=folder)
        return fit_rows(lambda: Map(4), loss, pairs, made, freeze_norm=0.5, **OPTIONS)

    wanted, curves = fit()
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, kill=8)
    got, curves_again = fit(tmp_path)
    assert calls == 6  # two epochs of three steps were kept
    assert same(got, wanted) and curves == curves_again


def test_seed_and_global_stream(pairs, trainer):
    torch.manual_seed(1)
    a, _ = fit_rows(lambda: Map(4), squared, pairs, trainer(), **OPTIONS)
    torch.manual_seed(2)
    b, _ = fit_rows(lambda: Map(4), squared, pairs, trainer(), **OPTIONS)
    c, _ = fit_rows(lambda: Map(4), squared, pairs, trainer(seed=9), **OPTIONS)
    assert same(a, b) and not same(a, c)


def test_each_epoch_has_rows_of_its_own(trainer):
    """Twelve steps of 16 of 50 pairs: three an epoch; the batch is of that epoch's rows."""
    asked, seen = [], []

    def rows(epoch):
        asked.append(epoch)
        return (torch.full((50, 4), float(epoch)), None)

    def loss(module, x, nothing):
        assert nothing is None
        seen.append(x[0, 0].item())
        return module(x).square().mean()

    fit_map(lambda: Map(4), loss, rows, 50, trainer(), **OPTIONS)
    assert asked == [0, 1, 2, 3]
    assert seen == [float(epoch) for epoch in range(4) for _ in range(3)]
