"""Stores of vectors as databases' own programs write them: Chroma, LanceDB, faiss, VDF."""

import pickle
import resource
import shutil
import sqlite3
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile.databases import write_vdf
from support.vector_files import FILES, ROWS, TEXT, refuses

from benchmark.errors import BenchError
from benchmark.upgrade.formats import files_read, open_vectors
from benchmark.upgrade.formats.rows import ArrayRows
from benchmark.upgrade.read.health import compare, examine_file

UNIT = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)


@pytest.fixture
def chroma(tmp_path):
    """The committed folder of Chroma."""
    with zipfile.ZipFile(FILES / "chroma.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "chroma"


def by_id(source):
    """Vectors in the order of ids."""
    order = np.argsort(source.ids)
    return source.ids[order].tolist(), source.read()[order]


def test_chroma(chroma):
    for name in (chroma, f"{chroma}:docs"):
        source = open_vectors(name)
        assert (source.rows, source.dim, source.metric) == (12, 4, "cosine")
        ids, rows = by_id(source)
        assert ids == TEXT
        # All are in its log, as they were added; in its graph they would be of length 1.
        np.testing.assert_allclose(rows, UNIT, rtol=1e-6)
    assert chroma / "chroma.sqlite3" in files_read(chroma)
    with pytest.raises(BenchError, match="expected one collection, got docs"):
        open_vectors(f"{chroma}:other")


def test_lancedb():
    pytest.importorskip("lance")
    for name in ("lancedb", "lancedb:docs", "lancedb/docs.lance"):
        source = open_vectors(FILES / name)
        assert source.ids.tolist() == TEXT
        np.testing.assert_array_equal(source.read(), ROWS)
    with pytest.raises(BenchError, match=r"expected a column 'other/vector'"):
        open_vectors(f"{FILES / 'lancedb'}:other/vector")


def test_flat_indexes_need_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    source = open_vectors(FILES / "faiss.index")
    assert source.metric == "l2" and source.told == []
    assert source.ids.tolist() == [7 * k for k in range(12)]
    np.testing.assert_array_equal(source.read(), ROWS)
    with pytest.raises(BenchError, match="needs the package faiss"):
        open_vectors(FILES / "faiss-sq8.index")


@pytest.mark.parametrize("name", ["faiss-sq8.index", "faiss-pq.index", "faiss-ivf.index"])
def test_committed_indexes(name):
    """Twelve vectors: of inverted lists as they are, of fewer bits what the library reads back."""
    faiss = pytest.importorskip("faiss")
    source = open_vectors(FILES / name)
    found = source.read()
    index = faiss.read_index(str(FILES / name))
    if "ivf" in name:
        index.make_direct_map()
        np.testing.assert_array_equal(found, ROWS)
    np.testing.assert_array_equal(found, index.reconstruct_n(0, 12))
    assert bool(source.told) == ("ivf" not in name)


def test_inverted_lists_with_an_id_twice_are_refused(tmp_path):
    """The library leaves a row of what it reads back as the memory was."""
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(ROWS.shape[1]), ROWS.shape[1], 1)
    index.train(ROWS)
    index.add_with_ids(ROWS, np.array([0, 0, *range(1, 11)]))
    faiss.write_index(index, str(tmp_path / "a.index"))
    with pytest.raises(BenchError, match="expected ids in an IndexIDMap around it"):
        open_vectors(tmp_path / "a.index")


