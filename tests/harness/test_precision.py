"""A run at 32 bits: its stages are those of a recipe that says so, its records the track's own."""

from __future__ import annotations

from dataclasses import replace

from benchmark.harness.requests import make_request


def names(**options: object) -> dict[str, str]:
    request = make_request(["bct", "fct:simclr"], "arch-change:deeper", "glyphs", **options)  # type: ignore[arg-type]
    return {stage.title: stage.name for stage in request.plan().stages}


def test_stages_are_those_of_a_recipe_that_says_so() -> None:
    asked = names(precision="32-true")
    assert asked == names(settings={"recipe.precision": "32-true"})
    as_it_is = names()
    assert asked.keys() == as_it_is.keys()
    same = {title for title, name in asked.items() if as_it_is[title] == name}
    assert same == {"dataset glyphs"}


def test_records_are_of_the_track_as_it_is() -> None:
    plans = [
        make_request(["bct"], "open-class", "glyphs", precision=precision).plan()
        for precision in ("recipe", "32-true")
    ]
    assert [r.key for r in plans[0].results] == [r.key for r in plans[1].results]
    assert plans[1].setup.track.recipe.precision == "bf16-mixed"
    assert plans[1].setup.changed == {}


def test_precision_of_a_model_and_of_simclr_gives_way() -> None:
    setup = make_request(["bct"], "open-class", "glyphs").setup
    recipe = setup.track.recipe.model_copy(update={"simclr": {"precision": "16-mixed", "lr": 0.01}})
    models = tuple(
        m.model_copy(update={"recipe": {"precision": "bf16-mixed", "epochs": 3}})
        for m in setup.models
    )
    track = setup.track.model_copy(update={"recipe": recipe})
    asked = replace(setup, track=track, models=models).at_precision("32-true")
    for i in range(2):
        assert (asked.recipe(i).precision, asked.recipe(i).epochs) == ("32-true", 3)
    simclr = asked.track.recipe.for_simclr()
    assert (simclr.precision, simclr.lr) == ("32-true", 0.01)
