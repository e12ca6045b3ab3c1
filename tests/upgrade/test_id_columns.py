"""Ids where programs put them: found, told, or asked for, and never passed over in silence."""

import json
import uuid

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from support.command import call
from support.upgrades import planted
from support.vector_files import FILES, ROWS, TEXT, parquet

import benchmark
from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.formats.ids import as_ids, gathered

UUIDS = [uuid.UUID(int=2**120 + i) for i in range(12)]
UUID_TEXT = [str(each) for each in UUIDS]
WRITTEN = {
    "daft-tensor.parquet": ("doc_id", TEXT),
    "datasets-saved": ("_id", TEXT),
    "datasets.parquet": ("_id", TEXT),
    "duckdb-blob.parquet": ("_id", TEXT),
    "duckdb-hugeint.parquet": ("item_id", list(range(1, 13))),
    "duckdb-uuid.parquet": ("uid", UUID_TEXT),
    "h5py.h5": ("image_names", TEXT),
    "numpy-bytes.npz": ("", TEXT),
    "numpy-filenames.npz": ("filenames", TEXT),
    "openai.json": ("index", list(range(12))),
    "pandas-index.h5": ("frame/axis1", TEXT),
    "pandas-index.parquet": ("__index_level_0__", TEXT),
    "pandas-numbers.parquet": ("docid", [3 * i for i in reversed(range(12))]),
    **dict.fromkeys((f"pandas.{ending}" for ending in ("csv", "json", "jsonl", "tsv")), ("", TEXT)),
    "pgvector.csv": ("", TEXT),
    "pinecone.json": ("", TEXT),
    "polars-packed.feather": ("key", TEXT),
    "polars.arrow": ("key", TEXT),
    "polars.parquet": ("key", TEXT),
    "pyarrow-binary.parquet": ("", TEXT),
    "pyarrow-dictionary.parquet": ("", TEXT),
    "pyarrow-digest.parquet": ("", [each.bytes[::-1].hex() for each in UUIDS]),
    "pyarrow-stream.arrow": ("", TEXT),
    "pyarrow-string-view.parquet": ("", TEXT),
    "pyarrow-uuid.parquet": ("", UUID_TEXT),
    "qdrant.jsonl": ("", list(range(12))),
    "safetensors.safetensors": ("doc_ids", [7 * i for i in range(12)]),
}
"""File -> the column of ids that is told, and the ids."""


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_real_programs(name):
    column, ids = WRITTEN[name]
    source = open_vectors(FILES / name)
    np.testing.assert_array_equal(source.read(), ROWS)
    assert source.ids.tolist() == ids
    assert source.told == ([f"{FILES / name}: ids are those of '{column}'"] if column else [])


def test_every_file_is_read_and_small():
    others = {
        "chroma.zip", "lancedb", "faiss.index", "faiss-sq8.index", "faiss-pq.index",
        "faiss-ivf.index", "vdf", "pgvector.copy", "versions.json", "versions-databases.json",
        "write_files.py", "write_databases.py",
    }  # fmt: skip
    found = [path for path in FILES.rglob("*") if "__pycache__" not in path.parts]
    assert {path.name for path in found if path.parent == FILES} == {*WRITTEN, *others}
    assert all(path.stat().st_size < 12_000 for path in found)
    assert len(json.loads((FILES / "versions.json").read_text())) == 10


def table(path, **columns):
    """The vectors beside columns of ids, in the format of the file's ending."""
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), 4)
    if path.suffix == ".parquet":
        pq.write_table(pa.table({**columns, "vector": fixed}), path)
    elif path.suffix == ".arrow":
        made = pa.table({**columns, "vector": fixed})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, made.schema) as out:
            out.write_table(made)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, values in {**columns, "vector": ROWS}.items():
                file[name] = values
    else:
        save = np.savez if path.suffix == ".npz" else lambda path, **arrays: save_file(arrays, path)
        save(path, vector=ROWS, **{name: np.array(values) for name, values in columns.items()})
    return path


def ids(path, **options):
    source = open_vectors(path, **options)
    return None if source.ids is None else source.ids.tolist(), source.told


NUMBERS = [3 * i for i in range(12)]
TABLES, ARRAYS = (".parquet", ".arrow"), (".npz", ".h5")
KINDS = {
    # What is written, the ids that are read, and the formats that can hold it.
    "text": (TEXT, TEXT, (*TABLES, *ARRAYS)),
    "bytes": ([each.encode() for each in TEXT], TEXT, (*TABLES, *ARRAYS)),
    "numbers": (NUMBERS, NUMBERS, (*TABLES, *ARRAYS, ".safetensors")),
    "floats": ([float(n) for n in NUMBERS], NUMBERS, (*TABLES, *ARRAYS, ".safetensors")),
    "uuid": (pa.array([each.bytes for each in UUIDS], pa.uuid()), UUID_TEXT, TABLES),
}  # fmt: skip


