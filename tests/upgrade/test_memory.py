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
import re, sys
from benchmark.upgrade.formats import open_vectors
print(len(open_vectors(sys.argv[1]).ids))
held = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())
print(int(held[1]) * 1024)
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
def test_ids_of_honest_sizes_are_read(tmp_path):
    """A million different ids of 36 letters take some hundred megabytes."""
    path = tmp_path / "a.parquet"
    names = pa.array([f"{i:036}" for i in range(1_000_000)])
    flat = pa.array(np.ones(4_000_000, np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(flat, 4)
    pq.write_table(pa.table({"id": names, "vector": vectors}), path)
    n, held = map(int, in_a_process(READ, path))
    assert n == 1_000_000 and 2**26 < held < 2**30


STREAM = """
import re, sys
from benchmark.upgrade.formats import open_vectors
source = open_vectors(sys.argv[1], id_column=sys.argv[2])
def held():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
source.ids
next(source.vectors(500))
before = held()
print(sum(len(part) for part in source.vectors(500)), held() - before)
"""
WIDE = 128


def _copied(path, rows, _):
    with path.open("w") as file:
        file.writelines(f"{k}\t{row.round(3).tolist()}\n" for k, row in enumerate(rows))


def _indexed(path, rows, writers):
    pytest.importorskip("faiss")
    writers.by_faiss(path, "Flat", rows)


def _tabled(path, rows, _):
    lance = pytest.importorskip("lance")
    flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), WIDE)
    table = pa.table({"id": np.arange(len(rows)), "vector": flat})
    lance.write_dataset(table, str(path), max_rows_per_group=1024)


def _described(path, rows, _):
    from support.hostile.databases import write_vdf

    write_vdf(path, rows, np.arange(len(rows)))


def _collected(path, rows, writers):
    pytest.importorskip("chromadb")
    writers.by_chroma(path, rows, [f"i{k}" for k in range(len(rows))])


STORES = {
    "a.copy": (_copied, "1"), "a.index": (_indexed, ""), "a.lance": (_tabled, ""),
    "vdf": (_described, ""), "chroma": (_collected, ""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("name", STORES)
def test_memory_is_flat_in_stores_of_databases(tmp_path, name, writers):
    """Batches of 60,000 vectors, 30 MB, take hardly more than the first one did."""
    write, ids = STORES[name]
    rows = np.random.default_rng(0).standard_normal((60_000, WIDE)).astype(np.float32)
    write(tmp_path / name, rows, writers)
    (line,) = in_a_process(STREAM, tmp_path / name, ids)
    n, grown = map(int, line.split())
    assert n == len(rows)
    assert grown < rows.nbytes / 2, f"{grown / 2**20:.0f} MiB"
