"""A partly backfilled gallery, from the outputs of stages: its embeddings, orders and scores."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.config import registry
from benchmark.contract import Head, Portable
from benchmark.contract.arrays import apply, apply_part
from benchmark.data.base import Evaluation
from benchmark.errors import BenchError
from benchmark.harness.evaluation.cases import convert, has_part, load_merge, view
from benchmark.harness.store import HEAD, Stored, load_stored
from benchmark.harness.work import EvaluationWork
from benchmark.metrics import backfill_orders
from benchmark.metrics.similarity import unit
from benchmark.models.module import load_module
from benchmark.models.parts import FirstDims
from benchmark.tasks.base import BackfillState

_DIGITS = 4
"""Curves are for plots; areas keep their precision."""

_SAME = 1e-3
"""Products of unit vectors, or distances against the largest, that count as the same."""
_SOME = 512
"""Items whose distances tell whether a view of queries keeps them."""
_MOST = 1_000_000
"""Scores at each point of a curve of lists that are merged block by block."""

Floats = NDArray[np.float32]


class LastUpdate:
    """The last update of a chain, and what orders may depend on; ``state`` has the embeddings.

    Where new vectors are longer and their first dimensions are what old ones are compared with, a
    gallery that is partly filled is one index of the longer vectors, with zeros after each old
    one. A unit query's product with an item, BT2's similarity (section 3), then is of one scale
    for both kinds. Two cosines, of the first dimensions and of all, are not: old vectors stand
    nearer to their queries, right or wrong, and hide filled items. For the same reason a view of
    queries that changes their distances to each other gives no curve without a merge.
    """

    def __init__(self, work: EvaluationWork[Path]) -> None:
        self.work, self.folder = work, work.updates[len(work.vectors) - 1]

    @cached_property
    def stored(self) -> Stored:
        """Vectors and side-information of the gallery before the update."""
        return load_stored(self.work, len(self.work.vectors) - 2)

    @cached_property
    def state(self) -> BackfillState:
        """The embeddings; converted once, where they are first asked for."""
        new, _ = load_stored(self.work, len(self.work.vectors) - 1)
        converted, _ = convert(self.stored, self.folder)
        queries = view(new, self.folder, self.stored[0])
        merge = load_merge(self.folder)
        if _is_prefix(self.folder) and converted.shape[1] == queries.shape[1] < new.shape[1]:
            more = new.shape[1] - converted.shape[1]
            queries, converted = new, np.pad(converted, ((0, 0), (0, more)))
        return BackfillState(self.stored[0], converted, queries, new, merge)

    def incomparable(self, n_scores: int = 0) -> str | None:
        """Reason that old and new embeddings, ``n_scores`` pairs, cannot be ranked together."""
        state = self.state
        query, stored, new = (x.shape[1] for x in (state.view, state.stored, state.new))
        if query != stored:
            return f"queries of {query} dimensions cannot rank a gallery of {stored}"
        merge = state.merge
        blocks = merge is not None and merge.places_by == "merge" and merge.fused_by != "window"
        if blocks and n_scores > _MOST:
            return f"its lists are merged block by block, for at most {_MOST:.0e} scores a point"
        if self.work.distance == "l2" and stored != new:
            return f"l2 distances in {stored} and {new} dimensions cannot be ranked together"
        if merge is None and not self._keeps_distances():
            return (
                "queries for old items are of another space than queries for filled ones: their "
                "scores have no common scale, and the method says of none"
            )
        return None

    def _keeps_distances(self) -> bool:
        """Tell a view of queries, if there is any, that a filled item could have, too."""
        if self.state.view is self.state.new:
            return True
        view, new = (
            _gram(x[:_SOME], self.work.distance) for x in (self.state.view, self.state.new)
        )
        return bool(np.abs(view - new).max(initial=0.0) <= _SAME * np.abs(new).max(initial=0.0))

    @cached_property
    def priority(self) -> Floats | None:
        """The update's own priority of all items, ``[n]``; ``None`` where it gives none."""
        if self.folder is None or not has_part(self.folder, "priority"):
            return None
        scores: Floats = apply_part(self.folder, "priority", *self.stored)
        n, finite = len(self.stored[0]), np.isfinite(scores).all()
        if scores.shape != (n,) or not finite:
            raise BenchError(
                f"priority: expected a finite number for each of {n} items, got shape "
                f"{scores.shape}" + ("" if finite else " with NaN or infinity")
            )
        return scores

    def true_distance(self) -> NDArray[np.float64] | None:
        """Distance of each item's stored vector to its new one, ``[n]``; ``None`` in two lists."""
        if self.state.merge is not None:
            return None
        # As maps are fitted: a softmax classifier reads the lengths of vectors.
        head, _ = self.new_head()
        unit = self.work.distance == "cosine" and (head is None or head.normalised)
        return backfill_orders.squared_distance(self.state.stored, self.state.view, unit=unit)

    def new_head(self) -> tuple[Head | None, str]:
        """The new classifier where it may read the gallery, else the reason."""
        head = _head(self.work.head_new)
        if head is None:
            return None, "the method leaves no new classifier"
        if has_part(self.folder, "query_view") or has_part(self.folder, "joint_view"):
            return None, "queries go to the old space, which the new classifier does not know"
        if head.dim != self.state.stored.shape[1]:
            return None, "the new classifier reads vectors of another size than the stored ones"
        return head, ""

    def old_head(self) -> tuple[Head | None, str]:
        """The old classifier, else the reason why there is none."""
        head = _head(self.work.head_old)
        if head is None:
            return None, "the old classifier is not kept"
        if head.dim != self.state.old.shape[1]:
            return None, "the old classifier reads vectors of another size"
        return head, ""

    def known_items(self, items: Evaluation) -> backfill_orders.Items:
        """Facts that orders may depend on."""
        state, (new_head, no_new), (old_head, no_old) = self.state, self.new_head(), self.old_head()
        losses, no_losses = None, no_new
        if new_head is not None:
            losses, no_losses = _losses(new_head, state.stored, items)
        return backfill_orders.Items(
            ids=items.ids, labels=items.labels, seed=self.work.seed or 0, priority=self.priority,
            logits=None if new_head is None else apply(_Function(new_head.logits), state.stored),
            old_logits=None if old_head is None else apply(_Function(old_head.logits), state.old),
            l2=self.true_distance(), disc=losses, converted=state.stored, gallery=items.gallery,
            why={
                "priority": "the method gives no priority", "logits": no_new,
                "old_logits": no_old, "disc": no_losses,
                "l2": "stored and new vectors are in lists of their own",
            },
        )  # fmt: skip


