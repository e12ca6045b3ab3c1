"""The batch-hard triplet loss by plain loops, and batches of P classes by K images."""

import pytest
import torch
from support.objects import changed
from support.toy_runs import ONE_EPOCH, run_toy

from benchmark import run
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.training import embedding
from benchmark.training.loop import share
from benchmark.training.triplet import balanced, batch_hard


def by_loops(x, labels, margin):
    losses = []
    for i in range(len(x)):
        gap = [(x[i] - x[j]).norm().item() for j in range(len(x))]
        fellows = [g for j, g in enumerate(gap) if j != i and labels[j] == labels[i]]
        strangers = [g for j, g in enumerate(gap) if labels[j] != labels[i]]
        if fellows and strangers:
            losses.append(max(0.0, margin + max(fellows) - min(strangers)))
    return sum(losses) / len(losses) if losses else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_batch_hard(seed):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(24, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(5, (24,), generator=rng)
    loss = batch_hard(x, labels, 0.7)
    assert loss.item() == pytest.approx(by_loops(x, labels, 0.7))
    loss.backward()
    assert x.grad.isfinite().all() and x.grad.abs().sum() > 0


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [0, 0, 1, 1, 2], [7]])
def test_an_image_without_a_fellow_or_a_stranger_is_an_error(labels):
    """Its loss is zero whatever the model: a training would go on, and learn nothing of it."""
    with pytest.raises(BenchError, match=r"two images or more of each.*of class") as caught:
        batch_hard(torch.randn(len(labels), 2), torch.tensor(labels))
    assert "\n" not in str(caught.value)


def market1501() -> tuple[int, int]:
    """Images a batch and of each class, as the protocol trains on its own track."""
    setup = make_request(["l2"], "market1501", "market1501", without_data=True).setup
    return setup.track.recipe.batch_size, setup.models[-1].per_class


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("setting", [(16, 2), (24, 3), market1501()])
def test_devices_get_whole_hands(world, setting):
    """Dealt singly, K images on K devices leave each image without a fellow."""
    batch, per_class = setting
    rng = torch.Generator().manual_seed(3)
    labels = torch.arange(40).repeat(9)
    for rows in balanced(labels, batch, per_class, rng).split(batch):
        shares = [share(rows, per_class, rank, world) for rank in range(world)]
        assert torch.cat(shares).sort()[0].equal(rows.sort()[0])
        assert {len(mine) for mine in shares} == {batch // world}
        for mine in shares:
            classes, counts = labels[mine].unique(return_counts=True)
            assert (counts == per_class).all() and len(classes) >= 2
            assert batch_hard(torch.zeros(len(mine), 2), labels[mine]).item() == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "said"), [(16, None), (12, "a multiple of 8"), (8, "fewer dev")])
def test_two_devices_train_with_triplets(tmp_path, batch, said):
    settings = ONE_EPOCH | {"recipe.batch_size": batch, "new.per_class": 4}
    options = {"store": tmp_path / "s", "compute": Compute("cpu", devices=2), "out": tmp_path}
    if said is None:
        run(["l2"], "market1501", "toy", settings=settings, **options)
    else:
        with pytest.raises(BenchError, match=said):
            run(["l2"], "market1501", "toy", settings=settings, **options)


def test_equal_features_have_a_gradient():
    x = torch.zeros(4, 2, requires_grad=True)
    batch_hard(x, torch.tensor([0, 0, 1, 1])).backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("seed", range(3))
def test_every_batch_has_p_classes_and_k_images_of_each(seed):
    rng = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.full((n,), c) for c, n in enumerate((2, 4, 5, 9, 13, 8, 7))])
    labels = labels[torch.randperm(len(labels), generator=rng)]
    rows = balanced(labels, 12, 4, rng)
    assert len(rows) >= len(labels) and len(rows) % 12 == 0
    for batch in rows.split(12):
        classes, counts = labels[batch].unique(return_counts=True)
        assert len(classes) == 3 and (counts == 4).all()
        for c in classes:
            mine = batch[labels[batch] == c]
            assert len(mine.unique()) == min(4, int((labels == c).sum()))
    again = balanced(labels, 12, 4, torch.Generator().manual_seed(9))
    assert again.equal(balanced(labels, 12, 4, torch.Generator().manual_seed(9)))
    assert not again.equal(balanced(labels, 12, 4, torch.Generator().manual_seed(8)))


