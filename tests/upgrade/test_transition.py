"""Cascades by depth, and an index of both models, against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.upgrades import all_scores, ndcg, planted, studied

import benchmark
from benchmark import BenchError
from benchmark.metrics.backfill_curves import moments
from benchmark.metrics.backfill_orders import random
from benchmark.upgrade.measure.backfill_progress import POINTS, mixed_index
from benchmark.upgrade.measure.cascade_depth import DEPTHS, cascade_depths, repeats
from benchmark.upgrade.read.request import MERGED, MIXED, PLAIN, REEMBED, SCALED
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.sections import backfilling, cascade


@pytest.fixture(scope="module")
def made():
    return planted(n=700, q=50)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_depths_against_brute_force(made, distance):
    study = studied(made.whole(distance=distance))
    (found,) = cascade_depths(study)
    assert [each.depth for each in found.depths] == [d for d in DEPTHS if d < 700]
    old = all_scores(made.old_queries, made.old, distance)
    new = all_scores(made.queries, made.new, distance)
    order, whole = np.argsort(-old, axis=1), ndcg(new, made.relevant).mean()
    values = []
    for each in found.depths:
        candidates = order[:, : each.depth]
        table = np.full(new.shape, -np.inf)
        np.put_along_axis(table, candidates, np.take_along_axis(new, candidates, 1), 1)
        values.append(ndcg(table, made.relevant).mean())
        assert each.score.value == pytest.approx(values[-1], abs=1e-9)
        assert each.share.value == pytest.approx(values[-1] / whole, abs=1e-9)
        assert each.embedded == len(np.unique(candidates)) / len(candidates)
        assert each.filled == len(np.unique(candidates)) / 700
    for needed in found.needed:
        least = needed.share * whole
        enough = [d.depth for d, v in zip(found.depths, values, strict=True) if v >= least]
        assert needed.depth == min(enough, default=None)
        assert needed.surely is None or needed.surely >= needed.depth


@pytest.mark.parametrize("own", [False, True])
def test_items_that_are_embedded_by_brute_force(made, own):
    """Relevant items without a new vector are embedded as well; a query's own item is not."""
    classes = (made.new @ made.new[:4].T).argmax(1)
    part = np.sort(np.random.default_rng(0).permutation(700)[:350])
    ids = {"old_gallery": np.arange(700), "new_gallery": part}
    changes = {"qrels": None, "labels": (classes[made.relevant], classes)}
    queries, asked = made.old_queries, np.arange(1000, 1000 + len(made.old_queries))
    if own:
        queries, asked = made.old[:50], np.arange(50)
        changes |= {"queries": made.new[:50], "old_queries": queries}
        changes |= {"labels": (classes[:50], classes), "queries_are_items": True}
    ids |= {"queries": asked, "old_queries": asked}
    study = studied(made.whole(new_gallery=made.new[part], ids=ids, **changes))
    (found,) = (each for each in cascade_depths(study) if each.strategy == "cascade")
    scores = all_scores(queries, made.old, "cosine")
    if own:
        scores[asked, asked] = -np.inf
    order = np.argsort(-scores, axis=1)
    for each in found.depths:
        got = each.embedded, each.last, each.filled * 700
        assert got == pytest.approx(repeats(order[:, : each.depth]))


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_repeats_against_a_loop(queries, depth, seed):
    rng = np.random.default_rng(seed)
    candidates = np.stack([rng.permutation(12)[:depth] for _ in range(queries)])
    candidates[rng.random(candidates.shape) < 0.1] = -1
    kept, new = set(), []
    for row in candidates.tolist():
        its = set(row) - {-1} - kept
        new.append(len(its))
        kept |= its
    last = new[-max(1, queries // 4) :]
    assert repeats(candidates) == pytest.approx((np.mean(new), np.mean(last), len(kept)))


@pytest.mark.parametrize(
    ("distance", "offset", "groups", "size"),
    [("cosine", 0, 0, 1), ("dot", 0, 0, 1), ("l2", 0, 0, 1), ("l2", 300, 0, 1), ("l2", 0, 1000, 1),
     ("l2", 0, 3e12, 1e11)],
)  # fmt: skip
def test_a_mixed_index_against_brute_force(made, distance, offset, groups, size):
    """Far from 0, in groups far apart, and of great length, too."""
    rows = np.arange(len(made.new))
    apart = groups * np.eye(made.new.shape[1])
    changed = {
        name: (size * getattr(made, name) + offset + apart[its % 5]).astype(np.float32)
        for name, its in (
            ("new", rows), ("queries", made.relevant), ("old", rows), ("old_queries", made.relevant)
        )
    }  # fmt: skip
    made = replace(made, **changed)
    study = studied(made.whole(distance=distance))
    sample = study.first.sample
    held, fitted = (np.flatnonzero(mask) for mask in (sample.held, sample.fitted))
    order, (_, moment) = random(sample.rows[held], 0), moments(len(held), POINTS)
    sides = [
        all_scores(queries, items, distance)
        for queries, items in ((made.queries, made.new), (made.old_queries, made.old))
    ]
    plain = all_scores(made.queries, made.old, distance)
    at = np.searchsorted(held, made.relevant)
    found = {each.start: each.points for each in mixed_index(study)}
    assert list(found) == [PLAIN, MERGED, SCALED]
    for point in range(POINTS):
        filled = np.isin(held, held[order[moment <= point]])
        new, old = (side[:, held] for side in sides)
        table = np.where(filled, new, old)
        assert found[MERGED][point]["value"] == pytest.approx(ndcg(table, at).mean(), abs=1e-6)
        table = np.where(filled, new, plain[:, held])
        assert found[PLAIN][point]["value"] == pytest.approx(ndcg(table, at).mean(), abs=1e-6)
        scaled = [
            (side[:, held] - side[:, fitted].mean()) / side[:, fitted].std() for side in sides
        ]
        table = np.where(filled, *scaled)
        assert found[SCALED][point]["value"] == pytest.approx(ndcg(table, at).mean(), abs=0.02)


def test_a_sample_and_what_is_told(made):
    """Estimated depths are near those of everything embedded; tables show what is asked."""
    rows = made.sample(400)
    report = benchmark.upgrade(**made.arguments(rows), transition=True)
    whole = studied(made.arguments(np.arange(len(made.new))))
    (true,) = (each for each in cascade_depths(whole) if each.strategy == "cascade")
    found = next(c for c in report.document["cascade"] if c["strategy"] == "cascade")
    for each, exact in zip(found["depths"], true.depths, strict=True):
        assert each["score"]["value"] == pytest.approx(exact.score.value, abs=0.04)
    assert {"cascade", "cascade-mapped"} == {c["strategy"] for c in report.document["cascade"]}
    starts = [each["start"] for each in report.document["backfilling"]]
    assert starts[1:] == [PLAIN, MERGED, SCALED]
    ends = {each["points"][-1]["value"] for each in report.document["backfilling"]}
    assert max(ends) - min(ends) < 1e-6  # all are filled
    assert "surely" in str(report) and "mixed, both queries" in str(report)
    assert len(cascade(report.document).rows) == 2 * len(found["depths"])
    assert len(backfilling(report.document).rows) == 4


@pytest.mark.parametrize("change", [{"qrels": None}, {"old_queries": None}])
def test_by_agreement_and_without_the_old_model(made, change):
    given = made.arguments(made.sample(400)) | {"transition": True} | change
    document = benchmark.upgrade(**given).document
    names = {each["strategy"] for each in document["cascade"]}
    starts = {each["start"] for each in document["backfilling"]}
    assert ("cascade" in names) == (MERGED in starts) == ("qrels" in change)
    if "qrels" in change:
        assert all(each["points"][-1]["value"] == 1.0 for each in document["backfilling"])
    assert REEMBED in {each["name"] for each in document["strategies"]}


def test_what_the_constraints_rule_out_is_told(made):
    """Without the items nothing is embedded again; an index that stays is not mixed."""
    given = made.arguments(made.sample(400)) | {"transition": True, "maps": "procrustes"}
    with pytest.raises(BenchError, match="transition: expected sources, got none"):
        benchmark.upgrade(**given, sources=False)
    document = benchmark.upgrade(**given | {"old_queries": None}, index=False).document
    assert not cascade(document).rows
    assert [*map(str, cascade(document).notes)] == [
        "No cascade: there are no queries by the old model, and no map of queries.",
        "No mixed index, as the index stays as it is.",
    ]
    assert cascade(document).notes[0] in render(document)


def test_a_cascade_that_cannot_be_had_is_marked(made):
    """Unless items may be embedded while a query waits."""
    given = made.arguments(made.sample(400)) | {"transition": True, "maps": "procrustes"}
    document = benchmark.upgrade(**given).document
    note = "(no) is what the constraints do not allow."
    said = "cascade (no), for re-embedding's score: "
    found = cascade(document)
    assert found.rows[0].labels[0].text == "cascade (no)" and note in found.notes
    assert any(line.startswith(said) for line in found.notes) and said[:12] in render(document)
    found = cascade(document | {"left_out": {}})
    assert found.rows[0].labels[0].text == "cascade" and "(no)" not in str(found.notes)


def test_a_note_on_mixed_indexes_stands_below_those_alone(made):
    """Orders of backfilling alone have none, whatever else is shown."""
    given = made.arguments(made.sample(400)) | {"transition": True, "maps": "procrustes"}
    document = benchmark.upgrade(**given).document
    assert "A mixed index keeps" in str(backfilling(document).notes)
    plain = [each for each in document["backfilling"] if each["start"] not in MIXED]
    assert plain and not backfilling(document | {"backfilling": plain}).notes
