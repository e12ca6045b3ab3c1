"""Stages of datasets, and of the features of frozen backbones."""

from collections.abc import Mapping
from pathlib import Path

from benchmark.config import registry
from benchmark.config.data_roots import Root
from benchmark.config.recipes import PACKAGED, ModelSpec, Recipe, is_here
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track
from benchmark.errors import BenchError
from benchmark.harness.graph import Stage, plain
from benchmark.harness.work import DataWork, FeatureWork, PlainValues
from benchmark.records.stage_titles import StageTitle


def frozen_views(setup: Setup, data: Stage, n: int) -> tuple[tuple[Stage, ...], ...]:
    """Features of every view by the frozen backbones of the first ``n`` generations."""
    parts = {spec.features_key: spec for spec in setup.models[:n] if spec.frozen}
    recipe = setup.track.recipe
    return tuple(
        tuple(_features(spec, data, recipe, view) for view in range(recipe.stored_views))
        for spec in parts.values()
    )


def _features(spec: ModelSpec, data: Stage, recipe: Recipe, view: int) -> Stage:
    """Features of all images, or of the training images in one more view."""
    work = FeatureWork[Stage](
        data=data, spec=spec.frozen_part, resampling="bilinear", precision="float16", view=view,
        augment=plain(recipe.augment) if view else None, weights=place_of(spec),
    )  # fmt: skip
    return Stage(StageTitle("features", f"by {spec.backbone}{f', view {view}' * bool(view)}"), work)


def place_of(spec: ModelSpec) -> str | None:
    """Place of weights that are known by what they hold."""
    if spec.weights is None or not is_here(spec.weights):
        return None
    packed = spec.weights.startswith(PACKAGED)
    return spec.weights if packed else str(Path(spec.weights).absolute())


def other_domain(track: Track, root: Root) -> Stage:
    """The dataset of another domain: a built-in one, or one with a folder of its own."""
    options = dict(track.other_domain)
    name = options.pop("dataset", None)
    if name is None:
        raise BenchError("track: other_domain: missing key 'dataset'")
    dataset = registry.check_options(str(name), options, "track: other_domain")
    place = None
    if dataset.needs_root and root is not None:
        place = root.get(str(name)) if isinstance(root, Mapping) else None
        if place is None:
            raise BenchError(
                f"side-information from another domain: expected --data-root "
                f"{track.dataset}=DIR,{name}=DIR, got no folder of {name}"
            )
    known = place is not None or not dataset.needs_root
    source = dataset.source(place) if known else {"declared": True}
    return data_stage(str(name), options, source, place, ", another domain")


def data_stage(
    name: str, options: PlainValues, source: PlainValues, root: Root, more: str = ""
) -> Stage:
    """A dataset; ``more`` stands behind its name in the title."""
    work = DataWork[Stage](dataset=name, options=dict(options), source=source, data_root=root)
    return Stage(StageTitle("dataset", name + more), work)
