"""Files that are damaged, hostile, or of something else: one line, quickly."""

import io
import os
import pickle
import re
import struct
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from support import hostile
from support.hostile import arrays, modules
from support.vector_files import READ, beside, everything, in_time, parquet, refused, refuses, write

from benchmark.errors import BenchError
from benchmark.perf import measure
from benchmark.upgrade.formats import sink_class

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1


@pytest.mark.parametrize("ending", [*READ, ".bvecs", ".jsonl", ".json", ".csv", ".copy"])
@pytest.mark.parametrize("what", hostile.ENDLESS)
def test_what_may_lie_in_the_place_of_a_file(what, ending, tmp_path):
    hostile.lay(what, tmp_path / f"a{ending}")
    refuses(tmp_path / f"a{ending}", f"a{ending}: ")


@pytest.mark.parametrize("what", hostile.ENDLESS)
def test_what_may_lie_in_the_place_of_ids(what, tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    hostile.lay(what, tmp_path / "a.npy.ids.npy")
    if what in ("link-to-nothing", "link-to-itself"):
        assert everything(tmp_path / "a.npy") == (None, 4)
    else:
        refuses(tmp_path / "a.npy", "a.npy.ids.npy: ")


@pytest.mark.parametrize("ending", READ)
def test_cut_off(ending, tmp_path):
    """Wherever it is cut, a file is refused, or its ids were all that was lost."""
    rows = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    path = tmp_path / f"a{ending}"
    write(path, rows, np.arange(200) if ending not in (".npy", ".fvecs") else None)
    whole = path.read_bytes()
    for n in sorted({0, 1, 7, 8, 50, *np.linspace(9, len(whole) - 1, 40, dtype=int).tolist()}):
        path.write_bytes(whole[:n])
        with in_time():
            try:
                everything(path)
            except BenchError as error:
                assert "\n" not in str(error)
            else:
                assert ending == ".fvecs" and n % 36 == 0, f"whole rows are a whole file: {n}"


def test_an_index_of_arrow_that_is_cut_off(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"vector": pa.array(ROWS.tolist(), pa.list_(pa.float32(), ROWS.shape[1]))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    assert everything(path)[1] == len(ROWS)
    path.write_bytes(path.read_bytes()[:-3])
    refuses(path, "ends without an index: the file is cut off")


@pytest.mark.parametrize("kind", [".npy", ".npz", ".parquet", ".hdf5", ".safetensors"])
def test_binary_vectors(kind, tmp_path):
    write(tmp_path / f"a{kind}", ROWS.astype(np.uint8))
    refuses(
        tmp_path / f"a{kind}",
        "expected float16, float32, float64 or int8, got uint8, which is packed bits or quantised: "
        "save float32 or int8",
    )
    write(tmp_path / f"b{kind}", ROWS.astype(np.int32))
    refuses(
        tmp_path / f"b{kind}", "expected vectors of float16, float32, float64 or int8, got int32"
    )


@pytest.mark.parametrize("nulls", [(0,), (0, 1, 2), (5,)])
def test_a_null_vector_is_named_wherever_it_is(nulls, tmp_path):
    rows = [None if k in nulls else [1.0, 2.0, k] for k in range(200)]
    pq.write_table(pa.table({"vector": rows}), path := tmp_path / "a.parquet", row_group_size=100)
    refuses(path, f"expected 3 numbers a row, got null in row {nulls[0]}$")
    pq.write_table(pa.table({"vector": pa.array([None] * 200, pa.list_(pa.float32()))}), path)
    refuses(path, r"expected vectors \[n, dim\], .* got \[200, 0\]")


@pytest.mark.parametrize("ending", [".gz", ".zst", ".bz2", ".xz", ".zip"])
def test_packed_files(ending, tmp_path):
    (path := tmp_path / f"a.jsonl{ending}").write_bytes(b"")
    refuses(path, "expected a file of vectors, got a file compressed by .*: unpack it first")


@pytest.mark.parametrize("ending", READ)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(number, ending, gallery, vectors):
    vectors[901, 2] = number
    refuses(
        gallery(ending), f"gallery{ending}: vector: expected finite .*in row 901, id 'item-901'"
    )
    refuses(gallery(ending, ids=None, name="none"), "NaN or infinity in row 901$")


def test_npy_corpus(tmp_path):
    """Hostile headers and contents; those that are taken are arrays that numpy takes too."""
    taken = []
    for sample in arrays.vectors():
        hostile.empty(tmp_path / "x")
        hostile.write(sample, tmp_path / "x")
        if sample.name.startswith("sparse-32"):
            continue  # 32 GiB of zeros are vectors
        with in_time():
            try:
                everything(tmp_path / "x" / arrays.VECTORS)
                taken.append(sample.name)
            except BenchError as error:
                assert "\n" not in str(error), sample
    assert {"sound", "type-half", "rows-of-zeros", "100000-rows"} <= set(taken)
    assert not {"pickled-objects", "shape-huge", "header-fortran", "npz"} & set(taken)


def test_pickles(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[None, 1]], object), allow_pickle=True)
    refuses(tmp_path / "a.npy", "got pickled Python objects, which are not read")
    (tmp_path / "b.npy").write_bytes(pickle.dumps(ROWS))
    refuses(tmp_path / "b.npy", "expected npy, got what cannot be read")
    np.savez(tmp_path / "c.npz", vectors=np.array([[None, 1]], object))
    refuses(tmp_path / "c.npz:vectors", "got pickled")
    np.savez(tmp_path / "e.npz", vectors=np.asfortranarray(ROWS))
    refuses(tmp_path / "e.npz", "e.npz: expected rows one after another")
    np.savez(tmp_path / "d.npz", vectors=ROWS, ids=np.array([None] * 4, object))
    refuses(tmp_path / "d.npz", "got pickled")


