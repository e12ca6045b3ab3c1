"""Cases ``query/gallery`` of an evaluation: which vectors ask, and which are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.stages import VECTORS, apply_part

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """Vectors of all items by the asking and by the stored model.

    Attributes:
        name: ``new/old``; a prime marks converted old vectors that also ask.
        query: ``[n, d]`` of all items, in the space of the gallery.
        gallery: ``[n, d]`` of all items.
        swapped: The old model asks and the new one is stored; only for symmetric tasks.
    """

    name: str
    query: Vectors
    gallery: Vectors
    swapped: bool = False


def build_cases(params: Mapping[str, Any], inputs: Mapping[str, Path]) -> Iterator[Case]:
    """All cases of a chain of generations.

    Case i/j asks with generation i, whose queries pass the views i, i - 1, ..., j + 1, in a
    gallery stored by generation j and converted by the updates j + 1, ..., i. ``j/j`` uses neither.
    """
    names = params["generations"]
    n = sum(role.startswith("vectors") for role in inputs)
    own = [np.load(inputs[f"vectors{i}"] / VECTORS) for i in range(n)]
    # With a model chain shorter than the names (an upper bound) the last ones are meant.
    names = [*names[: n - 1], names[-1]]
    side = np.load(inputs["side"] / VECTORS) if "side" in inputs else None
    stored: list[tuple[Vectors, Vectors | None]] = [(own[0], side)]
    converted = [False]
    for i in range(n):
        yield Case(f"{names[i]}/{names[i]}", own[i], own[i])
        if i == 0:
            continue
        update = inputs.get(f"update{i}")
        stored, changed = _convert(stored, update)
        converted = [before or changed for before in converted]
        asking = own[i]
        for j in range(i - 1, -1, -1):
            asking = _view(asking, inputs.get(f"update{j + 1}"))
            gallery = stored[j][0]
            # Vectors of unequal size have no score, so there is no such case.
            if asking.shape[1] == gallery.shape[1]:
                yield Case(f"{names[i]}/{names[j]}", asking, gallery)
                yield Case(f"{names[j]}/{names[i]}", gallery, asking, swapped=True)
            if converted[j]:
                mark = "'" * (i - j)
                yield Case(f"{names[j]}{mark}/{names[j]}{mark}", gallery, gallery)
        stored.append((own[i], None))
        converted.append(False)


def _convert(
    stored: list[tuple[Vectors, Vectors | None]], update: Path | None
) -> tuple[list[tuple[Vectors, Vectors | None]], bool]:
    if update is None or not (update / "convert.safetensors").exists():
        return stored, False
    return [apply_part(update, "convert", vectors, side) for vectors, side in stored], True


def _view(queries: Vectors, update: Path | None) -> Vectors:
    seen = None if update is None else apply_part(update, "query_view", queries)
    return queries if seen is None else seen
