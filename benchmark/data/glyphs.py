"""``glyphs``: characters of many scripts, drawn in 12 faces and distorted; nothing to download.

A class is a character, a camera a face, a medium one character in one face (its draws are frames),
a template two faces of a character, a group a script, a class name the Unicode name. The pictures
are rendered, not collected, and pages that show their numbers say so.
"""

import dataclasses
import itertools
import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from benchmark.config.checks import Seed, holds
from benchmark.config.declarations import EvaluationSet
from benchmark.data import rendering
from benchmark.data.base import JUNK, Dataset, DatasetReader, Evaluation, ImageSet, Ints, Pixels
from benchmark.data.enrolment import templates_of_views
from benchmark.data.rendering import OUT, PARAMETERS, Amounts, distort
from benchmark.data.splits import generator, seeded_order
from benchmark.errors import BenchError

FACES = len(rendering.FACES)
TRAIN_CLASSES = 1300
TUNING_CLASSES = 390
SEEN_EVERY = 3
"""Every third training class is in the evaluation set ``seen``: so it spans their order."""
EVALUATION_DRAWS = 2
FACES_PER_TEMPLATE = 2
RENDERING = 1
"""Raised by whoever changes a pixel; part of every cache key."""
AMOUNTS = {1: Amounts()}
"""Distortion of each version of the dataset; a published version never changes."""

ASIDE_EVERY = 6
"""Of so many test classes one is junk and one a distractor in ``across``."""

_TRAIN, _TEST, _SEEN, _TEMPLATES = range(4)
_JUNK_IS_A_CLASS = dict.fromkeys((
    "retrieval", "text_retrieval", "groups", "backfilling", "verification", "identification",
    "verification_script", "identification_script",
), "it would take all junk for one class; use reidentification")  # fmt: skip


@dataclass(frozen=True)
class Glyphs(DatasetReader):
    """Characters of many scripts."""

    columns: ClassVar = frozenset({"cameras", "templates", "groups", "texts"})
    pictures: ClassVar = True  # rendered here
    stores_queries: ClassVar = True
    channels: ClassVar = 1
    evaluation_sets: ClassVar = {
        "test": EvaluationSet(unseen=True),
        "seen": EvaluationSet(),
        "across": EvaluationSet(unseen=True, rules_out=_JUNK_IS_A_CLASS),
    }

    strength: Annotated[float, Field(ge=0, le=4)] = 1.0  # multiplies every distortion
    draws: Annotated[int, Field(ge=1, le=100)] = 2  # training images of each class in each face
    seed: Seed = 0  # order of the classes, their split, and every draw
    # Of the distortion.
    version: Annotated[int, holds(AMOUNTS.get, f"one of {sorted(AMOUNTS)}")] = 1
    # Evaluate on the last 390 training classes instead, and train on the other 910: so settings
    # are chosen without a look at the test classes.
    tuning: bool = False

    def source(self, root: Path | None) -> dict[str, Any]:  # noqa: ARG002
        """Options, rendering version and drawn ink determine the images."""
        return {**asdict(self), "rendering": RENDERING, "ink": rendering.ink_hash()}

    def sizes(self) -> dict[str, int]:
        """Training classes and images, without drawing them."""
        n = TRAIN_CLASSES - (TUNING_CLASSES if self.tuning else 0)
        return {"train_classes": n, "train_images": n * FACES * self.draws}

    def class_group(self, class_name: str) -> str:
        """The script, or kind of symbol, of a class."""
        return rendering.script(ord(unicodedata.lookup(class_name)))

    def evaluation(self, dataset: Dataset, name: str) -> Evaluation:
        """``across`` is derived from ``test`` when it is used."""
        if name == "across":
            return across(dataset.evaluations["test"])
        return super().evaluation(dataset, name)

    def render(self, ink: Pixels, row: int, rng: np.random.Generator) -> Pixels:
        """Draw one character in every face, distorted as ``rng`` says: ``[12, c, 32, 32]`` uint8.

        Args:
            ink: Of all characters, ``[n, 12, 64, 64]`` uint8.
            row: The character's.
            rng: Its stream of this draw.
        """
        uniform = rng.random((FACES, PARAMETERS), np.float32) * 2 - 1
        noise = rng.standard_normal((FACES, OUT, OUT), np.float32)
        return distort(ink[row], uniform, noise, self.strength, AMOUNTS[self.version])[:, None]

    def load(self, root: Path | None) -> Dataset:  # noqa: ARG002
        """Draw the dataset: training images draw by draw, so that more draws only append.

        ``test`` has classes not trained on, ``seen`` other draws of every third training class.
        """
        codes, ink = rendering.characters()
        order = seeded_order([f"{code:x}" for code in codes], self.seed)
        codes, ink = [codes[r] for r in order], ink[order]
        n = len(codes)
        if n <= TRAIN_CLASSES:
            raise BenchError(f"dataset glyphs: expected over {TRAIN_CLASSES} classes, got {n}")
        train, test = np.split(np.arange(n), [TRAIN_CLASSES])
        if self.tuning:
            train, test = np.split(train, [TRAIN_CLASSES - TUNING_CLASSES])
        train = train[: self.sizes()["train_classes"]]
        images = _images(ink, codes, train, part=_TRAIN, draws=self.draws, options=self)
        labels = np.tile(np.repeat(train, FACES), self.draws)
        evaluations = {
            "test": _evaluation(ink, codes, test, _TEST, self),
            "seen": _evaluation(ink, codes, train[::SEEN_EVERY], _SEEN, self),
        }
        names = tuple(unicodedata.name(chr(c)) for c in codes)
        counts = {"classes": n, "train_classes": len(train)}
        facts = self.source(None) | counts | {"cameras": rendering.FACES, "rendered": True}
        return Dataset(self.name, ImageSet(images, labels), evaluations, names, facts)


