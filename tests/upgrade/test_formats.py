"""Vectors in files of every format: read as they were written, by others and by us."""

import os
import struct

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from support.vector_files import READ, WRITTEN, beside, bvecs, parquet, write

import benchmark
from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors, sink_class
from benchmark.upgrade.formats.ids import as_ids
from benchmark.upgrade.formats.rows import number_bytes
from benchmark.upgrade.formats.sink import writing


def read(path, size=8192):
    """Ids, and vectors in batches of a size, joined."""
    source = open_vectors(path)
    batches = list(source.vectors(size))
    assert all(len(part) <= size and part.dtype == np.float32 for part in batches)
    return None if source.ids is None else source.ids.tolist(), np.concatenate(batches)


def written(path, vectors, ids=None, dtype="float32", size=100):
    """A file of ours."""
    sink = sink_class(path)(path, len(vectors), dtype, None if ids is None else as_ids(ids))
    with writing([sink]):
        for start in range(0, len(vectors), size):
            sink.write(vectors[start : start + size])
    return path


@pytest.mark.parametrize("ending", READ)
def test_files_of_others(ending, gallery, vectors):
    source = open_vectors(gallery(ending))
    assert (source.rows, source.dim, source.dtype) == (1300, 6, np.float32)
    for size in (1, 7, 300, 8192):
        ids, rows = read(source.name, size)
        assert ids == [f"item-{i}" for i in range(1300)]
        np.testing.assert_array_equal(rows, vectors)


@pytest.mark.parametrize("ending", READ)
def test_ids_are_whole_numbers_text_or_none(ending, gallery):
    numbers = np.arange(1300)[::-1] * 3 - 7
    assert open_vectors(gallery(ending, ids=numbers)).ids.tolist() == numbers.tolist()
    assert open_vectors(gallery(ending, ids=None, name="none")).ids is None
    letters = [f"Zoë/{i}" * 9 for i in range(1300)]
    assert open_vectors(gallery(ending, ids=letters, name="text")).ids.tolist() == letters


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", ">f4", ">f8"])
@pytest.mark.parametrize("ending", READ)
def test_types(ending, dtype, gallery, vectors):
    if ending == ".fvecs" or (dtype[0] == ">" and ending not in (".npy", ".npz", ".hdf5")):
        pytest.skip("the format has none")
    rows = (vectors * 20).astype(dtype)
    path = gallery(ending, rows)
    assert open_vectors(path).dtype == np.dtype(dtype)
    np.testing.assert_array_equal(read(path)[1], rows.astype(np.float32))


def test_bfloat16(tmp_path):
    """Its bytes by hand: numpy has none, so torch's library writes it."""
    import torch
    from safetensors.torch import save_file as save

    rows = torch.randn(20, 4).bfloat16()
    save({"a": rows, "ids": torch.arange(20)}, tmp_path / "a.safetensors")
    ids, found = read(tmp_path / "a.safetensors", 7)
    np.testing.assert_array_equal(found, rows.float().numpy())
    assert ids == list(range(20))
    assert number_bytes(open_vectors(tmp_path / "a.safetensors")) == 2


def test_bytes(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (50, 128), dtype=np.uint8)
    bvecs(tmp_path / "sift.bvecs", rows)
    np.testing.assert_array_equal(read(tmp_path / "sift.bvecs", 7)[1], rows.astype(np.float32))


def test_fvecs_by_hand(tmp_path):
    (tmp_path / "a.fvecs").write_bytes(struct.pack("<i2fi2f", 2, 1.0, -2.5, 2, 0.5, 4.0))
    np.testing.assert_array_equal(read(tmp_path / "a.fvecs")[1], [[1, -2.5], [0.5, 4]])


def test_a_folder_of_parquet_files(tmp_path, vectors):
    folder = tmp_path / "gallery.parquet"
    folder.mkdir()
    for i, (a, b) in enumerate([(0, 500), (500, 501), (501, 1300)]):
        parquet(folder / f"part-{i:03}.parquet", vectors[a:b], list(range(a, b)), fixed=False)
    empty = pa.table({"id": pa.array([], pa.int64()),
                      "vector": pa.array([], pa.list_(pa.float32()))})  # fmt: skip
    pq.write_table(empty, folder / "part-001a.parquet")
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-000.parquet.crc").write_text("x")
    for name in (folder, f"{folder}/", f"{folder}:vector"):
        ids, rows = read(name, 64)
        assert ids == list(range(1300))
        np.testing.assert_array_equal(rows, vectors)
    folder.joinpath("part-002.parquet").rename(folder / "part-002.PARQUET")
    assert read(folder)[0] == list(range(1300))
    (folder / "k=1").mkdir()
    parquet(folder / "k=1" / "a.parquet", vectors, list(range(1300)))
    with pytest.raises(BenchError, match=r"expected one folder of .* files, got more in k=1"):
        open_vectors(folder)
    (folder / "k=1" / "a.parquet").unlink()
    parquet(folder / "part-002b.parquet", vectors, None)
    with pytest.raises(BenchError, match=r"part-002b.parquet: expected 6 .* with ids .*out"):
        open_vectors(folder)


