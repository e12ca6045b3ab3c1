"""``bench store``: status, verify, clean, on a store of a real run."""

import shutil

import pytest

from benchmark.cli.app import main
from benchmark.harness.store import Store
from benchmark.records.files import read_records
from tests.support.toy_runs import ONE_EPOCH, run_toy


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    root = tmp_path_factory.mktemp("run")
    run_toy(["procrustes"], root, **ONE_EPOCH)
    return root / "store"


@pytest.fixture
def store(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "store")


def bench(*words):
    with pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    return end.value.code


def remove_conversion(store):
    """Delete procrustes' map; returns the folder of its stage."""
    (path,) = (store / "stages").glob("*/convert.safetensors")
    path.unlink()
    return path.parent


def test_a_sound_store(store, capsys):
    assert bench("store", "verify", "--store", store) == 0
    n = len(list((store / "stages").iterdir()))
    assert capsys.readouterr().out.startswith(f"{n} stages, ")
    assert bench("store", "status", "--store", store) == 0
    lines = capsys.readouterr().out.splitlines()
    counts = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
    assert counts.pop("all") == sum(counts.values()) == n
    assert counts["train"] == 2 and counts["data"] == 1
    assert bench("store", "clean", "--store", store) == 0
    assert capsys.readouterr().out == "0 freed, 0.0 MB\n"


def test_a_damaged_store(store, capsys):
    update = remove_conversion(store)
    assert bench("store", "verify", "--store", store) == 2
    out, err = capsys.readouterr()
    assert out == f"damaged {update.name}: convert.safetensors is missing\n"
    assert "1 damaged" in err and "Traceback" not in err
    (store / "work" / f"train-{1:024x}").mkdir(parents=True)
    assert bench("store", "clean", "--store", store) == 0
    out = capsys.readouterr().out
    assert f"freed {update.name}\n" in out and f"freed train-{1:024x}, unfinished\n" in out
    assert bench("store", "verify", "--store", store) == 0


def test_what_is_damaged_is_told_and_computed_anew(kept, tmp_path, capfd, monkeypatch):
    """Without a map nothing would be converted: the scores would be wrong, and nothing said."""
    for drawn in ("benchmark.report.plots.records.plot", "leaderboard.site.build"):
        monkeypatch.setattr(drawn, lambda *_, **__: None)
    wanted = {r.method: r.result() for r in read_records(kept.parent / "out")}
    store = shutil.copytree(kept, tmp_path / "store")
    update = remove_conversion(store)
    (evaluation,) = [
        path for path in (store / "stages").glob("evaluate-*")
        if "procrustes" in Store(store).meta(path.name)["title"]
    ]  # fmt: skip
    shutil.rmtree(evaluation)
    command = [
        "run", "-m", "procrustes", "-p", "open-class", "-t", "toy", "--device", "cpu",
        *(f"--set={key}={value}" for key, value in ONE_EPOCH.items()),
        "--store", store, "--out", tmp_path / "out",
    ]  # fmt: skip
    assert bench(*command) == 0
    err = " ".join(capfd.readouterr().err.split())
    assert f"[{update.name}]: convert.safetensors is missing; computed anew" in err
    again = {r.method: r.result() for r in read_records(next((tmp_path / "out").rglob("measured")))}
    for method, result in wanted.items():
        apart = {"details": None, "queries": None}  # the first run drew no pictures
        assert again[method] | apart == result | apart


def test_clean_by_age(store, capsys):
    assert bench("store", "clean", "--store", store, "--older-than", "0") == 0
    assert Store(store).entries() == []


def test_no_store(tmp_path, capsys):
    for verb in ("status", "verify", "clean"):
        assert bench("store", verb, "--store", tmp_path / "none") == 2
        assert f"--store: no folder {tmp_path / 'none'}" in capsys.readouterr().err