def test_npz_archives(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            out, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 4)}
        )
        archive.writestr("a.npy", out.getvalue() + bytes(10**6))
    refuses(path, "ends within row 62500")
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x05\x06") + 12 :][:4] = b""
    at = raw.index(b"PK\x05\x06") + 12
    raw[at : at + 4] = struct.pack("<I", 2**31)
    with path.open("wb") as file:  # the directory claims two gigabytes, which are there
        file.truncate(2**32)
        file.seek(2**32 - 22)
        file.write(raw[at - 12 : at + 10])
    refuses(path, "expected a directory of at most|not a zip")
    np.savez(path, a=ROWS, b=ROWS)
    refuses(path, r"a.npz: expected one of several arrays, named as FILE:NAME; got a, b")
    refuses(f"{path}:vectros", "got the name 'vectros'; known: a, b")
    np.savez(path, a=ROWS[0])
    refuses(path, r"expected an array \[n, dim\]")
    refuses(f"{path}:a", r"expected vectors \[n, dim\], at least one and dim at most")


def test_fvecs(tmp_path):
    path = tmp_path / "a.fvecs"
    for raw, said in [
        (struct.pack("<i2fi1f", 2, 1, 2, 1, 1), "expected whole rows of 2 numbers, 8 bytes are"),
        (struct.pack("<i2fi2f", 2, 1, 2, 3, 1, 2), "2 numbers in each row, got 3 in row 1"),
        (struct.pack("<i2f", -2, 1, 2), "expected rows of 1 to 1048576 numbers, got -2 in row 0"),
        (struct.pack("<i2f", 2**31 - 1, 1, 2), "got 2147483647 in row 0"),
        (b"\x02\0", "whole rows|expected rows"), (b"", "expected rows of 1 to"),
    ]:  # fmt: skip
        path.write_bytes(raw)
        refuses(path, said)
    refuses(tmp_path / "a.ivecs", "row numbers of neighbours, not vectors")


def test_safetensors(tmp_path):
    path = tmp_path / "a.safetensors"
    samples = [*modules._headers(), ("huge", modules.framed(b"{}", length=2**40))]
    for name, raw in samples:
        path.write_bytes(raw)
        with pytest.raises(BenchError) as caught, in_time():
            everything(path)
        assert "\n" not in str(caught.value), name
    save_file({"a": ROWS, "ids": np.arange(3)}, path)
    refuses(path, r"ids: expected an id a row, \[4\], of at most .* got \[3\] int64")
    save_file({"a": ROWS, "b": ROWS}, path)
    refuses(path, "expected one of several arrays, named as FILE:NAME; got a, b")


