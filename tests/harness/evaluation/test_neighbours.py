"""The nearest items of some queries: against plain loops, and against the metrics."""

from __future__ import annotations

import numpy as np
import pytest
from support import naive

from benchmark.data.base import Evaluation
from benchmark.harness.evaluation.cases import Case
from benchmark.harness.evaluation.details import NearestItems
from benchmark.tasks.retrieval import Retrieval

CASES = ("old/old", "new/old", "new/new")


def evaluation(n: int, seed: int = 0, **columns) -> Evaluation:
    rng = np.random.default_rng(seed)
    return Evaluation.of(np.zeros((n, 1, 2, 2), np.uint8), rng.integers(0, n // 4, n), **columns)


def vectors(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def one_by_one(query, gallery, items, row, distance, count):
    others = [g for g in items.gallery if items.ids[g] != items.ids[row]]
    l2 = distance == "l2"
    return sorted(others, key=lambda g: -naive.score(query[row], gallery[g], l2))[:count]


@pytest.mark.parametrize("distance", ["cosine", "l2"])
@pytest.mark.parametrize(("n", "apart"), [(40, False), (40, True), (300, False)])
def test_as_a_plain_loop_finds_them(distance, n, apart) -> None:
    rows = np.arange(n)
    columns = {"query": rows[: n // 2], "gallery": rows[n // 2 :]} if apart else {}
    items = evaluation(n, **columns)
    query, gallery = vectors(n, 1), vectors(n, 2)
    found = NearestItems(items, distance, CASES)
    found.add(Case("new/old", query, gallery))
    got = found.found()
    assert got is not None
    assert got.cases == ("new/old",)
    assert got.queries.tolist() == sorted(set(got.queries.tolist()) & set(items.query.tolist()))
    assert len(got.queries) == min(128, len(items.query))
    for row, nearest, right in zip(got.queries, got.items[0], got.right[0], strict=True):
        want = one_by_one(query, gallery, items, row, distance, 5)
        assert nearest.tolist() == want
        assert right.tolist() == [items.labels[g] == items.labels[row] for g in want]


def test_the_nearest_is_right_where_the_metric_says_so() -> None:
    items = evaluation(200)
    query, gallery = vectors(200, 1), vectors(200, 2)
    result = Retrieval().evaluate(query, gallery, items, {"distance": "cosine"})
    found = NearestItems(items, "cosine", CASES)
    for case in (Case("new/old", query, gallery), Case("old/old", gallery, gallery)):
        found.add(case)
    got = found.found()
    assert got is not None
    assert got.cases == ("old/old", "new/old")  # in the order asked for
    answered = result.counts["n_query_without_match"] == 0
    assert answered
    assert got.right[1, :, 0].tolist() == [
        bool(result.per_query["cmc_at_1"][q]) for q in got.queries
    ]


def test_other_cases_are_passed_over_and_nothing_is_none() -> None:
    items = evaluation(20)
    found = NearestItems(items, "cosine", CASES)
    both = vectors(20, 1)
    found.add(Case("old/new", both, both, swapped=True))
    found.add(Case("new/middle", both, both))
    assert found.found() is None
    alone = NearestItems(evaluation(20, gallery=np.array([0]), query=np.array([0])), "l2", CASES)
    alone.add(Case("old/old", both, both))
    assert alone.found() is None


def test_the_same_queries_whatever_is_compared() -> None:
    items = evaluation(400)
    first, second = (NearestItems(items, d, CASES).queries.tolist() for d in ("cosine", "l2"))
    assert first == second
    assert len(first) == 128
