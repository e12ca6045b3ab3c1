"""The tracks: what their files promise, and a short run on real images."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from benchmark import run
from benchmark.config import registry
from benchmark.config.loading import load_track
from benchmark.harness.execution import Compute


@pytest.mark.parametrize("name", sorted(registry.track_files()))
def test_track_is_read(name) -> None:
    track = load_track(name)
    assert track.id == name
    assert {"old", "new"} <= set(track.models)


def test_high_quality_track_changes_only_the_old_head() -> None:
    low, high = load_track("glyphs"), load_track("glyphs-high")
    assert high.models["old"].head == "arcface"
    assert high.models["old"].backbone == low.models["old"].backbone
    assert high.models["new"] == low.models["new"]
    assert (high.recipe, high.data, high.dataset) == (low.recipe, low.data, low.dataset)


@pytest.mark.slow
@pytest.mark.data
def test_omniglot(omniglot, tmp_path) -> None:
    records = run(
        ["l2", "fct"], "open-class", "omniglot", data_root=omniglot, store=tmp_path / "s",
        out=tmp_path / "o", compute=Compute("cpu"), settings={"recipe.epochs": 2},
    )  # fmt: skip
    independent = records[0].scores
    assert independent["new/new"]["cmc_at_1"] > 10 * independent["new/old"]["cmc_at_1"]
    assert records[0].counts["new/new"]["n_query"] > 1000


def test_folder_of_photographs(tmp_path) -> None:
    """Colour images of any size, one folder a class."""
    for c in range(12):
        (tmp_path / "d" / f"class{c}").mkdir(parents=True)
        for i in range(6):
            image = Image.new("RGB", (40 + c, 30 + i), (20 * c, 255 - 20 * c, 40 * (c % 6)))
            ImageDraw.Draw(image).ellipse((5 + i, 5, 20 + i, 20), fill=(10 * i, 0, 20 * c))
            image.save(tmp_path / "d" / f"class{c}" / f"{i}.jpg")
    records = run(
        ["fct"], "open-class", "folder", data_root=tmp_path / "d", store=tmp_path / "s",
        out=tmp_path / "o", compute=Compute("cpu"),
        settings={
            "recipe.epochs": 2, "recipe.transform_steps": 10, "recipe.precision": "32-true",
            "old.backbone": "convnet-4", "new.backbone": "convnet-4",
        },
    )  # fmt: skip
    assert records[1].scores["new/old"]["map"] > 0
    assert records[1].counts["new/old"]["n_query"] == 24
