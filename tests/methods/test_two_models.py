"""Methods that embed queries by both models, or map them: identities, and equations in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.toy_runs import ONE_EPOCH, run_toy
from support.upgrades import unit

from benchmark.config import registry
from benchmark.config.recipes import Recipe
from benchmark.contract import Between, Conversion, Pairs, Trainer, chosen_share
from benchmark.errors import BenchError
from benchmark.metrics import backfill_curves
from benchmark.models.parts import Affine
from benchmark.ranking import ranks
from benchmark.records.consistency import contradictions


@pytest.fixture(scope="module", params=[12, 9, 15], ids=["same", "shorter", "longer"])
def arrays(request):
    """Pairs of items of 25 classes by an old model of 12 numbers, and a new, better one."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 25
    true = rng.normal(size=(25, 12))[labels]
    old = true + rng.normal(scale=1.2, size=true.shape)
    new = (true + rng.normal(scale=0.5, size=true.shape)) @ rng.normal(size=(12, request.param))
    return old.astype(np.float32), (new + 0.1).astype(np.float32), labels


def fitted(label, arrays, params=None, **more):
    return registry.method(label, params).fit(*arrays, **more)


def turned(old, new):
    """V R, of unit length, as equations 1 and 40 say, written apart."""
    u, v = unit(old), unit(new)
    left, _, right = np.linalg.svd(v.T @ u, full_matrices=False)
    return unit(v @ left @ right)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_slerp_by_its_equation(arrays, share):
    old, new, _ = arrays
    u, v = unit(old), turned(old, new)
    angle = np.arccos((u * v).sum(1, keepdims=True))
    expected = (np.sin((1 - share) * angle) * u + np.sin(share * angle) * v) / np.sin(angle)
    found = fitted("slerp", arrays, {"share": share}).view(new, old)
    assert found == pytest.approx(expected, abs=1e-5)
    flat = fitted("slerp:nlerp", arrays, {"share": share}).view(new, old)
    assert flat == pytest.approx(unit((1 - share) * u + share * v), abs=1e-5)
    if share == 0.5:
        assert found == pytest.approx(fitted("slerp:midpoint", arrays).view(new, old), abs=0)


def test_the_share_is_chosen_where_it_serves():
    """A useless new model leaves the old query, a useless old one the new query."""
    rng = np.random.default_rng(1)
    labels = np.arange(600) % 30
    good = rng.normal(size=(30, 12))[labels] + rng.normal(scale=0.4, size=(600, 12))
    noise = rng.normal(size=(600, 12))
    shares = []
    for new in (noise, good @ rng.normal(size=(12, 12))):
        mixed = (good + noise).astype(np.float32), new.astype(np.float32), labels
        shares.append(fitted("slerp", mixed).parts["joint_view"].share)
    assert shares[0] < 0.3 < 0.6 < shares[1]


