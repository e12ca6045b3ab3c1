"""Every planted fault is found and named; a sound adapter has none."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest
from support import planted
from support.packages import installed, write_package

from benchmark.errors import BenchError, PassedOverWarning
from benchmark.harness.checking import method, replay
from benchmark.harness.checking.method import check_method
from benchmark.training import loop


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory):
    """The planted adapters, installed."""
    folder = tmp_path_factory.mktemp("planted")
    write_package(folder, planted.files(), planted.entries())
    with installed(folder):
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Generations that all of them stand on."""
    return tmp_path_factory.mktemp("store")


class Here:
    """Work done in this process, where fresh ones cost seconds and would tell no more."""

    def do(self, twin, stages, parts=()):
        done: Future = Future()
        done.set_result(replay.do(stages, parts, twin.root, twin.folder("here"), twin.poison))
        return done

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(method, "Elsewhere", Here)


def fault(name: str, store: Path) -> str:
    with pytest.raises(BenchError) as error:
        list(check_method(f"planted-{name}", "open-class", store=store))
    message = str(error.value)
    assert message.startswith(f"check planted-{name}: ") and "\n" not in message
    return message


def test_a_sound_adapter_passes(quick, store):
    lines = list(check_method("planted-sound", "open-class", store=store))
    assert lines[-1] == "planted-sound is fine" and "new/old" in lines[-2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nan", ("not finite: convert", "160 of 160")),
        ("zeros", ("nothing to tell items by: convert gives the same vector for all 160",)),
        ("size", ("wrong size", "[16]", "[8]")),
        ("model-size", ("wrong size", "8 dimensions", "asks for 16")),
        ("undeclared", ("undeclared change of the gallery", "convert")),
        ("rows", ("convert: wrong output: 511 rows for 512 items",)),
        ("head-size", ("wrong size: the new classifier", "3 classes of 5 dimensions")),
        ("endless", ("not finite: priority",)),
        ("nan-loss", ("diverged: the loss is nan",)),
        ("more-than-cut", ("undeclared change of the queries: the query view does more",)),
        ("not-made", ("change of the gallery that is declared and not made",)),
        ("batch", ("conversion depends on the batch",)),
        ("large-batch", ("conversion depends on the batch",)),
        ("noise", ("non-deterministic: the conversion gives",)),
        ("calls", ("non-deterministic: the conversion gives",)),
        ("in-a-text", ("declared cost that is not true: convert", "342 numbers")),
        ("elementwise", ("declared cost that is not true: convert", "256 parameters")),
        ("old-altered-inside", ("declared cost that is not true: the new model", "runs_old")),
        ("not-inside", ("declared cost that is not true: runs_old_model",)),
        ("hidden", ("declared cost that is not true: convert", "0 parameters", "257 numbers")),
        ("old-inside", ("declared cost that is not true: the new model", "runs_old_model")),
        ("loss-of-rows", ("loss: expected one number with a gradient", "of shape [32]")),
        ("loss-of-python", ("loss: expected one number with a gradient", "got float")),
        ("constant-loss", ("loss: expected one number", "no parameter of the new model")),
        ("raises", ("train planted-raises (seed 0): RuntimeError: mm", "planted_raises.py, line ")),
        ("exits", ("fit planted-exits (seed 0): SystemExit: 0", "planted_exits.py, line ")),
        ("state", ("prepare: expected Module, got dict",)),
        ("no-update", ("finish: expected Update, got NoneType",)),
        ("no-map", ("learn: expected Fitted, got NoneType",)),
        ("torch-map", ("expected a Portable module", "got Linear")),
        ("torch-map-inside", ("expected a Portable module", "got Linear")),
        ("tensor-inside", ("expected a Portable module", "got Tensor")),
        (
            "raises-later",
            ("applied to vectors and images: convert: RuntimeError: mm", "_later.py, line "),
        ),
    ],
)
def test_what_an_update_gives(name, words, quick, store):
    message = fault(name, store)
    for word in words:
        assert word in message


def test_what_diverges_is_not_sent_to_another_protocol(quick, store):
    assert fault("nan-loss", store).endswith("in epoch 0; lower recipe.lr")