@pytest.mark.parametrize("spec", [
    "Flat", "IDMap,Flat", "SQ8", "IDMap,SQ8", "PQ4x4np", "IVF4,Flat", "IVF4,SQ8", "IVF4,PQ4x4np",
    "HNSW8", "IVF32,PQ8np", "PCA8,Flat",
])  # fmt: skip
def test_indexes_of_faiss(spec, writers, tmp_path):
    pytest.importorskip("faiss")
    rows = np.random.default_rng(0).standard_normal((1000, 16)).astype(np.float32)
    writers.by_faiss(tmp_path / "a.faiss", spec, rows, inner=spec == "Flat")
    source = open_vectors(tmp_path / "a.faiss")
    assert (source.rows, source.dim) == rows.shape
    assert source.metric == ("dot" if spec == "Flat" else "l2")
    found = source.read()
    some = np.concatenate(list(source.vectors(64, 100, 300)))
    # A transform is undone by a product of matrices, which sums as many rows have it.
    np.testing.assert_allclose(some, found[100:300], rtol=0, atol=1e-5 * ("PCA" in spec))
    elsewhere = pickle.loads(pickle.dumps(source))  # as another process reads it
    np.testing.assert_array_equal(elsewhere.read(), found)
    lossy = any(word in spec for word in ("SQ", "PQ", "PCA"))
    assert bool(source.told) == lossy
    if not lossy:
        np.testing.assert_array_equal(found, rows)
        return
    names = np.arange(1000)
    told = list(compare(ArrayRows("stored", found, names), ArrayRows("fresh", rows, names)))[-1]
    cosine = (found * rows).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(rows, axis=1)
    if "SQ" in spec:
        assert told.what == "fresh" and np.median(cosine) > 0.999
    elif told.what == "lost":
        assert f"a cosine of {np.median(cosine):.3f}" in told.words


def test_vdf_of_vector_io():
    """The committed folder: three files of five rows, without a column of ids that is named."""
    source = open_vectors(FILES / "vdf")
    assert (source.rows, source.dim, source.metric) == (12, 4, "cosine")
    assert source.ids.tolist() == TEXT
    np.testing.assert_array_equal(source.read(), ROWS)
    assert [line.partition(": ")[2] for line in source.told] == [
        "vectors are by all-MiniLM-L6-v2, as VDF_META.json says"
    ]


@pytest.mark.slow
def test_what_vector_io_writes_today(writers, tmp_path):
    """Of a model that nobody has named."""
    pytest.importorskip("vdf_io")
    source = open_vectors(writers.by_vdf_io(tmp_path, MANY[:500], NAMES[:500]))
    assert source.told == [] and source.metric == "cosine"
    at = [int(each[1:]) for each in source.ids]
    assert sorted(at) == list(range(500))
    np.testing.assert_array_equal(source.read(), MANY[at])


def test_vdf(tmp_path):
    folder = write_vdf(tmp_path / "a", ROWS, TEXT)
    for name in (folder, f"{folder}:docs"):
        source = open_vectors(name)
        assert source.metric == "dot" and source.ids.tolist() == TEXT
        assert source.told == [f"{name}: vectors are by all-MiniLM-L6-v2, as VDF_META.json says"]
        np.testing.assert_array_equal(source.read(), ROWS)
    assert folder / "docs" / "1.parquet" in files_read(folder)
    few = open_vectors(write_vdf(tmp_path / "few", ROWS, TEXT, model_name="NOT_PROVIDED",
                                 total_vector_count=20))  # fmt: skip
    said = "12 of 20 vectors were exported, as VDF_META.json says"
    assert [line.partition(": ")[2] for line in few.told] == [said]
    lost = open_vectors(write_vdf(tmp_path / "lost", ROWS, TEXT, exported_vector_count=16))
    assert lost.told[-1].endswith(": expected 16 vectors as VDF_META.json says, got 12")
    *_, model, said = examine_file(lost)
    assert str(model) == "ok    vectors are by all-MiniLM-L6-v2, as VDF_META.json says"
    assert str(said) == "LOOK  expected 16 vectors as VDF_META.json says, got 12"
    open_vectors(write_vdf(tmp_path / "unknown", ROWS, TEXT, dimensions=-1))
    for number, (changes, said) in enumerate([
        ({"data_path": "../.."}, "expected its data in the folder"),
        ({"data_path": "/etc"}, "expected its data in the folder"),
        ({"dimensions": 5}, "expected 5 numbers as VDF_META.json says, got 4"),
        ({"vector_columns": ["other"]}, "expected a column 'other'"),
    ]):  # fmt: skip
        refuses(write_vdf(tmp_path / str(number), ROWS, TEXT, **changes), said)
    for content in ("", "[]", '{"indexes": 3}', '{"indexes": {"a": [3]}}', '{"indexes": {}}'):
        (folder / "VDF_META.json").write_text(content)
        refuses(folder)


