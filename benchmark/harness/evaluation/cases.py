"""Cases ``query/gallery`` of an evaluation: which embeddings are queries, and which the gallery."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.contract import TwoLists
from benchmark.contract.arrays import apply_part
from benchmark.errors import BenchError, RefusedError
from benchmark.harness.store import Stored, load_stored, load_vectors
from benchmark.harness.work import EvaluationWork
from benchmark.models.module import load_module
from benchmark.tasks.base import SecondList

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """Embeddings of all items by the query and by the gallery model.

    Where ``swapped``, queries are of the old model and the gallery of the new one, only for tasks
    without a direction; with ``texts`` queries are texts, only for tasks of text queries.
    """

    name: str  # new/old; a prime marks converted old embeddings that are also the queries
    query: Vectors  # [n, d] of all items, in the space of the gallery
    gallery: Vectors  # [n, d] of all items
    swapped: bool = False
    texts: bool = False
    second: SecondList | None = None  # another list of the same items, and how the two become one


def build_cases(work: EvaluationWork[Path]) -> Iterator[Case]:
    """All cases of a chain of generations.

    Case i/j has queries of generation i, which pass the views i, i - 1, ..., j + 1, and a gallery
    of generation j, converted by the updates j + 1, ..., i. ``j/j`` uses neither. ``i/j direct``
    leaves the generations between out: one conversion from j to i.

    Where the first generation has text queries, its gallery is of an image encoder of its own:
    ``old/old`` has text queries, ``old/old images`` image queries, and ``old/new`` text queries
    in the gallery of the new model, which the update makes comparable: converted texts, viewed
    images. A RefusedError says if the maps of an update leave vectors of two lengths.

    Where an update ranks two lists, the new queries in the new gallery are the second one. In i/j
    they score what the first has found, if that is how the method goes; in ``j+i/j+i`` every item
    is in both indexes.
    """
    n = len(work.vectors)
    # With a model chain shorter than the names (an upper bound) the last ones are meant.
    names = [*work.generations[: n - 1], work.generations[-1]]
    fresh = [load_stored(work, i) for i in range(n)]
    galleries: list[Stored] = []
    converted: list[bool] = []
    for i, (vectors, _) in enumerate(fresh):
        if i == 0 and work.images:
            images = load_vectors(work.images[0])
            yield Case(f"{names[0]}/{names[0]}", vectors, images, texts=True)
            yield Case(f"{names[0]}/{names[0]} images", images, images)
        else:
            yield Case(f"{names[i]}/{names[i]}", vectors, vectors)
        update = work.updates[i]
        galleries = [convert(gallery, update) for gallery in galleries]
        converted = [before or has_part(update, "convert") for before in converted]
        query = vectors
        for j in range(i - 1, -1, -1):
            query = view(query, work.updates[j + 1], fresh[j][0])
            marks = "'" * (i - j) if converted[j] else ""
            if j == 0 and work.images:
                if query.shape[1] == galleries[0][0].shape[1]:
                    yield Case(f"{names[0]}/{names[i]}", galleries[0][0], query, texts=True)
                continue
            if j == i - 1:
                _check_sizes(query, galleries[j][0], update)
            merge = load_merge(update)
            if merge and merge.searches and merge.fused_by != "second" and j == i - 1:
                both = f"{names[j]}+{names[i]}"
                searched = SecondList(vectors, vectors, merge)
                yield Case(f"{both}/{both}", query, galleries[j][0], second=searched)
            second = _rescoring(merge, vectors)
            yield from _cross_cases(names[i], names[j], query, galleries[j][0], marks, "", second)
            direct = work.direct.get((j, i))
            if direct is not None:
                gallery, _ = convert(fresh[j], direct)
                queries = view(vectors, direct, fresh[j][0])
                second = _rescoring(load_merge(direct), vectors)
                yield from _cross_cases(names[i], names[j], queries, gallery, "", " direct", second)
        galleries.append(fresh[i])
        converted.append(False)


def _check_sizes(query: Vectors, gallery: Vectors, update: Path | None) -> None:
    """Refuse a map whose output the other side cannot be compared with."""
    maps = [part for part in ("convert", "query_view", "joint_view") if has_part(update, part)]
    if maps and query.shape[1] != gallery.shape[1]:
        raise RefusedError(
            f"expected queries and stored vectors of one length after {' and '.join(maps)}, got "
            f"{query.shape[1]} and {gallery.shape[1]}"
        )


def _rescoring(merge: TwoLists | None, new: Vectors) -> SecondList | None:
    """The list by which new vectors score anew what the first one has found."""
    return None if merge is None or merge.searches else SecondList(new, new, merge)


def _cross_cases(
    new: str, old: str, query: Vectors, gallery: Vectors, marks: str, way: str,
    second: SecondList | None,
) -> Iterator[Case]:  # fmt: skip
    # Embeddings of unequal size have no score, so there is no such case.
    if query.shape[1] == gallery.shape[1]:
        yield Case(f"{new}/{old}{way}", query, gallery, second=second)
        yield Case(f"{old}/{new}{way}", gallery, query, swapped=True)
    if marks:
        yield Case(f"{old}{marks}/{old}{marks}", gallery, gallery)


def has_part(update: Path | None, part: str) -> bool:
    """Tell an update that has such a part."""
    return update is not None and (update / f"{part}.safetensors").exists()


def convert(stored: Stored, update: Path | None) -> Stored:
    """A gallery after an update; as it is where the update converts nothing."""
    converted = None if update is None else apply_part(update, "convert", *stored)
    return stored if converted is None else converted


def view(queries: Vectors, update: Path | None, old: Vectors) -> Vectors:
    """New queries, by the old model ``old``, in the space of the gallery that an update leaves."""
    if has_part(update, "joint_view"):
        return apply_part(update, "joint_view", queries, old)  # type: ignore[arg-type]
    viewed = None if update is None else apply_part(update, "query_view", queries)
    return queries if viewed is None else viewed


def load_merge(update: Path | None) -> TwoLists | None:
    """Rule by which an update makes two lists one; ``None`` if it has none."""
    if update is None or not has_part(update, "merge"):
        return None
    merge = load_module(update / "merge.safetensors")
    if not isinstance(merge, TwoLists):
        raise BenchError(f"{update}: merge: expected one of two lists, got {type(merge).__name__}")
    return merge
