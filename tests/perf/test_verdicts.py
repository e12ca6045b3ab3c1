"""The simulation of verdicts: its rows, and that what is committed is rarely wrong."""

import json
from pathlib import Path

import pytest

from benchmark.perf import verdicts

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "verdicts.json"


def test_draws_have_the_upgrade_and_share_that_they_say():
    import numpy as np

    rng = np.random.default_rng(0)
    drawn = verdicts._draw(400_000, 1, 0.1, 0.8, rng)
    means = {name: values.mean() for name, values in drawn.items()}
    upgrade = means["re-embed"] - means["keep-old"]
    assert upgrade == pytest.approx(0.1, abs=0.005)
    assert (means["map 0"] - means["keep-old"]) / upgrade == pytest.approx(0.8, abs=0.02)
    none = verdicts._draw(400_000, 1, 0.0, 0.0, rng)
    assert none["re-embed"].mean() == pytest.approx(none["keep-old"].mean(), abs=0.003)


def test_rows_of_a_small_simulation(monkeypatch):
    monkeypatch.setattr(verdicts, "QUERIES", (100,))
    rows = verdicts.rows(samples=2)
    assert [(row["tried"], row["share"]) for row in rows] == [
        (tried, share) for tried in verdicts.TRIED for share in (None, 0.8, 0.9, 1.0)
    ]
    for row in rows:
        assert row["keep"] + row["strategy"] + row["re-embed"] == pytest.approx(1)
    assert rows == verdicts.rows(samples=2)


def test_what_is_committed_is_rarely_wrong():
    """One in twenty at most; with 200 draws two standard errors are 3 %."""
    rows = json.loads(FIGURES.read_text())["rows"]
    assert {row["queries"] for row in rows} == set(verdicts.QUERIES)
    for row in rows:
        assert row["draws"] >= 200 and row["wrong"] <= 0.05 + 0.03, row
    mean = sum(row["wrong"] for row in rows) / len(rows)
    assert mean <= 0.05
    large = [row for row in rows if row["queries"] == 1000 and row["share"] == 1.0]
    assert large and all(row["missed"] <= 0.05 for row in large)
