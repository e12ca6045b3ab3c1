"""Methods that rank two result lists: two score blocks in, one ranking out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]


@dataclass(frozen=True)
class TwoLists(ABC):
    """How two lists of the same queries become one; its fields are its parameters.

    Class attributes:
        searches: Whether both lists are searched for, each in an index of its own; else the second
            one scores what the first has found.
        model_runs: Embedding models that run on a query.
    """

    searches: ClassVar[bool] = True
    model_runs: ClassVar[int] = 2

    window: int = 1000
    """Items taken from the beginning of a list."""

    @property
    def new_embeddings(self) -> int:
        """Items that the new model embeds while a query waits, where none is kept."""
        return 0 if self.searches else self.window

    @abstractmethod
    def merge(self, first: Scores, second: Scores) -> Scores:
        """What the one list is sorted by, largest first, ``[n, k]``.

        Args:
            first: Scores of the candidates of each query in the first list, ``[n, k]``; NaN where
                an item is not among the first ``window`` of it, as items that are filled already,
                or not yet.
            second: As ``first``, in the second list.

        Returns:
            Finite numbers where an item is in either list; NaN elsewhere.
        """


def ranks(scores: Scores) -> Scores:
    """The rank from 1 of each score in its row, NaN for NaN; equal scores have the worse rank.

    Example:
        >>> ranks(np.array([[0.5, 0.9, 0.5, np.nan]]))
        array([[ 3.,  1.,  3., nan]])
    """
    ordered = np.sort(scores, axis=1)  # ascending, NaN last
    known = (~np.isnan(scores)).sum(axis=1)
    out = np.empty(scores.shape)
    for row, values, mine, n in zip(out, scores, ordered, known, strict=True):
        row[:] = n - np.searchsorted(mine[:n], values)
    return np.where(np.isnan(scores), np.nan, out)
