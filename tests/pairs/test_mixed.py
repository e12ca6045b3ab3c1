"""Vectors of other models and of other corpora, planted in an index."""

import json

import numpy as np
import pytest

from benchmark.metrics.similarity import unit
from benchmark.pairs.mixed import MODEL, ONE, TOPIC, measure, mixed_table
from benchmark.upgrade.read.demo import demo_arguments


@pytest.fixture(scope="module")
def rows():
    """Glyphs by two models, those of other classes by the first, and its first numbers."""
    given = demo_arguments()
    place = {key: k for k, key in enumerate(given["ids"]["old_gallery"].tolist())}
    at = np.array([place[key] for key in given["ids"]["new_gallery"].tolist()])
    old, new = (unit(given[k].astype(np.float32), "cosine") for k in ("old_gallery", "new_gallery"))
    rest = np.setdiff1d(np.arange(len(old)), at)[:1500]
    found = {
        ("one", "a"): old[at], ("one", "b"): new, ("two", "a"): old[rest],
        ("one", "cut"): unit(old[at][:, :60], "cosine"),
    }  # fmt: skip
    return list(measure(found))


def test_what_is_planted(rows):
    planted = {(r["corpus"], r["model"], r["planted"], r["by"]) for r in rows}
    assert planted == {
        ("one", "a", ONE, ""), ("one", "b", ONE, ""), ("two", "a", ONE, ""),
        ("one", "cut", ONE, ""),
        # The first numbers of a are those of cut, which is no other model.
        ("one", "a", MODEL, "b"), ("one", "b", MODEL, "a"), ("one", "cut", MODEL, "b"),
        ("one", "a", TOPIC, "two"), ("two", "a", TOPIC, "one"),
    }  # fmt: skip


def test_what_is_told(rows):
    for row in rows:
        assert row["told"] == (row["planted"] == MODEL), row
        if row["told"]:
            assert 0.03 < row["share"] < 0.15


def test_the_table(rows):
    table = mixed_table(json.loads(json.dumps(rows)))
    words = [[c.text for c in (*line.labels, *line.cells[0])] for line in table.rows]
    assert words == [
        ["one", "0 of 3", "3 of 3", "0 of 1"], ["two", "0 of 1", "0 of 0", "0 of 1"],
        ["all", "0 of 4", "3 of 3", "0 of 2"],
    ]  # fmt: skip
