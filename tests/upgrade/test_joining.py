"""Two sources joined by ids, against a dictionary."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.dtypes import StringDType
from support.vector_files import READ, write

from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.formats.ids import rows_of
from benchmark.upgrade.formats.joining import Rearranged, join, pairs


def opened(folder, name, ids, dim=3, seed=0, rows=None):
    vectors = np.random.default_rng(seed).standard_normal((rows or len(ids), dim))
    write(folder / name, vectors.astype(np.float32), ids)
    return open_vectors(folder / name)


def joined_rows(left, right, size=5):
    batches = list(pairs(left, right, join(left, right), size))
    return tuple(np.concatenate([batch[k] for batch in batches]) for k in (0, 1))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    left=st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True),
    right=st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True),
    text=st.tuples(st.booleans(), st.booleans()), size=st.integers(1, 21),
    endings=st.tuples(st.sampled_from(READ), st.sampled_from(READ)),
)  # fmt: skip
def test_against_a_dictionary(left, right, text, size, endings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("joined")
    mine, its = (
        list(map(str, ids)) if as_text else ids
        for ids, as_text in zip((left, right), text, strict=True)
    )
    a = opened(folder, f"a{endings[0]}", mine, seed=1)
    b = opened(folder, f"b{endings[1]}", its, dim=2, seed=2)
    place = {i: row for row, i in enumerate(right)}
    wanted = [i for i in left if i in place]
    if not wanted:
        with pytest.raises(BenchError, match=f"b{endings[1]}: ids: expected some of "):
            join(a, b)
        return
    found = join(a, b)
    assert found.missing == (len(left) - len(wanted), len(right) - len(wanted))
    ours, others = joined_rows(a, b, size)
    assert a.ids[found.left].tolist() == [str(i) if text[0] else i for i in wanted]
    np.testing.assert_array_equal(ours, a.read()[[left.index(i) for i in wanted]])
    np.testing.assert_array_equal(others, b.read()[[place[i] for i in wanted]])


def test_ids_whose_accents_are_encoded_otherwise(tmp_path):
    composed, apart = ([f"{e}{k}" for k in range(4)] for e in ("\u00e9", "e\u0301"))
    sides = [opened(tmp_path, f"{k}.parquet", ids) for k, ids in enumerate((composed, apart))]
    with pytest.raises(BenchError, match=r"the same letters, encoded otherwise \(Unicode NFC"):
        join(*sides)
    other = opened(tmp_path, "2.parquet", ["a", "b"])
    with pytest.raises(BenchError, match=r"and the like$"):
        join(sides[0], other)


@pytest.mark.parametrize("in_memory", [0, 2**20], ids=["read again", "held"])
def test_rows_in_another_order(tmp_path, in_memory):
    """In the source's order, and in others, of which a copy is made: in steps and by places."""
    rng = np.random.default_rng(0)
    source = opened(tmp_path, "a.npy", None, rows=500)
    every = source.read()
    for order in (np.arange(500), np.arange(0, 500, 3), np.arange(500)[::-1], rng.permutation(500),
                  np.r_[40:90, 3:7, 200, 201], np.array([], np.int64)):  # fmt: skip
        found = Rearranged(source, order, in_memory, tmp_path)
        ends = [0, *np.sort(rng.integers(0, len(order) + 1, 3)).tolist(), len(order)]
        take = found.reader(0, len(order))
        parts = [take(a, b) for a, b in itertools.pairwise(ends)]
        np.testing.assert_array_equal(np.concatenate(parts), every[order])
        some = rng.permutation(len(order))[:20]
        np.testing.assert_array_equal(found.take(some), every[order[some]])


def test_a_copy_that_ends_early_is_an_error(tmp_path):
    """Rows that are missing would be whatever lay in memory."""
    found = Rearranged(opened(tmp_path, "a.npy", None, rows=8), np.array([4, 3]), 0, tmp_path)
    found._copy.truncate(40)
    with pytest.raises(BenchError, match=r"temporary copy of .*a\.npy: expected all of its rows"):
        found.reader(0, 2)(0, 2)


def test_what_is_told(tmp_path):
    a = opened(tmp_path, "a.parquet", ["x", "y", "z"])
    b = opened(tmp_path, "b.h5", ["z", "q", "x", "w", "v"])
    line = str(join(a, b))
    assert line == f"2 rows paired by id; 1 only in {a.name}, 3 only in {b.name}"


def test_without_ids(tmp_path):
    a, b = (opened(tmp_path, f"{n}.npy", None, rows=1300, seed=i) for i, n in enumerate("ab"))
    assert "row by row" in str(join(a, b))
    ours, others = joined_rows(a, b, 512)
    np.testing.assert_array_equal(ours, a.read())
    np.testing.assert_array_equal(others, b.read())
    short = opened(tmp_path, "short.npy", None, rows=1299)
    with pytest.raises(BenchError, match=r"short.npy: expected 1300 rows as .*a.npy, got 1299"):
        join(a, short)
    with_ids = opened(tmp_path, "ids.npy", list(range(1300)))
    for pair in ((a, with_ids), (with_ids, a)):
        with pytest.raises(BenchError, match=r"a.npy: expected ids, as .*ids.npy has some"):
            join(*pair)


def test_the_same_order_needs_no_copy(tmp_path, monkeypatch):
    a = opened(tmp_path, "a.npy", list(range(50)))
    b = opened(tmp_path, "b.parquet", [str(i) for i in range(50)], dim=7)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: pytest.fail("a copy is made"))
    assert len(joined_rows(a, b)[0]) == 50


@pytest.mark.parametrize("ending", READ)
def test_doubled_ids(ending, tmp_path):
    doubled = opened(tmp_path, f"a{ending}", ["p", "q", "r", "q", "p"])
    other = opened(tmp_path, "b.npy", ["p", "q", "r"])
    with pytest.raises(
        BenchError, match=f"a{ending}: ids: expected each once, got 'q' in rows 1 a"
    ):
        join(other, doubled)
    doubled = opened(tmp_path, f"c{ending}", [5, 7, 5])
    with pytest.raises(BenchError, match="expected each once, got 5 in rows 0 and 2"):
        doubled.ids  # noqa: B018


def test_long_text_is_found():
    """NumPy's own search misses text of more than 15 letters (2.4.6)."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc-"), rng.integers(1, 40))) for _ in range(900)]
    names = np.array(sorted(set(words)), StringDType())
    order = rng.permutation(len(names))
    known = [str(name) for name in names[order]]
    assert rows_of(known, names).tolist() == order.tolist()