@pytest.mark.parametrize(("batch", "per_class"), [(10, 4), (4, 4), (32, 4)])
def test_batches_that_cannot_be_made(batch, per_class):
    labels = torch.arange(5).repeat(6)
    with pytest.raises(
        BenchError, match=r"batch_size: .* up to 20, .*2 to 5 classes, got batches of"
    ):
        balanced(labels, batch, per_class, torch.Generator())


def test_triplets_judge_what_goes_into_the_neck_and_the_rest_what_comes_out(
    data, spec, trainer, monkeypatch
):
    """Luo et al., section 3.5: with both on one vector, triplets collapse a fresh network."""
    judged, seen = [], []

    def recorded(features, labels):
        judged.append(features.detach())
        return batch_hard(features, labels)

    def plain(batch, head, state):
        seen.append(batch.new.detach())
        return head(batch.new, batch.labels)

    monkeypatch.setattr(embedding, "batch_hard", recorded)
    with_triplets = changed(spec, head="softmax", triplet=1.0, per_class=4)
    made = trainer()
    encoder, head = embedding.new_model(with_triplets, data, made)
    embedding.train_embedding(encoder, head, data, made, loss=plain, spec=with_triplets)
    for bare, new in zip(judged, seen, strict=True):
        assert new.mean(0).abs().max() < 1e-5, "standardised over the batch"
        spread = (bare - bare.mean(0)) / (bare.var(0, unbiased=False) + 1e-5).sqrt()
        scale = (new * spread).mean(0) / spread.square().mean(0)  # the neck's own, near 1
        torch.testing.assert_close(new, spread * scale, rtol=1e-3, atol=1e-4)
    assert (judged[0] - seen[0]).abs().max() > 0.1
    assert encoder.neck.bias.eq(0).all() and not encoder.neck.bias.requires_grad
    without, _ = embedding.new_model(spec, data, made)
    assert without.neck is None and "neck" not in without.arguments


@pytest.mark.parametrize(("method", "judged"), [
    ("asymmetric", 0), ("csd", 0), ("l2", 1), ("d-simplex", 1),
])  # fmt: skip
def test_methods_without_labels_have_no_triplets(tmp_path, monkeypatch, method, judged):
    """They learn from the old vectors of the same images alone, as their papers say."""
    calls = []

    def recorded(features, labels):
        calls.append(len(labels))
        return batch_hard(features, labels)

    monkeypatch.setattr(embedding, "batch_hard", recorded)
    run_toy(["independent"], tmp_path, "market1501", **ONE_EPOCH)
    alone = len(calls)
    run_toy([method], tmp_path, "market1501", **ONE_EPOCH)
    assert alone > 0 and (len(calls) > alone) == judged


def test_market1501_protocol(tmp_path):
    """The new model, alone or by any method, is trained with triplets; the old one without."""
    records = run_toy(["mixbct", "l2"], tmp_path, "market1501", **ONE_EPOCH)
    for record in records.values():
        assert (record.models["old"].triplet, record.models["new"].triplet) == (0.0, 1.0)
        assert {m.head for m in record.models.values()} == {"softmax"}
        assert set(record.scores["new/old"]) >= {"cmc_at_1", "cmc_at_10", "map", "minp"}
        assert record.counts["new/old"]["n_junk"] == 0
    without = run_toy(["l2"], tmp_path, "market1501", **{"new.triplet": 0.0}, **ONE_EPOCH)["l2"]
    assert without.scores["old/old"] == records["l2"].scores["old/old"]
    assert without.scores["new/new"] != records["l2"].scores["new/new"]