def test_hdf5(tmp_path):
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["train"], file["test"], file["flat"] = ROWS, ROWS, ROWS[0]
        file["neighbors"] = np.zeros((3, 10), np.int32)
        file["words"] = ["a", "b"]
        file["bytes"] = np.zeros((3, 10), np.uint8)
        file.create_dataset("never", (2**40, 4), np.float32, chunks=(1000, 4))
        file.create_dataset("part", (10, 4), np.float32, chunks=(2, 4))[:4] = 1
        file.create_dataset("nothing", dtype=np.float32, data=h5py.Empty("f4"))
        file.create_dataset("wide", (1, 2**21), np.float32, data=np.ones((1, 2**21)))
        file.create_dataset("chunk", (2**24, 8), np.float32, chunks=(2**24, 8), compression="gzip")
        file["other"] = h5py.ExternalLink("/etc/passwd", "/train")
        file["soft"] = h5py.SoftLink("/train")
        file.create_dataset("outside", (4, 3), np.float32,
                            external=[(str(tmp_path / "raw"), 0, 48)])  # fmt: skip
        layout = h5py.VirtualLayout((4, 3), np.float32)
        layout[:] = h5py.VirtualSource(tmp_path / "b.hdf5", "train", (4, 3))
        file.create_virtual_dataset("virtual", layout)
        group = file.create_group("loop")
        group["again"] = group
        file["train_ids"] = ["a", "b", "a", "c"]
        file["test_ids"] = np.arange(3)
    (tmp_path / "raw").write_bytes(ROWS.tobytes())
    for name, said in [
        ("", "expected one of several arrays, named as FILE:NAME; got "),
        (":train", "expected each once, got 'a' in rows 0 and 2"),
        (":trian", "got the name 'trian'"),
        (":test", r"test_ids: expected an id a row, \[4\], of .* got \[3\]"),
        (":flat", r"expected vectors \[n, dim\]"), (":words", "expected vectors of float16"),
        (":neighbors", "expected vectors of float16, float32, float64 or int8, got int32"),
        (":bytes", "uint8, which is packed bits"), (":nothing", "cannot be read|expected vectors"),
        (":never", "expected 1099511628 chunks of numbers, got 0: not all is written"),
        (":part", "expected 5 chunks of numbers, got 2"), (":chunk", "expected chunks of at most"),
        (":wide", "dim at most 1048576"), (":other", "got the name"),
        (":soft", "got the name"), (":outside", "its numbers are in other files"),
        (":virtual", "its numbers are in other files"),
    ]:  # fmt: skip
        refuses(f"{path}{name}", said)


