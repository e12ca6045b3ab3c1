"""Judgements and class labels from files: two forms, ids of two kinds, and every damage."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.dtypes import StringDType
from support import hostile

from benchmark.errors import BenchError
from benchmark.upgrade.read.qrels import Qrels, Unused, read_class_labels

QUERIES = np.array(["q0", "q1", "q2"], StringDType())
GALLERY = np.array(["d3", "d1", "d2"], StringDType())


def pairs(found):
    """Query and gallery row -> gain."""
    query = np.repeat(np.arange(len(found.offset) - 1), np.diff(found.offset))
    return dict(
        zip(zip(query.tolist(), found.rows.tolist(), strict=True), found.gains, strict=True)
    )


@pytest.fixture
def qrels(tmp_path):
    """Text -> a file of it."""

    def made(text, name="qrels.tsv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return made


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    gains=st.dictionaries(
        st.tuples(st.integers(-3, 12), st.integers(-3, 12)), st.integers(-1, 3), max_size=60
    ),
    text=st.booleans(), beir=st.booleans(), ending=st.sampled_from(["\n", "\r\n"]),
    seed=st.randoms(),
)  # fmt: skip
def test_against_a_dictionary(gains, text, beir, ending, seed, qrels):
    """Ids 0 to 9 are known, in any order; the others are counted."""
    query_ids, gallery_ids = (np.array(seed.sample(range(10), 10)) for _ in range(2))
    lines = ["query-id\tcorpus-id\tscore"] if beir else []
    for (q, d), gain in gains.items():
        lines.append(f"{q}\t{d}\t{gain}" if beir else f"{q} 0 {d}  {gain}")
    path = qrels(ending.join(["", *lines, ""]))
    ids = [each.astype(StringDType()) if text else each for each in (query_ids, gallery_ids)]
    place = [{int(i): row for row, i in enumerate(each)} for each in (query_ids, gallery_ids)]
    known = {(q, d): gain for (q, d), gain in gains.items() if q in place[0] and d in place[1]}
    wanted = {(place[0][q], place[1][d]): gain for (q, d), gain in known.items() if gain > 0}
    if not wanted:
        with pytest.raises(BenchError, match=r"qrels.tsv: .*expected"):
            Qrels.of(path, *ids)
        return
    found = Qrels.of(path, *ids)
    assert pairs(found) == wanted
    assert [*pairs(found)] == sorted(wanted)
    strangers = sum(q not in place[0] for q, _ in gains)
    assert found.unused == Unused(
        0, strangers, len(gains) - len(known) - strangers, len(known) - len(wanted)
    )


def test_what_is_told(qrels):
    path = qrels("q0 0 d1 2\nq0 0 d1 2.0\nq0 0 d2 0\nq2 0 d3 1\nq9 0 d1 1\nq1 0 d9 1\nq1 0 d1 -2\n")
    found = Qrels.of(path, QUERIES, GALLERY)
    assert pairs(found) == {(0, 1): 2.0, (2, 0): 1.0}
    assert str(found) == (
        "2 relevant pairs of 2 queries; 1 query has none and is left out; "
        "1 judgement repeated; 1 judgement of an unknown query; "
        "1 judgement of an unknown item; 2 judgements say not relevant"
    )


def test_gains_are_decimals_as_programs_print_them(qrels):
    path = qrels("q0 0 d1 0.6666666666666666\nq0 0 d2 .5\nq1 0 d1 1.\nq1 0 d2 2.5e-01\n")
    found = Qrels.of(path, QUERIES, GALLERY)
    assert pairs(found) == {(0, 1): 2 / 3, (0, 2): 0.5, (1, 1): 1.0, (1, 2): 0.25}


def test_no_file_is_no_judgement():
    none = Qrels.of(None, QUERIES, GALLERY)
    assert not none.known and str(none) == "3 queries without judgements"
    assert len(none.offset) == 4


def test_ids_are_as_they_are_written(qrels):
    """Numbers match what writes them, no other text; ids of BEIR may hold spaces."""
    path = qrels("07 0 7 1\n7 0 +7 1\n7 0 8 1\n")
    found = Qrels.of(path, np.array([7]), np.array([7, 8]))
    assert pairs(found) == {(0, 1): 1.0} and found.unused == Unused(0, 1, 1, 0)
    path = qrels("\N{BOM}query-id\tcorpus-id\tscore\na b\tü x\t1\n")
    ids = np.array(["a b"], StringDType()), np.array(["ü x"], StringDType())
    assert pairs(Qrels.of(path, *ids)) == {(0, 0): 1.0}
    huge = np.array([2**63 - 1])
    path = qrels(f"{2**63 - 1} 0 {2**63 - 1} 1\n{2**63 - 1} 0 {2**63} 1\n")
    assert pairs(Qrels.of(path, huge, huge)) == {(0, 0): 1.0}


@pytest.mark.parametrize(("text", "said"), [
    ("", "expected judgements, got none"), ("\n \n", "expected judgements, got none"),
    ("query-id\tcorpus-id\tscore\n", "expected judgements, got none"),
    ("query-id,corpus-id,score\nq0,d1,1\n", ".* got 1 columns with commas in them"),
    ("q0 d1 1\n", "line 1: expected 4 columns .* got 3 columns"),
    ("q0 0 d1 1\n\nq0 0 d1\n", "line 3: expected 4 columns"),
    ("query-id corpus-id score\n", "line 1: expected the header query-id corpus-id score with"),
    ("corpus-id\tquery-id\tscore\n", "line 1: expected the header .* got 'corpus-id query-id "),
    ("query-id\tcorpus-id\tscore\nq0\td1\n", r"line 2: expected 3 columns \(query-id, corpus-id, "),
    ("query-id\tcorpus-id\tscore\nq0\td1\t1\tx\n", "line 2: .* between tabs, got 4"),
    ("query-id\tcorpus-id\tscore\n\td1\t1\n", "line 2: query: expected 1 to 1024 letters, got 0"),
    ("q0 0 d1 high\n", "line 1: gain: expected a number, .*, got 'high'"),
    ("q0 0 d1 nan\n", "line 1: gain: expected a number, .*, got 'nan'"),
    ("q0 0 d1 1e999\n", "line 1: gain: expected a number, .*, got '1e999'"),
    ("q0 0 d1 " + "9" * 5000, "line 1: gain: expected a number, .*, got '999.*[.]{3}'"),
    ("q0 0 d1 1e300\n", "line 1: .* of at most 9 digits before the point .*, got '1e300'"),
    (gzip.compress(b"q0 0 d1 1\n", mtime=0), "expected text, got a file compressed by gzip"),
    (b"\x93NUMPY\x01\0v\0{'descr': '<f4'}\n", "expected text in UTF-8, got bytes that are none"),
    ("q0 0 d1 \u0661\n", "line 1: gain: expected a number"),
    (b"q0 0 \xff\xfe 1\n", "line 1: item: expected UTF-8, got "),
    (b"q0 0 d\0 1\n", "line 1: item: expected 1 to 1024 letters"),
    ("q0 0 " + "d" * 2000 + " 1\n", "line 1: item: expected 1 to 1024 letters, got 2000: 'ddd"),
    ("q0 0 d1 1\nq0 0 d1 2\n", "line 2: gain: expected 1 of item 'd1', as in line 1, got 2"),
    ("x 0 d1 1\n", "query: expected ids of the vectors, 'q0' and the like, got none .* but 'x'"),
    ("q0 0 x 1\n", "item: expected ids of the vectors, 'd3' and the like, got none .* but 'x'"),
    ("q0 0 d1 0\nq7 0 d1 1\n", "expected a relevant item .*: 1 judgements say not relevant, 1 are"),
    ("q0 0 \x1b[2J 1\n", r"item: .* but '.*x1b\[2J' and the like"),
])  # fmt: skip
def test_damaged(text, said, qrels):
    with pytest.raises(BenchError, match=f"qrels.tsv: {said}") as caught:
        Qrels.of(qrels(text), QUERIES, GALLERY)
    line = str(caught.value)
    assert line.isprintable() and len(line) < 600


@pytest.mark.parametrize("what", hostile.ENDLESS)
def test_what_may_lie_in_the_place_of_a_file(what, tmp_path):
    hostile.lay(what, tmp_path / "qrels.tsv")
    with pytest.raises(BenchError, match=r"qrels.tsv: (line 1: )?(expected|cannot)"):
        Qrels.of(tmp_path / "qrels.tsv", QUERIES, GALLERY)


def test_a_file_that_is_too_large(tmp_path):
    with (tmp_path / "qrels.tsv").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(BenchError, match=r"qrels.tsv: expected at most 268435456 bytes, got "):
        Qrels.of(tmp_path / "qrels.tsv", QUERIES, GALLERY)


def test_class_labels(tmp_path, qrels):
    """Row by row or by id, numbers or text: items of the query's class, each with a gain of 1."""
    np.save(tmp_path / "q.npy", [2, 1, 9])
    np.save(tmp_path / "g.npy", [1, 2, 1])
    wanted = {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 1.0}
    text = qrels("id\tlabel\nd2\t1\nother\t4\nd3\t1\nd1\t2\n", "g.tsv")
    np.save(tmp_path / "floats.npy", [1.0, 2.0, 1.0])
    for gallery in (tmp_path / "g.npy", tmp_path / "floats.npy", text):
        found = read_class_labels(tmp_path / "q.npy", gallery, QUERIES, GALLERY)
        assert pairs(found) == wanted
        assert str(found) == ("3 relevant pairs of 2 queries; 1 query has none and is left out")


