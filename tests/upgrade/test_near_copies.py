"""Near copies among items without a new vector, beside the results of embedding them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from support.upgrades import planted

import benchmark
from benchmark.metrics.similarity import unit
from benchmark.upgrade.measure.near_copies import CopiesFound, NearCopies, share_above
from benchmark.upgrade.read.request import REEMBED

COPIES = 4


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """All draws."""


def gallery(seed=0, groups=400, dim=24, q=120, apart=0.15):
    """Old and new vectors of groups of near copies, and queries that each want one item.

    The old model errs alike on the copies of an item.
    """
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    which = np.repeat(np.arange(groups), COPIES)
    centres = draw(20, dim)[rng.integers(0, 20, groups)] + draw(groups, dim)
    new = centres[which] + apart * draw(len(which), dim)
    turn = np.linalg.qr(draw(dim, dim))[0].astype(np.float32)
    error = draw(groups, dim)
    old = (new + error[which]) @ turn
    relevant = rng.choice(groups, q, replace=False) * COPIES
    queries = centres[relevant // COPIES] + 0.8 * draw(q, dim)
    return old, new, (queries + 0.8 * draw(q, dim)) @ turn, queries, relevant


def scores(made, rows, **options):
    old, new, old_queries, queries, relevant = made
    document = benchmark.upgrade(
        old, new[rows], queries, old_queries, maps="linear",
        qrels={i: {int(row): 1.0} for i, row in enumerate(relevant)},
        ids={"old_gallery": np.arange(len(old)), "new_gallery": rows}, **options,
    ).document  # fmt: skip
    return {each["name"]: each["metrics"]["map"] for each in document["strategies"]}


@pytest.mark.slow
def test_copies_of_relevant_items_stand_against_them(monkeypatch):
    """Taken for items of their own they seem to stand below: scores come out far too high."""
    off, alone = [], []
    for seed, distance in enumerate(("cosine", "l2")):
        made = gallery(seed)
        n = len(made[0])
        rows = np.union1d(np.random.default_rng(seed).permutation(n)[: n // 4], made[-1])
        truth = scores(made, np.arange(n), distance=distance)
        with monkeypatch.context() as without:
            without.setattr(NearCopies, "found", lambda *_: None)
            plain = scores(made, rows, distance=distance)
        estimate = scores(made, rows, distance=distance)
        for found, to in ((estimate, off), (plain, alone)):
            to.append([found[m]["value"] - truth[m]["value"] for m in (REEMBED, "cascade", "rrf")])
    for mean, without in zip(np.mean(off, axis=0), np.mean(alone, axis=0), strict=True):
        assert abs(mean) < 0.5 * without and abs(mean) < 0.05 < without


def test_a_gallery_without_copies_has_none():
    old, new, _, queries, relevant = gallery(apart=3.0)
    true = queries @ new.T
    plain = ~np.isin(np.arange(len(old)), relevant)
    args = unit(old, "cosine"), true, true.std(axis=1), plain, "cosine"
    assert NearCopies.found(*args, 2 * len(old)) is None
    old, new, _, queries, relevant = gallery()
    true = queries @ new.T
    args = unit(old, "cosine"), true, true.std(axis=1), plain, "cosine"
    found = NearCopies.found(*args, 2 * len(old))
    assert found is not None
    its, equal = found.of(old)
    assert (its == np.arange(len(old))).all() and equal.all()  # each is its own nearest
    rng = np.random.default_rng(1)
    other = rng.standard_normal(old[::COPIES].shape).astype(np.float32)
    its, equal = found.of(other)
    assert (its == -1).all() and not equal.any()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_numbers_of_copies_above(seed):
    """Beside a loop over copies."""
    rng = np.random.default_rng(seed)
    n_query, items, k, n = rng.integers(1, 5), rng.integers(1, 7), rng.integers(0, 9), 12
    copied = CopiesFound(
        np.sort(rng.permutation(50)[:k]), rng.integers(0, items, k), rng.random(k) < 0.5
    )
    true, width = rng.normal(size=(n_query, items)), rng.uniform(0.1, 2, n_query)
    left_out = rng.integers(0, n_query, 6), rng.permutation(50)[:6]
    gone = set(zip(*(side.tolist() for side in left_out), strict=True))
    query, at = rng.integers(0, n_query, n), rng.normal(size=n)
    own = rng.integers(-1, items, n)
    found = copied.above(true, width, left_out, query, at, own)
    every = list(
        zip(*(s.tolist() for s in (copied.rows, copied.original, copied.equal)), strict=True)
    )
    for i in range(n):
        mine = [(o, equal) for row, o, equal in every if (query[i], row) not in gone]
        q, of_others = query[i], [each for each in mine if each[0] != own[i]]
        for equal, its in ((False, found.own_near), (True, found.own_equal)):
            assert its[i] == mine.count((own[i], equal))
        assert found.equal[i] == sum(true[q, o] >= at[i] for o, equal in of_others if equal)
        near = [ndtr((true[q, o] - at[i]) / width[q]) for o, equal in of_others if not equal]
        assert found.near[i] == pytest.approx(sum(near), abs=1e-9)
    whole = copied.above(true, width, left_out, query, at)
    assert (whole.near >= found.near - 1e-9).all() and (whole.equal >= found.equal).all()
    wanted = np.arange(50)
    place = {int(row): int(its) for row, its in zip(copied.rows, copied.original, strict=True)}
    assert copied.of_rows(wanted).tolist() == [place.get(row, -1) for row in range(50)]
    place = {row: its for row, its, equal in every if equal}
    found = copied.of_rows(wanted, equal=True)
    assert found.tolist() == [place.get(row, -1) for row in range(50)]


def test_the_share_of_copies_above_is_drawn_to_one_half():
    """Two copies of item 0 score 0.9 and 0.1 beside 0.5, and one of another query's is relevant."""
    items = np.array([[1.0, 0.0], [1.0, 0.01], [1.0, -0.01], [0.0, 1.0]], np.float32)
    copies = NearCopies(items, "cosine", 0.01, 0.1)
    true = np.array([[0.5, 0.9, 0.1, 0.7], [0.5, 0.9, 0.1, 0.7]], np.float32)
    rival = np.array([[False, True, True, True], [False, False, True, True]])
    share = share_above(copies, true, rival, np.array([0, 1]), np.array([0, 0]))
    assert share == pytest.approx((5 + 1) / (10 + 3))


