"""Memory while large galleries pass: it grows with neither model's vectors."""

import tracemalloc

import pytest

from benchmark.perf.upgrade import _Vectors
from benchmark.upgrade import judging, new_vectors
from benchmark.upgrade.formats import source
from benchmark.upgrade.run import upgrade

DIM = 256


def peak(made):
    """The most bytes of Python and NumPy that are held at a time, whatever the allocator keeps."""
    tracemalloc.start()
    try:
        upgrade(**made.given, **made.more, maps="procrustes:query")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("embedded", [4000, None])
def test_memory_is_flat_in_both_galleries(tmp_path, monkeypatch, embedded):
    """A sample embedded anew, and everything: 200,000 items take hardly more than 50,000."""
    monkeypatch.setattr(new_vectors, "IN_MEMORY", 2**20)
    monkeypatch.setattr(source, "MOST_BATCH", 2**23)  # so that all sizes have many blocks
    monkeypatch.setattr(judging, "MOST_PAIRS", 2000)
    monkeypatch.setattr(judging, "MOST_HELD", 1000)
    peaks = {}
    for items in (50_000, 200_000):
        made = _Vectors(tmp_path / f"{items}", items, DIM, 50, embedded or items)
        peaks[items] = peak(made)
    # Of an item's id a few copies, none of its vectors of 1,024 bytes.
    assert peaks[200_000] - peaks[50_000] < 150_000 * 100
