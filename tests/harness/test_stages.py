"""Files of an update's stage beside its parts, and the origin of a stage's code."""

import pytest
import torch

from benchmark.config.recipes import Recipe
from benchmark.config.registry import method
from benchmark.contract.method import Update
from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError
from benchmark.harness import stages
from benchmark.harness.stages import _write_update
from benchmark.harness.work import SideWork
from benchmark.training.device import Device
from benchmark.training.loop import Trainer

USUAL = {"spec": {}, "recipe": {}, "splits": [], "seed": 0}


def added(label, tmp_path):
    old, new = torch.randn(40, 6), torch.randn(40, 5)
    trainer = Trainer(Recipe(epochs=1, transform_steps=2, transform_batch=20), 0, Device("cpu"))
    made = method(label, {"width": 16}).learn(Pairs(old, new), trainer)
    update = Update(torch.nn.Identity(), None, made.convert, made.query_view, made.priority)
    return _write_update(update, False, tmp_path)["added_parameters"]


def test_a_map_that_two_parts_share_counts_once(tmp_path):
    # The priority holds the map and one linear layer, 5 weights and a bias.
    assert added("fastfill:l2", tmp_path) - added("fct", tmp_path) == 5 + 1


def test_a_kind_of_side_information_is_looked_up(tmp_path):
    """No module is imported by a name of a protocol."""
    with pytest.raises(BenchError, match="unknown side-information 'kinds'; known: alternative"):
        stages.side(SideWork(data=tmp_path, module="kinds", options={}, **USUAL), None)
