import os
import signal
import time

import pytest

from benchmark.errors import BenchError
from leaderboard.read import processes
from leaderboard.read.processes import working


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """Two, whatever the machine has."""
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda _: {0, 1})


def spread(call, things, enough=True):
    with working(call, things, enough) as results:
        return results()


@pytest.mark.parametrize("enough", [True, False])
def test_results_come_in_the_order_of_the_things(enough):
    assert spread(lambda x: x * x, range(50), enough) == [x * x for x in range(50)]
    assert spread(str, [], enough) == []


def test_what_goes_wrong_in_a_process_is_raised_here():
    def fail(x):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        spread(fail, range(3))


def test_a_process_that_dies_is_noticed():
    def die(x):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(BenchError, match="ended before its work"):
        spread(die, range(3))


def test_this_process_goes_on_while_others_work_and_more_may_part_from_it():
    with working(lambda x: x + 1, range(30)) as first:
        with working(lambda x: 2 * x, range(20)) as second:
            here = os.getpid()
            assert second() == [2 * x for x in range(20)]
        assert first() == [x + 1 for x in range(30)]
    assert os.getpid() == here


def test_what_goes_wrong_meanwhile_stops_the_others(tmp_path):
    def note(x):
        time.sleep(0.01)
        (tmp_path / str(x)).touch()

    with pytest.raises(KeyError), working(note, range(1000)):
        raise KeyError
    assert len(list(tmp_path.iterdir())) < 100
