"""Records that several processes write: the details beside a record are its own."""

import os

import pytest

import benchmark
from benchmark.errors import BenchError
from benchmark.harness import record_builder, runs
from benchmark.records.details_files import check_digest, details_path
from benchmark.records.files import read_record


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two records, from a store that keeps its stages."""
    root = tmp_path_factory.mktemp("written")

    def go(**more):
        options = {"out": root / "out", "store": root / "store"} | more
        return benchmark.run(["procrustes"], "open-class", "toy", **options)

    go()
    return go, root / "out"


def record_files(out):
    return sorted(out.glob("measured/*/*/*/seed-0.json"))


def test_a_record_that_another_process_has_written_stays(run, monkeypatch):
    """Both began before either was there; times differ, and with them the details."""
    go, out = run
    for path in record_files(out):
        os.utime(path, (0, 0))
    monkeypatch.setattr(runs, "_stored_records", lambda *args: {})
    go()
    assert len(record_files(out)) == 2
    for path in record_files(out):
        assert path.stat().st_mtime == 0
        check_digest(read_record(path), path)


def test_damaged_details_are_written_again(run, monkeypatch):
    go, out = run
    path = next(p for p in record_files(out) if p.parent.name == "procrustes")
    details_path(path).write_bytes(b"of another process")
    with pytest.raises(BenchError):
        check_digest(read_record(path), path)
    monkeypatch.setattr(runs, "_stored_records", lambda *args: {})
    go()
    check_digest(read_record(path), path)


def test_a_training_of_many_epochs_fits_its_details(tmp_path, monkeypatch):
    monkeypatch.setattr(record_builder, "_MOST_POINTS", 2)
    changes = {"data.classes": 6, "data.images": 4, "data.size": 8, "recipe.epochs": 5}
    (*_, record) = benchmark.run(
        ["bct"], "open-class", "toy", store=tmp_path / "s", out=tmp_path / "o", settings=changes
    )
    curves = [curve for of_stage in record.curves.values() for curve in of_stage.values()]
    assert curves
    for curve in curves:
        assert len(curve.loss) == len(curve.lr) == 2 and curve.steps_an_epoch == 3
