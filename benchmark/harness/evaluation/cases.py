"""Cases ``query/gallery`` of an evaluation: which vectors ask, and which are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.contract.arrays import apply_part
from benchmark.harness.artifacts import VECTORS

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """Vectors of all items by the asking and by the stored model.

    Attributes:
        name: ``new/old``; a prime marks converted old vectors that also ask.
        query: ``[n, d]`` of all items, in the space of the gallery.
        gallery: ``[n, d]`` of all items.
        swapped: The old model asks and the new one is stored; only for symmetric tasks.
        texts: Its queries are texts; only for tasks that ask so.
    """

    name: str
    query: Vectors
    gallery: Vectors
    swapped: bool = False
    texts: bool = False


Stored = tuple[Vectors, Vectors | None]
"""What a gallery keeps: vectors and side-information of all items."""


def build_cases(params: Mapping[str, Any], inputs: Mapping[str, Path]) -> Iterator[Case]:
    """All cases of a chain of generations.

    Case i/j asks with generation i, whose queries pass the views i, i - 1, ..., j + 1, in a
    gallery stored by generation j and converted by the updates j + 1, ..., i. ``j/j`` uses neither.
    ``i/j direct`` leaves the generations between out: one conversion from j to i.

    Where the first generation asks with texts, its images are stored by an encoder of their own:
    ``old/old`` is a text among them, ``old/old images`` an image, and ``old/new`` a text among
    those of the new model, which the update makes comparable: converted texts, viewed images.
    """
    n = sum(role.startswith("vectors") for role in inputs)
    # With a model chain shorter than the names (an upper bound) the last ones are meant.
    names = [*params["generations"][: n - 1], params["generations"][-1]]
    fresh = [load_stored(inputs, i) for i in range(n)]
    own = [vectors for vectors, _ in fresh]
    stored: list[Stored] = []
    converted: list[bool] = []
    for i in range(n):
        if i == 0 and "images0" in inputs:
            images: Vectors = np.load(inputs["images0"] / VECTORS)
            yield Case(f"{names[0]}/{names[0]}", own[0], images, texts=True)
            yield Case(f"{names[0]}/{names[0]} images", images, images)
        else:
            yield Case(f"{names[i]}/{names[i]}", own[i], own[i])
        update = inputs.get(f"update{i}")
        changes = has(update, "convert")
        stored = [convert(each, update) for each in stored]
        converted = [before or changes for before in converted]
        asking = own[i]
        for j in range(i - 1, -1, -1):
            asking = view(asking, inputs.get(f"update{j + 1}"))
            marks = "'" * (i - j) if converted[j] else ""
            if j == 0 and "images0" in inputs:
                if asking.shape[1] == stored[0][0].shape[1]:
                    yield Case(f"{names[0]}/{names[i]}", stored[0][0], asking, texts=True)
                continue
            yield from _across(names[i], names[j], asking, stored[j][0], marks)
            direct = inputs.get(f"direct{j}-{i}")
            if direct is not None:
                gallery, _ = convert(fresh[j], direct)
                there = view(own[i], direct)
                yield from _across(names[i], names[j], there, gallery, "", " direct")
        stored.append(fresh[i])
        converted.append(False)


def _across(
    new: str, old: str, asking: Vectors, gallery: Vectors, marks: str, way: str = ""
) -> Iterator[Case]:
    """The cases of a query model and a gallery that is stored by an earlier one."""
    # Vectors of unequal size have no score, so there is no such case.
    if asking.shape[1] == gallery.shape[1]:
        yield Case(f"{new}/{old}{way}", asking, gallery)
        yield Case(f"{old}/{new}{way}", gallery, asking, swapped=True)
    if marks:
        yield Case(f"{old}{marks}/{old}{marks}", gallery, gallery)


def load_stored(inputs: Mapping[str, Path], i: int) -> Stored:
    """What a gallery of generation ``i`` keeps, and its new vectors ask with."""
    folder = inputs.get(f"side{i}")
    vectors: Vectors = np.load(inputs[f"vectors{i}"] / VECTORS)
    return vectors, None if folder is None else np.load(folder / VECTORS)


def has(update: Path | None, part: str) -> bool:
    """Does an update have such a part?"""
    return update is not None and (update / f"{part}.safetensors").exists()


def convert(stored: Stored, update: Path | None) -> Stored:
    """A gallery after an update; as it is where the update converts nothing."""
    if update is None or not has(update, "convert"):
        return stored
    made: Stored = apply_part(update, "convert", *stored)
    return made


def view(queries: Vectors, update: Path | None) -> Vectors:
    """New queries in the space of the gallery that an update leaves."""
    seen = None if update is None else apply_part(update, "query_view", queries)
    return queries if seen is None else seen
