"""A protocol on a track with the changes of a run: all that a plan is laid out from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmark.config import registry
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build
from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.config.tracks import Track

Precision = Literal["recipe", "32-true"]
"""Of trainings: what recipes say where the machine has it, or 32 bits on every machine."""


@dataclass(frozen=True)
class Setup:
    """A protocol on a track with this run's changes."""

    protocol: Protocol
    track: Track
    models: tuple[ModelSpec, ...]  # the model of each generation, in order
    methods: Mapping[str, Mapping[str, Any]]  # parameters changed for a method id or ``id:variant``
    changed: Mapping[str, Any]  # the changes as given; empty for the unmodified track

    def params(self, method: str) -> dict[str, Any]:
        """Changed parameters of ``bct`` or ``bct:distill``.

        Those of the id give way to the variant's own values, those of ``id:variant`` do not.
        """
        base, _, variant = method.partition(":")
        changed = self.methods.get(base, {})
        if variant and changed:
            fixed = registry.method_class(base).variants.get(variant, {})
            changed = {name: value for name, value in changed.items() if name not in fixed}
        return {**changed, **self.methods.get(method, {})}

    def recipe(self, generation: int) -> Recipe:
        """The recipe of a generation's training: the track's with its model's changes."""
        values = {**dict(self.track.recipe), **self.models[generation].recipe}
        return build(Recipe, values, "models: recipe")

    def at_precision(self, precision: Precision) -> Setup:
        """The same with every training at a precision, whatever recipes say."""
        if precision == "recipe":
            return self
        recipe = self.track.recipe
        values = {"precision": precision, "simclr": _without_precision(recipe.simclr)}
        track = self.track.model_copy(update={"recipe": recipe.model_copy(update=values)})
        models = tuple(
            model.model_copy(update={"recipe": _without_precision(model.recipe)})
            for model in self.models
        )
        return replace(self, track=track, models=models)

    def split(self, generation: int) -> dict[str, Any]:
        """Training images of a generation, as stages name them."""
        protocol, g = self.protocol, self.protocol.generations[generation]
        split = {"classes": g.classes, "images": g.images, **self._order()}
        split |= protocol.model_dump(include={"image_order", "every_class"}, exclude_defaults=True)
        if g.groups:
            split["groups"] = self.members(g.groups)
        if g.thinned:
            split["thinned"] = [[self.members([r]), share] for r, share in g.thinned.items()]
        return split

    def narrowing(self) -> dict[str, Any] | None:
        """Evaluated items, as far as the protocol says more than the track."""
        chosen = self.protocol.evaluation
        narrow = chosen.model_dump(include={"classes", "ranges"}, exclude_defaults=True)
        if narrow:  # ranges of classes count as the splits do
            narrow |= self._order()
        if chosen.groups:
            narrow["groups"] = self.members(chosen.groups)
        if chosen.against is not None:
            narrow["against"] = [chosen.against, self.members([chosen.against])]
        return narrow or None

    def _order(self) -> dict[str, Any]:
        return {"order": self.protocol.order, "seed": self.protocol.split_seed}

    @property
    def part(self) -> str:
        """Name of the dataset's evaluation set that is used."""
        return self.protocol.evaluation.part or self.track.evaluation

    def members(self, roles: Iterable[str]) -> list[str]:
        """Groups of the dataset, by the track's names for them."""
        return sorted({name for role in roles for name in self.track.groups[role]})


def _without_precision(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in recipe.items() if key != "precision"}
