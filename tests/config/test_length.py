"""Everything trains so many times as long: ``recipe.length``."""

from __future__ import annotations

import pytest

from benchmark.config.recipes import Recipe
from benchmark.errors import BenchError
from benchmark.harness.planner import make_plan
from benchmark.harness.requests import make_request


def setup(track: str = "cifar100-small", **settings):
    options = {"settings": settings, "without_data": True}
    return make_request(["fct"], "extended-class", track, **options).setup


def test_models_maps_and_side_information_train_longer() -> None:
    plain, long = setup(), setup(**{"recipe.length": 4})
    # the old model's own recipe has other epochs than the track's
    assert [plain.recipe(i).epochs for i in (0, 1)] == [20, 15]
    assert [long.recipe(i).epochs for i in (0, 1)] == [80, 60]
    for name in ("transform_steps", "side_epochs"):
        assert getattr(long.track.recipe, name) == 4 * getattr(plain.track.recipe, name)
    assert long.recipe(0).model_dump(exclude={"epochs", "transform_steps", "side_epochs"}) == (
        plain.recipe(0).model_dump(exclude={"epochs", "transform_steps", "side_epochs"})
    )


def test_all_of_a_models_own_recipe_is_longer() -> None:
    own = {"epochs": 2, "transform_steps": "80 epochs", "side_epochs": 3, "lr": 0.2}
    recipe = setup("toy", **{"recipe.length": 2, "old.recipe": own}).recipe(0)
    assert (recipe.epochs, recipe.transform_steps, recipe.side_epochs) == (4, "160 epochs", 6)


def test_passes_are_multiplied_too() -> None:
    assert Recipe(epochs=2, transform_steps="80 epochs", length=3).lengthened() == Recipe(
        epochs=6, transform_steps="240 epochs", side_epochs=60
    )


def test_a_run_of_the_usual_length_is_the_same_work() -> None:
    plain, once = setup("toy"), setup("toy", **{"recipe.length": 1})
    names = [{s.name for s in make_plan(each, ["fct"], [0]).stages} for each in (plain, once)]
    assert names[0] == names[1]
    longer = make_plan(setup("toy", **{"recipe.length": 2}), ["fct"], [0])
    doubled = {f"recipe.{name}": "x2" for name in ("epochs", "transform_steps", "side_epochs")}
    same = make_plan(setup("toy", **doubled), ["fct"], [0])
    assert {s.name for s in longer.stages} == {s.name for s in same.stages}
    assert not {s.name for s in longer.stages if s.kind != "data"} & names[0]


def test_a_model_has_no_length_of_its_own() -> None:
    with pytest.raises(BenchError, match=r"length is the track's"):
        setup("toy", **{"old.recipe": {"length": 2}})
