"""Smaller things: what killed processes leave, files that say nothing, rows that are named."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support.command import call
from support.upgrades import noise, planted, write_upgrade

from benchmark.config.files import clear_parts, part_of
from benchmark.contract.conversion import Conversion, Dims
from benchmark.errors import BenchError
from benchmark.models.parts import Affine, KeepSide
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.read.qrels import Qrels


def test_what_a_killed_conversion_leaves_goes_with_the_next(saved, gallery, tmp_path):
    """A process is killed while it writes; what others write now, or wrote elsewhere, stays."""
    source, out = gallery(".npy", np.ones((200_000, 6), np.float32), ids=None), tmp_path / "new.npy"
    words = [sys.executable, "-m", "benchmark.cli.app", "convert", saved, source, out, "--batch", 1]
    process = subprocess.Popen(
        list(map(str, words)), stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    end = time.monotonic() + 120
    while not (left := list(tmp_path.glob(".new.npy.*.part"))) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left and left[0].exists() and not out.exists()
    mine = part_of(out)
    others = mine.with_name(".new.npy.elsewhere-1.part")
    old = mine.with_name(".new.npy.elsewhere-2.part")
    for path in (mine, others, old):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    clear_parts(out)
    assert set(tmp_path.glob(".new.npy.*.part")) == {mine, others}
    left[0].write_bytes(b"x")
    assert call("convert", saved, gallery(".npy"), out)[0] == 0
    assert [path.name for path in tmp_path.glob(".*.part")] == [others.name]


def test_a_map_that_is_not_there_is_said(tmp_path):
    """With the positive control of an upgrade that has one."""
    saved, words = tmp_path / "map", write_upgrade(tmp_path, noise(600))
    code, out, _ = call(*words, "--save-map", saved)
    assert code == 0 and f"no map is recommended: {saved} is not written" in out
    assert not saved.exists()
    words = write_upgrade(tmp_path, planted(n=400, q=40, dim=8))
    code, out, _ = call(*words, "--wanted", "0.1", "--no-second-model", "--no-old-model",
                        "--no-sources", "--save-map", saved)  # fmt: skip
    assert code == 0 and "the map: bench convert" in out and saved.is_dir()
    words = write_upgrade(tmp_path, noise(600))
    out = call(*words, "--save-map", saved)[1]
    assert f"{saved} is not written; the one there is of an earlier report" in out


def test_a_refused_report_leaves_no_folder(tmp_path):
    """With the positive control of one that is written where no folder was."""
    words = write_upgrade(tmp_path, noise(600))
    page = tmp_path / "new" / "page.html"
    code, _, err = call(*words, "--report", page, "--fail-if", "nothing<1")
    assert code == 2 and not page.parent.exists(), err
    assert call(*words, "--report", page)[0] == 0
    assert sorted(each.name for each in page.parent.iterdir()) == ["page.html", "page.json"]


@pytest.mark.parametrize(("track", "name", "path"), [
    ("folder", "--data-root", "empty"), ("toy", "--store", "file/store"),
])  # fmt: skip
def test_a_run_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch, track, name, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    words = ["run", "-m", "bct", "-p", "open-class", "--device", "cpu", "-t", track, name, path]
    code, _, err = call(*words)
    assert code == 2 and err.count("\n") == 1, err
    assert not (tmp_path / "runs").exists()
    assert call(*words, "--out", "a/b/c")[0] == 2 and not (tmp_path / "a").exists()


def test_numbers_that_a_map_makes_infinite_are_told_in_memory():
    weights = torch.full((3, 3), 3e38)
    parts = {"convert": KeepSide(Affine.of(weights)), "query_view": Affine.of(weights)}
    made = Conversion("made-up", {}, "l2", Dims(old=3, new=3), False, parts)
    rows = np.array([[0, 0, 0], [9, 9, -9]], np.float32)
    for call_it, what in ((made.convert, "vectors"), (made.view, "queries")):
        assert call_it(rows[:1]).shape == (1, 3)
        with pytest.raises(BenchError, match=f"{what} after made-up: .*finite.* row 1"):
            call_it(rows)


def test_an_id_that_is_a_word_of_a_header(tmp_path):
    path = tmp_path / "q.qrels"
    for text, first, rows in (
        ("query-id-0 0 a 1\nquery-id-1 0 b 1\n", "query-id-0", [0, 1]),
        ("query-id 0 a 1\nquery-id-1 0 b 1\n", "query-id", [0, 1]),
        ("query-id\tcorpus-id\tscore\nquery-id-1\tb\t1\n", "query-id-0", [1]),
    ):
        path.write_text(text)
        found = Qrels.of(path, np.array([first, "query-id-1"]), np.array(["a", "b"]))
        assert found.rows.tolist() == rows
    path.write_text("query-id\tcorpus\tscore\nquery-id-1\tb\t1\n")
    with pytest.raises(BenchError, match="expected the header query-id corpus-id score"):
        Qrels.of(path, np.array(["query-id-1"]), np.array(["b"]))


@pytest.mark.parametrize("row", [0, 7, 19])
@pytest.mark.parametrize("value", [None, [1.0], [1.0, 2.0, 3.0]])
def test_a_list_of_another_length_is_named_by_its_row(tmp_path, row, value):
    """The reader counts from 1, by parts, for lists that the schema says are of a fixed size."""
    rows = [[1.0, 2.0] for _ in range(20)]
    rows[row] = value
    table = pa.table({"vector": pa.array(rows, pa.list_(pa.float32()))})
    fixed = pa.schema([("vector", pa.list_(pa.float32(), 2))])
    pq.write_table(fixed.empty_table(), tmp_path / "fixed.parquet")
    said = pq.read_metadata(tmp_path / "fixed.parquet").metadata[b"ARROW:schema"]
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(pa.table({"vector": pa.array([[0.0, 0.0]] * 5, fixed.field(0).type)}),
                   folder / "a.parquet")  # fmt: skip
    for path in (tmp_path / "x.parquet", folder / "b.parquet"):
        with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
            writer.write_table(table, row_group_size=6)
            writer.add_key_value_metadata({"ARROW:schema": said.decode()})
    got = len(value or ()) or "(null|none)"  # earlier readers take a null for an empty list
    for size in (4, 8192):
        for name, at in ((tmp_path / "x.parquet", row), (folder, row + 5)):
            with pytest.raises(
                BenchError, match=f"expected 2 numbers a row, got {got} in row {at}$"
            ):
                list(open_vectors(name).vectors(size))


@pytest.mark.parametrize("text", ["cpu:999", "cpu:99999999999", "cpu:²", "cpu:-1", "cpu:0"])
def test_more_processors_than_there_are(text):
    code, _, err = call("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--dry-run",
                        "--device", text)  # fmt: skip
    assert code == 2 and err.count("\n") == 1 and "--device: expected " in err
