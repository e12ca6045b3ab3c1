"""Cut-offs of scores after an upgrade, held against what is known by construction."""

import json

import numpy as np
import pytest
from scipy.stats import beta, norm
from support.command import call
from support.upgrades import all_scores, planted, unit, write_upgrade

import benchmark
from benchmark.upgrade.measure.thresholds import PairSet, cutoff
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.tables import tables


def directions(rng, n, dim):
    return unit(rng.standard_normal((n, dim)))


def chance(t, dim):
    """Of a cosine of at least ``t`` between random directions; its square is beta-distributed."""
    return (1 - beta.cdf(t * t, 0.5, (dim - 1) / 2)) / 2


def test_cutoffs_are_found_within_their_intervals():
    """Random directions of 12 and of 20 numbers: which cosine of 20 is as rare as 0.6 of 12?"""
    rate = chance(0.6, 12)
    true = np.sqrt(beta.ppf(1 - 2 * rate, 0.5, 19 / 2))
    assert chance(true, 20) == pytest.approx(rate)
    held = 0
    for draw in range(100):
        rng = np.random.default_rng(draw)
        old, new = (directions(rng, 40, d) @ directions(rng, 300, d).T for d in (12, 20))
        none = np.zeros(old.shape, bool)
        pairs = PairSet(none, none, np.ones(300))
        found = cutoff("x", "same share", old, new, pairs, 0.6, draw)
        assert found.true_after is None and not found.few
        held += found.new.low <= true <= found.new.high
        assert found.rate == pytest.approx(rate, rel=0.5)
    assert held >= 95


def test_false_accepts_are_kept_and_true_ones_follow():
    """Scores of pairs that belong together: normal around 1 before, around 2 after; others at 0.

    A cut-off of 1.645 accepts 5 % of the others before, and should after, where their deviation is
    half: 0.822. True accepts go from 26 % to 99 %.
    """
    expected = norm.isf(0.05) / 2
    held, true = 0, []
    for draw in range(100):
        rng = np.random.default_rng(draw)
        genuine = rng.random((40, 200)) < 0.02
        old = rng.standard_normal((40, 200)) + genuine
        new = rng.standard_normal((40, 200)) / 2 + 2 * genuine
        pairs = PairSet(genuine, np.zeros_like(genuine), np.ones(200))
        found = cutoff("x", "same false accepts", old, new, pairs, norm.isf(0.05), draw)
        held += found.new.low <= expected <= found.new.high
        true.append((found.true_before, found.true_after.value))
    before, after = np.mean(true, axis=0)
    assert held >= 95
    assert before == pytest.approx(norm.sf(norm.isf(0.05) - 1), abs=0.01)
    assert after == pytest.approx(norm.sf(2 * (expected - 2)), abs=0.01)


def test_one_pair_that_belongs_together():
    """Draws without the pair say nothing of it."""
    rng = np.random.default_rng(0)
    old, new = rng.standard_normal((2, 3, 40))
    genuine = np.zeros((3, 40), bool)
    genuine[1, 7] = True
    old[1, 7] = new[1, 7] = 9
    pairs = PairSet(genuine, np.zeros_like(genuine), np.ones(40))
    found = cutoff("x", "same share", old, new, pairs, 1.0, 0)
    after = found.true_after
    assert (found.true_before, after.value, after.low, after.high) == (1, 1, 1, 1)


def test_items_that_stand_for_many_count_so():
    """By hand: two items of weight 1 and 3; the old cut-off accepts the light one of each query."""
    old, new = (
        np.array([[0.9, 0.1]] * 4),
        np.array([[0.2, 0.6], [0.8, 0.1], [0.7, 0.3], [0.6, 0.4]]),
    )
    none = np.zeros((4, 2), bool)
    found = cutoff("x", "same share", old, new, PairSet(none, none, np.array([1.0, 3.0])), 0.5, 0)
    assert found.rate == pytest.approx(4 / 16) and found.accepted == 4
    # Descending: 0.8 (1), 0.7 (1), then 0.6 of weight 3 and 1: four are met within those of 0.6.
    assert 0.4 < found.new.value < 0.7
    assert cutoff("x", "same share", old, new, PairSet(none, none, np.ones(2)), 2.0, 0) is None


