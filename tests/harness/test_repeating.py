"""A record trained again: the same here, altered ones found, no badge on another machine."""

from __future__ import annotations

import errno
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy import stats
from support.command import call
from support.stored import write
from support.toy_runs import ONE_EPOCH, run_toy, toy

from benchmark.data import rendering
from benchmark.errors import BenchError
from benchmark.harness.repeating import Repetition, _compute, other_work, repeat, request_of
from benchmark.records.files import read_record
from benchmark.records.record import CodeVersion
from benchmark.records.verified import read_verification, verification_path, write_verification

MEASURED = Path(__file__).parents[2] / "results" / "measured"
COMMITTED = MEASURED / "open-class" / "glyphs" / "cascade+top-20" / "seed-0.json"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A record of a run on toy images."""
    root = tmp_path_factory.mktemp("run")
    run_toy(["procrustes"], root, **ONE_EPOCH)
    (found,) = root.glob("out/**/procrustes/seed-0.json")
    return found


@pytest.fixture(scope="module")
def repetition(path, tmp_path_factory):
    """It trained again from the start, with a store that keeps what was trained."""
    return repeat(read_record(path), store=tmp_path_factory.mktemp("again"))


def altered(record, by):
    """The record with one score moved by some points."""
    scores = {case: dict(values) for case, values in record.scores.items()}
    scores["new/old"]["map"] += by / 100
    return record.model_copy(update={"scores": scores})


def test_the_same_machine_gives_the_same_bit_for_bit(path, repetition):
    assert not repetition.differing and repetition.same_kind
    assert repetition.record.environment == repetition.again.environment
    assert repetition.farthest()[0] == 0.0
    badge = repetition.verification()
    assert badge.bit_for_bit and badge.points == 0.0 and badge.record == repetition.record.seal
    write_verification(path, badge)
    assert read_verification(repetition.record, path) == badge
    assert badge.date in badge.words and badge.machine["cpu"] in badge.words
    code, _, err = call("verify", verification_path(path))
    assert code == 2 and f"expected a record, got the badge of one: {path}" in err


def test_a_track_of_ones_own_is_known_by_its_file(tmp_path, monkeypatch):
    """Records name it by its id, which nobody else knows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPATBENCH_STORE", str(tmp_path / "store"))
    own = Path("own-toy.yaml")
    own.write_text("id: own-toy\nversion: 1\ntitle: Own\nextends: toy\nrecipe: {epochs: 1}\n")
    code, _, err = call(
        "run", "-m", "procrustes", "-p", "extended-class", "-t", own, "--records-only",
    )  # fmt: skip
    assert code == 0, err
    record = "runs/measured/extended-class/own-toy/procrustes/seed-0.json"
    code, out, _ = call("validate", record)
    assert code == 2 and "unknown track 'own-toy'" in out and "(one of your own: --track" in out
    assert call("verify", record)[0] == 2
    assert call("validate", record, "-t", own)[:2] == (0, "1 record: nothing is wrong\n")
    code, out, err = call("verify", record, "-t", own)
    assert code == 0 and out.startswith("bit for bit the same"), err
    code, _, err = call("validate", record, "-t", "own-toy")
    assert code == 2 and "expected a YAML file of your own, got 'own-toy'" in err


def test_threads_are_those_of_the_trainings(tmp_path):
    """Whoever takes a training from the store says how that was done."""
    before, told = torch.get_num_threads(), []
    try:
        for threads, out in ((before + 1, "a"), (before, "b")):
            torch.set_num_threads(threads)
            toy(["independent", "bct"], tmp_path / "store", tmp_path / out, settings=ONE_EPOCH)
            (path,) = (tmp_path / out).glob("**/independent/seed-0.json")
            told.append(read_record(path).environment["threads"])
        before_again = {each.name for each in (tmp_path / "a").rglob("base-*.json")}
        toy(["independent", "bct"], tmp_path / "store", tmp_path / "a", settings=ONE_EPOCH,
            existing="overwrite")  # fmt: skip
    finally:
        torch.set_num_threads(before)
    assert told == [str(before + 1)] * 2
    # Written anew on one thread: what the records stood on before is gone with them.
    after = {each.name for each in (tmp_path / "a").rglob("base-*.json")}
    assert len(after) == len(before_again) == 1 and after != before_again
    assert "threads" not in path.read_text().partition('"run"')[2]


@pytest.mark.parametrize("committed", [True, False])
def test_code_that_is_committed_since_writes_a_record_again(tmp_path, monkeypatch, committed):
    """From the store, without its badge, which is of the record before."""
    import benchmark.harness.record_builder as builder
    from benchmark.harness import runs

    def run(dirty):
        version = CodeVersion(version="0.1.0", commit="0" * 40, dirty=dirty)
        for module in (builder, runs):
            monkeypatch.setattr(module, "code_version", lambda: version)
        return run_toy(["procrustes"], tmp_path, **ONE_EPOCH)

    run(dirty=True)
    (found,) = tmp_path.glob("out/**/procrustes/seed-0.json")
    first = read_record(found)
    badge = repeat(first, store=tmp_path / "again").verification()
    write_verification(found, badge)
    run(dirty=not committed)
    again = read_record(found)
    assert again.run.code.dirty is (not committed) and again.checkpoints == first.checkpoints
    assert (again.seal == first.seal) is (not committed)
    assert verification_path(found).exists() is (not committed)


