"""Controls through the real harness: random, keep-old and oracle-concat."""

import pytest
import torch
from support.toy_runs import ONE_EPOCH, run_toy
from torch.nn import functional as F

from benchmark.models.module import Portable, load_module, save_module
from benchmark.models.parts import Affine
from methods.l2 import L2
from methods.oracle_concat import Concatenation
from methods.random import Random


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    controls = ["random", "keep-old", "oracle-concat"]
    records = run_toy(controls, tmp_path_factory.mktemp("controls"), **ONE_EPOCH)
    return {method: record.scores for method, record in records.items()}


def test_keep_old_is_the_old_model_throughout(records):
    scores, bounds = records["keep-old"], records["independent"]
    assert scores["new/new"] == scores["old/old"] == bounds["old/old"]
    assert scores["new/old"] == scores["old/old"] != bounds["new/new"]


def test_oracle_concat_is_fully_compatible(records):
    scores, bounds = records["oracle-concat"], records["independent"]
    assert scores["old/old"] == bounds["old/old"] == scores["new/old"]
    assert scores["new/new"] not in (bounds["new/new"], bounds["old/old"])


def test_random_is_neither(records):
    scores, bounds = records["random"], records["independent"]
    assert scores["old/old"] == bounds["old/old"]
    assert scores["new/new"] != bounds["new/new"]


def test_random_has_the_weights_that_every_training_starts_from(toy_job):
    class Begins(Exception):
        pass

    class Watched(L2):
        def refresh(self, state, job, epoch):
            raise Begins(epoch.encoder.state_dict())

    starts = [Random().update(toy_job(seed=seed)).model.state_dict() for seed in (5, 6)]
    with pytest.raises(Begins) as begun:
        Watched().update(toy_job(seed=5))
    (wanted,) = begun.value.args
    assert wanted.keys() == starts[0].keys()
    assert all(torch.equal(v, starts[0][k]) for k, v in wanted.items())
    assert any(not torch.equal(v, starts[1][k]) for k, v in wanted.items())


class Numbers(Portable):
    """Images to vectors without a weight, so that two of them differ by their scale alone."""

    def __init__(self, scale: float, dim: int) -> None:
        super().__init__()
        self.scale, self.dim = scale, dim

    def forward(self, images):
        return self.scale * images.flatten(1)[:, : self.dim]


def test_concatenation_of_three_generations(tmp_path):
    """All parts count alike in a cosine, whatever their lengths; the older ones are not touched."""
    models = [Numbers(3.0, 4), Numbers(50.0, 5), Numbers(0.1, 6)]
    two = Concatenation(models[0], models[1], 1)
    three = Concatenation(two, models[2], 2)
    save_module(three, tmp_path / "model.safetensors")
    three = load_module(tmp_path / "model.safetensors")
    images = torch.randn(7, 1, 4, 4)
    parts = [m(images) for m in models]
    made = three(images)
    assert torch.equal(made[:, :9], two(images)) and torch.equal(made[:, :4], parts[0])
    wanted = torch.cat([F.normalize(p) for p in parts], dim=1)
    torch.testing.assert_close(F.normalize(made), F.normalize(wanted))


def test_concatenation_under_another_distance_keeps_the_lengths():
    a, b = Affine(3, 2), Affine(3, 4)
    x = torch.randn(5, 3)
    made = Concatenation(a, b, 0)(x)
    assert torch.equal(made, torch.cat([a(x), b(x)], dim=1))
