"""Stages that store the features of frozen backbones, and what names them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmark.config.recipes import PACKAGED, ModelSpec, Recipe, is_here
from benchmark.config.setup import Setup
from benchmark.harness.artifacts import FROZEN
from benchmark.harness.graph import Stage, plain


def frozen_inputs(setup: Setup, data: Stage, generations: Iterable[int]) -> dict[str, Stage]:
    """Features by the frozen backbones of some generations, of every view, by role."""
    specs = [setup.models[i] for i in generations]
    parts = {spec.features_key: spec for spec in specs if spec.frozen}
    recipe = setup.track.recipe
    return {
        f"{FROZEN}{place}.{view}": _features(spec, data, recipe, view)
        for place, spec in enumerate(parts.values())
        for view in range(recipe.stored_views)
    }


def _features(spec: ModelSpec, data: Stage, recipe: Recipe, view: int) -> Stage:
    """Features of all images, or of the training images in one more view."""
    params: dict[str, Any] = {
        "spec": spec.frozen_part, "resampling": "bilinear", "precision": "float16"
    }  # fmt: skip
    title = f"features by {spec.backbone}"
    if view:
        params |= {"view": view, "augment": plain(recipe.augment)}
        title += f", view {view}"
    return Stage("features", title, params, {"data": data}, place_of(spec))


def place_of(spec: ModelSpec) -> dict[str, str]:
    """Place of weights that are known by what they hold."""
    if spec.weights is None or not is_here(spec.weights):
        return {}
    packed = spec.weights.startswith(PACKAGED)
    return {"weights": spec.weights if packed else str(Path(spec.weights).absolute())}
