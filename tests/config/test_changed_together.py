"""Fields of which one needs another, changed by ``--set`` in any order."""

import pytest

from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.errors import BenchError


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("recipe", {"schedule": "steps", "milestones": [0.5, 0.75]}),
        ("new", {"triplet": 1.0, "per_class": 4}),
        ("new", {"weights": "a1_in1k", "weights_sha256": "a" * 64, "backbone": "timm:resnet18"}),
    ],
)
def test_fields_that_need_each_other_come_in_any_order(name, wanted) -> None:
    """Each alone, before the other, would be refused."""
    for fields in (wanted, dict(reversed(wanted.items()))):
        changes = {f"{name}.{field}": value for field, value in fields.items()}
        setup = set_up(load_protocol("open-class"), load_track("toy"), changes, ["independent"])
        changed = setup.track.recipe if name == "recipe" else setup.models[1]
        assert {field: getattr(changed, field) for field in wanted} == {
            field: tuple(value) if isinstance(value, list) else value
            for field, value in wanted.items()
        }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recipe.schedule": "steps"}, "--set recipe.schedule: milestones: expected some"),
        ({"recipe.epochs": 3, "recipe.milestones": [0.5]}, "--set recipe.milestones: .*only there"),
        (
            {"recipe.schedule": "steps", "recipe.milestones": [0.5, 0.4]},
            r"--set recipe.milestones: milestones: expected rising shares, got \[0.5, 0.4\]$",
        ),
        ({"recipe.lr": 0.1, "recipe.epochs": "a"}, "--set recipe.epochs: epochs: expected a whole"),
        ({"recipe.epochs": 3, "recipe.lrr": 1}, "--set recipe.lrr: unknown key 'lrr'"),
        ({"new.dim": 8, "new.triplet": 1.0}, "per_class: expected at least 2"),
    ],
)
def test_an_error_among_several_changes_names_its_field(changes, words) -> None:
    with pytest.raises(BenchError, match=words):
        set_up(load_protocol("open-class"), load_track("toy"), changes, ["independent"])
