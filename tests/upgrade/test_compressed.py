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


def by_brute_force(known, items, queries, own):
    """Form -> nDCG@10 among items ``[n, dim]``; int8 is scaled by those that are known."""
    scale = np.quantile(np.abs(unit(known)), 0.999) / 127
    byte = np.clip(np.round(unit(items) / scale), -127, 127) * scale
    scores = {
        "as stored": queries @ unit(items).T,
        "float16": queries @ unit(items.astype(np.float16).astype(np.float64)).T,
        "int8": queries @ unit(byte).T,
    }  # fmt: skip
    for word, n in (("3/4", 24), ("1/2", 16), ("1/4", 8)):
        scores[f"{word} of the numbers"] = unit(queries[:, :n]) @ unit(items[:, :n]).T
    # By bits a hundred items are found, whose scores by int8 then order them.
    signs = np.where(queries >= 0, 1, -1) @ np.where(items >= 0, 1, -1).T
    nearest = np.argsort(-signs, axis=1, kind="stable")[:, :100]
    rescored = np.full(signs.shape, -np.inf)
    by_byte = np.take_along_axis(scores["int8"], nearest, 1)
    np.put_along_axis(rescored, nearest, by_byte, 1)
    scores["binary, rescored"] = rescored
    return {form: ndcg(each, own).mean() for form, each in scores.items()}


def is_as_expected(scores, expected):
    """True where they are the same; of bits whichever of equal items are the last to be found."""
    return scores.keys() == expected.keys() and all(
        abs(scores[form] - value) <= (2e-2 if form.startswith("binary") else 2e-3)
        for form, value in expected.items()
    )


def found(study, name):
    """Form -> score of a strategy, and how many items are searched."""
    rows = [each for each in compressed(study) if each.strategy == name]
    return {each.form: each.score.value for each in rows}, {each.among for each in rows}


def test_every_form_is_that_of_brute_force(made):
    study = studied(made.whole())
    rows = study.first.sample.rows
    for name, items, queries in (
        ("re-embed", made.new, made.queries), ("keep-old", made.old, made.old_queries),
    ):  # fmt: skip
        expected = by_brute_force(items[rows], items, unit(queries), made.relevant)
        scores, among = found(study, name)
        assert among == {600} and is_as_expected(scores, expected)


def test_with_a_sample_the_old_vectors_are_searched_whole_and_new_ones_are_no_bits():
    """Among few items the first hundred by bits are most of them, and lose nothing."""
    made = planted(noise=1.0, n=2000, q=60, dim=DIM)
    study = studied(made.arguments(made.sample(300)))
    sample = study.first.sample
    expected = by_brute_force(
        made.old[sample.rows], made.old, unit(made.old_queries), made.relevant
    )
    scores, among = found(study, "keep-old")
    assert among == {2000} and is_as_expected(scores, expected)
    assert scores["binary, rescored"] < scores["as stored"] - 0.01
    held = sample.rows[sample.held]
    own = np.searchsorted(held, made.relevant)
    assert (held[own] == made.relevant).all()
    expected = by_brute_force(made.new[sample.rows], made.new[held], unit(made.queries), own)
    del expected["binary, rescored"]
    scores, among = found(study, "re-embed")
    assert among == {len(held)} and is_as_expected(scores, expected)
    shown = upgrade(**made.arguments(made.sample(300)), compressed=True)
    assert "Bits are left out where few items are searched" in str(shown)


def test_bytes_of_the_old_index_are_those_of_its_file(made):
    """The new vectors' are float32, whatever the old ones are."""
    old = np.clip(np.round(made.old / np.abs(made.old).max() * 127), -127, 127).astype(np.int8)
    given = made.whole(compressed=True, items=1000) | {"old_gallery": old}
    document = upgrade(**given).document
    costs = {each["name"]: each["cost"] for each in document["strategies"]}
    assert costs["keep-old"]["index_bytes"] == costs["re-embed"]["old_bytes"] == 1000 * DIM
    assert costs["re-embed"]["index_bytes"] == 4000 * DIM
    assert costs["rrf"]["index_bytes"] == 5000 * DIM
    rows = {(r["strategy"], r["form"]): r["index_bytes"] for r in document["compressed"]}
    assert rows["keep-old", "as stored"] == rows["keep-old", "int8"] == 1000 * DIM
    # A cut keeps the type that is stored.
    assert rows["keep-old", "1/2 of the numbers"] == 500 * DIM
    assert rows["re-embed", "1/2 of the numbers"] == 2000 * DIM


