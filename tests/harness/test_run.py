"""The main job on the toy track: what is stored, repeated, resumed and refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import call
from support.toy_runs import ONE_EPOCH, toy

from benchmark import BenchError, load, run
from benchmark.config.files import read_sealed, write_sealed
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.requests import make_request
from benchmark.harness.runs import carry_out
from benchmark.records.details_files import check_digest, details_path
from benchmark.records.files import read_record, write_record

CPU = Compute("cpu")
METHODS = ["bct", "residual-mlp", "mixbct"]
ROOT = Path(__file__).parents[2]
SMALL = ONE_EPOCH | {"data.classes": 16}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One finished run: its folder and records."""
    folder = tmp_path_factory.mktemp("run")
    records = toy(METHODS, folder / "store", folder / "runs")
    return folder, {r.method: r for r in records}


def test_cases_and_bounds(done) -> None:
    _, records = done
    assert list(records) == ["independent", *METHODS]
    for name, record in records.items():
        assert {"old/old", "new/old", "new/new", "old/new"} <= set(record.scores)
        assert ("old'/old'" in record.scores) == (name == "residual-mlp")
        metrics = set(record.scores["new/old"])
        assert {"cmc_at_1", "cmc_at_5", "map", "rank_1", "tar_at_far_1e-2"} <= metrics
        # Only verification has a case with the old model first.
        assert all(m.startswith("tar") for m in record.scores["old/new"])
        assert record.bounds["lower"] == records["independent"].scores["old/old"]
        assert record.bounds["upper"] == records["independent"].scores["new/new"]
        assert {record.over["cmc_at_1"], record.over["map"]} == {"classes"}
        assert record.over["rank_1"] == "identities"
        for case, scores in record.scores.items():
            for metric, value in scores.items():
                span = record.intervals[case][metric]
                decided = [
                    n for name, n in record.counts[case].items()
                    if name.startswith("n_accepted") and name.endswith(metric)
                ]  # fmt: skip
                # A threshold that fewer than 30 impostors decide says too little.
                assert (span is None) == any(n < 30 for n in decided)
                assert span is None or span[0] <= value <= span[1]


def test_verdicts(done) -> None:
    for record in done[1].values():
        for metric, low in record.bounds["lower"].items():
            cross, high = record.scores["new/old"][metric], record.bounds["upper"][metric]
            assert record.compatible[metric] == (cross > low)
            gain = record.update_gain[metric]
            if cross > low and high > low:
                assert gain == pytest.approx((cross - low) / (high - low))
            else:
                assert gain is None


def test_training_cost_stands_in_the_record(done) -> None:
    for name, record in done[1].items():
        stages = record.as_json()["run"]["stages"]
        work = {
            title: used["cpu_seconds"] / used["calibration_cpu_seconds"]
            for title, used in stages.items()
        }
        alone = work["train independent new model (seed 0)"]
        if name == "independent":
            assert record.run.training_cost == 1.0
            continue
        own = work.get(f"train {name} (seed 0)", work.get(f"fit {name} (seed 0)"))
        # A map is charged with the model that it leads to.
        assert record.run.training_cost == pytest.approx(own / alone + (name == "residual-mlp"))


@pytest.mark.parametrize("clock", ["cpu_seconds", "seconds"])
def test_stages_are_timed_by_what_all_of_them_noted(done, tmp_path, clock) -> None:
    """A stage of an older version may know less; ratios of two clocks would mean nothing."""
    store = tmp_path / "store"
    shutil.copytree(done[0] / "store", store)
    for path in store.glob("stages/*/stage.json"):
        meta = read_sealed(path, 10**6)
        if meta["title"] == "train bct (seed 0)":
            unknown = {"calibration_cpu_seconds", "cpu_seconds"} - {clock}
            meta["run"] = {k: v for k, v in meta["run"].items() if k not in unknown}
            write_sealed(path, meta)
    record = toy(["bct"], store, tmp_path / "runs")[1]
    took = {title: used[clock] for title, used in record.as_json()["run"]["stages"].items()}
    ratio = took["train bct (seed 0)"] / took["train independent new model (seed 0)"]
    assert record.run.training_cost == pytest.approx(ratio)


def test_second_call_answers_from_records(done, heard) -> None:
    folder, records = done
    again = toy(METHODS, folder / "nothing", folder / "runs", reporter=heard)
    assert heard.titles == []
    assert [r.key for r in again] == [r.key for r in records.values()]


