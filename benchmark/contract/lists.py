"""Methods that rank two result lists: two score blocks in, one ranking out."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.models.module import Portable
from benchmark.ranking.score_scale import Scale

Scores = NDArray[np.floating[Any]]


class TwoLists(Portable):
    """Merge of two lists of the same queries; constructor arguments are its parameters.

    In a partly backfilled gallery the first list has the unfilled items, by the query that goes to
    them, and the second one the filled items, by the new query. Where the old index is kept beside
    the new one, both lists have all items. Items of equal result have equal places.

    Class attributes:
        searches: Whether both lists are searched for, each in an index of its own; else the second
            one scores what the first has found.
        places_by: How an item that only one list has is placed. By its ``score`` there, after
            :attr:`scale`; by its ``rank`` there; or as :meth:`merge` says, which takes longer.
        fused_by: How an item that both lists have is placed. By the ``mean`` of its scores, the
            first one after :attr:`scale`; by its ``ranks``, the sum of 1 / (``k`` + rank); by its
            second score in a ``window`` of the first list, behind it by the first; by the
            ``second`` list alone; or as :meth:`merge` says, which takes longer.
        k: What is added to a rank, where ``fused_by`` is ``ranks``.
    """

    searches: ClassVar[bool] = True
    places_by: ClassVar[Literal["score", "rank", "merge"]] = "merge"
    fused_by: ClassVar[Literal["mean", "ranks", "window", "second", "merge"]] = "merge"
    k: float = 60.0

    def __init__(self, window: int = 1000) -> None:
        """``window``: items taken from the beginning of a list, where an index is searched."""
        super().__init__()
        self.window = window

    @property
    def new_embeddings(self) -> int:
        """Items that the new model embeds while a query waits, where none is kept."""
        return 0 if self.searches else self.window

    @property
    def scale(self) -> Scale | None:
        """Map of scores of the first list to the second one's scale; None: there is none."""
        return None

    @abstractmethod
    def merge(self, first: Scores, second: Scores) -> Scores:
        """Keys that the one list is sorted by, largest first, ``[n, k]``.

        Args:
            first: Scores of the candidates of each query in the first list, ``[n, k]``; NaN where
                an item is not in it, as items that are filled already, or lie beyond the window.
            second: As ``first``, in the second list.

        Returns:
            Finite numbers where an item is in either list; NaN elsewhere.
        """

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """:meth:`merge` of tensors."""
        return torch.from_numpy(np.asarray(self.merge(first.numpy(), second.numpy())))


def ranks(scores: Scores) -> Scores:
    """The rank from 1 of each score in its row, NaN for NaN; equal scores have the worse rank.

    Example:
        >>> ranks(np.array([[0.5, 0.9, 0.5, np.nan]]))
        array([[ 3.,  1.,  3., nan]])
    """
    from scipy.stats import rankdata  # late, as it is slow to import

    descending = -np.asarray(scores, np.float64)
    found: Scores = rankdata(descending, method="max", axis=1, nan_policy="omit")
    return found
