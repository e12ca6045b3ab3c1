"""Vectors in fewer bits and shorter ones: as brute force has them."""

import numpy as np
import pytest
from support.upgrades import ndcg, planted, studied, unit

from benchmark.upgrade.measure.compressed import compressed
from benchmark.upgrade.run import upgrade
from benchmark.upgrade.show.page import render

DIM = 32


@pytest.fixture(scope="module")
def made():
    return planted(noise=1.0, n=600, q=60, dim=DIM)


def test_every_form_is_that_of_brute_force(made):
    study = studied(made.whole())
    sample = study.first.sample
    held = sample.rows[sample.held]
    own = np.searchsorted(held, made.relevant)
    assert (held[own] == made.relevant).all()
    items, known, queries = unit(made.new[held]), unit(made.new[sample.rows]), unit(made.queries)
    scale = np.quantile(np.abs(known), 0.999) / 127
    byte = np.clip(np.round(items / scale), -127, 127) * scale
    expected = {
        "float32": queries @ items.T,
        "float16": queries @ unit(items.astype(np.float16).astype(np.float64)).T,
        "int8": queries @ unit(byte).T,
    }  # fmt: skip
    for word, n in (("3/4", 24), ("1/2", 16), ("1/4", 8)):
        cut = unit(made.queries[:, :n]) @ unit(made.new[held][:, :n]).T
        expected[f"{word} of the numbers"] = cut
    found = {e.form: e for e in compressed(study) if e.strategy == "re-embed"}
    for form, scores in expected.items():
        assert found[form].score.value == pytest.approx(ndcg(scores, own).mean(), abs=2e-3), form
    # By bits a hundred items are found, whose scores by int8 then order them.
    signs = np.where(made.queries >= 0, 1, -1) @ np.where(items >= 0, 1, -1).T
    nearest = np.argsort(-signs, axis=1, kind="stable")[:, :100]
    rescored = np.full(signs.shape, -np.inf)
    np.put_along_axis(rescored, nearest, np.take_along_axis(queries @ unit(byte).T, nearest, 1), 1)
    value = ndcg(rescored, own).mean()
    assert found["binary, rescored"].score.value == pytest.approx(value, abs=2e-3)


def test_float16_is_as_sure_as_int8(made):
    """It changes fewer queries, and none by more: few differences are no reason for doubt."""
    found = {(e.strategy, e.form): e.lost for e in compressed(studied(made.whole()))}
    for name in ("keep-old", "re-embed"):
        half, byte = (found[name, form] for form in ("float16", "int8"))
        assert half.high - half.low <= byte.high - byte.low
        assert half.low <= half.value <= half.high


def test_bytes_and_differences(made):
    document = upgrade(**made.whole(compressed=True, items=1_000_000)).document
    rows = {(r["strategy"], r["form"]): r for r in document["compressed"]}
    assert {name for name, _ in rows} == {"keep-old", "re-embed", "procrustes"}
    for form, size in (
        ("float32", 4 * DIM), ("float16", 2 * DIM), ("int8", DIM),
        ("binary, rescored", DIM * 9 / 8), ("3/4 of the numbers", 3 * DIM),
        ("1/4 of the numbers", DIM),
    ):  # fmt: skip
        row = rows["re-embed", form]
        assert row["index_bytes"] == 1e6 * size
        gap = row["score"]["value"] - rows["re-embed", "float32"]["score"]["value"]
        if form == "float32":
            assert row["lost"] is None
        else:
            assert row["lost"]["value"] == pytest.approx(gap)
        to_old = row["score"]["value"] - rows["keep-old", "float32"]["score"]["value"]
        assert row["to_keep"]["value"] == pytest.approx(to_old)
    assert abs(rows["re-embed", "float16"]["lost"]["value"]) < 0.01
    quarter = rows["re-embed", "1/4 of the numbers"]
    assert quarter["lost"]["high"] < 0
    assert "beats the old model whole at" in render(document)


@pytest.mark.parametrize("changes", [{"qrels": None}, {"distance": "dot"}, {"distance": "l2"}])
def test_whatever_judges_and_compares(made, changes):
    found = upgrade(**made.whole(compressed=True, **changes)).document["compressed"]
    assert len(found) == 3 * 7
    assert all(0 <= row["score"]["value"] <= 1 for row in found)
