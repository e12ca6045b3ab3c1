"""Near copies among items without a new vector, beside the results of embedding them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

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
    its = found.of(old)
    assert (its == np.arange(len(old))).all()  # each is its own nearest
    rng = np.random.default_rng(1)
    other = rng.standard_normal(old[::COPIES].shape).astype(np.float32)
    assert (found.of(other) == -1).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_numbers_of_copies_above(seed):
    """Beside a loop over copies."""
    rng = np.random.default_rng(seed)
    n_query, items, k, n = rng.integers(1, 5), rng.integers(1, 7), rng.integers(0, 9), 12
    copied = CopiesFound(np.sort(rng.permutation(50)[:k]), rng.integers(0, items, k))
    true, width = rng.normal(size=(n_query, items)), rng.uniform(0.1, 2, n_query)
    left_out = rng.integers(0, n_query, 6), rng.permutation(50)[:6]
    gone = set(zip(*(side.tolist() for side in left_out), strict=True))
    query, at = rng.integers(0, n_query, n), rng.normal(size=n)
    own = rng.integers(-1, items, n)
    others, its = copied.above(true, width, left_out, query, at, own)
    for i in range(n):
        mine = [
            (row, original)
            for row, original in zip(copied.rows.tolist(), copied.original.tolist(), strict=True)
            if (query[i], row) not in gone
        ]
        assert its[i] == sum(original == own[i] for _, original in mine)
        expected = sum(
            ndtr((true[query[i], original] - at[i]) / width[query[i]])
            for _, original in mine
            if original != own[i]
        )
        assert others[i] == pytest.approx(expected, abs=1e-9)
    whole = copied.above(true, width, left_out, query, at)[0]
    assert (whole >= others - 1e-9).all()
    wanted = np.arange(50)
    place = {int(row): int(its) for row, its in zip(copied.rows, copied.original, strict=True)}
    assert copied.of_rows(wanted).tolist() == [place.get(row, -1) for row in range(50)]


def test_the_share_of_copies_above_is_drawn_to_one_half():
    """Two copies of item 0 score 0.9 and 0.1 beside 0.5, and one of another query's is relevant."""
    items = np.array([[1.0, 0.0], [1.0, 0.01], [1.0, -0.01], [0.0, 1.0]], np.float32)
    copies = NearCopies(items, "cosine", 0.01, 0.1)
    true = np.array([[0.5, 0.9, 0.1, 0.7], [0.5, 0.9, 0.1, 0.7]], np.float32)
    rival = np.array([[False, True, True, True], [False, False, True, True]])
    share = share_above(copies, true, rival, np.array([0, 1]), np.array([0, 0]))
    assert share == pytest.approx((5 + 1) / (10 + 3))
