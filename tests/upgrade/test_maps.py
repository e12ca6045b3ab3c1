"""Maps that a report may build on, and those that refuse the vectors."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
from support.upgrades import planted

import benchmark
from benchmark.contract import fitting
from benchmark.upgrade.fit import maps
from benchmark.upgrade.fit.maps import chosen_maps, fit_all, map_labels
from benchmark.upgrade.measure.study import closest
from benchmark.upgrade.read.gallery import EmbeddedSample, GalleryBlock
from benchmark.upgrade.search.strategies import map_list


def vectors(n=120, d_old=8, d_new=8):
    rng = np.random.default_rng(0)
    old = rng.standard_normal((n, d_old)).astype(np.float32)
    new = old @ rng.standard_normal((d_old, d_new)).astype(np.float32)
    return old, new + 0.1 * rng.standard_normal((n, d_new)).astype(np.float32)


def test_maps_of_pairs_alone():
    labels = map_labels()
    assert {"relative", "mini-vec2vec", "lambda-orthogonal-full:pairs", "linear:query"} <= {*labels}
    assert not {"class-mean", "lambda-orthogonal-full"} & {*labels}  # labels too
    assert not {"linear-500", "linear-500:query"} & {*labels}  # a control
    # Of each method one map of stored vectors and one of queries, not each of its variants.
    assert [x for x in labels if x.startswith("drift-adapter")] == ["drift-adapter"]
    assert [x for x in labels if x.startswith("linear")] == ["linear", "linear:query"]
    files = {label.partition(":")[0] for label in labels}
    assert (
        not {"mixed-adapter", "mini-vec2vec-restarts"} & files
    )  # variants with a file of their own
    assert chosen_maps("mini-vec2vec-restarts") == ["mini-vec2vec-restarts"]


def test_a_map_that_refuses_is_left_out_with_its_reason():
    told = []
    fits, refused = fit_all(
        ["mini-vec2vec", "linear"], *vectors(d_new=6), "cosine", 0, told.append
    )  # fmt: skip
    assert [each.label for each in fits] == ["linear"]
    assert refused == {"mini-vec2vec": "needs embeddings of one size, got 8 and 6"}
    assert told == ["fitting mini-vec2vec, 1 of 2", "fitting linear, 2 of 2"]


def test_the_rest_of_the_time_is_told_while_a_map_is_trained(monkeypatch):
    short = fitting.RECIPE.model_copy(update={"transform_steps": 60})
    monkeypatch.setattr(fitting, "RECIPE", short)
    told = []
    fit_all(["linear", "residual-mlp"], *vectors(), "cosine", 0, told.append)
    shown = [line for line in told if line.startswith("fitting residual-mlp, 2 of 2: ")]
    assert shown and all(re.search(r": \d+ %, about [\d.]+ min left$", line) for line in shown)


def test_the_time_left_is_of_all_fits_of_a_report(monkeypatch):
    """Maps are fitted five times where few items are known: it falls until the last is done."""
    short = fitting.RECIPE.model_copy(update={"transform_steps": 60})
    monkeypatch.setattr(fitting, "RECIPE", short)
    # A fit takes as long as it tells of itself, whatever else the machine does.
    tick = itertools.count().__next__
    clock = SimpleNamespace(monotonic=tick, perf_counter=tick)
    monkeypatch.setattr(maps, "time", clock)
    made, told = planted(n=300, q=200, dim=8), []
    given = made.arguments(np.arange(300)) | {"maps": "linear,residual-mlp"}
    benchmark.upgrade(**given, tell=told.append)
    shown = [line for line in told if "min left" in line]
    shares = [int(re.search(r": (\d+) %", line)[1]) for line in shown]
    first = [s for s, line in zip(shares, shown, strict=True) if line.startswith("fitting")]
    assert max(first) < 50 and max(shares) > 90
    assert any(line.startswith("again, 4 of 4: fitting residual-mlp, 2 of 2: ") for line in shown)


def test_the_closest_map_is_one_to_the_new_space():
    """Cosines to anchors are no new vectors, whatever their size."""

    fits, refused = fit_all(
        ["relative", "procrustes", "linear", "linear:query"],
        *vectors(),
        "cosine",
        0,
        lambda w: None,
    )
    assert not refused
    assert [each.to_new for each in fits] == [False, True, True, False]
    held = np.arange(120) % 2 == 0
    items = EmbeddedSample(np.arange(120), *vectors(), ~held, held)
    assert closest(fits, items).label == "linear"
    assert closest(fits[:1], items) is None


def test_each_sample_converts_the_gallery_by_its_own_map():
    """Two samples fit maps of one name: items of a block are converted by each of them."""
    old, new = vectors()
    halves = slice(0, 60), slice(60, 120)
    block = GalleryBlock.whole(np.arange(120), old, new)
    lists = []
    for half in halves:
        (fit,), _ = fit_all(["linear"], old[half], new[half], "cosine", 0, lambda words: None)
        lists.append((map_list(fit, new), fit.conversion.convert(old)))
    for made, expected in lists:
        np.testing.assert_array_equal(made.items(block), expected)
    assert np.abs(lists[0][1] - lists[1][1]).max() > 0.01
