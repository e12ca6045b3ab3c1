"""The tracks: what their files promise, and a short run on real images."""

from __future__ import annotations

import itertools

import pytest
from support.pictures import write_noise
from support.protocol_files import write_track
from support.toy_runs import run_below

from benchmark.config import registry
from benchmark.config.loading import load_track
from benchmark.config.seeds import parse_seeds
from benchmark.errors import BenchError


def test_high_quality_track_changes_only_the_training_of_the_old_model() -> None:
    low, high = load_track("glyphs"), load_track("glyphs-high")
    assert high.models["old"].recipe == {"epochs": 2 * low.recipe.epochs}
    assert high.models["old"].model_copy(update={"recipe": {}}) == low.models["old"]
    assert high.models["new"] == low.models["new"]
    assert (high.recipe, high.data, high.dataset) == (low.recipe, low.data, low.dataset)


@pytest.mark.slow
@pytest.mark.data
def test_omniglot(omniglot, tmp_path) -> None:
    records = run_below(
        tmp_path, ["l2", "fct"], "open-class", "omniglot", data_root=omniglot,
        settings={"recipe.epochs": 8},
    )  # fmt: skip
    independent = records[0].scores
    assert independent["new/new"]["cmc_at_1"] > 10 * independent["new/old"]["cmc_at_1"]
    assert records[0].counts["new/new"]["n_query"] > 1000


def test_folder_of_photographs(tmp_path) -> None:
    """Colour images of any size, one folder a class."""
    for c, i in itertools.product(range(12), range(6)):
        path, color = tmp_path / "d" / f"class{c}" / f"{i}.jpg", (20 * c, 255 - 20 * c, 40)
        write_noise(path, color, (40 + c, 30 + i))
    records = run_below(
        tmp_path, ["fct"], "open-class", "folder", data_root=tmp_path / "d",
        settings={
            "recipe.epochs": 2, "recipe.transform_steps": 10, "recipe.precision": "32-true",
            "fct.width": 16,
            "old.backbone": "convnet-4", "new.backbone": "convnet-4",
        },
    )  # fmt: skip
    assert records[1].scores["new/old"]["map"] > 0
    assert records[1].counts["new/old"]["n_query"] == 24


@pytest.mark.parametrize("name", ["a b", ".hidden", "x" * 101, "\x1b[2J"])
def test_names_that_are_no_ids(tmp_path, name):
    with pytest.raises(BenchError, match="id: expected letters"):
        load_track(write_track(tmp_path, name))


@pytest.mark.parametrize(
    "options",
    [{"classes": 10**12}, {"classes": 0}, {"images": 6}, {"size": 10**6}, {"noise": -1},
     {"classes": 100_000, "images": 100_000, "size": 512}],
)  # fmt: skip
def test_toy_data_that_no_memory_holds(options):
    with pytest.raises(BenchError, match="expected"):
        registry.check_options("toy", options, "data")


@pytest.mark.parametrize("text", ["²", "9" * 5000, "0-99999999999", "-1", "1-", "0-9999,0-9999"])
def test_seeds(text):
    with pytest.raises(BenchError, match="--seeds: expected"):
        parse_seeds(text)
