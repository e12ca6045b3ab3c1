"""Cached embeddings of the same items by two models."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import functional as F

from benchmark.contract.lists import TwoLists
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.training.loop import Curve


@dataclass(frozen=True)
class Pairs:
    """Cached embeddings of the same training items by both models: all that a map may see.

    Raises:
        BenchError: On other lengths, a number that is not finite, a label that is no row.
    """

    old: Tensor  # ``[n, d_old]`` float32, not normalised, as ``new``, ``[n, d_new]``
    new: Tensor
    labels: Tensor | None = None  # rows of the new classifier, ``[n]``; ``None`` if unknown
    side: Tensor | None = None  # stored side-information, ``[n, s]``; ``None`` if none is stored
    head: Head | None = None  # the new classifier; ``None`` if unknown
    distance: str = "cosine"  # how the deployment compares embeddings, ``cosine`` or ``l2``
    # ``[n, s_new]`` by the new generation, where a later update builds on it
    new_side: Tensor | None = None
    old_head: Head | None = None  # the old classifier; ``None`` where the protocol discards it
    # some stored vectors are outputs of the update before; ``old`` is all fresh
    chained: bool = False
    views: int = 1  # of each item: all items in one view, then in the next
    # the same pairs from other views of the images, for the epoch of a number
    renew: "Callable[[int], Pairs] | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        n, d_new = len(self.old), self.new.shape[-1]
        for name in ("old", "new", "side", "new_side"):
            value = getattr(self, name)
            if value is not None and (value.ndim != 2 or len(value) != n):
                shape = list(value.shape)
                raise BenchError(f"{name}: expected [{n}, dim] as many rows as old, got {shape}")
            if value is not None and not value.isfinite().all():
                raise BenchError(f"{name}: expected finite numbers, got NaN or infinity")
        if self.head is not None and self.head.dim != d_new:
            raise BenchError(f"head: expected {d_new} dimensions as new, got {self.head.dim}")
        if self.labels is None:
            return
        if self.labels.shape != (n,):
            raise BenchError(f"labels: expected [{n}], got {list(self.labels.shape)}")
        low, high = (int(end) for end in self.labels.aminmax()) if n else (0, 0)
        if low < 0 or (self.head is not None and high >= len(self.head.weight)):
            rows = "0 or more" if self.head is None else f"0 to {len(self.head.weight) - 1}"
            raise BenchError(f"labels: expected rows of the head, {rows}, got {low} to {high}")

    def of_epoch(self, number: int) -> "Pairs":
        """Input of a map in an epoch: new views where there are any, else always the same."""
        return self if self.renew is None else self.renew(number)

    @property
    def normalised(self) -> bool:
        """Tell whether only directions of new embeddings matter (FCT appendix D.7).

        A softmax classifier reads their lengths, whatever the deployment compares; where the
        deployment compares by l2, queries keep theirs, whatever the classifier reads.
        """
        return self.distance == "cosine" and (self.head is None or self.head.normalised)

    @property
    def old_normalised(self) -> bool:
        """Tell whether a map takes only the directions of old embeddings.

        In a chain, where the update before has normalised some of those stored: fresh and
        converted ones must look alike. Elsewhere their lengths say something too.
        """
        directions = self.old_head is None or self.old_head.normalised
        return self.chained and self.distance == "cosine" and directions

    @property
    def target(self) -> Tensor:
        """The output to fit: the new embedding, or its direction where only that matters."""
        return F.normalize(self.new) if self.normalised else self.new

    def classifier(self, user: str) -> Head:
        """A copy of the new classifier, to freeze; a BenchError by ``user`` if it is missing."""
        if self.head is None:
            raise BenchError(f"{user} needs the new classifier (head)")
        return copy.deepcopy(self.head)

    def classifier_and_labels(self, user: str) -> tuple[Head, Tensor]:
        """As :meth:`classifier`, with the labels, which may be missing too."""
        if self.head is None or self.labels is None:
            raise BenchError(f"{user} needs the new classifier (head) and labels")
        return self.classifier(user), self.labels


@dataclass(frozen=True)
class Fitted:
    """The fitted parts of a conversion, as in :class:`benchmark.contract.method.Update`."""

    convert: Portable | None = None
    query_view: Portable | None = None
    priority: Portable | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)
    joint_view: Portable | None = None
    merge: TwoLists | None = None
