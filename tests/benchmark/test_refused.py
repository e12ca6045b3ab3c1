"""A method that finds at work that it cannot go on: the others' records are written."""

import pytest

from benchmark import BenchError, run
from benchmark.record import read_records
from benchmark.runner import Compute

# No old feature is that certain; fewer vertices than classes.
SETTINGS = {"nccl.doubt": 0.0, "d-simplex.vertices": 3, "recipe.epochs": 1}


def test_one_refusal_ends_no_other_method(tmp_path, heard):
    options = {
        "settings": SETTINGS, "store": tmp_path / "s", "out": tmp_path / "o",
        "compute": Compute("cpu"),
    }  # fmt: skip
    made = run(["nccl", "d-simplex", "l2"], "open-class", "toy", reporter=heard, **options)
    found = {r.method: r for r in made}
    assert found["independent"].status == found["l2"].status == "done"
    for name, said in (("nccl", "no old feature"), ("d-simplex", "vertices: expected")):
        record = found[name]
        assert record.status == "not-applicable" and said in record.reason
        assert not record.scores and record.bounds["lower"] == found["l2"].bounds["lower"]
    assert len(list(read_records(tmp_path / "o"))) == 4
    assert not [t for t in heard.titles if t.startswith(("evaluate nccl", "evaluate d-simplex"))]
    # Asked again, the records answer.
    again = run(["nccl", "d-simplex", "l2"], "open-class", "toy", **options)
    assert [r.reason for r in again] == [r.reason for r in made]


def test_without_the_bounds_there_are_no_records(tmp_path):
    with pytest.raises(BenchError, match="diverged"):
        run(
            ["l2"], "open-class", "toy", settings={"recipe.lr": 1e30, "recipe.epochs": 2},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
        )  # fmt: skip


def test_a_diverged_method_is_left_out(tmp_path):
    made = run(
        ["l2"], "open-class", "toy", settings={"l2.weight": 1e38, "recipe.epochs": 2},
        store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
    )  # fmt: skip
    assert made[0].status == "done"
    assert made[1].status == "not-applicable" and "diverged" in made[1].reason
