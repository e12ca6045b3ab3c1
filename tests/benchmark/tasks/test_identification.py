"""Identification reports each gallery and their mean; verification all pairs, as plain products."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmark.tasks import identification, verification


def problem(seed):
    """Two images a template, three templates a subject; the first of each subject is enrolled."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(40), 6)
    x = rng.normal(size=(40, 8))[labels] + rng.normal(size=(240, 8))
    enrolled = np.arange(0, 120, 3)
    items = SimpleNamespace(
        template=np.arange(240) // 2, media=np.arange(240), labels=labels,
        probes=np.setdiff1d(np.arange(120), enrolled), galleries=(enrolled[:20], enrolled[20:]),
    )  # fmt: skip
    return x.astype(np.float32), items


@pytest.mark.parametrize("seed", range(3))
def test_each_gallery_and_their_mean(seed) -> None:
    x, items = problem(seed)
    got = identification.evaluate(x, x, items, {"fpir": [0.1]})
    for name in ("rank_1", "tpir_at_fpir_1e-1"):
        parts = [got.scores[f"{gallery}_{name}"] for gallery in ("g1", "g2")]
        assert got.scores[name] == pytest.approx(sum(parts) / 2)
    alone = SimpleNamespace(**{**vars(items), "galleries": items.galleries[:1]})
    one = identification.evaluate(x, x, alone, {"fpir": [0.1]})
    assert one.scores["rank_1"] == pytest.approx(got.scores["g1_rank_1"])
    assert not [name for name in one.scores if name.startswith("g")]


@pytest.mark.parametrize("seed", range(3))
def test_verification_is_that_of_all_products(seed) -> None:
    x, items = problem(seed)
    made = x.reshape(120, 2, 8).sum(1)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    enrolled = np.concatenate(items.galleries)
    scores = made[items.probes] @ made[enrolled].T
    same = items.probes[:, None] // 3 == enrolled // 3
    impostor = np.sort(scores[~same])[::-1]
    threshold = impostor[int(0.01 * len(impostor))]  # refuses this one and all below
    got = verification.evaluate(x, x, items, {"far": [0.01]})
    assert got.scores["tar_at_far_1e-2"] == np.mean(scores[same] > threshold)
