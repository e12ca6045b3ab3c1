"""Memory while large galleries pass: it grows with neither model's vectors."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile import ids

from benchmark.perf.upgrade import _Vectors
from benchmark.upgrade.formats import joining, source
from benchmark.upgrade.read import sampling
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
    monkeypatch.setattr(joining, "IN_MEMORY", 2**20)
    monkeypatch.setattr(source, "MOST_BATCH", 2**23)  # so that all sizes have many blocks
    monkeypatch.setattr(sampling, "MOST_PAIRS", 2000)
    monkeypatch.setattr(sampling, "MOST_HELD", 1000)
    peaks = {}
    for items in (50_000, 200_000):
        made = _Vectors(tmp_path / f"{items}", items, DIM, 50, embedded or items)
        peaks[items] = peak(made)
    # Of an item's id a few copies, none of its vectors of 1,024 bytes.
    assert peaks[200_000] - peaks[50_000] < 150_000 * 100


READ = """
import re, sys, time
from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors
started = time.perf_counter()
try:
    ids = open_vectors(sys.argv[1]).ids
    print("read", len(ids))
except BenchError as error:
    print(error)
held = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())
print(int(held[1]) * 1024, time.perf_counter() - started)
"""
WRITE = """
import sys
from pathlib import Path
from support.hostile.ids import FILES
FILES[sys.argv[1]][1](Path(sys.argv[2]))
"""


def in_a_process(script, *words):
    """The lines that a script prints; other memory than the tests'."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("name", ids.FILES)
def test_ids_of_hostile_sizes(tmp_path, name):
    """A million long ids in a small file: a line, within a gigabyte."""
    path = tmp_path / ids.FILES[name][0]
    in_a_process(WRITE, name, path)
    said, numbers = in_a_process(READ, path)
    memory, seconds = map(float, numbers.split())
    assert "ids: expected " in said and path.name in said
    assert memory < 2**30, f"{memory / 2**20:.0f} MiB"
    assert seconds < 30


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_ids_of_honest_sizes_are_read(tmp_path):
    """The positive control: a million different ids of 36 letters take some hundred megabytes."""
    path = tmp_path / "a.parquet"
    names = pa.array([f"{i:036}" for i in range(1_000_000)])
    flat = pa.array(np.ones(4_000_000, np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(flat, 4)
    pq.write_table(pa.table({"id": names, "vector": vectors}), path)
    said, numbers = in_a_process(READ, path)
    assert said == "read 1000000" and 2**26 < float(numbers.split()[0]) < 2**30
