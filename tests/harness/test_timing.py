"""Seconds of a stage over all its attempts, and of the calibration beside it."""

import time

import pytest
import torch

from benchmark.config.files import read_sealed, write_sealed
from benchmark.harness import execution
from benchmark.harness.execution import Timer, convolution

SHARE = execution._SHARE  # runs of tests take less


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_the_calibration_is_measured_after_each_epoch_and_not_counted(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("benchmark.harness.execution._APART", 0.0)
    timer = Timer(tmp_path, lambda: busy(0.05))
    for _ in range(3):
        timer.checkpoint()
    now = timer.result()
    assert len(timer.paces) == 3
    assert now["calibration_cpu_seconds"] == pytest.approx(0.05, abs=0.02)
    assert now["cpu_seconds"] < 0.15  # six times 0.05 s were the calibration's


def test_short_epochs_are_not_calibrated_each(tmp_path, monkeypatch) -> None:
    passes = []
    timer = Timer(tmp_path, lambda: passes.append(busy(0.001)))
    for _ in range(40):
        timer.checkpoint()
    assert len(passes) == 2  # the first epoch's, and the one that brings code into reach
    monkeypatch.setattr("benchmark.harness.execution._APART", 0.02)
    busy(0.03)
    timer.checkpoint()
    assert len(timer.paces) == 2


def test_the_calibration_takes_a_few_percent(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("benchmark.harness.execution._APART", 0.0)
    monkeypatch.setattr("benchmark.harness.execution._SHARE", SHARE)
    passes = []
    timer = Timer(tmp_path, lambda: passes.append(busy(0.001)))
    busy(0.4)
    timer.checkpoint()
    assert 5 < len(passes) <= 14  # 3 % are 12, and one before
    timer.checkpoint()
    assert len(passes) <= 16  # nothing happened since: one counts


def test_a_stage_without_epochs_is_measured_once(tmp_path) -> None:
    timer = Timer(tmp_path, lambda: busy(0.001))
    assert timer.result()["calibration_cpu_seconds"] >= 0.001
    assert len(timer.paces) == 1


def test_without_a_calibration_there_are_seconds_alone(tmp_path) -> None:
    timer = Timer(tmp_path)
    timer.checkpoint()
    assert set(timer.result()) == {"seconds", "cpu_seconds"}


def test_a_second_attempt_knows_the_first(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("benchmark.harness.execution._APART", 0.0)
    first = Timer(tmp_path, lambda: None)
    first.checkpoint()
    noted = read_sealed(first.path, 10**6)
    write_sealed(first.path, noted | {"cpu_seconds": 100.0, "seconds": 500.0, "paces": [2.0, 4.0]})
    second = Timer(tmp_path, lambda: None)
    second.checkpoint()
    now = second.result()
    assert 500 <= now["seconds"] < 510 and 100 <= now["cpu_seconds"] < 110
    assert now["calibration_cpu_seconds"] == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("damage", ["", "{}", '{"paces": [1.0]}', None])
def test_what_is_damaged_or_of_another_stage_is_forgotten(tmp_path, damage) -> None:
    first = Timer(tmp_path, lambda: None)
    first.checkpoint()
    if damage is None:
        write_sealed(first.path, {"seconds": 5000.0, "paces": [], "stage": "train-of-another"})
    else:
        first.path.write_text(damage)
    assert Timer(tmp_path, lambda: None).result()["seconds"] < 10


def test_the_calibration_draws_nothing() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    convolution()
    assert torch.equal(torch.get_rng_state(), before)
