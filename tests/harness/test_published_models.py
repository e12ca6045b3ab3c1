"""Models published by one machine, taken by another: the same old model, by its hash."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml
from support.command import call
from support.stored import write
from support.toy_runs import run_toy_seeds

from benchmark.errors import BenchError
from benchmark.harness.core_board import read_core_board
from benchmark.harness.published_models import INDEX, parse_published, read_published
from benchmark.harness.publishing import publish
from benchmark.harness.record_builder import _times
from benchmark.harness.repeating import repeat
from benchmark.harness.requests import make_request
from benchmark.harness.store import Store
from benchmark.harness.submission import other_than_today
from benchmark.records.files import read_record
from benchmark.records.stage_titles import old_model
from benchmark.report.comparable import comparable
from benchmark.training import embedding

OLD, NEW = "train old model (seed 0)", "train independent new model (seed 0)"
BOARD = {
    "precision": "recipe", "threads": 1, "device": "cpu", "seeds": [0],
    "lists": {"few": ["independent", "bct"]},
    "boards": [{"track": "toy", "protocols": ["extended-data"], "methods": "few"}],
}  # fmt: skip


def run(methods, root, published="none"):
    """Records of a fresh store, by method."""
    made = run_toy_seeds(methods, root / "out", root / "store", [0], published=published)
    return {record.method: record for record in made}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Results of another machine, whose sums end in other last bits: its records and its store."""
    root, really = tmp_path_factory.mktemp("theirs"), embedding.train_embedding

    def elsewhere(model, *rest, **options):
        curve = really(model, *rest, **options)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + 2e-7)
        return curve

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "train_embedding", elsewhere)
        records = run(["bct"], root)
    (root / "core.yaml").write_text(yaml.safe_dump(BOARD))
    return root, records


@pytest.fixture
def board(theirs):
    return read_core_board(theirs[0] / "core.yaml")


@pytest.fixture(scope="module")
def published(theirs):
    """The folder that their results publish."""
    root, _ = theirs
    made = publish(read_core_board(root / "core.yaml"), root / "out", [root / "store"], {}, 10**9)
    assert (len(made.index.models), made.missing, made.beyond) == (2, (), ())
    return made.folder


@pytest.fixture(scope="module")
def ours(published, tmp_path_factory):
    """A submission: of another machine and a fresh store, with their models."""
    return run(["bct"], tmp_path_factory.mktemp("ours"), published)


def test_a_submission_starts_from_the_published_models(theirs, published, ours):
    records = theirs[1]
    for title in (OLD, NEW):
        assert ours["bct"].checkpoints[title] == records["bct"].checkpoints[title]
        stage = ours["bct"].run.stages[title]
        assert stage.published and stage.seconds == records["bct"].run.stages[title].seconds
        assert ours["bct"].curves[title] == records["bct"].curves[title]
    assert ours["bct"].key == records["bct"].key
    assert ours["bct"].bounds["lower"] == records["bct"].bounds["lower"]
    assert ours["bct"].cost == records["bct"].cost
    assert old_model(ours["bct"]) == old_model(records["bct"])
    assert ours["bct"].checkpoints["train bct (seed 0)"] != ""
    assert not records["bct"].run.stages[OLD].published
    names = {path.stem for path in published.glob("*.safetensors")}
    assert {records["bct"].checkpoints[t].removeprefix("sha256:") for t in (OLD, NEW)} <= names


def test_training_costs_are_compared_with_theirs_in_calibrated_units_alone(ours):
    stages = ours["bct"].run.stages
    own, alone = (
        stages[title].cpu_seconds / stages[title].calibration_cpu_seconds
        for title in ("train bct (seed 0)", NEW)
    )
    assert ours["bct"].run.training_cost == pytest.approx(own / alone)
    taken = {"device": "cpu", "seconds": 9, "cpu_seconds": 8, "calibration_cpu_seconds": 2}
    taken["published"] = True
    for here in ({"device": "cuda", "seconds": 1}, {"device": "cpu", "cpu_seconds": 1}):
        assert _times([here, taken]) is None
    here = {"device": "cpu", "cpu_seconds": 6, "calibration_cpu_seconds": 3}
    assert _times([here, taken]) == [2, 4]


def test_only_records_of_the_published_old_model_are_compared(theirs, ours, tmp_path):
    here = run(["bct"], tmp_path)
    assert old_model(here["bct"]) != old_model(ours["bct"]), "trained here: another old model"
    bound = theirs[1]["independent"]
    mine = ours["bct"].model_copy(update={"method": "l2"})
    alone = here["bct"].model_copy(update={"method": "bt2"})
    kept = [record.method for record in comparable([bound, theirs[1]["bct"], mine, alone])]
    assert kept == ["independent", "bct", "l2"]


def test_a_store_with_models_trained_here_is_not_taken_for_the_published_ones(
    theirs, published, tmp_path
):
    run(["independent"], tmp_path)
    shutil.rmtree(tmp_path / "out")
    again = run(["independent"], tmp_path, published)["independent"]
    assert again.checkpoints == theirs[1]["independent"].checkpoints


@pytest.mark.parametrize("what", ["model", "index"])
def test_a_tampered_file_is_refused_in_one_line(theirs, published, tmp_path, what, capsys):
    folder = tmp_path / "models"
    shutil.copytree(published, folder)
    weights = theirs[1]["bct"].checkpoints[OLD].removeprefix("sha256:")
    path = folder / (INDEX if what == "index" else f"{weights}.safetensors")
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    code, _, err = call(
        "run", "-m", "independent", "-p", "extended-data", "-t", "toy", "--device", "cpu",
        "--store", tmp_path / "s", "--out", tmp_path / "o", "--published", folder,
    )  # fmt: skip
    assert code == 2 and str(path) in err and "Traceback" not in err
    said = "its seal does not fit" if what == "index" else "not the published model"
    assert said in err.strip().splitlines()[-1]
    assert not list((tmp_path / "o").rglob("seed-0.json"))


