"""Text-to-image retrieval: CMC@1, CMC@5 and mAP of a class's name among the stored images.

It names its scores as retrieval does, whose cases ask with images: a text case has these, an image
case those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmark.tasks.base import Options, TaskResult

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

NEEDS = ("texts",)
"""What a dataset must offer for it."""

SCORES = ("cmc_at_1", "cmc_at_5", "map")
"""What it scores, by the whole name or how it begins."""

TEXTS = True
"""It judges only cases that ask with texts."""


def evaluate(
    query: NDArray[float32], gallery: NDArray[float32], items: Evaluation, options: Options
) -> TaskResult:
    """Rank the stored images for the name of every class that queries have.

    Args:
        query: For each item the vector of its class's name, ``[n, d]``.
        gallery: Vectors of all items as stored, ``[n, d]``.
        items: Whose classes ask, and which items are stored.
        options: ``distance``.

    Note:
        A class asks once, however many of its images there are. A text is no image, so none is
        left out as its own.

    Source:
        BT2 section 4.7: a hit is an image of the text's class.
    """
    from benchmark.metrics.retrieval import average_precision, cmc
    from benchmark.ranking.ranks import rank

    g = items.gallery
    classes, first = np.unique(items.labels[items.query], return_index=True)
    q = items.query[first]
    ranking = rank(query[q], gallery[g], classes, items.labels[g], distance=options["distance"])
    result = TaskResult()
    who = classes[np.isin(classes, items.labels[g])]  # those without a match have no score
    for k in (1, 5):
        result.add(f"cmc_at_{k}", cmc(ranking, k), identity=who)
    result.add("map", average_precision(ranking), identity=who)
    result.counts.update(n_query=len(q), n_gallery=len(g), n_query_without_match=ranking.n_excluded)
    return result
