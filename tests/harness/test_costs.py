"""Parts of a run's records beside the scores: costs, details, provenance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.command import call
from support.toy_runs import toy
from torch import nn

from benchmark import load, run
from benchmark.harness.cost import multiply_adds
from benchmark.harness.execution import Compute
from benchmark.records.details_files import details_path, find_details, queries_path
from benchmark.records.files import read_record, write_record
from benchmark.records.record import json_schema

CPU = Compute("cpu")
METHODS = ["fct:simclr", "fastfill", "bt2", "linear:query"]
SMALL = {"fct:simclr.width": 64, "fastfill.width": 64}


@pytest.fixture(scope="module")
def done(drawn, tmp_path_factory):
    """One finished run with its pictures: its folder and records."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.harness.evaluation.details.draw", drawn)
        records = toy(METHODS, folder / "store", folder / "runs", "extended-class", settings=SMALL)
    return folder, {r.method: r for r in records}


def file_of(record, folder):
    """Place of a record; runs with settings lie apart."""
    (path,) = (p for p in folder.rglob("seed-0.json") if p == record.path(p.parents[4]))
    return path


def test_multiply_adds_by_hand() -> None:
    import torch

    # 3 x 3 over 2 channels for each of 5 channels and 6 x 6 places; then 5 numbers to 7.
    module = nn.Sequential(
        nn.Conv2d(2, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 7)
    )
    work, out = multiply_adds(module, torch.zeros(1, 2, 8, 8))
    assert work == 9 * 2 * 5 * 36 + 5 * 7
    assert out.shape == (1, 7)


def test_costs(done) -> None:
    costs = {name: record.cost.model_dump() for name, record in done[1].items()}
    alone = costs["independent"]
    dims = {g: m.dim for g, m in done[1]["independent"].models.items()}
    old, new = 4 * dims["old"], 4 * dims["new"]
    assert alone["convert_multiply_adds"] == alone["query_multiply_adds"] == 0
    assert (alone["bytes_before"], alone["bytes_after"], alone["bytes_new"]) == (old, old, new)
    assert alone["multiply_adds"] > 0
    assert alone["old_multiply_adds"] > 0
    # A map of vectors: one product of the two dimensions, for queries only.
    query = costs["linear:query"]
    assert query["query_multiply_adds"] == dims["old"] * dims["new"]
    assert query["convert_multiply_adds"] == 0
    # Side-information lies beside the old vector, and stays beside the converted one.
    sided = done[1]["fct:simclr"]
    side = sided.as_json()["side"]["generations"]["old"]["bytes"]
    assert sided.cost.bytes_before == old + side
    assert sided.cost.bytes_after == new + side
    assert sided.cost.convert_multiply_adds > costs["fastfill"]["convert_multiply_adds"] > 0
    # BT2 stores the new embedding and the old one's space in one longer vector.
    assert costs["bt2"]["bytes_new"] > new
    assert costs["bt2"]["multiply_adds"] > alone["multiply_adds"]


def test_provenance(done) -> None:
    for name, record in done[1].items():
        assert record.adapter.module == "methods." + name.partition(":")[0].replace("-", "_")
        assert record.adapter.source.startswith("sha256:")
        assert record.as_json()["parameters"]["protocol"]["generations"][0]["name"] == "old"
        assert record.as_json()["parameters"]["track"]["dataset"] == "toy"
        assert record.as_json()["dataset"]["generations"]["new"]["images"] > 0
        seconds = record.run.seconds
        assert seconds["train"] == pytest.approx(
            sum(s.seconds for t, s in record.run.stages.items() if t.startswith("train ")
                and not t.startswith(("train bt2", "train side"))), abs=0.01
        )  # fmt: skip
        assert record.run.peak_memory_bytes > 2**20
        assert {"scipy", "scikit-learn", "torch"} <= set(record.environment)


def test_records_fit_their_schema(done) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json_schema())
    for record in done[1].values():
        validator.validate(read_record(file_of(record, done[0])).as_json())


