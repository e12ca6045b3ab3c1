"""The new classifier as a judge of transformed old embeddings."""

from __future__ import annotations

import copy

from torch import Tensor

from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head


def new_head(pairs: Pairs, who: str) -> Head:
    """A copy of the new classifier, to be frozen.

    Args:
        pairs: What the method may see.
        who: What needs it, for the error.

    Raises:
        BenchError: If it is missing.
    """
    if pairs.head is None:
        raise BenchError(f"{who} needs the new classifier (head)")
    return copy.deepcopy(pairs.head)


def new_head_and_labels(pairs: Pairs, who: str) -> tuple[Head, Tensor]:
    """A copy of the new classifier, to be frozen, and the labels that it judges by.

    Raises:
        BenchError: If either is missing, or a label has no row in the classifier.
    """
    if pairs.head is None or pairs.labels is None:
        raise BenchError(f"{who} needs the new classifier (head) and labels")
    rows, n = pairs.labels, len(pairs.head.weight)
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n:
        raise BenchError(
            f"labels: expected rows of the head, 0 to {n - 1}, "
            f"got {int(rows.min())} to {int(rows.max())}"
        )
    return new_head(pairs, who), rows
