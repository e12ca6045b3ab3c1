"""Several devices, and Ray: the same plan carried out another way."""

from __future__ import annotations

import pytest

from benchmark import BenchError, run
from benchmark.harness.execution import Compute
from benchmark.training.device import Device, require_here


def records(tmp_path, compute: Compute):
    return run(
        ["bct", "fct"], "open-class", "toy", store=tmp_path / "s", out=tmp_path / "o",
        compute=compute,
    )  # fmt: skip


@pytest.mark.slow
def test_two_devices_train_one_model(tmp_path) -> None:
    for record in records(tmp_path, Compute("cpu", devices=2)):
        assert record.scores["new/new"]["cmc_at_1"] > 0.5
    assert not list((tmp_path / "s").rglob("rank*"))


def test_more_gpus_than_there_are_begin_no_process(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    require_here(Device("cuda", 2))
    with pytest.raises(BenchError, match=r"^--device: expected cuda:9, this machine has 2 of it$"):
        require_here(Device("cuda", 9))


@pytest.mark.slow
def test_ray_gives_the_same_records(tmp_path) -> None:
    pytest.importorskip("ray")
    here = records(tmp_path / "local", Compute("cpu"))
    there = records(tmp_path / "ray", Compute("cpu", engine="ray"))
    for a, b in zip(here, there, strict=True):
        assert a.scores.keys() == b.scores.keys()
        assert a.scores["old/old"]["map"] == pytest.approx(b.scores["old/old"]["map"], abs=0.1)


@pytest.mark.slow
def test_ray_names_the_bound_that_was_refused(tmp_path) -> None:
    """Stages that wait for it fail with the same error, and are not named."""
    pytest.importorskip("ray")
    with pytest.raises(BenchError, match=r"^train old model \(seed 0\): .*diverged(?!.*like it)"):
        run(
            ["l2"], "open-class", "toy", settings={"recipe.lr": 1e4},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu", engine="ray"),
        )  # fmt: skip
