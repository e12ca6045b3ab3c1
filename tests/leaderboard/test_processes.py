import os
import signal

import pytest

from benchmark.errors import BenchError
from leaderboard import processes
from leaderboard.processes import spread


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """Two, whatever the machine has."""
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda _: {0, 1})


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
