"""The simulation of intervals: its rows, and that what is committed holds."""

import json
from pathlib import Path

import pytest

from benchmark.perf import coverage

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "coverage.json"


def test_rows_of_a_small_simulation(monkeypatch) -> None:
    monkeypatch.setattr(coverage, "DESIGNS", ((12, 6),))
    monkeypatch.setattr(coverage, "IMPOSTORS", (10, 30))
    rows = coverage.rows(samples=3)
    kinds = {row["metric"] for row in rows}
    assert {"cmc_at_1", "map", "minp", "rank_1", "tar_at_far", "worst_cmc_at_1"} <= kinds
    assert {"difference of map", "difference of tar_at_far", "share_above_cmc_at_1"} <= kinds
    for row in rows:
        few = row["impostors"] == 10
        assert (row["coverage"] is None) == few == (row["samples"] == 0)
        assert row["nominal"] == 0.95 and -1 <= row["score"] <= 1
        assert few or 0 <= row["coverage"] <= 1
    assert rows == coverage.rows(samples=3)


def test_what_is_committed_is_near_the_nominal() -> None:
    rows = json.loads(FIGURES.read_text())["rows"]
    assert {(row["classes"], row["items"]) for row in rows} == {(30, 20), (100, 10), (500, 20)}
    assert {row["impostors"] for row in rows} == {None, 10, 30, 100, 1000}
    for row in rows:
        if row["impostors"] == 10:
            assert row["coverage"] is None
        else:
            assert row["samples"] >= 100
            assert row["coverage"] == pytest.approx(0.94, abs=0.04), row
