"""Re-identification: Market-1501's rules by a plain loop, and a protocol that asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark import run
from benchmark.data.base import Evaluation
from benchmark.errors import RefusedError
from benchmark.harness.execution import Compute
from benchmark.tasks.reidentification import Reidentification

PROTOCOL = """
id: across-cameras
version: 1
title: Across cameras
source: Market-1501
question: Who is it, seen by another camera?
generations:
  - {name: old, classes: [0.0, 0.5]}
  - {name: new, classes: [0.0, 1.0]}
old_head: kept
tasks: [TASK]
"""


def items(labels, camera, n_query: int) -> Evaluation:
    n = len(labels)
    rows, none = np.arange(n), np.empty(0, np.int64)
    return Evaluation(
        images=np.empty((n, 1, 1, 1), np.uint8), labels=np.array(labels), ids=rows,
        query=rows[:n_query], gallery=rows[n_query:], camera=np.array(camera), media=rows,
        group=rows, template=rows, probes=none, galleries=(), group_names=(),
    )  # fmt: skip


def by_hand(table, found: Evaluation) -> dict[str, list[float]]:
    """One query after the other, one item after the other, nearest first; no ties in the table."""
    out: dict[str, list[float]] = {"cmc_at_1": [], "cmc_at_5": [], "map": [], "minp": []}
    for i in found.query:
        seen, right, precisions, first = 0, 0, [], None
        for j in found.gallery[np.argsort(-table[i, found.gallery])]:
            mine = found.labels[j] == found.labels[i]
            if found.labels[j] == -1 or (mine and found.camera[j] == found.camera[i]):
                continue
            seen += 1
            if mine:
                right += 1
                precisions.append(right / seen)
                first = first or seen
                hardest = seen
        if first:
            out["cmc_at_1"].append(float(first == 1))
            out["cmc_at_5"].append(float(first <= 5))
            out["map"].append(sum(precisions) / right)
            out["minp"].append(right / hardest)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_a_plain_loop(seed) -> None:
    rng = np.random.default_rng(seed)
    n_query, n = 12, 80
    # -1 is junk, 0 a distractor; nobody asks for either.
    identities = np.arange(n_query) % 6 + 1
    labels = np.concatenate([identities, rng.integers(-1, 7, n - n_query)])
    found = items(labels, rng.integers(0, 3, n), n_query)
    query, gallery = (rng.normal(size=(n, 6)).astype(np.float32) for _ in range(2))
    unit = [x / np.linalg.norm(x.astype(float), axis=1, keepdims=True) for x in (query, gallery)]
    got = Reidentification().evaluate(query, gallery, found, {"distance": "cosine"})
    expected = by_hand(unit[0] @ unit[1].T, found)
    for name, values in expected.items():
        np.testing.assert_allclose(got.per_query[name], values, rtol=1e-12)
        low, high = got.intervals[name]
        assert low <= got.scores[name] <= high
    assert got.counts["n_junk"] == int((labels[n_query:] == -1).sum()) > 0
    assert got.counts["n_query_without_match"] == n_query - len(expected["map"])


def test_a_worked_case() -> None:
    """The nearest has the same camera, the next is junk, then a distractor, then the match."""
    found = items([7, 7, -1, 0, 7], [1, 1, 2, 2, 2], 1)
    x = np.array([[1, 0], [1, 0], [1, 0.1], [1, 0.2], [1, 0.3]], np.float32)
    got = Reidentification().evaluate(x, x, found, {"distance": "cosine"})
    assert got.scores == {
        "cmc_at_1": 0.0, "cmc_at_5": 1.0, "cmc_at_10": 1.0, "map": 0.5, "minp": 0.5
    }  # fmt: skip


def test_queries_of_one_camera_have_no_match() -> None:
    found = items([7, 8, 7, 8], [1, 1, 1, 1], 2)
    x = np.eye(4, dtype=np.float32)
    with pytest.raises(RefusedError, match="expected a match for one at least, got none"):
        Reidentification().evaluate(x, x, found, {"distance": "cosine"})


def test_a_protocol_runs_it(tmp_path) -> None:
    """On the toy track each image of a class has a camera of its own: as retrieval, exactly."""
    scores = {}
    for task in ("reidentification", "retrieval"):
        path = tmp_path / "across-cameras.yaml"
        path.write_text(PROTOCOL.replace("TASK", task))
        (record,) = run(
            ["independent"], str(path), "toy", store=tmp_path / "store", out=tmp_path / task,
            compute=Compute("cpu"),
        )  # fmt: skip
        scores[task] = record.scores["new/new"]
    assert {"cmc_at_1", "cmc_at_5", "cmc_at_10", "map", "minp"} == set(scores["reidentification"])
    for name, value in scores["retrieval"].items():
        assert scores["reidentification"][name] == value
