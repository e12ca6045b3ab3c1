"""Cached embeddings of the same items by two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.training.loop import Curve


@dataclass(frozen=True)
class Pairs:
    """Cached embeddings of the same training items by both models: all that a map may see.

    Attributes:
        old: ``[n, d_old]`` float32, not normalised.
        new: ``[n, d_new]`` float32, not normalised.
        labels: Rows of the new classifier, ``[n]``; ``None`` if unknown.
        side: Stored side-information, ``[n, s]``; ``None`` if none is stored.
        head: The new classifier; ``None`` if unknown.
        distance: How the deployment compares embeddings, ``cosine`` or ``l2``.
        new_side: Side-information by the new generation, ``[n, s_new]``, for a map that a
            later update shall build on; ``None`` if none is wanted.
        old_head: The old classifier; ``None`` where the protocol discards it.
        chained: Some of what is stored came out of the update before; ``old`` has fresh
            embeddings only.

    Raises:
        BenchError: If lengths differ, or a value is not a finite number.
    """

    old: Tensor
    new: Tensor
    labels: Tensor | None = None
    side: Tensor | None = None
    head: Head | None = None
    distance: str = "cosine"
    new_side: Tensor | None = None
    old_head: Head | None = None
    chained: bool = False

    def __post_init__(self) -> None:
        for name in ("old", "new", "side", "new_side"):
            value = getattr(self, name)
            if value is None:
                continue
            if value.ndim != 2 or len(value) != len(self.old):
                raise BenchError(
                    f"{name}: expected [{len(self.old)}, dim] as many rows as old, "
                    f"got {list(value.shape)}"
                )
            if not value.isfinite().all():
                raise BenchError(f"{name}: expected finite numbers, got NaN or infinity")
        if self.labels is not None and self.labels.shape != self.old.shape[:1]:
            raise BenchError(f"labels: expected [{len(self.old)}], got {list(self.labels.shape)}")
        if self.head is not None and self.head.dim != self.new.shape[1]:
            raise BenchError(
                f"head: expected {self.new.shape[1]} dimensions as new, got {self.head.dim}"
            )

    @property
    def normalised(self) -> bool:
        """Do only directions of new embeddings matter (FCT appendix D.7)?

        A softmax classifier reads their lengths, whatever the deployment compares; where the
        deployment compares by l2, queries keep theirs, whatever the classifier reads.
        """
        return _directions(self.distance, self.head)

    @property
    def old_normalised(self) -> bool:
        """Shall a map take only the directions of old embeddings?

        In a chain, where the update before has normalised some of those stored: fresh and
        converted ones must look alike. Elsewhere their lengths say something too.
        """
        return self.chained and _directions(self.distance, self.old_head)


def _directions(distance: str, head: Head | None) -> bool:
    return distance == "cosine" and (head is None or head.normalised)


@dataclass(frozen=True)
class Fitted:
    """What fitting leaves behind; parts as in :class:`benchmark.contract.method.Update`."""

    convert: Portable | None = None
    query_view: Portable | None = None
    priority: Portable | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)
