"""Changes without effect: of an option that nothing reads with this optimiser, head or data."""

from collections.abc import Callable, Mapping

from benchmark.config import registry
from benchmark.config.recipes import MARGINS, Recipe
from benchmark.config.setup import Setup

Reads = Callable[[Recipe, Setup], bool]


def _is_coloured(_: Recipe, setup: Setup) -> bool:
    dataset = registry.check_options(setup.track.dataset, setup.track.data, "data")
    return getattr(dataset, "channels", 3) != 1


_OF_COLOURS: tuple[Reads, str] = _is_coloured, "images are grey"
READ_WHERE: Mapping[str, tuple[Reads, str]] = {
    "momentum": (lambda r, _: r.optimizer in ("sgd", "lars"), "the optimiser has none"),
    "power": (lambda r, _: r.schedule == "linear", "the schedule is not linear"),
    "decay": (lambda r, _: r.schedule == "steps", "the schedule has no steps"),
    "augment.aspect": (lambda r, _: r.augment.crop > 0, "nothing is cropped"),
    "augment.saturation": _OF_COLOURS, "augment.hue": _OF_COLOURS, "augment.grey": _OF_COLOURS,
    "stored_views": (lambda _, s: any(m.frozen for m in s.models), "no backbone is frozen"),
}  # fmt: skip
"""Field of a recipe -> a test of what reads it, and the words where nothing does."""


def unread(setup: Setup) -> dict[str, str]:
    """Changes of a run that have no effect, and the reason of each."""
    found = {key: _reason(key, setup) for key in setup.changed}
    return {key: reason for key, reason in found.items() if reason}


def _reason(key: str, setup: Setup) -> str:
    owner, _, field = key.partition(".")
    if owner == "recipe":
        recipes = [setup.track.recipe.for_simclr()]
        if not field.startswith("simclr."):
            # A model may have an optimiser of its own, and so may SimCLR, which has other views.
            others = [setup.recipe(i) for i in range(len(setup.models))]
            recipes = [setup.track.recipe, *others, *recipes[field.startswith("augment.") :]]
        reads, words = READ_WHERE.get(field.removeprefix("simclr."), (None, ""))
        return words if reads and not any(reads(each, setup) for each in recipes) else ""
    names = [generation.name for generation in setup.protocol.generations]
    head = setup.models[names.index(owner)].head if owner in names else ""
    if field == "margin" and head and head not in MARGINS:
        return f"the head {head} has none"
    # Methods read the scale of later models, whatever their head.
    if field == "scale" and head == "softmax" and owner == names[0]:
        return "the head softmax has none"
    return ""
