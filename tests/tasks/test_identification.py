"""Identification reports each gallery and their mean; verification all pairs, as plain products."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from published_scripts import all_pairs, nearest_far

from benchmark.config.tracks import TrackRules
from benchmark.tasks.identification import Identification, Part, joined
from benchmark.tasks.identification_script import IdentificationScript
from benchmark.tasks.verification import Verification
from benchmark.tasks.verification_script import VerificationScript


def problem(seed):
    """Two images a template, three templates a subject; the first of each subject is enrolled."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(40), 6)
    x = rng.normal(size=(40, 8))[labels] + rng.normal(size=(240, 8))
    enrolled = np.arange(0, 120, 3)
    items = SimpleNamespace(
        template=np.arange(240) // 2, media=np.arange(240), labels=labels,
        probes=np.setdiff1d(np.arange(120), enrolled), galleries=(enrolled[:20], enrolled[20:]),
        weight=None, pairs=None,
    )  # fmt: skip
    return x.astype(np.float32), items


def unit_templates(vectors):
    """Two images added up, of length one."""
    made = vectors.reshape(120, 2, 8).sum(1)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_each_gallery_and_their_mean(seed) -> None:
    x, items = problem(seed)
    got = Identification().evaluate(x, x, items, {"fpir": [0.1]})
    for name in ("rank_1", "rank_5", "tpir_at_fpir_1e-1"):
        parts = [got.scores[f"{gallery}_{name}"] for gallery in ("g1", "g2")]
        assert got.scores[name] == pytest.approx(sum(parts) / 2)
    made = unit_templates(x)
    first = items.galleries[0]
    mated = items.probes[np.isin(items.probes // 3, first // 3)]
    five = np.argsort(-(made[mated] @ made[first].T))[:, :5]
    found = (first[five] // 3 == mated[:, None] // 3).any(1)
    assert got.scores["g1_rank_5"] == pytest.approx(found.mean())
    alone = SimpleNamespace(**{**vars(items), "galleries": items.galleries[:1]})
    one = Identification().evaluate(x, x, alone, {"fpir": [0.1]})
    assert one.scores["rank_1"] == pytest.approx(got.scores["g1_rank_1"])
    assert not [name for name in one.scores if name.startswith("g")]


def test_a_mean_is_of_all_galleries():
    """A rate that one gallery alone has outsiders for stands under its own name."""
    x, items = problem(0)
    items.galleries = items.galleries[0][:6], np.concatenate(items.galleries)
    known = Identification().evaluate(x, x, items, {"fpir": [0.1]}).counts
    rate = 1.5 / known["n_outsiders_g1"]
    assert known["n_outsiders_g2"] * rate < 1 < known["n_outsiders_g1"] * rate
    names = Identification().evaluate(x, x, items, {"fpir": [rate]}).scores
    assert [name[:8] for name in names if "tpir" in name] == ["g1_tpir_"]
    assert {"rank_1", "g1_rank_1", "g2_rank_1"} <= names.keys()


def test_equal_numbers_of_hits_are_equal_scores() -> None:
    """Whichever probes hit: the criterion compares without a tolerance."""
    rng = np.random.default_rng(0)
    sizes, hits = (12, 15), (5, 7)
    scores = set()
    for _ in range(50):
        parts = []
        for n, k in zip(sizes, hits, strict=True):
            found = rng.permutation(np.arange(n) < k).astype(np.float64)
            parts.append(Part(found, np.arange(n), None, found.mean()))
        scores.add(joined(parts).score)
    assert scores == {(5 / 12 + 7 / 15) / 2}


def test_galleries_in_which_everybody_is_found_are_whole() -> None:
    """Weights of galleries of unequal sizes are rounded; a record takes no share above 1."""
    _, items = problem(0)
    x, enrolled = np.eye(40, dtype=np.float32)[items.labels], np.arange(0, 120, 3)
    for k in range(1, 40):
        items.galleries = enrolled[:k], enrolled[k:]
        got = Identification().evaluate(x, x, items, {"fpir": [0.5]})
        assert got.scores["g1_rank_1"] == 1.0 >= got.scores["rank_1"] > 1 - 1e-9
        low, high = got.intervals["rank_1"]
        assert 0 <= low <= 1 <= high + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_verification_is_that_of_all_products(seed) -> None:
    x, items = problem(seed)
    made = unit_templates(x)
    enrolled = np.concatenate(items.galleries)
    scores = made[items.probes] @ made[enrolled].T
    same = items.probes[:, None] // 3 == enrolled // 3
    impostor = np.sort(scores[~same])[::-1]
    threshold = impostor[int(0.01 * len(impostor))]  # refuses this one and all below
    got = Verification().evaluate(x, x, items, {"far": [0.01]})
    assert got.scores["tar_at_far_1e-2"] == np.mean(scores[same] > threshold)


@pytest.mark.parametrize("seed", range(3))
def test_listed_pairs_with_models_on_both_sides(seed) -> None:
    """The first template by one model, the second by the other; swapped, another score."""
    x, items = problem(seed)
    rng = np.random.default_rng(seed + 10)
    other = (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32)
    pairs = rng.integers(0, 120, (3000, 2))
    pairs[:300, 1] = pairs[:300, 0] // 3 * 3 + (pairs[:300, 0] + 1) % 3
    items.pairs = pairs

    for a, b in ((x, other), (other, x)):
        scores = (unit_templates(a)[pairs[:, 0]] * unit_templates(b)[pairs[:, 1]]).sum(1)
        same = pairs[:, 0] // 3 == pairs[:, 1] // 3
        got = Verification().evaluate(a, b, items, {"far": [0.01]})
        threshold = np.sort(scores[~same])[::-1][int(0.01 * (~same).sum())]
        assert got.scores["tar_at_far_1e-2"] == pytest.approx(np.mean(scores[same] > threshold))
        assert got.counts["n_genuine"] == same.sum()
        accepted = got.counts["n_accepted_impostor_tar_at_far_1e-2"]
        assert accepted == (scores[~same] > threshold).sum() <= 0.01 * (~same).sum()


def test_items_count_as_much_as_they_show_of_a_face() -> None:
    x, items = problem(0)
    spoilt = x.copy()
    spoilt[1::2] = np.random.default_rng(1).normal(size=(120, 8)) * 5
    items.weight = np.tile(np.float32([1.0, 1e-6]), 120)
    clean = Verification().evaluate(spoilt, spoilt, items, {"far": [0.01]})
    items.weight = np.ones(240, np.float32)
    plain = Verification().evaluate(spoilt, spoilt, items, {"far": [0.01]})
    assert clean.scores["tar_at_far_1e-2"] > plain.scores["tar_at_far_1e-2"] + 0.1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fpir", [0.05, 0.2])
def test_probes_outside_each_gallery_are_refused(seed, fpir) -> None:
    """By plain loops: of the probes whose subject a gallery lacks, at most FPIR find anybody."""
    x, items = problem(seed)
    got = Identification().evaluate(x, x, items, {"fpir": [fpir]})
    made = unit_templates(x)
    for i, enrolled in enumerate(items.galleries, 1):
        best = made[items.probes] @ made[enrolled].T
        outside = ~np.isin(items.probes // 3, enrolled // 3)
        assert got.counts[f"n_outsiders_g{i}"] == outside.sum() == 40
        allowed = int(fpir * outside.sum())
        threshold = np.sort(best[outside].max(1))[::-1][allowed]
        name = f"n_accepted_outsiders_g{i}_tpir_at_fpir_{fpir:.0e}".replace("e-0", "e-")
        assert got.counts[name] == (best[outside].max(1) > threshold).sum() <= allowed


@pytest.mark.parametrize("seed", range(3))
def test_scripts_in_common_use_are_tasks_of_their_own(seed) -> None:
    x, items = problem(seed)
    made = unit_templates(x)
    enrolled = np.concatenate(items.galleries)
    scores = made[items.probes] @ made[enrolled].T
    mates = np.searchsorted(enrolled // 3, items.probes // 3)
    got = IdentificationScript().evaluate(x, x, items, {"fpir": [0.1, 0.001]})
    name = "all_pairs_tpir_at_fpir_1e-1"
    assert got.scores == {name: pytest.approx(all_pairs(scores, mates, 0.1)[0])}
    assert got.counts == {f"n_accepted_pairs_{name}": 7}  # of 80 probes: above the eighth
    same = items.probes[:, None] // 3 == enrolled // 3
    got = VerificationScript().evaluate(x, x, items, {"far": [0.01, 1e-6]})
    far, tar = nearest_far(scores[same], scores[~same], 0.01)
    name = "tar_at_nearest_far_1e-2"
    assert got.scores == {name: pytest.approx(tar)}
    assert got.counts == {f"n_accepted_impostor_{name}": round(far * (~same).sum())}
    assert got.intervals == {}


@pytest.mark.parametrize(("n", "there"), [(1000, True), (999, False)])
def test_a_rate_of_one_in_a_thousand_takes_as_many_strangers(n, there) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n + 10, 4)).astype(np.float32)
    x[-5:] = x[:5]
    labels = np.r_[np.arange(n + 5), np.arange(5)]
    items = SimpleNamespace(
        template=np.arange(n + 10), media=np.arange(n + 10), labels=labels, weight=None,
        probes=np.arange(5, n + 10), galleries=(np.arange(5),), pairs=None,
    )  # fmt: skip
    got = Identification().evaluate(x, x, items, {"fpir": TrackRules(dataset="toy").fpir})
    assert got.counts["n_outsiders_g1"] == n
    assert ("tpir_at_fpir_1e-3" in got.scores) == there