@pytest.mark.parametrize("options", [
    {"use_dictionary": True, "compression": "zstd"}, {"compression": "none", "version": "1.0"},
    {"data_page_size": 512, "data_page_version": "2.0"}, {"fixed": False},
])  # fmt: skip
def test_parquet_as_others_write_it(options, tmp_path, vectors):
    ids = pa.array([f"i{n}" for n in range(1300)]).dictionary_encode()
    parquet(tmp_path / "a.parquet", vectors, ids, **options)
    found, rows = read(tmp_path / "a.parquet", 17)
    assert found[1299] == "i1299"
    np.testing.assert_array_equal(rows, vectors)


@pytest.mark.parametrize("large", [False, True])
def test_lists_by_offset_and_size(large, tmp_path, vectors):
    """Arrow's views of lists, which may lie in any order, and their slices."""
    dim, order = vectors.shape[1], np.random.default_rng(0).permutation(len(vectors))
    kind = pa.int64() if large else pa.int32()
    made = (pa.LargeListViewArray if large else pa.ListViewArray).from_arrays(
        pa.array(dim * order, kind), pa.array([dim] * len(order), kind), pa.array(vectors.ravel())
    )
    for part, expected in ((made, order), (made.slice(7, 100), order[7:107])):
        table = pa.table({"vector": part})
        with (
            pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file,
            pa.ipc.new_file(file, table.schema) as out,
        ):
            out.write_table(table, max_chunksize=33)
        np.testing.assert_array_equal(read(tmp_path / "a.arrow", 17)[1], vectors[expected])


def test_arrays_by_name(tmp_path, vectors):
    with h5py.File(tmp_path / "glove.hdf5", "w") as file:  # as ann-benchmarks lays it out
        file.attrs["distance"] = "angular"
        file["train"], file["test"] = vectors, vectors[:9]
        file["neighbors"] = np.zeros((9, 100), np.int32)
        file.create_dataset("deep/down", data=vectors[:5], chunks=(2, 3), compression="gzip")
    np.testing.assert_array_equal(read(f"{tmp_path}/glove.hdf5:test")[1], vectors[:9])
    np.testing.assert_array_equal(read(f"{tmp_path}/glove.hdf5:deep/down", 3)[1], vectors[:5])
    arrays = {"old": vectors, "new": vectors[:, :3].copy(), "new_ids": np.arange(1300)}
    np.savez(tmp_path / "a.npz", **arrays, odd=np.array([None]))
    save_file(arrays, tmp_path / "a.safetensors")
    for name in ("a.npz", "a.safetensors"):
        np.testing.assert_array_equal(read(f"{tmp_path}/{name}:new")[1], vectors[:, :3])
        assert open_vectors(f"{tmp_path}/{name}:new").ids[3] == 3
        assert open_vectors(f"{tmp_path}/{name}:old").ids is None
    (tmp_path / "a:b.npy").write_bytes(b"")
    with pytest.raises(BenchError, match="expected npy, got what cannot be read"):
        open_vectors(tmp_path / "a:b.npy")