@pytest.mark.parametrize(
    "column", ["_id", "__index_level_0__", "docid", "filenames", "key", "page"]
)
@pytest.mark.parametrize(
    ("kind", "ending"), [(kind, ending) for kind in KINDS for ending in KINDS[kind][2]]
)
def test_no_id_is_passed_over(kind, ending, column, tmp_path):
    """Of any kind, under any name, in any format that can hold it."""
    if (kind, column) == ("floats", "page"):
        pytest.skip("numbers with a point are ids by the column's name alone")
    given, expected, _ = KINDS[kind]
    path = table(tmp_path / f"a{ending}", **{column: given})
    assert ids(path) == (expected, [f"{path}: ids are those of '{column}'"])


def test_one_candidate_is_taken_and_several_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    numbers = list(range(12))
    for columns, taken in (
        ({"_id": TEXT, "title": TEXT}, "_id"),  # by its name
        ({"page": TEXT}, "page"),  # the only one
        ({"label": [1] * 12}, None), ({"label": [1] * 12, "page": TEXT}, "page"),
        ({"docid": numbers, "group_id": [1] * 12}, "docid"),  # the other repeats
        ({"score": [0.5] * 12}, None), ({"long": ["x" * 5000] * 12}, None),
    ):  # fmt: skip
        found, told = ids(table(path, **columns))
        assert found == (columns[taken] if taken else None)
        assert told == ([f"{path}: ids are those of '{taken}'"] if taken else [])
    for columns, said in (
        ({"doc_id": TEXT, "__index_level_0__": numbers}, "got doc_id, __index_level_0__: --id-col"),
        ({"title": TEXT, "text": TEXT[::-1]}, "got title, text: --id-column names one, or '-'"),
        ({"doc_id": [1, *numbers[1:]]}, "each once, got 1 in rows 0 and 1; --id-column names"),
        ({"doc_id": [None, *TEXT[1:]]}, "doc_id: expected an id in each row, got null"),
    ):  # fmt: skip
        with pytest.raises(BenchError, match="expected") as caught:
            ids(table(path, **columns))
        assert said in str(caught.value)


def test_empty_text_is_no_id():
    for values in (["a", ""], np.array(["a", ""]), [b"a", b""]):
        with pytest.raises(BenchError, match="an id in each row, got empty text in row 1"):
            as_ids(values)
    with pytest.raises(BenchError, match="got empty text in row 3"):
        gathered(lambda: [["a", "b"], ["c", ""]], 10)


