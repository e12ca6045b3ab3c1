"""Changes that SimCLR's training makes to a track's recipe."""

import pytest

from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.recipes import PHOTOGRAPHS, Augment, Recipe
from benchmark.config.registry import track_files

CHARACTERS = Augment(rotate=15, scale=0.3, shift=0.1, contrast=0.4, brightness=0.2)


def recipe_of(track="toy", **settings):
    keys = {key.replace("__", "."): value for key, value in settings.items()}
    return set_up(load_protocol("open-class"), load_track(track), keys, []).track.recipe


def test_it_changes_what_it_names():
    base = Recipe(epochs=3, lr=0.2, augment=Augment(rotate=5), simclr={"lr": 0.3, "warmup": 0.1})
    made = base.for_simclr()
    assert (made.lr, made.warmup, made.epochs, made.simclr) == (0.3, 0.1, 3, {})
    assert made.augment == PHOTOGRAPHS, "not the views of a supervised batch"
    views = base.model_copy(update={"simclr": {"augment": {"crop": 0.5}}}).for_simclr().augment
    assert views == Augment(crop=0.5), "a track that names views names all of them"


@pytest.mark.parametrize("name", track_files())
def test_views_of_tracks(name):
    track = load_track(name)
    recipe = track.recipe
    views = recipe.for_simclr().augment
    if track.models["new"].frozen:  # SimCLR learns on pixels: it does not apply
        assert not recipe.simclr
    elif name == "omniglot" or name.startswith(("glyphs", "toy")):
        assert views == CHARACTERS and set(recipe.simclr) == {"augment"}
    elif name.startswith("cifar100"):
        assert (views.blur, views.saturation, views.contrast, views.hue) == (0, 0.4, 0.4, 0.1)
        assert views.crop == PHOTOGRAPHS.crop and recipe.for_simclr().optimizer == "lars"
    else:
        assert views == PHOTOGRAPHS
        lars = name in ("places365", "vggface2") or name.startswith("imagenet")
        assert (recipe.for_simclr().optimizer == "lars") == lars


def test_one_number_is_changed():
    base, made = recipe_of(), recipe_of(recipe__simclr__lr="x2", recipe__simclr__augment__rotate=30)
    assert made.for_simclr().lr == 2 * base.lr and made.lr == base.lr
    assert made.for_simclr().augment == CHARACTERS.model_copy(update={"rotate": 30.0})
    assert made.augment == base.augment
    photographs = recipe_of("imagenet", recipe__simclr__augment__blur=0).for_simclr()
    assert photographs.augment == PHOTOGRAPHS.model_copy(update={"blur": 0.0})
    assert photographs.optimizer == "lars"


def test_fields_that_need_each_other():
    for names in (("schedule", "milestones"), ("milestones", "schedule")):
        values = {"schedule": "steps", "milestones": [0.5]}
        made = recipe_of(**{f"recipe__simclr__{name}": values[name] for name in names})
        assert made.for_simclr().milestones == (0.5,) and made.schedule == recipe_of().schedule


def test_the_whole_is_given():
    made = recipe_of(recipe__simclr={"optimizer": "adam"}).for_simclr()
    assert made.optimizer == "adam" and made.augment == PHOTOGRAPHS