def test_hdf5_that_holds_itself(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for i in range(100):
            file[f"g{i}"] = file["/"]
        file["train"] = ROWS
    assert everything(path) == (None, 4)
    with h5py.File(path, "a") as file:
        for i in range(5000):
            file.create_group(f"other{i}")
    refuses(path, "expected at most 4096 names")


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"

    def column(values, kind=None, name="vector", **more):
        pq.write_table(pa.table({**more, name: pa.array(values, kind)}), path)

    column([[1.0, 2.0], [1.0]])
    refuses(path, "expected 2 numbers a row, got 1 in row 1")
    column([[1.0, 2.0], [1.0, None]])
    refuses(path, "expected numbers, got null in row 1")
    column([[1.0, 2.0], [None, 2.0]], pa.list_(pa.float32(), 2))
    refuses(path, "expected numbers, got null in row 1")
    column([None, [1.0, 2.0]], pa.list_(pa.float32(), 2))
    refuses(path, "expected 2 numbers a row, got (null|none) in row 0")
    column([[], [1.0]])
    refuses(path, r"expected vectors \[n, dim\]")
    column([], pa.list_(pa.float32(), 2))
    refuses(path, r"expected vectors \[n, dim\]")
    column([b"ab", b"cd"])
    refuses(path, "got binary vectors")
    column([1.0, 2.0])
    refuses(path, "expected lists of numbers, got double")
    column([["a"]])
    refuses(path, "expected lists of numbers, got list<element: string>|expected")
    column([[[1.0]]])
    refuses(path, "expected lists of numbers")
    column([[1.0]], name="embedding")
    assert everything(path) == everything(f"{path}:embedding") == (None, 1)
    column([[1.0]], name="embedding", other=[[2.0]])
    refuses(path, "expected a column 'vector', there are: other, embedding; another one is named")
    assert everything(f"{path}:other") == (None, 1)
    pq.write_table(pa.table({f"d{k}": [0.5, 1.0] for k in range(4)}), path)
    refuses(path, "there are: d0, d1, d2, d3; a vector's numbers have to be in one column")
    column([[1.0], [2.0]], id=["a", None])
    refuses(path, "id: expected an id in each row, got null")
    column([[1.0], [2.0]], id=[0.5, 1.5])
    refuses(path, "ids: expected whole numbers or text, got 0.5")
    column([[1.0], [2.0]], id=pa.array([0, 2**64 - 1], pa.uint64()))
    refuses(path, "expected whole numbers below 2")
    column([[1.0], [2.0]], id=["a", "b" * 5000])
    refuses(path, "expected at most 1024 letters")
    path.write_bytes(b"PAR1" + bytes(100) + struct.pack("<I", 2**31 - 1) + b"PAR1")
    refuses(path, "a.parquet: expected parquet, got what cannot be read")


def test_folders(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    refuses(folder, "expected 1 to 4096 parquet files in the folder, got none")
    parquet(folder / "a.parquet", ROWS)
    os.mkfifo(folder / "b.parquet")
    refuses(folder, "parts: b.parquet: expected a regular file")
    (folder / "b.parquet").unlink()
    parquet(folder / "b.parquet", ROWS[:, :2])
    refuses(folder, "b.parquet: expected 3 numbers of float32, without ids as in a.parquet, got 2")
    (folder / "b.parquet").write_bytes((folder / "a.parquet").read_bytes()[:-30])
    refuses(folder, "parts: b.parquet: ")


@pytest.mark.parametrize(("name", "said"), [
    ("a.parqet", "expected a file of vectors, got ending '.parqet'; did you mean '.parquet'"),
    ("a.fvec", "did you mean '.fvecs'"), ("a.xyz", "got ending '.xyz'; known: .npy, .npz"),
    ("gone", "there is no such file or folder"), ("gone:train", "there is no such file"),
    ("a.npy:train", ".npy holds one array: expected no ':train'"),
])  # fmt: skip
def test_names(name, said, tmp_path):
    for each in ("a.parqet", "a.fvec", "a.xyz"):
        (tmp_path / each).write_bytes(b"")
    refuses(tmp_path / name, said)


def test_endings_that_are_not_written(tmp_path):
    for name, said in [
        ("a.bvecs", ".bvecs is read, not written; expected one of .npy, .npz, "),
        ("a.safetensor", "did you mean '.safetensors'"), ("a", "got no ending; known: "),
    ]:  # fmt: skip
        with refused(said):
            sink_class(tmp_path / name)


@pytest.mark.parametrize(("name", "package"), [("a.parquet", "pyarrow"), ("a.h5", "h5py")])
def test_a_missing_package(name, package, tmp_path, monkeypatch):
    import sys

    for module in list(sys.modules):
        if module.startswith(
            ("benchmark.upgrade.formats.parquet", "benchmark.upgrade.formats.hdf5")
        ):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    said = f"needs the package {package}: pip install 'compatbench\\[vectors\\]'"
    refuses(tmp_path / name, said)
    with refused(said):
        sink_class(tmp_path / name)


def test_a_missing_package_of_another_name(tmp_path, monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "benchmark.upgrade.formats.lance", raising=False)
    monkeypatch.setitem(sys.modules, "lance", None)
    (tmp_path / "docs.lance").mkdir()
    said = "needs the package pylance: pip install 'compatbench\\[lance\\]'"
    refuses(tmp_path / "docs.lance", said)


def test_ids_beside(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    for ids, said in [
        (np.arange(3), "ids: expected 4, one a row, got 3"),
        (np.ones(4) / 2, "expected whole numbers"),
        (np.zeros((4, 1), int), "expected ids"), (np.array(["x" * 2000] * 4), "expected ids"),
        (np.array([None] * 4), "pickled"),
    ]:  # fmt: skip
        beside(tmp_path / "a.npy", ids)
        refuses(tmp_path / "a.npy", said)


def test_a_page_that_claims_much(tmp_path):
    """A few bytes of a small file changed: memory is not taken for what it says."""
    path = tmp_path / "a.parquet"
    parquet(path, ROWS, None, use_dictionary=False, compression="none")
    raw = path.read_bytes()
    # The first page's header: kind, size uncompressed, size compressed, zigzag numbers all.
    header = re.match(rb"\x15\x00\x15[\x80-\xff]*[\x00-\x7f]\x15([\x80-\xff]*[\x00-\x7f])", raw[4:])
    begin, end = header.span(1)
    claims = b"\x80\x80\x80\x80\x07"  # 940 MB
    path.write_bytes(raw[: 4 + begin] + claims + raw[4 + end :])
    grown = measure.once(lambda: refuses(path, "a.parquet: ")).memory_mib
    assert grown is None or grown < 100