def test_views_of_one_item_do_not_choose_the_share():
    """The old model, which tells items apart and no classes, finds each item's other view."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(200) % 10
    new = torch.randn(10, 12, generator=draw)[labels]
    new = new + 0.3 * torch.randn(200, 12, generator=draw)
    old = torch.randn(200, 12, generator=draw)

    def views(of):
        return of.repeat(2, 1) + 0.01 * torch.randn(400, 12, generator=draw)

    pairs = Pairs(views(old), views(new), labels.repeat(2), views=2)
    assert chosen_share(pairs, 0.3, "slerp", 0) > 0.6
    assert chosen_share(replace(pairs, views=1), 0.3, "slerp", 0) == 0.0


def test_only_cosine_has_a_circle(arrays):
    old, new, _ = arrays
    with pytest.raises(BenchError, match="needs cosine, got l2"):
        fitted("slerp", arrays, distance="l2")
    with pytest.raises(BenchError, match="old_queries: slerp needs queries by the old model"):
        fitted("slerp:midpoint", arrays).view(new)
    with pytest.raises(BenchError, match="old_queries: expected 400 as queries, got 3"):
        fitted("slerp:midpoint", arrays).view(new, old[:3])


def test_qdc_takes_the_mean_drift_away(arrays):
    old, new, _ = arrays
    if old.shape != new.shape:
        with pytest.raises(BenchError, match="needs embeddings of one size, got 12 and"):
            fitted("qdc", arrays)
        return
    drift = new.astype(np.float64).mean(0) - old.astype(np.float64).mean(0)
    assert fitted("qdc", arrays).view(new) == pytest.approx(new - drift, abs=1e-5)


@pytest.mark.parametrize(
    "map", ["procrustes", "low-rank", pytest.param("mlp", marks=pytest.mark.slow)]
)
def test_drift_adapter_scales_each_dimension_of_its_map(arrays, map):
    old, new, _ = arrays
    plain = {"procrustes": "procrustes:query", "low-rank": "low-rank:query"}
    params = {"rank": 5} if map == "low-rank" else {}
    without = fitted("drift-adapter", arrays, {"map": map, "scaling": False, **params}).view(new)
    alone = fitted(plain.get(map, "residual-mlp:query"), arrays, params).view(new)
    y = unit(old)
    assert without == pytest.approx(alone, abs=1e-6)
    factor = (without * y).sum(0) / (without.astype(np.float64) ** 2).sum(0)
    scaled = fitted("drift-adapter", arrays, {"map": map, **params}).view(new)
    assert scaled == pytest.approx(without * factor, abs=1e-5)
    assert ((scaled - y) ** 2).sum() <= ((without - y) ** 2).sum()


def test_drift_adapter_leaves_a_rotation_as_it_is(arrays):
    """The paper has S after the other two maps."""
    found = fitted("drift-adapter:procrustes", arrays).view(arrays[1])
    assert found == pytest.approx(fitted("procrustes:query", arrays).view(arrays[1]), abs=1e-6)


def test_drift_adapter_sees_the_views_of_each_epoch(arrays, monkeypatch):
    """As the map that it trains does; a part of the pairs is fixed."""
    old, new, _ = arrays
    epochs: list[int] = []
    pairs = Pairs(torch.from_numpy(old), torch.from_numpy(new))
    pairs = replace(pairs, renew=lambda epoch: epochs.append(epoch) or pairs)
    trainer = Trainer(Recipe(epochs=1, transform_steps=4, transform_batch=200), 0)
    registry.method("drift-adapter").fit_pairs(pairs, trainer)
    assert epochs == [0, 1]
    registry.method("drift-adapter", {"pairs": 100}).fit_pairs(pairs, trainer)
    assert epochs == [0, 1]


def test_drift_adapter_uses_the_pairs_it_may(arrays):
    _, new, _ = arrays
    few = {"map": "procrustes", "pairs": 30}
    views = [
        fitted("drift-adapter", arrays, params).view(new)
        for params in (few, few, {**few, "pairs": 400}, {"map": "procrustes"})
    ]
    assert np.array_equal(views[0], views[1])
    assert not np.allclose(views[0], views[2], atol=1e-3)
    assert views[2] == pytest.approx(views[3], abs=1e-6)


def test_one_cluster_is_the_map_of_all(arrays):
    old, new, _ = arrays
    for label, one in (("local-drift", "procrustes:query"), ("local-drift:gallery", "procrustes")):
        single = fitted(label, arrays, {"clusters": 1})
        alone = fitted(one, arrays)
        assert single.view(new) == pytest.approx(alone.view(new), abs=1e-5)
        assert single.convert(old) == pytest.approx(alone.convert(old), abs=1e-5)


def test_the_published_adapter_turns_about_the_origin():
    """Of one cluster it is the rotation without means; of few pairs no map of all takes over."""
    rng = np.random.default_rng(4)
    old = (rng.normal(size=(60, 6)) + 2).astype(np.float32)
    new = (rng.normal(size=(60, 6)) - 1).astype(np.float32)
    pairs = old, new, None
    u, v = unit(old.astype(np.float64)), unit(new.astype(np.float64))
    left, _, right = np.linalg.svd(u.T @ v)
    one = fitted("mixed-adapter", pairs, {"clusters": 1}).convert(old)
    np.testing.assert_allclose(one, u @ (left @ right), atol=1e-5)
    assert (
        np.abs(one - fitted("local-drift:gallery", pairs, {"clusters": 1}).convert(old)).max() > 0.1
    )
    routed = fitted("mixed-adapter", pairs, {"clusters": 20}).parts["convert"].map.map
    centres = routed.centre.detach().double().numpy()
    nearest = ((u[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    small = [k for k in range(20) if 0 < (nearest == k).sum() < 6]
    assert small and not routed.bias.any()
    for k in small:
        own = nearest == k
        left, _, right = np.linalg.svd(v[own].T @ u[own])
        gram = routed.weight[k].detach().double().numpy()
        got, best = np.trace(gram @ u[own].T @ v[own]), np.linalg.svd(u[own].T @ v[own])[1].sum()
        assert got == pytest.approx(best, rel=1e-5), "the least error of its own pairs"


@pytest.mark.parametrize("path", ["slerp", "nlerp"])
def test_half_way_between_opposite_queries_the_old_one_answers(path):
    """Their sum is no direction, and a query of zeros would find nothing."""
    old = torch.nn.functional.normalize(
        torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    )
    same = Affine.of(torch.eye(8), torch.zeros(8))
    found = Between(same, 0.5, path)(-old, old)
    torch.testing.assert_close(found, old)
    for share, expected in ((0.0, old), (1.0, -old)):
        torch.testing.assert_close(
            Between(same, share, path)(-old, old), expected, atol=1e-3, rtol=0
        )
    mixed = torch.cat([-old[:1], old[1:2].roll(1, dims=1)])
    found = Between(same, 0.5, path)(mixed, old[:2])
    torch.testing.assert_close(found[0], old[0])
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))


def test_local_drift_mixes_maps_by_cosine():
    """Two clusters turned apart: each has its own map, and a vector between them some of both."""
    rng = np.random.default_rng(0)
    place = np.repeat([[5.0, 0, 0], [0, 5.0, 0]], 100, axis=0)
    new = place + rng.normal(size=place.shape)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
    u = unit(new)
    old = np.concatenate([u[:100] @ turns[0], u[100:] @ turns[1]])
    pairs = old.astype(np.float32), new.astype(np.float32), None
    found = fitted("local-drift", pairs, {"clusters": 2}).view(pairs[1])
    assert found == pytest.approx(unit(old), abs=0.05)
    routed = fitted("local-drift", pairs, {"clusters": 2}).parts["query_view"].map
    x = unit([[1.0, 1.0, 0.2]])
    centre, weight, bias = (
        np.asarray(p.detach(), np.float64) for p in (routed.centre, routed.weight, routed.bias)
    )
    share = np.exp((x @ unit(centre).T)[0] / 0.1)
    expected = sum(
        w * (a @ x[0] + b) for w, a, b in zip(share / share.sum(), weight, bias, strict=True)
    )
    view = fitted("local-drift", pairs, {"clusters": 2}).view(x.astype(np.float32))
    assert view[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("label", ["rank-merge", "rrf", "score-merge", "score-merge:min-max"])
def test_ends_of_backfilling_are_the_old_and_the_new_model(arrays, label, tmp_path):
    old, new, labels = arrays
    fitted(label, arrays).save(tmp_path / "kept")
    kept = Conversion.load(tmp_path / "kept")
    order = np.random.default_rng(0).permutation(400)
    queries = kept.view(new, old)
    assert np.array_equal(queries, old)
    ids = np.arange(400)
    result = backfill_curves.curves(
        queries, kept.convert(old), new, new, labels, labels, order, points=3, query_ids=ids,
        gallery_ids=ids, merge=kept.merge,
    )  # fmt: skip
    for point, x in ((0, old), (-1, new)):
        alone = ranks.rank(x, x, labels, labels, query_ids=ids, gallery_ids=ids)
        at = backfill_curves.at(result, point)
        np.testing.assert_array_equal(at.first_rank, alone.first_rank)


def item_scores(vectors):
    table = unit(vectors) @ unit(vectors).T
    return table[np.triu_indices(len(vectors), 1)]


def test_scales_of_scores_by_their_formulas(arrays):
    old, new, _ = arrays
    a, b = item_scores(old), item_scores(new)
    z = fitted("score-merge:z-score", arrays).merge.scale(a)
    assert z == pytest.approx((a - a.mean()) / a.std() * b.std() + b.mean(), abs=1e-5)
    ends = fitted("score-merge:min-max", arrays).merge.scale(a)
    expected = (a - a.min()) / np.ptp(a) * np.ptp(b) + b.min()
    assert ends == pytest.approx(expected, abs=1e-5)


def test_the_isotonic_scale_is_the_best_ascending_one(arrays):
    """Against plain pooling of adjacent violators, and scores keep the order they had."""
    old, new, _ = arrays
    a, b = item_scores(old), item_scores(new)
    pools = []
    for value in b[np.argsort(a, kind="stable")]:
        pools.append([value, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (x, n), (y, m) = pools[-2:]
            pools[-2:] = [[(n * x + m * y) / (n + m), n + m]]
    expected = np.repeat([mean for mean, _ in pools], [n for _, n in pools])
    scale = fitted("score-merge", arrays).merge.scale
    found = scale(np.sort(a))
    assert np.abs(found - expected).mean() < 0.01
    places = np.linspace(a.min(), a.max(), 50)
    assert (np.diff(scale(places)) > 0).all()


def test_parts_that_are_no_merge_are_refused(arrays, tmp_path):
    from benchmark.models.parts import OldQuery

    made = fitted("rrf", arrays)
    made.parts["merge"] = OldQuery()
    made.save(tmp_path / "kept")
    with pytest.raises(BenchError, match="merge: expected a merge of two lists"):
        Conversion.load(tmp_path / "kept")


RUN = ["rank-merge", "rrf", "score-merge", "cascade:top-1000", "cascade:top-10", "slerp", "qdc"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    few = {"data.classes": 16, **ONE_EPOCH}
    return run_toy(RUN, tmp_path_factory.mktemp("run"), "backfill", **few)


RANKED = ("cmc_at_1", "cmc_at_5", "map")


@pytest.mark.parametrize("label", ["rank-merge", "rrf", "score-merge"])
def test_records_of_two_lists(records, label):
    made, alone = records[label], records["independent"]
    for case in ("old/old", "new/new"):
        assert made.scores[case] == alone.scores[case]
    assert made.scores["new/old"] == alone.scores["old/old"]
    assert set(made.compatible.values()) == {False}
    fused = "old+new/old+new"
    assert (fused in made.scores) == (label != "rank-merge")
    if fused in made.scores:  # an order has no threshold
        assert set(made.scores[fused]) == set(RANKED)
    curves = made.orders["random"].curves
    for metric in RANKED:
        ends = made.scores["old/old"][metric], made.scores["new/new"][metric]
        assert (curves[metric][0], curves[metric][-1]) == pytest.approx(ends, abs=1e-4)
    assert ("tpir_at_fpir_1e-1" in curves) == (label != "rrf")


def test_records_of_cascades(records):
    whole, some = records["cascade:top-1000"], records["cascade:top-10"]
    new = whole.scores["new/new"]
    assert whole.scores["new/old"] == {metric: new[metric] for metric in RANKED}
    assert set(some.scores["new/old"]) == set(RANKED)
    assert some.scores["new/old"] != whole.scores["new/old"]
    assert whole.orders["random"].curves["map"] == pytest.approx([new["map"]] * 101, abs=1e-4)


@pytest.mark.parametrize("label", ["rrf", "cascade:top-10"])
def test_lists_of_their_own_have_no_distance(records, label):
    """Stored vectors are the old model's, and so are the queries that go to them."""
    assert "true-l2" not in records[label].orders
    reasons = records[label].backfilling.omitted
    assert reasons["true-l2"] == "stored and new vectors are in lists of their own"


