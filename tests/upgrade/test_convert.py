"""``bench convert``: a saved conversion from disk to disk, in every format."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.command import call
from support.vector_files import READ, WRITTEN, parquet, write

import benchmark
from benchmark import get_method
from benchmark.contract.conversion import Conversion, Dims
from benchmark.errors import BenchError
from benchmark.perf import measure
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.formats.convert import convert

OLD, SIDE = 6, 3


def refused(said, *words):
    code, out, err = call("convert", *words)
    assert code == 2 and out == "", err
    assert err.startswith("bench: ") and err.count("\n") == 1 and "Traceback" not in err
    assert said in err


@pytest.mark.parametrize(("ending", "target"), [*zip(READ, WRITTEN[3:] + WRITTEN[:3], strict=True)])
def test_every_format_is_read_and_written(ending, target, saved, gallery, vectors, tmp_path):
    out = tmp_path / f"new{target}"
    code, told, err = call("convert", saved, gallery(ending), out, "--batch", 700)
    assert code == 0, err
    assert told.startswith("1,300 rows of 6 to 5 numbers in ") and "MB/s" in told
    source = open_vectors(out)
    np.testing.assert_array_equal(source.read(), Conversion.load(saved).convert(vectors))
    assert source.ids.tolist() == [f"item-{i}" for i in range(1300)]


def test_the_help_names_what_is_written():
    code, out, _ = call("convert", "--help")
    target = " ".join(out.replace("│", " ").split()).partition("File of the converted ones")[2]
    written = re.findall(r"\.\w+", target.partition("[required]")[0])
    assert code == 0 and set(written) == set(WRITTEN) - {".h5", ".pq"}  # other names of two of them


def test_half_precision(saved, gallery, vectors, tmp_path):
    for ending in (".npy", ".parquet", ".h5", ".safetensors"):
        out = tmp_path / f"new{ending}"
        assert call("convert", saved, gallery(".npy"), out, "--dtype", "float16")[0] == 0
        source = open_vectors(out)
        assert source.dtype == np.float16
        wanted = Conversion.load(saved).convert(vectors).astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(source.read(), wanted)
    half = gallery(".npy", vectors.astype(np.float16), name="half")
    for ending, kind in ((".npy", np.float16), (".fvecs", np.float32)):  # which holds no other
        assert call("convert", saved, half, tmp_path / f"as{ending}")[0] == 0
        assert open_vectors(tmp_path / f"as{ending}").dtype == kind
    refused("expected --dtype float32, got float16", saved, gallery(".npy"),
            tmp_path / "new.fvecs", "--dtype", "float16")  # fmt: skip
    large = gallery(".h5", vectors * 1e5, name="large")
    refused("numbers that float16 cannot hold; expected --dtype float32", saved, large,
            tmp_path / "x.npy", "--dtype", "float16")  # fmt: skip
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f4", "<f2"])
def test_the_python_side(kind, conversion, saved, gallery, vectors, tmp_path):
    """The bytes of ``np.save`` of what is converted in memory, by a map or a folder of one."""
    stored = vectors.astype(kind)
    path = gallery(".npy", stored, ids=None)
    done = benchmark.convert_file(conversion(), path, tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", conversion().convert(stored))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    size = stored.dtype.itemsize
    assert (done.rows, done.dims, done.read_bytes) == (1300, (6, 5), 1300 * 6 * size)
    assert done.written_bytes == (tmp_path / "b.npy").stat().st_size
    with pytest.raises(BenchError, match=r"a.npy: exists already"):
        benchmark.convert_file(saved, path, tmp_path / "a.npy")
    heard = []
    benchmark.convert_file(
        str(saved), str(path), str(tmp_path / "a.npy"), force=True, dtype="float16",
        progress=heard.append,
    )  # fmt: skip
    assert np.load(tmp_path / "a.npy").dtype == np.float16 and heard == [1.0]


@pytest.mark.parametrize(("error", "said", "told"), [
    (OSError(28, "No space left on device"), BenchError, "disk is full"),
    (KeyboardInterrupt("stopped"), KeyboardInterrupt, "stopped"),
])  # fmt: skip
def test_nothing_half_written_is_left(
    error, said, told, conversion, gallery, tmp_path, monkeypatch
):
    def fails(*_):
        raise error

    (tmp_path / "new.npy").write_bytes(b"before")
    path = gallery(".npy")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("benchmark.upgrade.formats.numpy_files.NpySink._append", fails)
    with pytest.raises(said, match=told):
        convert(conversion(), path, tmp_path / "new.npy", force=True)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "new.npy").read_bytes() == b"before"


def test_side_information(with_side, vectors, gallery, tmp_path):
    folder = tmp_path / "sided"
    with_side.save(folder)
    side = np.random.default_rng(1).standard_normal((1400, SIDE)).astype(np.float32)
    order = np.random.default_rng(2).permutation(1400)
    beside = tmp_path / "side.parquet"
    parquet(beside, side[order], [f"item-{i}" for i in order])
    out = tmp_path / "new.safetensors"
    code, told, err = call("convert", folder, gallery(".h5"), out, "--side", beside)
    assert code == 0, err
    assert "1,300 rows paired by id; 0 only in " in told and "100 only in " in told
    wanted = with_side.convert(vectors, side[:1300])
    np.testing.assert_array_equal(open_vectors(out).read(), wanted)

    target = tmp_path / "x.npy"
    words = (folder, gallery(".h5"), target)
    refused("--side: expected side-information of 3 numbers", *words)
    refused("expected rows of 3 numbers, got 6", *words, "--side", gallery(".npz"))
    write(tmp_path / "short.npy", side[:1299], [f"item-{i}" for i in range(1299)])
    refused("1 only in", *words, "--side", tmp_path / "short.npy")
    refused("the first at row 1299, id 'item-1299'", *words, "--side", tmp_path / "short.npy")
    write(tmp_path / "bare.npy", side[:1300])
    refused("bare.npy: expected ids, as", *words, "--side", tmp_path / "bare.npy")
    write(tmp_path / "twice.npy", side[:2], ["item-0", "item-0"])
    refused("each once, got 'item-0' in rows 0 and 1", *words, "--side", tmp_path / "twice.npy")
    refused("--side-output: expected none", *words, "--side", beside, "--side-output", "s.npy")
    assert not target.exists()


def test_new_side_information(maps_side, conversion, saved, vectors, gallery, tmp_path):
    folder = tmp_path / "maps"
    maps_side.save(folder)
    side = np.random.default_rng(1).standard_normal((1300, SIDE)).astype(np.float32)
    write(tmp_path / "side.npy", side)
    words = (folder, gallery(".npy", ids=None), tmp_path / "a.npy", "--side", tmp_path / "side.npy")
    refused("--side-output: expected a file", *words)
    refused("expected another file", *words, "--side-output", tmp_path / "a.npy")
    assert call("convert", *words, "--side-output", tmp_path / "b.h5")[0] == 0
    new, new_side = maps_side.convert(vectors, side)
    np.testing.assert_array_equal(open_vectors(tmp_path / "a.npy").read(), new)
    np.testing.assert_array_equal(open_vectors(tmp_path / "b.h5").read(), new_side)
    refused("--side: expected none", saved, words[1], tmp_path / "c.npy", "--side", words[1])


def test_what_is_in_the_way(saved, gallery, vectors, tmp_path):
    source = gallery(".npy")
    before = source.read_bytes()
    (tmp_path / "there.npy").write_bytes(b"x")
    refused("there.npy: exists already; --force writes over it", saved, source,
            tmp_path / "there.npy")  # fmt: skip
    assert (tmp_path / "there.npy").read_bytes() == b"x"
    assert call("convert", saved, source, tmp_path / "there.npy", "--force")[0] == 0
    (tmp_path / "a.npy.ids.npy").write_bytes(b"x")
    refused("a.npy.ids.npy: exists already", saved, source, tmp_path / "a.npy")
    (tmp_path / "link.npy").symlink_to(source)
    (tmp_path / "hard.npy").hardlink_to(source)
    for same in (tmp_path / "link.npy", tmp_path / "hard.npy", source, f"{source}.ids.npy"):
        refused("expected another file", saved, source, same, "--force")
    (tmp_path / "folder.npy").mkdir()
    refused("something else than a file", saved, source, tmp_path / "folder.npy", "--force")
    refused("its folder does not exist", saved, source, tmp_path / "none" / "a.npy")
    assert source.read_bytes() == before
    parts = tmp_path / "parts"
    parts.mkdir()
    parquet(parts / "a.parquet", vectors)
    for name in (parts / "b.parquet", parts / "a.parquet"):
        refused("expected a file outside of the folder that is read", saved, parts, name, "--force")
    (tmp_path / "way").symlink_to(parts)
    refused("outside of the folder", saved, parts, tmp_path / "way" / "b.npy")
    assert sorted(p.name for p in parts.iterdir()) == ["a.parquet"]


def test_a_map_of_queries_leaves_stored_vectors_as_they_are(gallery, tmp_path):
    mapped = get_method("procrustes:query")
    old, new = np.random.default_rng(0).standard_normal((2, 200, OLD)).astype(np.float32)
    conversion = mapped.fit(old, new, distance="cosine")
    conversion.save(tmp_path / "queries.map")
    use = f'benchmark.Conversion.load("{tmp_path / "queries.map"}").view(queries)'
    refused(use, tmp_path / "queries.map", gallery(".npy"), tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()
    between = get_method("slerp:midpoint").fit(old, new, distance="cosine")
    between.save(tmp_path / "both.map")
    use = f'benchmark.Conversion.load("{tmp_path / "both.map"}").view(queries, old_queries)'
    refused(use, tmp_path / "both.map", gallery(".npy"), tmp_path / "x.npy")
    with pytest.raises(BenchError, match=r"procrustes.*: expected a map of stored vectors, got"):
        convert(conversion, gallery(".npy"), tmp_path / "x.npy")


def test_damaged_input(saved, conversion, gallery, vectors, tmp_path):
    out = tmp_path / "new.npy"
    refused("expected vectors of 6 numbers, as the conversion was fitted with, got 5", saved,
            gallery(".h5", vectors[:, :5].copy()), out)  # fmt: skip
    for ending in READ:
        rows = vectors.copy()
        rows[1234, 1] = np.nan
        refused("NaN or infinity in row 1234, id 'item-1234'", saved, gallery(ending, rows), out)
        rows[1234] = 0
        path = gallery(ending, rows)
        refused("compares, got zeros in row 1234, id 'item-1234'", saved, path, out)
        convert(conversion("l2"), path, tmp_path / f"l2{ending}.npy")
    ids = [f"item-{i}" for i in range(1299)] + ["item-7"]
    refused("got 'item-7' in rows 7 and 1299", saved, gallery(".parquet", ids=ids), out)
    refused("did you mean '.parquet'?", saved, gallery(".h5"), tmp_path / "new.parqet")
    refused("conversion.json: cannot be read", tmp_path, gallery(".h5"), out)
    assert not out.exists() and not [p for p in tmp_path.iterdir() if p.name.endswith(".part")]


@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", ".fvecs", ".h5", ".safetensors"])
def test_memory_does_not_grow_with_the_rows(ending, with_side, tmp_path):
    """96 MiB of vectors and side-information in another order: nothing of it stays in memory."""
    n, dim = 2**18, 64
    made = replace(with_side, dims=Dims(old=dim, new=dim, side=32))
    for rows in (3000, n):
        ids = np.arange(rows)
        write(tmp_path / f"old-{rows}{ending}", np.ones((rows, dim), np.float32), ids)
        write(tmp_path / f"side-{rows}{ending}", np.ones((rows, 32), np.float32), ids[::-1])

    def work(rows):
        source, side = (tmp_path / f"{name}-{rows}{ending}" for name in ("old", "side"))
        return convert(made, source, tmp_path / "out.npy", side=side, force=True)

    work(3000)
    grown = measure.once(lambda: work(n)).memory_mib
    if grown is None:
        pytest.skip("this system does not tell")
    assert grown < 55, "ids and their order are 20 MiB, batches the rest; a file has 32 or 64"
