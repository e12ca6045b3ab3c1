"""Text-to-image retrieval: CMC@1, CMC@5 and mAP of a text among the gallery's images.

It names its scores as retrieval does, whose queries are images: a text case has these, an image
case those.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.data.base import Evaluation
from benchmark.tasks.base import Embeddings, Options, Task, TaskResult, ranking_result


@dataclass(frozen=True)
class TextRetrieval(Task):
    """Rank the gallery's images for the captions of the queries, or for their classes' names.

    Every caption is a query; without captions a class is one query, however many of its images
    there are. A text is no image, so none is left out as its own.

    Source:
        BT2 section 4.7: a hit is an image of the text's class.
    """

    scores: ClassVar = ("cmc_at_1", "cmc_at_5", "map")
    needs: ClassVar = ("texts",)
    text_queries: ClassVar = True

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """CMC and mAP; ``query`` has for each item the embedding of its text."""
        from benchmark.ranking.spread import rank_anywhere

        g = items.gallery
        q = items.query
        if items.texts is None:
            q = q[np.unique(items.labels[q], return_index=True)[1]]
        classes = items.labels[q]
        ranking = rank_anywhere(
            query[q], gallery[g], classes, items.labels[g], distance=options["distance"]
        )
        return ranking_result(ranking, classes, len(g))