def evaluate_backfilling(update: LastUpdate, items: Evaluation) -> dict[str, Any]:
    """Results of the task ``backfilling`` for an update, with the generations' names.

    ``omitted`` has impossible orders; where nothing can be compared there is a ``reason`` alone.
    """
    work = update.work
    names = dict(zip(("old", "new"), work.generations[-2:], strict=True))
    reason = update.incomparable(len(items.query) * len(items.gallery))
    if reason is not None:
        return {**names, "reason": reason}
    orders, omitted = backfill_orders.make_orders(work.orders or (), update.known_items(items))
    curves = registry.task("backfilling").evaluate(update.state, orders, items, work.params())
    return {**names, **_rounded(curves), "omitted": omitted}


def _head(folder: Path | None) -> Head | None:
    if folder is None or not (folder / HEAD).exists():
        return None
    return load_module(folder / HEAD).eval()  # type: ignore[return-value]


def _losses(head: Head, stored: Floats, items: Evaluation) -> tuple[Floats | None, str]:
    """The new classifier's loss of each item if it knows the classes of all, else the reason."""
    classes = head.classes.numpy()
    by_class = np.argsort(classes)
    place = np.searchsorted(classes, items.labels, sorter=by_class)
    rows = by_class[np.minimum(place, len(classes) - 1)]
    known = int((classes[rows] == items.labels).sum())
    if known < len(rows):
        return None, f"the new classifier knows the classes of {known} of {len(rows)} items"

    def losses(vectors: Tensor, rows: Tensor) -> Tensor:
        return head(vectors, rows.to(torch.int64), reduction="none")

    return apply(_Function(losses), stored, rows), ""


def _gram(vectors: Floats, distance: str) -> Floats:
    """Products of unit vectors, or of vectors less their mean for ``l2``, ``[n, n]``."""
    x = vectors - vectors.mean(axis=0) if distance == "l2" else unit(vectors, distance)
    return np.asarray(x @ x.T, np.float32)


def _is_prefix(folder: Path | None) -> bool:
    """Tell an update whose old vectors are compared with the first dimensions of a new query."""
    if folder is None or not has_part(folder, "query_view"):
        return False
    return isinstance(load_module(folder / "query_view.safetensors"), FirstDims)


class _Function(Portable):
    """A function of rows as a module, to be applied in blocks."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *rows: Tensor) -> Tensor:
        return self.function(*rows)


def _rounded(value: Any) -> Any:
    """Lists of fractions at the precision of curves; single numbers as they are."""
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [round(v, _DIGITS) if isinstance(v, float) else _rounded(v) for v in value]
    return value