def test_processes_of_the_check_tell_nothing_again(tmp_path, monkeypatch, recwarn):
    """The process that began them has told what is passed over."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    passed_over = partial(warnings.warn, PassedOverWarning("x"), stacklevel=2)
    monkeypatch.setattr(replay, "do", lambda *_: passed_over())
    replay._do_alone([], [], tmp_path, tmp_path, None)
    assert not recwarn


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("variant", "method planted-variant:x: unknown key 'wieght'"),
        ("unlearned", "expected one class of a method, found none; Planted lacks learn$"),
        ("plan", "plan: AttributeError: .* 'gone' .*planted_plan.py, line "),
        ("property", "method planted-property: AttributeError: .*planted_property.py, line "),
        ("plain-class", "expected @dataclass\\(frozen=True\\) above class Planted"),
        ("fidelity", "unknown planted_fidelity.py: fidelity 'mine'; known: code, ours, paper"),
    ],
)
def test_declarations_are_read_before_anything_is_trained(name, said, store):
    with pytest.raises(BenchError, match=said):
        list(check_method(f"planted-{name}", "open-class", store=store))


@pytest.mark.parametrize(
    ("name", "words", "other"),
    [
        ("evaluation-items", "training on evaluation items", "labels"),
        ("pixel-statistics", "training on evaluation items", "labels"),
        ("stored-embeddings", "training on evaluation items", "labels"),
        ("evaluation-labels", "reading evaluation labels", "items"),
        ("label-counts", "reading evaluation labels", "items"),
    ],
)
def test_what_an_update_sees(name, words, other, quick, store, tmp_path):
    message = fault(name, copied(store, tmp_path))
    assert words in message and f"evaluation {other}" not in message
    assert "convert.safetensors" in message


def copied(store: Path, folder: Path) -> Path:
    """The generations alone, as a new store has them: no update, and nothing of one."""
    for path in (store / "stages").glob("*"):
        if path.name.startswith(("data-", "train-")):
            shutil.copytree(path, folder / "store" / "stages" / path.name)
    return folder / "store"


def test_what_a_conversion_sees(quick, store):
    message = fault("at-conversion", store)
    assert "training on evaluation items" in message and "(what convert gives)" in message


@pytest.mark.parametrize(
    ("name", "words"),
    [("stored", ("embed", "vectors.npy")), ("stored-images", ("data", "test.images.npy"))],
)
def test_what_is_stored_may_not_be_changed(name, words, quick, store, tmp_path):
    message = fault(name, copied(store, tmp_path))
    for word in ("undeclared change of what is stored", *words):
        assert word in message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chance", "hash", "global-draws"])
def test_chance(name, store):
    message = fault(name, store)
    assert "non-deterministic" in message and "convert.safetensors" in message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["memory", "memory-of-pairs", "temporary", "outside"])
def test_memory_between_updates(name, store, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert "leaking state between updates" in fault(name, store)


@pytest.mark.slow
def test_what_is_read_once_and_kept(store):
    """A process that has read the evaluation set cannot be shown another one."""
    assert "training on evaluation items" in fault("cached-items", store)


@pytest.mark.slow
def test_converted_side_information(quick, store):
    assert "conversion depends on the batch" in fault("side-batch", store)


@pytest.mark.slow
def test_a_method_of_ours_passes(store):
    """A training, killed after an epoch and resumed, in processes of its own."""
    lines = list(check_method("bct", "open-class", store=store))
    assert "killed and resumed, it gives the same" in lines and lines[-1] == "bct is fine"


def test_a_resumed_training_that_differs(quick, store, monkeypatch):
    resumed = replay.Twin.resumed
    monkeypatch.setattr(replay.Twin, "resumed", lambda *a: resumed(*a) | {"facts": "another"})
    assert "killed and resumed, it differs (curves and counts)" in fault("sound", store)


def test_a_killed_training_goes_on_from_its_checkpoint(quick, store, monkeypatch):
    there, resume = [], loop._resume

    def look(checkpoint, path):
        there.append(path.exists())
        resume(checkpoint, path)

    monkeypatch.setattr(loop, "_resume", look)
    list(check_method("bct", "open-class", store=store))
    assert True in there
