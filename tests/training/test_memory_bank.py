"""The memory of a loss, and what it sees of other devices."""

import os
import socket

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.training.memory_bank import MemoryBank, gather_rows


@given(size=st.integers(1, 9), pushes=st.lists(st.integers(0, 12), max_size=6))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_it_has_the_latest_rows(size, pushes):
    memory, seen = MemoryBank(size, 2, 3), []
    for count in pushes:
        rows = torch.arange(len(seen), len(seen) + count)
        seen += rows.tolist()
        twos = rows[:, None].expand(count, 2).float()
        memory.push(rows, twos, -rows[:, None].expand(count, 3).float())
    labels, twos, threes = memory.rows()
    assert sorted(labels.tolist()) == seen[-size:]
    assert torch.equal(twos, labels[:, None].expand(-1, 2).float())
    assert torch.equal(threes, -labels[:, None].expand(-1, 3).float())


def test_a_label_below_zero_stays_out():
    memory = MemoryBank(4, 1)
    memory.push(torch.tensor([3, -1, 5]), torch.tensor([[1.0], [2.0], [3.0]]))
    labels, rows = memory.rows()
    assert labels.tolist() == [3, 5] and rows.flatten().tolist() == [1.0, 3.0]


def test_it_goes_on_from_a_checkpoint():
    a, b = MemoryBank(4, 1), MemoryBank(4, 1)
    a.push(torch.tensor([5, 6, 7]), torch.ones(3, 1))
    b.load_state_dict(a.state_dict())
    for each in (a, b):
        each.push(torch.tensor([8, 9]), torch.zeros(2, 1))
    assert a.rows()[0].tolist() == b.rows()[0].tolist() == [9, 6, 7, 8]


def test_no_gradient_enters():
    memory, rows = MemoryBank(4, 2), torch.ones(3, 2, requires_grad=True)
    memory.push(torch.arange(3), rows)
    assert not memory.rows()[1].requires_grad and not gather_rows(rows).requires_grad


def _rank(rank, port, batch):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    for rows in (torch.arange(batch), torch.randn(batch, 3, generator=torch.Generator())):
        assert torch.equal(gather_rows(rows[rank::2]), rows)
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("batch", [6, 7])
def test_two_devices_see_the_batch_of_one(batch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(_rank, (port, batch), nprocs=2)