def test_a_column_is_named(tmp_path):
    path = table(tmp_path / "a.parquet", doc_id=TEXT, id=list(range(12)), text=TEXT[::-1])
    assert ids(path)[0] == list(range(12))
    assert ids(path, id_column="text") == (TEXT[::-1], [])
    assert ids(path, id_column="-") == (None, [])
    with pytest.raises(BenchError, match="got the name 'docid'; did you mean 'doc_id'"):
        ids(path, id_column="docid")
    with pytest.raises(BenchError, match="expected a column 'vektor', there are: "):
        open_vectors(path, vector_column="vektor")
    with pytest.raises(BenchError, match="expected one name of vectors"):
        open_vectors(f"{path}:vector", vector_column="emb")
    with pytest.warns(UserWarning, match="ids are those of '_id'"):
        benchmark.read_vectors(FILES / "datasets.parquet")
    both = tmp_path / "b.npz"
    np.savez(both, a=ROWS, b=ROWS * 2, b_ids=np.arange(12), names=np.array(TEXT))
    found, vectors = benchmark.read_vectors(both, vector_column="b", id_column="names")
    assert found.tolist() == TEXT and vectors[0, 1] == 0.25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An upgrade whose ids, in another order, stand under other names than ``id``."""
    root = tmp_path_factory.mktemp("columns")
    made = planted(n=400, q=60, dim=8)
    names = np.array([f"item-{k}" for k in range(400)])
    order, asked = np.random.default_rng(3).permutation(400), np.arange(60)[::-1]

    def write(name, column, vectors, keys, more=None):
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
        pq.write_table(pa.table({column: keys, **(more or {}), "emb": flat}), root / name)

    write("old.parquet", "__index_level_0__", made.old, names)
    write("new.parquet", "_id", made.new[order], names[order])
    write("qn.parquet", "docid", made.queries, np.arange(60))
    np.savez(root / "qo.npz", vectors=made.old_queries[asked], filenames=asked.astype(str))
    write("two.parquet", "qid", made.queries, np.arange(60), {"user_id": np.arange(60)[::-1]})
    lines = [f"{q} 0 {names[row]} 1\n" for q, row in enumerate(made.relevant)]
    (root / "q.qrels").write_text("".join(lines))
    parquet(root / "plain.parquet", made.old, names)
    return root


def words(folder, **changes):
    files = {"old-gallery": "old.parquet", "new-gallery": "new.parquet", "queries": "qn.parquet",
             "old-queries": "qo.npz", "qrels": "q.qrels", **changes}  # fmt: skip
    options = (w for option, name in files.items() for w in (f"--{option}", folder / name))
    return ["upgrade", *options, "--maps", "procrustes"]


def test_the_report_joins_by_the_ids_it_finds(folder, tmp_path):
    page = tmp_path / "a.json"
    code, out, err = call(*words(folder), "--json", page)
    assert (code, err) == (0, "")
    for name, column in (("old.parquet", "__index_level_0__"), ("new.parquet", "_id"),
                         ("qn.parquet", "docid"), ("qo.npz", "filenames")):  # fmt: skip
        assert f"{name}: ids are those of '{column}'" in " ".join(out.split())
    scores = {s["name"]: s["score"]["value"] for s in json.loads(page.read_text())["strategies"]}
    assert scores["re-embed"] > 0.3 and scores["keep-old"] > 0.2  # by chance 0.01


def test_options_name_the_columns_of_all_inputs_or_of_one(folder):
    given = words(folder, queries="two.parquet")
    code, _, err = call(*given)
    assert code == 2 and "two.parquet: ids: expected one column of them, got qid, user_id" in err
    code, out, _ = call(*given, "--id-column", "queries=qid", "--vector-column", "queries=emb")
    assert code == 0 and "two.parquet: ids" not in out
    code, _, err = call(*given, "--id-column", "qid", "--id-column", "old-gallery=-")
    assert code == 2 and "new.parquet: expected a column of ids, got the name 'qid'" in err
    code, _, err = call(*given, "--id-column", "queries=qid", "--id-column", "queries=a")
    assert code == 2 and "--id-column: expected one column an input" in err
    code, _, err = call(*given, "--id-column", "querys=qid")
    assert code == 2 and "--id-column: unknown input 'querys'; did you mean 'queries'?" in err
    code, _, err = call(*given, "--vector-column", "vec")
    assert code == 2 and "old.parquet: expected a column 'vec', there are: __index" in err


def test_a_conversion_tells_where_ids_are_from(folder, tmp_path):
    saved, made = tmp_path / "map", planted(n=400, q=60, dim=8)
    benchmark.get_method("linear").fit(made.old, made.new, distance="cosine").save(saved)
    out = tmp_path / "new.npz"
    code, told, _ = call("convert", saved, folder / "old.parquet", out)
    assert code == 0 and "old.parquet: ids are those of '__index_level_0__'" in told
    assert open_vectors(out).ids[0] == "item-0"
    code, told, _ = call("convert", saved, folder / "old.parquet", out, "--force",
                         "--id-column", "-", "--vector-column", "emb")  # fmt: skip
    assert code == 0 and open_vectors(out).ids is None and "ids are" not in told


def test_a_column_of_files_that_have_none_is_refused(folder, tmp_path):
    """A name for all files is of those that have columns; here none has any."""
    saved, made = tmp_path / "map", planted(n=400, q=60, dim=8)
    benchmark.get_method("linear").fit(made.old, made.new, distance="cosine").save(saved)
    old, new, queries = (tmp_path / f"{name}.npy" for name in ("old", "new", "queries"))
    for path, vectors in ((old, made.old), (new, made.new), (queries, made.queries)):
        np.save(path, vectors)
    named = ("--id-column", "docid")
    arrays = ("upgrade", "--old-gallery", old, "--new-gallery", new, "--queries", queries)
    for words in (arrays, ("upgrade", "doctor", old, new),
                  ("convert", saved, old, tmp_path / "out.npy")):  # fmt: skip
        code, _, err = call(*words, *named)
        said = f"bench: {old} holds one array: expected no column, got 'docid'\n"
        assert (code, err) == (2, said)
        assert call(*words, "--id-column", "-")[0] == 0
    doctor = ("upgrade", "doctor", folder / "old.parquet")
    assert call(*doctor, "--vector-column", "emb")[0] == 0