def test_vdf_of_two_columns(tmp_path):
    folder = write_vdf(tmp_path / "a", ROWS, TEXT, vector_columns=["vector", "other"])
    (file,) = folder.rglob("*.parquet")
    table = pq.read_table(file)
    other = pa.array((2 * ROWS).tolist(), pa.list_(pa.float32()))
    pq.write_table(table.append_column("other", other), file)
    first = open_vectors(folder)
    np.testing.assert_array_equal(first.read(), ROWS)
    assert first.told[-1].endswith(
        ": vectors of the column vector, the first; there are also other, which FOLDER:COLUMN names"
    )
    for name, column in ((f"{folder}:other", ""), (f"{folder}:docs/other", ""), (folder, "other")):
        source = open_vectors(name, column)
        np.testing.assert_array_equal(source.read(), 2 * ROWS)
        assert not any("there are also" in line for line in source.told)
    refuses(f"{folder}:nosuch", "expected one index")


MANY = np.random.default_rng(0).standard_normal((2500, 8)).astype(np.float32)
NAMES = [f"i{k}" for k in range(2500)]


@pytest.mark.slow
def test_what_chroma_writes_today(writers, tmp_path):
    """More than one batch, with deletions and changes."""
    pytest.importorskip("chromadb")
    collection = writers.by_chroma(tmp_path / "chroma", MANY, NAMES)
    collection.delete(ids=["i7"])
    collection.update(ids=["i9"], embeddings=[[9.0] * 8])
    source = open_vectors(tmp_path / "chroma")
    at = [int(each[1:]) for each in source.ids]
    assert sorted(at) == [k for k in range(2500) if k != 7] and source.metric == "l2"
    expected = MANY.copy()
    expected[9] = 9.0
    np.testing.assert_array_equal(source.read(), expected[at])
    some = np.concatenate(list(source.vectors(64, 1990, 2400)))
    np.testing.assert_array_equal(some, expected[at][1990:2400])


@pytest.mark.slow
def test_what_lancedb_writes_today(writers, tmp_path):
    pytest.importorskip("lancedb")
    pytest.importorskip("lance")
    table = writers.by_lancedb(tmp_path / "lancedb", MANY, NAMES)
    table.delete("id = 'i7'")
    source = open_vectors(tmp_path / "lancedb")
    at = [int(each[1:]) for each in source.ids]
    assert len(at) == 2499
    np.testing.assert_array_equal(source.read(), MANY[at])


@pytest.mark.slow
def test_what_pgvector_writes_today(writers, tmp_path):
    """By a server of its own."""
    pytest.importorskip("pgserver")
    pytest.importorskip("psycopg")
    writers.by_postgres(tmp_path, MANY, NAMES)
    for ending in ("copy", "csv"):
        column = "1" if ending == "copy" else "id"
        source = open_vectors(tmp_path / f"pgvector.{ending}", id_column=column)
        assert source.ids.tolist() == NAMES
        np.testing.assert_allclose(source.read(), MANY, rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["faiss.index", "faiss-sq8.index", "faiss-pq.index", "faiss-ivf.index"]
)
def test_indexes_that_are_cut_off(name, tmp_path):
    if name != "faiss.index":
        pytest.importorskip("faiss")
    whole = (FILES / name).read_bytes()
    for n in range(len(whole)):
        (tmp_path / name).write_bytes(whole[:n])
        refuses(tmp_path / name)


