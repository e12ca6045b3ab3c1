"""Two lists as one: items behind both windows follow in the new list's order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.upgrades import studied

from benchmark.config import registry
from benchmark.contract import RankFusion
from benchmark.upgrade.measure.evaluation import evaluate
from benchmark.upgrade.read.gallery import Whole

N, Q, CLASSES, WINDOW = 1500, 40, 3, 150


@pytest.fixture(scope="module")
def arguments():
    """Classes of hundreds of items, of which many are behind both windows."""
    rng = np.random.default_rng(0)
    labels, asked = rng.integers(0, CLASSES, N), rng.integers(0, CLASSES, Q)
    centres = rng.normal(size=(2, CLASSES, 16))
    made = [
        (centres[model][of] + (1.6, 1.2)[model] * rng.normal(size=(len(of), 16))).astype(np.float32)
        for model in range(2) for of in (labels, asked)
    ]  # fmt: skip
    return {
        "old_gallery": made[0], "old_queries": made[1], "new_gallery": made[2], "queries": made[3],
        "labels": (asked, labels), "maps": "procrustes",
    }  # fmt: skip


@pytest.fixture(scope="module")
def study(arguments):
    return studied(arguments)


def orders(queries, items):
    """Items of each query, the nearest first."""
    lists = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, items))
    return np.argsort(-np.matmul(*(x if k == 0 else x.T for k, x in enumerate(lists))), axis=1)


def fused_ranks(first, second, window, k):
    """Least and largest rank of each item: by their sums, then in the second list's order.

    Sums that are equal but for rounding may come in either order.
    """
    score: dict[int, float] = {}
    for each in (first, second):
        for place, item in enumerate(each[:window], 1):
            score[item] = score.get(item, 0.0) + 1 / (k + place)
    sums = np.sort([*score.values()])
    ends = {
        item: (len(sums) - np.searchsorted(sums, its + 1e-12) + 1,
               len(sums) - np.searchsorted(sums, its - 1e-12))
        for item, its in score.items()
    }  # fmt: skip
    rest = [item for item in second if item not in score]
    return ends | {item: (len(score) + n,) * 2 for n, item in enumerate(rest, 1)}


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 2 * N), st.sampled_from([0.0, 60.0]))
def test_ranks_are_those_of_plain_lists(study, arguments, window, k):
    plan, relevant = study.first.plan, study.relevant
    some = [replace(s, merge=RankFusion(window, k)) for s in plan.strategies if s.name == "rrf"]
    sample = study.inputs.samples[0]
    found = evaluate(
        Whole(study.inputs.gallery), relevant, sample.known, replace(plan, strategies=some),
        "cosine",
    ).ranks["rrf"]  # fmt: skip
    lists = [
        orders(arguments[q], arguments[g])
        for q, g in (("old_queries", "old_gallery"), ("queries", "new_gallery"))
    ]
    query, row = relevant.counted_pairs
    for q in range(0, Q, 7):
        expected = fused_ranks(lists[0][q].tolist(), lists[1][q].tolist(), window, k)
        mine = query == q
        low, high = np.transpose([expected[item] for item in row[mine].tolist()])
        assert ((low <= found[mine]) & (found[mine] <= high)).all()


def test_a_sample_tells_what_all_new_vectors_say(arguments, monkeypatch):
    """Relevant items without a new vector are left out, there and here."""
    method = registry.method

    def narrow(label, params=None):
        return method(label, {"window": WINDOW} if label == "rrf" else params)

    monkeypatch.setattr(registry, "method", narrow)
    part = np.sort(np.random.default_rng(1).permutation(N)[:400])
    ids = {"old_gallery": np.arange(N), "new_gallery": part}
    some = arguments | {"new_gallery": arguments["new_gallery"][part], "ids": ids}
    estimated = studied(some).outcomes["rrf"]
    assert estimated.estimated
    asked, labels = arguments["labels"]
    lists = [
        orders(arguments[q], arguments[g])
        for q, g in (("old_queries", "old_gallery"), ("queries", "new_gallery"))
    ]
    precisions, found = [], []
    for q in range(Q):
        relevant = labels == asked[q]
        gone = relevant & ~np.isin(np.arange(N), part)
        first, second = ([i for i in each[q].tolist() if not gone[i]] for each in lists)
        ranks = fused_ranks(first, second, WINDOW, 60.0)
        its = np.sort([ranks[i][1] for i in np.flatnonzero(relevant & ~gone).tolist()])
        precisions.append(np.mean(np.arange(1, len(its) + 1) / its))
        found.append(np.mean(its <= len({*first[:WINDOW]} | {*second[:WINDOW]})))
    assert np.mean(found) < 0.9  # some are behind both windows
    assert np.mean(estimated.scores["map"]) == pytest.approx(np.mean(precisions), abs=0.02)