KINDS = st.sampled_from(["none", "numbers", "text"])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.integers(1, 40), dim=st.integers(1, 9), kind=KINDS,
    dtype=st.sampled_from(["float16", "float32"]), endings=st.permutations(WRITTEN),
    size=st.integers(1, 45), seed=st.integers(0, 99),
)  # fmt: skip
def test_every_format_to_every_other(rows, dim, kind, dtype, endings, size, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((rows, dim)).astype(dtype).astype(np.float32)
    ids = {
        "none": None, "numbers": rng.permutation(2 * rows)[:rows].tolist(),
        "text": [f"{'ü' * int(n % 30)}{n}" for n in rng.permutation(2 * rows)[:rows]],
    }[kind]  # fmt: skip
    path = folder / f"first{endings[0]}"
    write(path, vectors, ids)
    for i, ending in enumerate(endings):
        source = open_vectors(path)
        path = folder / f"{i}{ending}"
        chosen = "float32" if ending == ".fvecs" else dtype
        sink = sink_class(path)(path, source.rows, chosen, source.ids)
        with writing([sink]):
            for batch in source.vectors(size):
                sink.write(batch)
        found, same = read(path, size)
        np.testing.assert_array_equal(same, vectors)
        assert found == ids and open_vectors(path).dtype == chosen


def test_files_of_ours_are_those_of_the_libraries(tmp_path, vectors):
    ids = np.arange(1300) * 2
    np.testing.assert_array_equal(np.load(written(tmp_path / "a.npy", vectors, ids)), vectors)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy.ids.npy"), ids)
    found = load_file(written(tmp_path / "a.safetensors", vectors, ids))
    np.testing.assert_array_equal(found["vectors"], vectors)
    np.testing.assert_array_equal(found["ids"], ids)
    with h5py.File(written(tmp_path / "a.h5", vectors, ids)) as file:
        np.testing.assert_array_equal(file["vectors"], vectors)
        np.testing.assert_array_equal(file["ids"], ids)
    table = pq.read_table(written(tmp_path / "a.parquet", vectors, ids))
    assert table.schema.field("vector").type.list_size == 6
    np.testing.assert_array_equal(np.stack(table["vector"].to_numpy()), vectors)
    assert table["id"].to_pylist() == ids.tolist()
    write(tmp_path / "b.fvecs", vectors)
    ours = written(tmp_path / "a.fvecs", vectors, ids).read_bytes()
    assert ours == (tmp_path / "b.fvecs").read_bytes()


@pytest.mark.parametrize("ending", WRITTEN)
def test_modes_follow_the_umask(ending, tmp_path, vectors):
    before = os.umask(0o027)
    try:
        written(tmp_path / f"a{ending}", vectors, [f"{i}" for i in range(1300)])
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o640}


@pytest.mark.parametrize("ending", WRITTEN)
def test_whole_or_not_at_all(ending, tmp_path, vectors):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"before")
    beside(path, [1])
    for stop in (KeyboardInterrupt, OSError(28, "No space left on device"), None):
        sink = sink_class(path)(path, 1300, "float32", None)
        with pytest.raises((BenchError, KeyboardInterrupt)), writing([sink]):
            sink.write(vectors[:700])
            if stop is not None:
                raise stop
        left = sorted(p.name for p in tmp_path.iterdir())
        assert left == [path.name, f"{path.name}.ids.npy"]
        assert path.read_bytes() == b"before"
    written(path, vectors)
    has_sidecar = ending in (".npy", ".fvecs", ".safetensors")
    left = [path.name] if has_sidecar else [path.name, f"{path.name}.ids.npy"]
    assert sorted(p.name for p in tmp_path.iterdir()) == left, "earlier ids would be others'"


def test_what_a_map_makes_of_vectors_is_finite(tmp_path, vectors):
    vectors[705, 1] = np.nan
    with pytest.raises(BenchError, match=r"a.h5: row 705 has numbers that float32 cannot hold$"):
        written(tmp_path / "a.h5", vectors)
    assert not list(tmp_path.iterdir())


def test_from_python(gallery, vectors):
    ids, rows = benchmark.read_vectors(gallery(".parquet"))
    assert ids[7] == "item-7" and rows.dtype == np.float32
    np.testing.assert_array_equal(rows, vectors)
    assert benchmark.read_vectors(gallery(".fvecs", ids=None, name="none"))[0] is None
    fit = benchmark.get_method("procrustes").fit
    fit(rows, rows[:, ::-1].copy(), old_ids=ids, new_ids=ids, distance="cosine")


@pytest.mark.parametrize("ending", [*READ, ".bvecs"])
def test_some_rows_are_those_of_all(ending, tmp_path):
    """Wherever they begin and end, whatever the batch."""
    rows = np.random.default_rng(0).integers(0, 9, (300, 5))
    rows = rows if ending == ".bvecs" else rows.astype(np.float32)
    path = tmp_path / f"a{ending}"
    write(path, rows, None)
    source = open_vectors(path)
    for first, last in [(0, 300), (0, 1), (1, 2), (37, 203), (299, 300), (150, None), (20, 20)]:
        for size in (1000, 64, 7):
            found = list(source.vectors(size, first, last))
            assert all(1 <= len(each) <= size for each in found)
            expected = rows[first:last]
            assert np.concatenate([*found, rows[:0]]).tolist() == expected.tolist()