def test_what_a_track_says_since_for_other_protocols_changes_no_bit(repetition):
    parameters = repetition.record.parameters
    track = parameters.track.model_copy(update={"groups": {"scarce": ("a",)}})
    other = parameters.model_copy(update={"track": track})
    older = repetition.record.model_copy(update={"parameters": other})
    assert older.result() != repetition.again.result()
    assert replace(repetition, record=older).verification().bit_for_bit


def test_a_record_altered_by_a_tenth_of_a_point_fails(repetition):
    again = replace(repetition, record=altered(repetition.record, 0.1))
    with pytest.raises(BenchError, match=r"0\.1 points apart, at most 0\.05 .*new/old map"):
        again.verification()


FALSE = {
    "config": lambda r: {"config": {"share": 0.25}},
    "upper": lambda _: {"upper": "lower"},
    "counts": lambda r: {"counts": {**r.counts, "new/new": {"n_query": 1}}},
    "dataset": lambda r: {"dataset": r.dataset.model_copy(update={"fingerprint": "none"})},
    r"cost\.parameters": lambda r: {"cost": r.cost.model_copy(update={"parameters": 10})},
    "interval .* in one of them only": lambda r: {"intervals": {}},
    "models of": lambda r: {"checkpoints": {}},
    "weights of 'train old model": lambda r: {
        "checkpoints": dict.fromkeys(r.checkpoints, "sha256:" + "0" * 64)
    },
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_statement_gets_no_badge(repetition, name):
    """Scores that are right do not stand for what else a record says of its work."""
    false = repetition.record.model_copy(update=FALSE[name](repetition.record))
    with pytest.raises(BenchError, match=name):
        replace(repetition, record=false).verification()


def test_last_bits_of_the_same_kind_of_machine_pass(repetition):
    again = replace(repetition, record=altered(repetition.record, 0.04))
    badge = again.verification()
    assert not badge.bit_for_bit and badge.points == pytest.approx(0.04)
    assert "within 0.05 points" in badge.words


def test_what_differs_though_scores_agree_is_named(repetition):
    weights = {"train old model (seed 0)": "sha256:" + "0" * 64}
    false = repetition.record.model_copy(update={"checkpoints": weights})
    again = replace(repetition, record=false)
    assert again.differing == ["checkpoints"] and again.farthest()[0] == 0.0


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cpu", ("cpu", 1)), ("2 x cpu", ("cpu", 2)), ("1 x NVIDIA H100", ("auto", 1)),
     ("2 x NVIDIA H100", ("cuda", 2))],
)  # fmt: skip
def test_as_many_devices_train_a_model_as_did(repetition, device, expected):
    """Each has its share of a batch, so that two come out otherwise than one."""
    run = repetition.record.run
    stages = {title: s.model_copy(update={"device": device}) for title, s in run.stages.items()}
    record = repetition.record.model_copy(update={"run": run.model_copy(update={"stages": stages})})
    compute = _compute(record)
    assert (compute.accelerator, compute.devices) == expected
    assert replace(repetition, record=record).same_kind == (device == "cpu")


def elsewhere(repetition, name, by):
    """The record altered by some points and of another machine, and its repetition."""
    records = [altered(repetition.record, by), repetition.again]
    return Repetition(*(
        record.model_copy(update={"environment": record.environment | {name: value}})
        for record, value in zip(records, ("another", "one"), strict=True)
    ))  # fmt: skip


@pytest.mark.parametrize("name", ["cpu", "cpu_model", "system", "precision", "torch"])
def test_elsewhere_scores_are_held_to_their_intervals(name, repetition):
    low, high = repetition.again.intervals["new/old"]["map"]
    value = repetition.again.scores["new/old"]["map"]
    assert low < value < high  # or the next says nothing
    again = elsewhere(repetition, name, 99 * (high - value))
    assert again.outside() == ""
    badge = again.verification()
    assert badge.elsewhere and not badge.bit_for_bit and badge.points > 0
    assert "within the intervals" in badge.words and "another" in again.machines
    n = sum(s is not None for of in repetition.again.intervals.values() for s in of.values())
    wider = stats.norm.ppf(1 - 0.025 / n) / stats.norm.ppf(0.975)  # Bonferroni: all of them at once
    assert elsewhere(repetition, name, 99 * wider * (high - value)).outside() == ""
    beyond = elsewhere(repetition, name, 101 * wider * (high - value))
    assert beyond.verification() is None and beyond.outside().startswith("new/old map: ")


