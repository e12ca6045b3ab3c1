"""CMC@1 by group, against a plain count."""

import numpy as np

from benchmark.data.base import Evaluation
from benchmark.metrics.catalog import describe
from benchmark.tasks.groups import Groups

OPTIONS = {"distance": "cosine"}


def items(labels, group, names) -> Evaluation:
    rows = np.arange(len(labels))
    return Evaluation(
        images=np.zeros((len(labels), 1, 2, 2), np.uint8), labels=np.array(labels), ids=rows,
        query=rows, gallery=rows, camera=rows, media=rows, group=np.array(group),
        template=np.full(len(labels), -1), probes=rows[:0], galleries=(), group_names=names,
    )  # fmt: skip


def test_each_group_among_all_items() -> None:
    rng = np.random.default_rng(0)
    labels, group = np.repeat(np.arange(16), 4), np.repeat(np.arange(16) % 3, 4)
    vectors = rng.standard_normal((64, 6)).astype(np.float32)
    vectors += 1.5 * rng.standard_normal((16, 6)).astype(np.float32)[labels]
    got = Groups().evaluate(vectors, vectors, items(labels, group, ("a", "b c", "d")), OPTIONS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = unit @ unit.T - 2 * np.eye(64)
    hits = labels[scores.argmax(1)] == labels
    expected = {n: hits[group == i].mean() for i, n in enumerate(("a", "b_c", "d"))}
    assert {k: v for k, v in got.scores.items() if k != "group_gap"} == {
        f"group_{n}__cmc_at_1": v for n, v in expected.items()
    }
    assert got.scores["group_gap"] == max(expected.values()) - min(expected.values())
    assert got.counts["n_query_group_a__cmc_at_1"] == 24
    low, high = got.intervals["group_a__cmc_at_1"]
    assert low <= expected["a"] <= high


def test_a_group_without_a_match_is_left_out_and_one_alone_has_no_gap() -> None:
    labels, group = [0, 0, 1], [0, 0, 1]
    vectors = np.eye(3, dtype=np.float32)
    got = Groups().evaluate(vectors, vectors, items(labels, group, ("a", "b")), OPTIONS)
    assert set(got.scores) == {"group_a__cmc_at_1"}


def test_how_it_is_called() -> None:
    assert describe("group_box_drawing__cmc_at_1").label == "CMC@1 (box drawing)"
    assert describe("group_latin__cmc_at_1").higher_is_better