@pytest.mark.parametrize(("stored", "size"), [(np.float16, 2), (np.float32, 4), (np.float64, 4)])
def test_the_file_of_a_sample_says_nothing_of_the_index(made, stored, size):
    """New vectors take as many bytes as the old ones, whatever those of the sample have."""
    old = made.old.astype(stored)
    for sample in (np.float16, np.float32):
        given = made.arguments(made.sample(300)) | {"old_gallery": old}
        given["new_gallery"] = given["new_gallery"].astype(sample)
        given |= {"items": 1000, "maps": "linear", "compressed": True}
        document = upgrade(**given).document
        costs = {each["name"]: each["cost"] for each in document["strategies"]}
        for name in ("re-embed", "linear"):
            assert costs[name]["index_bytes"] == 1000 * size * DIM
        rows = {(r["strategy"], r["form"]): r["index_bytes"] for r in document["compressed"]}
        assert rows["re-embed", "as stored"] == 1000 * size * DIM


def test_float16_is_as_sure_as_int8(made):
    """It changes fewer queries, and none by more: few differences are no reason for doubt."""
    lost = {(e.strategy, e.form): e.lost for e in compressed(studied(made.whole()))}
    for name in ("keep-old", "re-embed"):
        half, byte = (lost[name, form] for form in ("float16", "int8"))
        assert half.high - half.low <= byte.high - byte.low
        assert half.low <= half.value <= half.high


def test_bytes_and_differences(made):
    document = upgrade(**made.whole(compressed=True, items=1_000_000)).document
    rows = {(r["strategy"], r["form"]): r for r in document["compressed"]}
    assert {name for name, _ in rows} == {"keep-old", "re-embed", "procrustes"}
    for form, size in (
        ("as stored", 4 * DIM), ("float16", 2 * DIM), ("int8", DIM),
        ("binary, rescored", DIM * 9 / 8), ("3/4 of the numbers", 3 * DIM),
        ("1/4 of the numbers", DIM),
    ):  # fmt: skip
        row = rows["re-embed", form]
        assert row["index_bytes"] == 1e6 * size
        gap = row["score"]["value"] - rows["re-embed", "as stored"]["score"]["value"]
        if form == "as stored":
            assert row["lost"] is None
        else:
            assert row["lost"]["value"] == pytest.approx(gap)
        to_old = row["score"]["value"] - rows["keep-old", "as stored"]["score"]["value"]
        assert row["to_keep"]["value"] == pytest.approx(to_old)
    assert abs(rows["re-embed", "float16"]["lost"]["value"]) < 0.01
    quarter = rows["re-embed", "1/4 of the numbers"]
    assert quarter["lost"]["high"] < 0
    assert "beats the old model whole at" in render(document)


@pytest.mark.parametrize("changes", [{"qrels": None}, {"distance": "dot"}, {"distance": "l2"}])
def test_whatever_judges_and_compares(made, changes):
    rows = upgrade(**made.whole(compressed=True, **changes)).document["compressed"]
    assert len(rows) == 3 * 7
    assert all(0 <= row["score"]["value"] <= 1 for row in rows)


@pytest.mark.parametrize("distance", ["l2", "dot"])
def test_zeros_are_legal_vectors(made, distance):
    """A vector of zeros, and one whose beginning is, as of a network that ends with a ReLU."""
    old = made.old.copy()
    old[0], old[1, : DIM // 4] = 0, 0
    given = made.whole(old_gallery=old, distance=distance, compressed=True)
    forms = upgrade(**given).document["compressed"]
    assert {row["form"] for row in forms} >= {"float16", "int8", "1/4 of the numbers"}
