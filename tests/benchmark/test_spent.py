"""Seconds of a stage over all its attempts, as they were and without what disturbed them."""

import json

import pytest

from benchmark.spent import Spent, undisturbed


def test_slow_epochs_count_as_the_fastest() -> None:
    # Four epochs after 3 s of preparation: 2, 2, 5 and 2 s, and 1 s to write the model.
    marks = [(0.25, 5.0), (0.5, 7.0), (0.75, 12.0), (1.0, 14.0)]
    assert undisturbed(15.0, marks) == pytest.approx(3 + 4 * 2 + 1)


def test_a_short_last_epoch_is_not_the_fastest() -> None:
    marks = [(0.4, 4.0), (0.8, 8.0), (1.0, 10.0)]  # half an epoch at the end, no faster
    assert undisturbed(10.0, marks) == pytest.approx(10.0)


def test_a_second_training_of_a_stage_begins_anew() -> None:
    marks = [(0.5, 1.0), (1.0, 2.0), (0.5, 9.0), (1.0, 10.0)]  # its first epoch counts as it was
    assert undisturbed(10.0, marks) == pytest.approx(10.0)


@pytest.mark.parametrize("marks", [[], [(1.0, 3.0)]])
def test_without_epochs_to_compare_all_counts(marks) -> None:
    assert undisturbed(4.0, marks) == 4.0


def test_a_second_attempt_knows_the_epochs_of_the_first(tmp_path) -> None:
    first = Spent(tmp_path)
    first.keep(0.25)
    first.keep(0.5)
    kept = json.loads(first.path.read_text())
    assert [share for share, _ in kept["marks"]] == [0.25, 0.5]
    kept.update(cpu_seconds=100.0, seconds=500.0, marks=[[0.25, 10.0], [0.5, 100.0]])
    first.path.write_text(json.dumps(kept))
    second = Spent(tmp_path)
    second.keep(0.75)
    now = second.now()
    assert now["seconds"] >= 500 and now["cpu_seconds"] >= 100
    assert now["undisturbed_cpu_seconds"] < 15  # 90 s were disturbed: the third epoch took none
