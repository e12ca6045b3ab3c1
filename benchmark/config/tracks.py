"""Tracks: the concrete setting that a protocol runs on."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from benchmark.config.checks import Id, Names, Text, Version, holds, unique
from benchmark.config.reading import Model
from benchmark.config.recipes import ModelSpec, Recipe

Rate = Annotated[float, Field(gt=0, le=1)]
Rates = Annotated[tuple[Rate, ...], Field(min_length=1, max_length=100), AfterValidator(unique)]


class TrackRules(Model):
    """Rules of a track, all but its name, models and recipe; records keep them."""

    dataset: str
    """A dataset of ``benchmark.data``."""
    data: Mapping[str, JsonValue] = {}
    """Options of the dataset."""
    distance: Literal["cosine", "l2"] = "cosine"
    """Comparison of embeddings."""
    mirrored: bool = False
    """Mean of the embeddings of an evaluated image and of its mirror image, which the scripts for
    faces add: the same direction, at the length that maps are fitted to."""
    far: Rates = (1e-4, 1e-3, 1e-2)
    """False accept rates of 1:1 verification."""
    fpir: Rates = (1e-3, 1e-2, 1e-1)
    """False positive identification rates of 1:N identification; a gallery with fewer non-mated
    probes than 1 / rate leaves that rate out."""
    evaluation: str = "test"
    """Evaluation set of the dataset: ``test``, or ``seen`` (other images of
    training classes)."""
    other_domain: Mapping[str, JsonValue] = {
        "dataset": "toy", "classes": 400, "images": 24, "size": 32
    }  # fmt: skip
    """A dataset and its options, where side-information from another domain is learned. One that is
    read from files has a folder of its own: ``--data-root places365=DIR,imagenet=DIR``."""
    groups: Mapping[str, Annotated[Names, Field(min_length=1)]] = {}
    """Name -> groups of the dataset; protocols use these names."""
    protocols: Mapping[str, Mapping[str, JsonValue]] = {}
    """Protocol -> what it changes on this track, in the words of ``--set``: Places has 182 old
    classes of 365, VGGFace2 863 of 8,631."""
    facts: Mapping[str, Annotated[int, Field(ge=0, le=10**12)]] = {}
    """Facts of the data that are known without having it: ``train_classes``, ``train_images``,
    ``test_images``."""


class Track(TrackRules):
    """A track as a YAML file of ``protocols/tracks/`` has it."""

    id: Id
    version: Version
    title: Text
    models: Annotated[
        Mapping[str, ModelSpec], holds(lambda m: {"old", "new"} <= m.keys(), "'old' and 'new'")
    ]
    """``old`` and ``new``, and any other that a protocol names."""
    recipe: Recipe
    needs_root: bool = False
    """Need of ``--data-root``."""
    note: Text = ""
    kind: Literal["photographs", "texts", "drawings", "rendered", "own", ""] = ""
    """Kind of its pictures, which every page says; ``own`` are those of whoever runs it."""
    subject: Text = ""
    """The pictures in plain words, as a scenario is on them: ``rendered characters``."""
    extends: str | None = None
    """A track that this one changes; keys given here win."""