def test_a_cascade_by_one_update_is_no_other_than_along_the_chain(tmp_path):
    """In both ways the newest model rescores what the first one finds."""
    record = run_toy(["cascade:top-10"], tmp_path, "sequential", **ONE_EPOCH)["cascade:top-10"]
    chained, direct = (record.scores[f"v3/v1{way}"] for way in ("", " direct"))
    assert set(direct) == set(chained) == set(RANKED)
    assert direct != {metric: record.scores["v1/v1"][metric] for metric in RANKED}
    assert record.cost.model_runs == 3


def test_what_a_query_costs_is_in_the_record(records):
    def cost(label):
        found = records[label].cost
        return found.model_runs, found.indexes, found.new_embeddings

    assert cost("independent") == cost("qdc") == (None, None, None)
    assert cost("slerp") == (2, 1, 0)
    assert cost("rank-merge") == cost("rrf") == (2, 2, 0)
    assert cost("cascade:top-10") == (2, 2, 10)  # what is filled has an index of its own

    def after(label):
        return records[label].cost.bytes_after

    assert (
        after("rrf") == after("score-merge") == after("independent") + records["rrf"].cost.bytes_new
    )
    assert after("rank-merge") == after("cascade:top-10") == after("independent")
    dims = [records["slerp"].models[name].dim for name in ("old", "new")]
    assert records["slerp"].cost.query_multiply_adds == dims[0] * dims[1]


@pytest.mark.parametrize("label", ["rrf", "cascade:top-10", "slerp"])
def test_records_are_whole(records, label):
    found = [line for line in contradictions(records[label], None) if "details" not in line]
    assert found == []
