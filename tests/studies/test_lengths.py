"""Shares of the upgrade by length of training: by hand, by plain loops, and reversed orders."""

from __future__ import annotations

import numpy as np
import pytest
from support.stored import stored

from benchmark.errors import BenchError
from benchmark.studies.lengths.shares import FIELD, compare_lengths, tables

N = 400
CLASSES = np.arange(N) // 8


def hits(share: float, seed: int = 0) -> np.ndarray:
    """So many of the queries are hits, in a seeded order: more hits contain fewer."""
    order = np.random.default_rng(seed).permutation(N)
    return (np.argsort(order) < round(share * N)).astype(float)


def records(root, of: dict[int, dict[str, float]], old=0.25, new=0.75, metric="cmc_at_1", seed=0):
    found = []
    for length, methods in of.items():
        changed = {} if length == 1 else {FIELD: length}
        for method, cross in {"independent": 0.0, **methods}.items():
            values = {
                ("old/old", metric): hits(old), ("new/new", metric): hits(new),
                ("new/old", metric): hits(cross),
            }  # fmt: skip
            folder = root / str(length)
            found.append(stored(folder, method, values, CLASSES, changed=changed, seed=seed))
    return found


def test_shares_by_hand(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.5, "fct": 0.25}, 4: {"bct": 0.625, "fct": 0.75}})
    (found,) = compare_lengths(made, ["cmc_at_1"])
    assert found.lengths == (1, 4)
    means = {m: [of[n].value for n in (1, 4)] for m, of in found.shares.items()}
    assert means["bct"] == [0.5, 0.75]
    assert means["fct"] == [0.0, 1.0]
    assert means["independent"] == [-0.5, -0.5]
    for of in found.shares.values():
        assert all(s.low <= s.value <= s.high for s in of.values())
    assert found.reversed == (("bct", "fct"),)
    assert found.tau.value == -1.0  # of two methods, without independent
    text = str(tables([found])[0])
    assert "bct above fct" in text
    assert "0 (" in text


def test_each_of_several_seeds_has_its_files(tmp_path) -> None:
    made = [
        each
        for seed in (0, 3)
        for each in records(tmp_path / str(seed), {1: {"bct": 0.5}, 2: {"bct": 0.6}}, seed=seed)
    ]
    several = [found.slug for found in compare_lengths(made, ["cmc_at_1"])]
    (alone,) = compare_lengths(made[:4], ["cmc_at_1"])
    assert several == [f"{alone.slug}-seed-0", f"{alone.slug}-seed-3"]
    assert alone.slug.endswith("-cmc_at_1")


def test_what_was_run_at_one_length_only_is_left_out(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.5, "l2": 0.25}, 2: {"bct": 0.625, "fct": 0.75}})
    (found,) = compare_lengths(made, ["cmc_at_1"])
    assert set(found.shares) == {"independent", "bct"}


def test_intervals_are_those_of_plain_draws_of_classes(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.4}, 2: {"bct": 0.4}})
    (found,) = compare_lengths(made, ["cmc_at_1"])
    old, new, cross = (hits(x) for x in (0.25, 0.75, 0.4))
    rng, draws = np.random.default_rng(7), []
    for _ in range(4000):
        rows = np.concatenate(
            [np.flatnonzero(c == CLASSES) for c in rng.integers(0, CLASSES.max() + 1, 50)]
        )
        a, b, x = (v[rows].mean() for v in (old, new, cross))
        draws.append((x - a) / (b - a))
    low, high = np.quantile(draws, [0.025, 0.975])
    share = found.shares["bct"][1]
    assert share.low == pytest.approx(low, abs=0.02)
    assert share.high == pytest.approx(high, abs=0.02)
    assert share == found.shares["bct"][2]  # the same draws for every length


def test_a_small_difference_is_no_change_of_order(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.5, "fct": 0.505}, 2: {"bct": 0.505, "fct": 0.5}})
    (found,) = compare_lengths(made, ["cmc_at_1"])
    assert found.reversed == ()
    assert "No pair changes" in str(tables([found])[0])


def test_without_an_upgrade_there_is_no_share(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.5}, 2: {"bct": 0.5}}, old=0.5, new=0.51)
    with pytest.raises(BenchError, match="two values of"):
        compare_lengths(made, ["cmc_at_1"])


def test_one_length_is_refused_and_other_changes_are_passed_over(tmp_path) -> None:
    made = records(tmp_path, {1: {"bct": 0.5}})
    other = {("new/old", "cmc_at_1"): hits(0.5)}
    made.append(stored(tmp_path / "o", "bct", other, CLASSES, changed={"bct.weight": 2.0}))
    with pytest.raises(BenchError, match="two values of"):
        compare_lengths(made, ["cmc_at_1"])
