"""The simulation of differences that few queries make: its rows, and what is committed."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmark.perf import differences

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "differences.json"


def test_rows_of_a_small_simulation(monkeypatch):
    monkeypatch.setattr(differences, "QUERIES", (20,))
    rows = differences.rows(samples=3)
    kinds = [(row["differences"], row["differing"]) for row in rows]
    assert kinds == [(k, share) for k in differences.KINDS for share in differences.DIFFERING]
    for row in rows:
        drawn = differences.KINDS[row["differences"]](np.random.default_rng(1), 200_000)
        assert row["mean"] == pytest.approx(row["differing"] * drawn.mean(), abs=5e-3)
        assert 0 <= row["coverage"] <= 1 and row["half"] > 0
    assert rows == differences.rows(samples=3)


def test_what_is_committed_holds():
    """Below what they say only where a mean of few hits is seen by samples that may have none."""
    rows = json.loads(FIGURES.read_text())["rows"]
    assert {row["queries"] for row in rows} == set(differences.QUERIES)
    low = [row for row in rows if row["coverage"] < 0.93]
    assert all(row["coverage"] > 0.75 for row in low)
    assert all(("hit by" in row["differences"]) or ("log" in row["differences"]) for row in low)
    assert all(row["coverage"] > 0.9 for row in rows if row["differing"] <= 0.05)
    assert sum(row["coverage"] for row in rows) / len(rows) > 0.95


def test_few_small_differences_are_no_surer_than_their_number():
    """Two of 200 queries differ by little: the largest difference there is may be far larger."""
    halves = []
    for differing in (0, 2, 20):
        values = np.zeros(200)
        values[:differing] = 1e-3
        low, high = differences.mean_difference(values).interval()
        halves.append((high - low) / 2)
    none, two, twenty = halves
    assert none > two > none / 3 and two > twenty > none / 10