def test_second_call_loads_no_torch(done, monkeypatch) -> None:
    """The first draws plots and the page, which is tested elsewhere."""
    folder, _ = done
    words = ["run", "-m", "residual-mlp", "-p", "open-class", "-t", "toy",
             "--out", str(folder / "runs"), "--store", str(folder / "nothing")]  # fmt: skip
    monkeypatch.setattr("benchmark.report.plots.records.plot", lambda *_: None)
    monkeypatch.setattr("leaderboard.site.build", lambda _, site, **__: write(site / "index.html"))
    assert call(*words)[0] == 0
    code = (
        f"import sys\nfrom benchmark.cli.app import main\ntry: main({words})\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def write(page: Path) -> None:
    page.parent.mkdir()
    page.touch()


def test_another_method_trains_only_itself(done, heard) -> None:
    folder, _ = done
    toy([*METHODS, "l2"], folder / "store", folder / "runs", reporter=heard)
    assert heard.titles == [
        "train l2 (seed 0)", "embed test images: l2, new", "evaluate l2 (seed 0)"
    ]  # fmt: skip


def test_same_seed_same_record_other_seed_another(done, tmp_path) -> None:
    records = done[1]
    again = toy(METHODS[1:], tmp_path / "s", tmp_path / "o", seeds=[0])
    other = toy(METHODS[2:], tmp_path / "s", tmp_path / "o", seeds=[1])
    for record in [*again, *other]:
        first = records[record.method].result()
        if record.seed == 0:
            assert record.result() == first
        else:
            assert record.scores != first["scores"]
            assert record.checkpoints != first["checkpoints"]


def test_first_seed_can_be_fixed_apart(done, tmp_path) -> None:
    record = toy(["independent"], done[0] / "store", tmp_path, seeds=[1], first_seed=0)[0]
    bound = done[1]["independent"]
    assert record.scores["old/old"] == bound.scores["old/old"]
    assert record.scores["new/new"] != bound.scores["new/new"]
    assert record.changed == {"first_seed": 0}


def test_upper_bound_on_all_data(done, tmp_path) -> None:
    record = toy(["bct"], done[0] / "store", tmp_path, settings={"protocol.upper": "all"})[-1]
    assert record.upper == "upper-all"
    assert set(record.bounds) == {"lower", "upper", "upper-all"}
    assert record.bounds["upper-all"] != record.bounds["upper"]


def test_not_applicable_is_a_row(done, tmp_path) -> None:
    record = toy(["bct:distill"], done[0] / "store", tmp_path)[-1]
    assert record.status == "not-applicable"
    assert "old classifier" in record.reason
    assert record.scores == {}


def test_unequal_sizes(tmp_path) -> None:
    changes = {"old.dim": 8, **SMALL}
    records = toy(["l2", "linear"], tmp_path / "s", tmp_path / "o", settings=changes)
    independent, l2, linear = records
    assert "new/old" not in independent.scores
    assert independent.compatible == {}
    assert l2.reason == "needs embeddings of one size, got 8 and 16"
    assert linear.scores["new/old"]["map"] > 0


def test_kept_head_can_be_used(done, tmp_path) -> None:
    methods, kept = ["bct:distill", "bct:old"], {"protocol.old_head": "kept"}
    records = toy(methods, done[0] / "store", tmp_path, "extended-class", settings=kept)
    assert [r.status for r in records] == ["done"] * 3
    assert records[1].scores != records[2].scores


def test_changed_track_lies_apart(done) -> None:
    folder, records = done
    changed = toy(["bct"], folder / "store", folder / "runs", settings={"bct.weight": 5.0})[-1]
    assert changed.config["weight"] == 5.0
    kept = read_record(records["bct"].path(folder / "runs"))
    assert kept.config["weight"] == 1.0


def test_existing_overwrite_computes_anew(done, heard, tmp_path) -> None:
    folder, records = done
    path = records["bct"].path(folder / "runs")
    os.utime(path, (0, 0))
    again = toy(["bct"], folder / "store", folder / "runs", existing="overwrite", reporter=heard)[
        -1
    ]
    assert "train old model (seed 0)" in heard.titles
    assert again.result() == records["bct"].result()
    assert path.stat().st_mtime > 0 and again.run.finished >= records["bct"].run.finished


def test_overwrite_computes_what_plans_share_once(heard, tmp_path) -> None:
    """Two settings of a protocol, or two lists of methods, share the models that both compare."""
    requests = [make_request([m], "open-class", "toy", settings=SMALL) for m in ("l2", "linear")]
    for _ in range(2):
        heard.titles.clear()
        carry_out(requests, "overwrite", tmp_path / "store", tmp_path / "runs", CPU, heard)
        assert "train old model (seed 0)" in heard.titles
        assert len(heard.titles) == len(set(heard.titles))


def test_existing_missing_keeps_what_is_there(done, heard) -> None:
    folder, records = done
    path = records["mixbct"].path(folder / "runs")
    # A record of other code: skip would compute it anew, missing takes it as it is.
    write_record(path, records["mixbct"].model_copy(update={"key": "0" * 24}))
    kept = toy(["mixbct"], folder / "nothing", folder / "runs", existing="missing", reporter=heard)[
        -1
    ]
    assert (kept.key, heard.titles) == ("0" * 24, [])
    again = toy(["mixbct"], folder / "store", folder / "runs")[-1]
    assert again.result() == records["mixbct"].result()


class Told(Reporter):
    """Keeps what is said of records that are not as they were written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def edited(self, path, reason) -> None:
        """Keep the reason."""
        self.lines.append(f"{path.parent.name}: {reason}")


def test_what_is_not_as_it_was_written_is_told_and_made_anew(done) -> None:
    folder, records = done
    path = records["mixbct"].path(folder / "runs")
    text, packed = path.read_text(), details_path(path).read_bytes()
    value = records["mixbct"].as_json()
    better = {"new/old": dict.fromkeys(value["scores"]["new/old"], 1.0)}
    damages = {
        "its seal does not fit": lambda: path.write_text(json.dumps(value | {"scores": better})),
        "its seal is missing": lambda: path.write_text(json.dumps(value | {"seal": None})),
        "got 3, of an earlier version": lambda: path.write_text(json.dumps(value | {"schema": 3})),
        "not valid JSON": lambda: path.write_text(text[:-9]),
        "missing, though": lambda: details_path(path).unlink(),
        "hashes differ": lambda: details_path(path).write_bytes(packed[:-1]),
    }
    for said, damage in damages.items():
        damage()
        told = Told()
        again = toy(["mixbct"], folder / "store", folder / "runs", reporter=told)[-1]
        assert len(told.lines) == 1
        assert said in told.lines[0] and told.lines[0].startswith("mixbct: ")
        assert again.result() == records["mixbct"].result()
        assert check_digest(again, path)  # whatever stages took in the meantime
        assert read_record(path).seal == again.seal is not None


def test_load_gives_a_frame(done) -> None:
    folder, records = done
    frame = load(folder / "runs" / "measured", metric="map", case="new/old")
    value = frame.set_index("method").loc["mixbct", "value"]
    assert value == records["mixbct"].scores["new/old"]["map"]
    with pytest.raises(BenchError, match="unknown column 'metrik'"):
        load(folder / "runs", metrik="map")


def test_record_is_plain_json(done) -> None:
    folder, records = done
    path = records["bct"].path(folder / "runs")
    value = json.loads(path.read_text())
    base = json.loads((path.parents[1] / f"base-{value['base']}.json").read_text())
    assert base["environment"]["torch"]
    whole = read_record(path)
    assert whole.run.stages["train bct (seed 0)"].seconds > 0
    assert whole.environment == base["environment"]
    assert len(path.read_bytes()) < 12_000


class Impatient(Reporter):
    """Stops the run within the training of bct."""

    def start(self, stage, number, total):
        """Interrupt once half of it is done."""

        def heard(share):
            if stage.title.startswith("train bct") and share >= 0.5:
                raise KeyboardInterrupt

        return heard


def test_a_training_taken_up_costs_what_both_attempts_did(tmp_path) -> None:
    asked = (["bct"], "open-class", "toy")
    where = {"store": tmp_path / "s", "out": tmp_path / "runs", "compute": CPU}
    with pytest.raises(KeyboardInterrupt):
        run(*asked, **where, settings={"recipe.epochs": 4}, reporter=Impatient())
    (kept,) = (tmp_path / "s" / "work").glob("*/seconds.checkpoint.json")
    spent = read_sealed(kept, 10**6)
    assert min(spent["seconds"], spent["cpu_seconds"]) > 0
    write_sealed(kept, spent | {"seconds": 5000.0, "cpu_seconds": 3000.0})
    record = run(*asked, **where, settings={"recipe.epochs": 4})[1]
    of_stage = record.as_json()["run"]["stages"]["train bct (seed 0)"]
    assert 5000 < of_stage["seconds"] < 6000 and 3000 < of_stage["cpu_seconds"] < 4000
    assert record.run.training_cost > 3
    assert not list((tmp_path / "s" / "stages").glob("*/spent*"))


def test_a_record_of_another_precision_is_made_anew(done, tmp_path) -> None:
    shutil.copytree(done[0] / "runs", tmp_path / "runs")
    (path,) = (tmp_path / "runs" / "measured").rglob("bct/seed-0.json")

    def again(**options) -> str:
        records = toy(["bct"], done[0] / "store", tmp_path / "runs", **options)
        return records[1].environment["precision"]

    record = read_record(path)
    other = record.environment | {"precision": "bf16-mixed"}
    write_record(path, record.model_copy(update={"environment": other}))
    assert again() == "bf16-mixed"  # the same work, on another machine
    assert again(precision="32-true") == "32-true"
    assert again() == "32-true"