@pytest.mark.parametrize("share", [pytest.param(0.3, marks=pytest.mark.slow), 1.0])
def test_copies_of_items_are_no_upgrade(share):
    """The old model is the new one, rotated: whatever ties with its copies by one does by both."""
    made = planted(noise=0.0, n=900, q=200)
    rng = np.random.default_rng(1)
    doubled = np.r_[:900, rng.choice(900, int(share * 900), replace=False)]
    order = rng.permutation(len(doubled))
    at = np.argsort(order)[made.relevant]
    new, old = (side[doubled][order] for side in (made.new, made.old))
    rows = np.union1d(rng.choice(len(new), 400, replace=False), at)
    arguments = {
        "old_gallery": old, "new_gallery": new[rows], "queries": made.queries,
        "old_queries": made.queries @ made.rotation, "maps": "procrustes,linear",
        "qrels": {q: {int(row): 1.0} for q, row in enumerate(at)},
        "ids": {"old_gallery": np.arange(len(old)), "new_gallery": rows},
    }  # fmt: skip
    for complete in (False, True):
        whole = {"new_gallery": new, "ids": None} if complete else {}
        document = benchmark.upgrade(**arguments | whole).document
        assert document["verdict"]["strategy"] == "keep-old"
        scores = {each["name"]: each["score"]["value"] for each in document["strategies"]}
        for name in ("procrustes", "linear", "re-embed", "cascade"):
            off = 0.015 if name in ("re-embed", "cascade") and not complete else 1e-9
            assert abs(scores[name] - scores["keep-old"]) < off, (name, complete)