def test_many_class_labels_as_a_comparison_of_all(tmp_path):
    rng = np.random.default_rng(0)
    ql, gl = rng.integers(0, 9, 40), rng.integers(3, 14, 300)
    np.save(tmp_path / "q.npy", ql)
    np.save(tmp_path / "g.npy", gl.astype("U4"))
    found = read_class_labels(tmp_path / "q.npy", tmp_path / "g.npy", np.arange(40), np.arange(300))
    expected = np.argwhere(ql[:, None] == gl)
    assert [*pairs(found)] == list(map(tuple, expected.tolist()))


@pytest.mark.parametrize(("text", "said"), [
    ("d3\t1\n", "g.tsv: line 1: expected the header id label with tabs, got 'd3 1'"),
    ("id\tlabel\nd3\n", r"g.tsv: line 2: expected 2 columns \(id, label\)"),
    ("id\tlabel\nd3\t1\nd3\t2\n", "line 3: label: expected '1' of id 'd3', as before, got '2'"),
    ("id\tlabel\nd3\t1\n", "expected a label for each of 3 ids, 2 have none, the first is 'd1'"),
    ("id\tlabel\nd3\ta\nd1\tb\nd2\tb\n", "g.tsv: expected labels of the queries, '5' and the like"),
])  # fmt: skip
def test_damaged_labels(text, said, qrels, tmp_path):
    np.save(tmp_path / "q.npy", [5, 5, 5])
    with pytest.raises(BenchError, match=said):
        read_class_labels(tmp_path / "q.npy", qrels(text, "g.tsv"), QUERIES, GALLERY)


def test_damaged_arrays_of_labels(tmp_path):
    path = tmp_path / "q.npy"
    for labels, said in [
        (np.arange(4), "q.npy: expected 3 labels, one a vector, got 4"),
        (np.ones(3) / 2, "q.npy: .*expected whole numbers or text, got 0.5"),
        (np.array([None] * 3, object), "q.npy: .*pickled Python objects, which are not read"),
    ]:
        np.save(path, labels, allow_pickle=True)
        with pytest.raises(BenchError, match=said):
            read_class_labels(path, path, QUERIES, GALLERY)


def test_too_many_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark.upgrade.read.qrels._MOST_PAIRS", 8)
    np.save(tmp_path / "q.npy", [1, 1, 1])
    with pytest.raises(BenchError, match=r"q.npy: expected at most 8 pairs of one class, got 9"):
        read_class_labels(tmp_path / "q.npy", tmp_path / "q.npy", QUERIES, GALLERY)