def test_details_are_of_the_scores(done) -> None:
    for record in done[1].values():
        path = file_of(record, done[0])
        details = find_details(record, path)
        assert details is not None
        assert details_path(path).stat().st_size <= 64 * 1024
        assert details.left_out == ()
        for (case, metric), found in details.results.items():
            score = record.scores[case][metric]
            # Steps of average precision are rounded at random, with the right mean.
            margin = 3 * found.step / np.sqrt(len(found.values)) + 1e-12
            assert found.values.mean() == pytest.approx(score, abs=margin)
        for case, scores in record.scores.items():
            assert {(case, metric) for metric in scores} <= set(details.results)


def test_what_pages_draw(done) -> None:
    found = {
        name: find_details(record, file_of(record, done[0])) for name, record in done[1].items()
    }
    for name, details in found.items():
        assert details is not None
        assert details.picture is not None
        assert len(details.picture.classes) == 4
        # The classes are chosen by the old vectors, which these methods share.
        first = found["independent"]
        assert first is not None
        assert first.picture is not None
        assert details.picture.classes == first.picture.classes
        assert (details.ordering is not None) == (name == "fastfill")
    order = found["fastfill"].ordering  # type: ignore[union-attr]
    assert order is not None
    assert order.n_items >= len(order.true) == len(order.predicted)
    assert -1 <= order.tau <= 1


def test_same_bytes_again_and_made_anew_where_it_is_lost(done, pictures, tmp_path) -> None:
    folder, records = done
    asked = {"store": tmp_path / "s", "out": tmp_path / "o", "compute": CPU}
    again = run(METHODS[-1:], "extended-class", "toy", **asked)[-1]
    was, now = (queries_path(file_of(again, root)) for root in (folder, tmp_path))
    assert was.read_bytes() == now.read_bytes()
    apart = {"key", "changed"}  # that run had settings of other methods
    was_said, now_said = (r.result() for r in (records[METHODS[-1]], again))
    assert {k: v for k, v in now_said.items() if v != was_said[k]}.keys() <= apart
    small = details_path(file_of(again, tmp_path))
    packed = small.read_bytes()
    small.unlink()
    run(METHODS[-1:], "extended-class", "toy", **asked)
    assert small.read_bytes() == packed


def test_results_by_query_come_from_the_store_again(done, tmp_path) -> None:
    folder, asked = done[0], {"store": done[0] / "store", "compute": CPU}
    again = run(METHODS[-1:], "extended-class", "toy", out=tmp_path / "runs", **asked)[-1]
    path = file_of(again, tmp_path)
    packed = queries_path(path).read_bytes()
    queries_path(path).unlink()
    words = ["results", "details", str(path), "--store"]
    code, out, _ = call(*words, folder / "store")
    assert (code, out.strip()) == (0, str(queries_path(path)))
    assert queries_path(path).read_bytes() == packed
    value = read_record(path).model_copy(update={"queries": "sha256:" + "0" * 64})
    write_record(other := tmp_path / path.name, value)
    code, _, err = call("results", "details", other, "--store", folder / "store")
    assert code == 2 and "(hashes differ)" in err


def test_all_scores_are_one_tidy_file(done, tmp_path) -> None:
    runs, out = done[0] / "runs", tmp_path / "scores.parquet"
    code, said, _ = call("results", "export", runs, "--out", out)
    assert code == 0 and str(out) in said
    pd.testing.assert_frame_equal(pd.read_parquet(out), load(runs))
    code, _, err = call("results", "export", runs, "--out", tmp_path / "scores.csv")
    assert (code, err) == (
        2,
        "bench: --out: expected a name that ends in .parquet, got scores.csv\n",
    )
    made = tmp_path / "missing" / "x.parquet"
    assert call("results", "export", runs, "--out", made)[0] == 0 and made.is_file()
    code, _, err = call("results", "export", tmp_path / "gone", "--out", out / "x.parquet")
    assert (code, err) == (2, f"bench: --out: cannot write in {out}: File exists\n")


def test_show_and_compare(done) -> None:
    runs = str(done[0] / "runs")
    for words, said in (
        (
            ("show", runs, "-m", "fct:simclr"),
            ("bytes of an item before the update", "simclr", "sha256"),
        ),
        (("show", runs, "-m", "fastfill"), ("priority, Kendall's tau", "t-SNE")),
        (("compare", "fct:simclr", "fastfill", runs), ("difference", "identities")),
    ):
        code, out, err = call(*words)
        assert (code, err) == (0, "")
        assert all(word in out for word in said)
