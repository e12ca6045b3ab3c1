"""Times of runs by committed records: hand-worked medians, and the committed file."""

from __future__ import annotations

import csv

import pytest
import times
from support.records import make_record

from benchmark.report import run_times
from benchmark.report.run_times import TimeRow


def timed(method, seed, protocol="open-class", **seconds):
    stages = {
        title.replace("_", " "): {"seconds": 99.0, "cpu_seconds": value, "device": "cpu"}
        for title, value in seconds.items()
    }
    return make_record(method, seed=seed, protocol=protocol, run={"stages": stages})


def test_a_first_run_is_the_independent_model_and_one_method_each_stage_once():
    """Seeds take 10 + 20 + 30 + 5 and 10 + 20 + 50 + 5: the median is 75."""
    records = [
        *(timed("independent", s, dataset=10.0, train_old=20.0, embed_old=5.0) for s in (0, 1)),
        timed("bct", 0, dataset=10.0, train_bct=30.0),
        timed("bct", 1, dataset=10.0, train_bct=50.0),
        timed("l2", 0, train_l2=40.0), timed("l2", 0, "open-data", train_l2=40.0),
    ]  # fmt: skip
    rows = run_times.measure(records)
    assert rows[0] == TimeRow("open-class", "glyphs", "first run", 75.0)
    # embed 5, 5; dataset 10; train 20, 20, 30, 50, 40, 40
    assert {row.work: row.seconds for row in rows[1:]} == {"dataset": 10, "embed": 5, "train": 35}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of times instead of the committed one."""
    path = tmp_path / "times.csv"
    monkeypatch.setattr(run_times, "evidence_file", lambda _: path)
    run_times.times.cache_clear()
    yield path
    run_times.times.cache_clear()


def test_a_track_takes_the_share_of_its_images_of_the_one_that_it_extends(file):
    rows = [("open-class", "glyphs", "first run", 60.0), ("", "glyphs", "train", 30.0)]
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([run_times.HEADS, *rows])
    assert run_times.first_runs(track="glyphs-short") == {("open-class", "glyphs-short"): 30.0}
    assert run_times.first_runs("open-class") == {("open-class", "glyphs"): 60.0}
    assert run_times.stage_seconds("glyphs-short", "train") == 15.0
    assert run_times.stage_seconds("glyphs", "train") == 30.0
    assert run_times.stage_seconds("glyphs", "embed") is None
    # Larger networks, other data: nothing is known.
    assert run_times.first_runs(track="glyphs-large") == run_times.first_runs(track="toy") == {}


@pytest.mark.slow
def test_the_committed_file_is_that_of_the_committed_records():
    with (times.RESULTS / run_times.FILE).open(encoding="utf-8") as file:
        assert list(csv.reader(file)) == times.lines()