def test_indexes_that_claim_much(tmp_path):
    path = tmp_path / "a.index"
    for dim, rows, n in [(4, 2**60, 2**62), (2**30, 2**30, 2**60), (-1, 5, 5), (4, 0, 0),
                         (4, 3, 13), (4, 2**62, 0)]:  # fmt: skip
        header = struct.pack("<iqqqBi", dim, rows, 0, 0, 1, 1) + struct.pack("<Q", n)
        path.write_bytes(b"IxF2" + header + bytes(48))
        refuses(path)
    path.write_bytes(b"XXXX" + bytes(60))
    refuses(path, "got the mark")


@pytest.mark.parametrize(("name", "at"), [("faiss-sq8.index", 109), ("faiss-pq.index", 137)])
def test_a_compressed_index_that_claims_much(name, at, tmp_path):
    """A file of 161 bytes that says it has 2^40 of codes: no memory is taken for them."""
    faiss = pytest.importorskip("faiss")
    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):
        pytest.skip("this faiss knows no limit")
    before = faiss.get_deserialization_vector_byte_limit()
    damaged = bytearray((FILES / name).read_bytes())
    damaged[at] = 1
    (tmp_path / name).write_bytes(damaged)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refuses(tmp_path / name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < held + 2**18  # KiB
    assert faiss.get_deserialization_vector_byte_limit() == before


def test_damaged_folders_of_chroma(chroma):
    database = chroma / "chroma.sqlite3"
    whole = database.read_bytes()
    for n in (0, 50, 4096, 60_000, len(whole) - 5000):
        database.write_bytes(whole[:n])
        refuses(chroma)
    for statement, said in [
        ("UPDATE embeddings_queue SET vector = x'00' WHERE seq_id = 3", "expected 4 numbers"),
        ("UPDATE collections SET dimension = 1000000000", "expected vectors in the collection"),
        ("UPDATE segments SET id = '../../../etc' WHERE scope = 'VECTOR'; "
         "DELETE FROM embeddings_queue WHERE seq_id = 3", "expected a segment of vectors"),
        ("DELETE FROM embeddings_queue WHERE seq_id = 3", "cannot be read|regular file|vectors"),
        ("DROP TABLE embeddings; CREATE VIEW embeddings AS SELECT 1 AS embedding_id, 2 AS "
         "segment_id", "expected a table 'embeddings' in chroma.sqlite3, got view"),
    ]:  # fmt: skip
        database.write_bytes(whole)
        db = sqlite3.connect(database)
        db.executescript(statement)
        db.commit()
        db.close()
        refuses(chroma, said)


def test_nothing_pickled_is_carried_out(tmp_path, monkeypatch):
    """A file of labels that would call something: it is passed over, and nothing is called."""
    from benchmark.upgrade.formats.chroma import _labels

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "called",))

    content = {"id_to_label": {"a": 3, "b": 70_000}, "evil": Evil(), "label_to_id": {3: "a"}}
    (tmp_path / "index_metadata.pickle").write_bytes(pickle.dumps(content))
    assert dict(_labels(tmp_path))["b"] == 70_000
    assert not (tmp_path / "called").exists()
    (tmp_path / "index_metadata.pickle").write_bytes(b"\x80\x03}q\x00garbage")
    with pytest.raises(ValueError, match=r"."):
        list(_labels(tmp_path))


def test_damaged_tables_of_lance(tmp_path):
    pytest.importorskip("lance")
    shutil.copytree(FILES / "lancedb", tmp_path / "a")
    (data,) = (tmp_path / "a" / "docs.lance" / "data").iterdir()
    whole = data.read_bytes()
    for n in (0, 100, len(whole) // 2):
        data.write_bytes(whole[:n])
        refuses(tmp_path / "a")
    data.write_bytes(whole)
    for manifest in (tmp_path / "a" / "docs.lance" / "_versions").iterdir():  # its library panics
        manifest.write_bytes(b"\xff\xff\xff\xff" + manifest.read_bytes()[4:])
    refuses(tmp_path / "a")
