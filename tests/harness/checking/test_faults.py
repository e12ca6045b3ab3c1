"""Every planted fault is found and named; a sound adapter has none."""

from __future__ import annotations

import itertools
import shutil
from concurrent.futures import Future
from pathlib import Path

import pytest
from support import planted
from support.packages import installed, write_package

from benchmark.errors import BenchError
from benchmark.harness.checking import method, replay
from benchmark.harness.checking.method import check_method
from benchmark.harness.evaluation import details


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
    """Replays in this process, where fresh ones cost seconds and would tell no more."""

    def __init__(self, root: Path) -> None:
        self.root, self.numbers = root, itertools.count()

    def outputs(self, *stages):
        done: Future = Future()
        work = self.root / "work"
        done.set_result(
            [replay.replay(s, self.root, work / f"here-{next(self.numbers)}") for s in stages]
        )
        return done

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(method, "Elsewhere", Here)
    monkeypatch.setattr(details, "draw", lambda *_: None)


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
        ("size", ("wrong size", "[16]", "[8]")),
        ("model-size", ("wrong size", "8 dimensions", "asks for 16")),
        ("undeclared", ("undeclared change of the gallery", "convert")),
        ("not-made", ("change of the gallery that is declared and not made",)),
        ("batch", ("conversion depends on the batch",)),
        ("hidden", ("declared cost that is not true: convert", "0 parameters", "257 numbers")),
        ("old-inside", ("declared cost that is not true: the new model", "runs_old_model")),
    ],
)
def test_what_an_update_gives(name, words, quick, store):
    message = fault(name, store)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("name", "words", "other"),
    [
        ("evaluation-items", "training on evaluation items", "labels"),
        ("evaluation-labels", "reading evaluation labels", "items"),
    ],
)
def test_what_an_update_sees(name, words, other, quick, store):
    message = fault(name, store)
    assert words in message and f"evaluation {other}" not in message
    assert "convert.safetensors" in message


def test_what_is_stored_may_not_be_changed(quick, store, tmp_path):
    shutil.copytree(store, tmp_path / "store")
    message = fault("stored", tmp_path / "store")
    assert "undeclared change of what is stored: embed" in message and "vectors.npy" in message


@pytest.mark.slow
def test_chance(store):
    message = fault("chance", store)
    assert "non-deterministic" in message and "convert.safetensors" in message


@pytest.mark.slow
def test_memory_between_seeds(store):
    assert "leaking state between seeds" in fault("memory", store)


@pytest.mark.slow
def test_a_method_of_ours_passes(store):
    """A training, killed after an epoch and resumed, in processes of its own."""
    lines = list(check_method("bct", "open-class", store=store))
    assert "killed and resumed, it gives the same" in lines and lines[-1] == "bct is fine"


def test_a_resumed_training_that_differs(quick, store, monkeypatch):
    resumed = replay.Twin.resumed
    monkeypatch.setattr(replay.Twin, "resumed", lambda *a: resumed(*a) | {"facts": "another"})
    assert "killed and resumed, it differs (curves and counts)" in fault("sound", store)