def _images(
    ink: Pixels, codes: list[int], classes: Ints, *, part: int, draws: int, options: Glyphs
) -> Pixels:
    """``[draws * n_class * 12, c, 32, 32]`` uint8: draw by draw, class by class, face by face."""
    images = np.empty((draws, len(classes), FACES, options.channels, OUT, OUT), np.uint8)

    def fill(job: tuple[int, int]) -> None:
        draw, row = job
        c = int(classes[row])
        # Its own stream for each class and draw: neither more draws nor another class moves it.
        stream = generator(options.seed, options.version, part, draw, codes[c])
        images[draw, row] = options.render(ink, c, stream)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(fill, itertools.product(range(draws), range(len(classes)))))
    return images.reshape(-1, options.channels, OUT, OUT)


def _evaluation(
    ink: Pixels, codes: list[int], classes: Ints, part: int, options: Glyphs
) -> Evaluation:
    media = np.arange(len(classes) * FACES)  # (class, face)
    tiled = np.tile(media, EVALUATION_DRAWS)
    scripts = [rendering.script(codes[c]) for c in classes]
    names, group = np.unique(scripts, return_inverse=True)
    rng = generator(options.seed, options.version, part, _TEMPLATES)
    columns = templates_of_views(classes, FACES, FACES_PER_TEMPLATE, rng, options.seed)
    columns["template"] = columns["template"][tiled]
    return Evaluation.of(
        _images(ink, codes, classes, part=part, draws=EVALUATION_DRAWS, options=options),
        np.repeat(classes, FACES)[tiled], query=media, gallery=media, camera=tiled % FACES,
        media=tiled, group=np.repeat(group, FACES)[tiled], group_names=tuple(names.tolist()),
        **columns,
    )  # fmt: skip


def across(items: Evaluation) -> Evaluation:
    """Queries as Market-1501 has them, one view among both draws of every character and face.

    The other draw is another picture by the same camera. Every sixth class is junk and the class
    after it a distractor, which no query is of: 3,819 and 2,798 of 19,732 images.
    """
    place = np.unique(items.labels, return_inverse=True)[1] % ASIDE_EVERY
    chosen = place[items.query] >= 2
    return dataclasses.replace(
        items,
        labels=np.where(place == 0, JUNK, items.labels),
        query=items.query[chosen],
        gallery=np.arange(len(items.labels)),
    )