def test_pairs_accepted_at_a_threshold_are_no_facts_of_the_data(repetition):
    def with_counts(by):
        counts = {"new/new": {"n_query": 30, "n_accepted_impostor_tar_at_far_1e-2": 98} | by}
        return repetition.record.model_copy(update={"counts": counts})

    tied = {"n_accepted_impostor_tar_at_far_1e-2": 97}  # the last bits of a machine tie scores
    Repetition(with_counts({}), with_counts(tied)).verification()
    with pytest.raises(BenchError, match=r"counts: .*'n_query': 30.* in the record"):
        Repetition(with_counts({}), with_counts({"n_query": 29})).verification()


def test_elsewhere_both_have_the_same_scores(repetition):
    scores = {case: v for case, v in repetition.again.scores.items() if case != "new/old"}
    again = elsewhere(repetition, "cpu", 0.0)
    less = Repetition(again.record, again.again.model_copy(update={"scores": scores}))
    assert less.verification() is None and "is in one of them only" in less.outside()


def test_a_score_that_only_one_has_is_far_apart(repetition):
    scores = {case: v for case, v in repetition.again.scores.items() if case != "new/old"}
    again = repetition.again.model_copy(update={"scores": scores})
    assert Repetition(repetition.record, again).farthest()[0] == 100.0


def test_other_work_is_not_repeated(repetition):
    record = repetition.record
    assert other_work(record, request_of(record)) == ""
    other = record.model_copy(update={"key": "k", "training": 3})
    with pytest.raises(BenchError, match=r"other work .* training version 3, here"):
        repeat(other)
    # A key that fits does not stand for what the record says.
    recipe = record.recipe.model_copy(update={"epochs": 999})
    false = record.model_copy(update={"recipe": recipe})
    assert other_work(false, request_of(false)) == "recipe.epochs 999, here 1"
    adapter = record.adapter.model_copy(update={"module": "methods.bct"})
    false = record.model_copy(update={"config": {"direction": "query"}, "adapter": adapter})
    assert other_work(false, request_of(false)) == (
        "config.direction query, here gallery; adapter.module methods.bct, here methods.procrustes"
    )


@pytest.mark.parametrize(("told", "precision"), [
    ("32-true", "32-true"), ("bf16-mixed", "recipe"), ("32-true, bf16-mixed", "recipe"),
    ("", "recipe"),
])  # fmt: skip
def test_trainings_have_the_precision_of_the_record(told, precision):
    """Machines without bf16 train at 32 bits what a recipe would train at 16."""
    record = read_record(COMMITTED)
    here = record.model_copy(update={"environment": record.environment | {"precision": told}})
    request = request_of(here)
    assert request.precision == precision
    assert record.changed == {} and other_work(here, request) == ""


def test_a_first_seed_that_is_no_setting_is_the_seed():
    record = read_record(COMMITTED)
    other = record.model_copy(update={"first_seed": 7})
    assert other_work(other, request_of(other)) == f"first_seed 7, here {record.seed}"


def test_a_badge_is_of_one_record(path, repetition, tmp_path):
    folder = shutil.copytree(path.parent.parent, tmp_path / "board") / path.parent.name
    copy = folder / path.name
    badge = write_verification(copy, repetition.verification())
    assert badge == verification_path(copy) == folder / "verified-seed-0.json"
    value = json.loads(copy.read_text())
    write(copy, value | {"seed": 0, "first_seed": 7})
    with pytest.raises(BenchError, match="of another record"):
        read_verification(read_record(copy), copy)
    badge.write_text(badge.read_text().replace("2", "3"))
    with pytest.raises(BenchError, match="edited"):
        read_verification(repetition.record, copy)


def test_a_folder_that_takes_no_badge_is_told_before_training(path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr("benchmark.harness.repeating.repeat", pytest.fail)
    code, _, err = call("verify", path)
    assert (code, err) == (
        2, f"bench: verify: cannot write in {path.parent}: Read-only file system\n",
    )  # fmt: skip


@pytest.mark.slow
def test_the_command(pictures, path, tmp_path):
    """From the start, with a badge; and exit code 2 for a record that was altered and sealed."""
    verification_path(path).unlink(missing_ok=True)
    # Pictures of the details were left out above, and are a part of what is compared.
    code, out, err = call("verify", path, "--store", tmp_path)
    assert code == 0, err
    assert "0 points apart" in out or "bit for bit" in out
    assert "verified 2" in out and verification_path(path).is_file()
    value = json.loads(path.read_text())
    value["scores"]["new/old"]["map"][0] += 0.001
    code, _, err = call("verify", write(path, value), "--store", tmp_path)
    assert code == 2 and "0.1 points apart" in err.splitlines()[-1]


@pytest.mark.slow
def test_a_committed_record_comes_out_again(pictures, tmp_path):
    """Minutes: from the images on, with nothing that is stored."""
    committed = read_record(COMMITTED)
    if committed.dataset.facts["ink"] != rendering.ink_hash():
        pytest.skip("FreeType here draws other pixels than those of the record")
    found = repeat(committed, store=tmp_path)
    assert found.verification() is not None, found.outside()  # its models are published ones
    if found.same_kind:  # last bits differ
        with pytest.raises(BenchError, match="points apart, at most"):
            replace(found, record=altered(committed, 0.1)).verification()
    assert replace(found, record=altered(committed, 20.0)).outside()
