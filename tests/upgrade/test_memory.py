"""Memory while large galleries pass: it grows with neither model's vectors."""

import pytest

from benchmark.perf import measure
from benchmark.perf.upgrade import _Vectors
from benchmark.upgrade import judging, new_vectors
from benchmark.upgrade.formats import source
from benchmark.upgrade.run import upgrade

DIM = 256


@pytest.mark.slow
@pytest.mark.parametrize("embedded", [4000, None])
def test_memory_is_flat_in_both_galleries(tmp_path, monkeypatch, embedded):
    """A sample embedded anew, and everything: 200,000 items take hardly more than 50,000."""
    monkeypatch.setattr(new_vectors, "IN_MEMORY", 2**20)
    monkeypatch.setattr(source, "MOST_BATCH", 2**23)  # so that all sizes have many blocks
    monkeypatch.setattr(judging, "MOST_PAIRS", 2000)
    monkeypatch.setattr(judging, "MOST_HELD", 1000)
    grown = {}
    for items in (10_000, 50_000, 200_000):  # the first one is to load and compile
        made = _Vectors(tmp_path / f"{items}", items, DIM, 50, embedded or items)
        report = lambda: upgrade(**made.given, **made.more, maps="procrustes:query")  # noqa: B023, E731
        grown[items] = measure.once(report).memory_mib
    if grown[200_000] is None:
        pytest.skip("the system does not tell the peak of a process")
    vectors = 4 * 150_000 * DIM / 2**20
    assert grown[200_000] - grown[50_000] < vectors / 4
