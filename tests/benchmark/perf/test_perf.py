"""The benchmarks run and give rows; what they measure is nobody's assertion."""

import json

import pytest

from benchmark import perf

KEYS = {"name", "seconds", "against", "ratio", "memory_mib", "size"}


@pytest.mark.parametrize("name", ["ranking", "verification", "identification", "backfill"])
def test_rows(name, monkeypatch):
    from benchmark.perf import peers

    monkeypatch.setattr(peers, "ALL", {k: v for k, v in peers.ALL.items() if v[0] == "sklearn"})
    rows = perf.run(name, queries=60, gallery=40, dim=8, classes=5)
    assert rows
    for row in rows:
        assert set(row) == KEYS
        assert row["seconds"] >= 0
        assert (row["against"] is None) == (row["ratio"] is None)
    json.dumps(rows)


@pytest.mark.slow
def test_every_peer_runs():
    rows = perf.run("ranking", queries=40, gallery=30, dim=8, classes=5)
    assert len(rows) > 4


def test_refusals():
    with pytest.raises(ValueError, match="name: expected one of"):
        perf.run("nothing")
    with pytest.raises(ValueError, match="sizes: expected"):
        perf.run("ranking", width=3)
    with pytest.raises(ValueError, match="dim: expected at least 1"):
        perf.run("ranking", dim=0)