def test_what_is_not_here_is_trained(theirs, published, tmp_path):
    folder = tmp_path / "models"
    shutil.copytree(published, folder)
    independent = theirs[1]["bct"].checkpoints[NEW].removeprefix("sha256:")
    (folder / f"{independent}.safetensors").unlink()
    stages = {s.title: s for s in plan(folder).stages}
    assert (stages[OLD].kind, stages[NEW].kind) == ("take", "train")
    assert stages[OLD].words == f"{OLD}, published" and stages[NEW].words == NEW
    assert "take" not in {s.kind for s in plan("none").stages}


def plan(folder):
    request = make_request(["bct"], "extended-data", "toy")
    return request.plan(published=parse_published(folder))


def test_what_is_too_large_is_fetched_by_its_hash(theirs, board, tmp_path):
    root, records = theirs
    results, files = tmp_path / "results", tmp_path / "files"
    shutil.copytree(root / "out", results)
    handler = partial(Quiet, directory=files)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        whole = publish(board, results, [root / "store"], {}, 10**9)
        shutil.copytree(whole.folder, files)
        made = publish(board, results, [root / "store"], {}, 0, address)
        assert [each.title for each in made.beyond] == [NEW]
        assert made.n_bytes < whole.n_bytes, "the first generation alone"
        got = run(["independent"], tmp_path / "run", made.folder)["independent"]
        server.shutdown()
    assert got.checkpoints == records["independent"].checkpoints


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_overwrite_begins_from_the_published_models_again(theirs, published, tmp_path):
    words = ("run", "-m", "independent", "-p", "extended-data", "-t", "toy", "--device", "cpu",
             "--records-only", "--store", tmp_path / "s", "--out", tmp_path / "o")  # fmt: skip
    for more, taken in ((("--published", "none"), None), (("--published", published), True)):
        code, _, err = call(*words, "--existing", "overwrite", *more)
        assert code == 0, err
        (path,) = tmp_path.glob("o/**/seed-0.json")
        record = read_record(path)
        assert {record.run.stages[t].published for t in (OLD, NEW)} == {taken}
    assert record.checkpoints == theirs[1]["independent"].checkpoints


def test_verifying_trains_what_the_record_trained_and_takes_what_it_took(
    theirs, published, ours, tmp_path, monkeypatch
):
    shutil.copytree(published, tmp_path / "results" / "models")
    monkeypatch.chdir(tmp_path)
    assert read_published().index == read_published(published).index
    same = repeat(ours["bct"])
    assert not same.differing and same.again.run.stages[OLD].published
    trained = repeat(theirs[1]["bct"])
    assert not trained.again.run.stages[OLD].published
    assert trained.again.checkpoints[OLD] != theirs[1]["bct"].checkpoints[OLD]
    other = ours["bct"].model_copy(
        update={"checkpoints": {**ours["bct"].checkpoints, OLD: "sha256:0"}}
    )
    with pytest.raises(BenchError, match="no published model of 'train old model"):
        repeat(other)
    assert [*other_than_today(ours["bct"])] == []
    (said,) = other_than_today(other)
    assert "'train old model (seed 0)': no published model has the hash" in said


def test_only_what_the_records_say_is_published(theirs, board, tmp_path):
    """Stages trained here are refused, damaged ones too; what was published before stays."""
    root, results, said = theirs[0], tmp_path / "results", []
    shutil.copytree(root / "out", results, ignore=shutil.ignore_patterns("models"))
    run(["independent"], tmp_path / "here")
    made = publish(board, results, [tmp_path / "here" / "store"], {}, 10**9, say=said.append)
    assert {each.title for each in made.missing} == {OLD, NEW} and not made.index.models
    assert len(said) == 2 and all("no record of the board stands on it" in line for line in said)
    shutil.copytree(root / "store", tmp_path / "store")
    store = Store(tmp_path / "store")
    damaged = next(e.name for e in store.entries() if e.name.startswith("train-")
                   and store.meta(e.name)["title"] == NEW)  # fmt: skip
    (store.path(damaged) / "model.safetensors").write_bytes(b"")
    made = publish(board, results, [tmp_path / "store"], {}, 10**9, say=said.append)
    assert [each.title for each in made.missing] == [NEW] and "is not what was" in said[-1]
    kept = publish(board, results, [tmp_path / "nothing"], {}, 10**9)
    assert [m.title for m in kept.index.models.values()] == [OLD]
    (path,) = results.glob("**/independent/seed-0.json")
    value = json.loads(path.read_text()) | {"key": "of other work"}
    write(path, value)
    with pytest.raises(BenchError, match="of other work than this code does"):
        publish(board, results, [root / "store"], {}, 10**9)


def test_the_committed_models_are_those_of_the_committed_records():
    """Each file by its hash, each model a checkpoint of a record of the core board."""
    published = read_published()
    assert published is not None
    files = {f.sha256: f.bytes for m in published.index.models.values() for f in m.files.values()}
    there = {path.stem: path.stat().st_size for path in published.folder.glob("*.safetensors")}
    assert there == files or published.index.address
    measured = Path(published.folder.parent, "measured")
    said = {
        checkpoint
        for path in measured.glob("*/*/independent/seed-*.json")
        for checkpoint in read_record(path).checkpoints.values()
    }
    assert {m.facts.checkpoint for m in published.index.models.values()} <= said