@pytest.fixture(scope="module")
def made():
    return planted(n=900, q=60, dim=16)


def test_the_report_has_cutoffs_of_every_strategy(made):
    report = benchmark.upgrade(
        **made.arguments(made.sample(500)), threshold=[0.5, 0.999, 0.5], items=800
    )
    document = report.document
    assert "costs are of 800 items, fewer than the 900 of" in " ".join(str(report).split())
    found = document["thresholds"]
    assert found["left_out"] == [0.999]
    asked = [(r["strategy"], r["rule"]) for r in found["cutoffs"]]
    for every in (False, True):  # the terminal has those that matter, unless all are asked for
        its = next(t for t in tables(document, every=every) if t.slug == "thresholds")
        shown = {row.labels[0].text for row in its.rows}
        assert (shown == {name for name, _ in asked} - {"keep-old"}) is every
    assert len({*asked}) == len(asked)
    rows = {(r["strategy"], r["rule"]): r for r in found["cutoffs"]}
    assert {"keep-old", "re-embed", "procrustes", "naive"} <= {name for name, _ in rows}
    for (name, _), row in rows.items():
        assert row["new"]["low"] <= row["new"]["value"] <= row["new"]["high"]
        if name == "keep-old":
            assert row["new"]["value"] == pytest.approx(0.5, abs=0.01)
            assert row["true_after"]["value"] == pytest.approx(row["true_before"], abs=0.02)
    # Held against all pairs of the gallery, most of which no sample has.
    rate = (all_scores(made.old_queries, made.old) >= 0.5).mean()
    true = np.quantile(all_scores(made.queries, made.new), 1 - rate)
    own = rows["re-embed", "same share"]
    assert own["new"]["low"] <= true <= own["new"]["high"]
    assert own["rate"] == pytest.approx(rate, rel=0.25)
    page = render(document)
    shown = f"{own['new']['value']:.3f} ({own['new']['low']:.3f} to {own['new']['high']:.3f})"
    assert "Cut-offs" in page and shown in page


def test_distances_are_cut_off_above():
    """By l2 a pair is accepted up to a distance; a model of twice the length doubles it."""
    made = planted(n=1200, q=100, dim=16)
    document = benchmark.upgrade(**made.whole(
        new_gallery=2 * made.old, queries=2 * made.old_queries, maps="linear", distance="l2",
        threshold=[5.0],
    )).document  # fmt: skip
    rows = {(r["strategy"], r["rule"]): r for r in document["thresholds"]["cutoffs"]}
    for rule in ("same share", "same false accepts"):
        assert rows["re-embed", rule]["new"]["value"] == pytest.approx(10.0, abs=0.02)
        assert rows["linear", rule]["new"]["value"] == pytest.approx(10.0, abs=0.1)


def test_the_command(made, tmp_path):
    words = write_upgrade(tmp_path, made)
    code, out, err = call(
        *words, "--threshold", 0.5, "--threshold", 0.6, "--json", tmp_path / "a.json"
    )
    assert (code, err) == (0, "") and "Cut-offs" in out and "same false accepts" in out
    found = json.loads((tmp_path / "a.json").read_text())["thresholds"]["cutoffs"]
    assert {row["old"] for row in found} == {0.5, 0.6}
    without = words[: words.index("--old-queries")], words[words.index("--old-queries") + 2 :]
    code, _, err = call(*without[0], *without[1], "--threshold", 0.5)
    assert code == 2 and "--threshold: expected --old-queries, too" in err
    code, _, err = call(*words, "--threshold", "nan")
    assert code == 2 and "finite" in err
