"""A partly backfilled gallery, from the outputs of stages: its vectors, orders and scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from benchmark.config import registry
from benchmark.contract.arrays import apply, apply_part
from benchmark.errors import BenchError
from benchmark.harness.artifacts import HEAD
from benchmark.harness.evaluation.cases import convert, has, load_stored, view
from benchmark.metrics import backfill_orders
from benchmark.models.heads import Head
from benchmark.models.module import Portable, load_module
from benchmark.tasks.base import Refill

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmark.data.base import Evaluation

_DIGITS = 4
"""Curves are for plots; areas keep their precision."""

NO_PRIORITY = "the method gives no priority"


def judge(
    params: Mapping[str, Any], inputs: Mapping[str, Path], items: Evaluation
) -> dict[str, Any]:
    """Scores along the refilling of the gallery at the last update.

    Args:
        params: ``generations``, ``orders``, ``seed``, ``distance``, ``fpir``.
        inputs: As for the cases, and ``head_new`` and, where it is kept, ``head_old``: folders
            of the models whose classifiers orders may ask.
        items: What is asked and stored.

    Returns:
        What the task ``backfilling`` gives, the generations' names, and ``omitted``: order ->
        why it cannot be made; a ``reason`` alone where nothing can be compared.
    """
    refill = last_update(inputs)
    old, new = params["generations"][-2:]
    reason = _incomparable(refill, params["distance"])
    if reason is not None:
        return {"old": old, "new": new, "reason": reason}
    known = known_items(params, inputs, items, refill)
    made, omitted = backfill_orders.make_orders(params["orders"], known)
    found = registry.task("backfilling").evaluate(refill, made, items, params)
    return {"old": old, "new": new, **_rounded(found), "omitted": omitted}


def last_update(inputs: Mapping[str, Path]) -> Refill:
    """Vectors of all items around the last update."""
    last = sum(role.startswith("vectors") for role in inputs) - 1
    update = inputs.get(f"update{last}")
    old, new = load_stored(inputs, last - 1), load_stored(inputs, last)[0]
    return Refill(old[0], convert(old, update)[0], view(new, update), new)


def _incomparable(refill: Refill, distance: str) -> str | None:
    asks, stored, new = refill.view.shape[1], refill.stored.shape[1], refill.new.shape[1]
    if asks != stored:
        return f"queries of {asks} dimensions cannot ask among stored ones of {stored}"
    if distance == "l2" and stored != new:
        return f"l2 distances in {stored} and {new} dimensions cannot be ranked together"
    return None


def known_items(
    params: Mapping[str, Any], inputs: Mapping[str, Path], items: Evaluation, refill: Refill
) -> backfill_orders.Items:
    """What orders may be made of."""
    last = sum(role.startswith("vectors") for role in inputs) - 1
    update = inputs.get(f"update{last}")
    why = {"priority": NO_PRIORITY}
    new_head, why["logits"] = _new_head(inputs, update, refill)
    old_head = _head(inputs.get("head_old"))
    why["old_logits"] = "the old classifier is not kept"
    if old_head is not None and old_head.dim != refill.old.shape[1]:
        old_head, why["old_logits"] = None, "the old classifier reads vectors of another size"
    disc, why["disc"] = None, why["logits"]
    if new_head is not None:
        disc, why["disc"] = _disc(new_head, refill.stored, items)
    return backfill_orders.Items(
        ids=items.ids,
        labels=items.labels,
        seed=params["seed"],
        priority=_priority(update, inputs, last - 1),
        logits=None if new_head is None else apply(_Logits(new_head), refill.stored),
        old_logits=None if old_head is None else apply(_Logits(old_head), refill.old),
        l2=_true_distance(params, refill, new_head),
        disc=disc,
        why=why,
    )


def _true_distance(
    params: Mapping[str, Any], refill: Refill, new_head: Head | None
) -> NDArray[np.float64]:
    """How far each item's stored vector lies from its new one."""
    # As maps are fitted: a softmax classifier reads the lengths of vectors.
    lengths = new_head is not None and not new_head.normalised
    unit = params["distance"] == "cosine" and not lengths
    return backfill_orders.squared_distance(refill.stored, refill.view, unit=unit)


def priority(
    params: Mapping[str, Any], inputs: Mapping[str, Path]
) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
    """The last update's own priority of all items, and the distances that it guesses.

    Returns:
        ``None`` where the method gives no priority, or old and new vectors cannot be compared.
    """
    last = sum(role.startswith("vectors") for role in inputs) - 1
    update = inputs.get(f"update{last}")
    own = _priority(update, inputs, last - 1)
    if own is None:
        return None
    refill = last_update(inputs)
    if refill.view.shape[1] != refill.stored.shape[1]:
        return None
    return own, _true_distance(params, refill, _new_head(inputs, update, refill)[0])


def _priority(
    update: Path | None, inputs: Mapping[str, Path], generation: int
) -> NDArray[np.float32] | None:
    if update is None or not has(update, "priority"):
        return None
    stored = load_stored(inputs, generation)
    made: NDArray[np.float32] = apply_part(update, "priority", *stored)
    if made.shape != (len(stored[0]),) or not np.isfinite(made).all():
        raise BenchError(
            f"priority: expected a finite number for each of {len(stored[0])} items, "
            f"got shape {made.shape}" + ("" if np.isfinite(made).all() else " with NaN or infinity")
        )
    return made


def _new_head(
    inputs: Mapping[str, Path], update: Path | None, refill: Refill
) -> tuple[Head | None, str]:
    """The new classifier, where it may read what is stored."""
    head = _head(inputs.get("head_new"))
    if head is None:
        return None, "the method leaves no new classifier"
    if has(update, "query_view"):
        return None, "queries go to the old space, which the new classifier does not know"
    if head.dim != refill.stored.shape[1]:
        return None, "the new classifier reads vectors of another size than the stored ones"
    return head, ""


def _disc(
    head: Head, stored: NDArray[np.float32], items: Evaluation
) -> tuple[NDArray[np.float32] | None, str]:
    """The new classifier's loss of each item, if it knows the classes of all."""
    classes = head.classes.numpy()
    by_class = np.argsort(classes)
    place = np.searchsorted(classes, items.labels, sorter=by_class)
    rows = by_class[np.minimum(place, len(classes) - 1)]
    known = int((classes[rows] == items.labels).sum())
    if known < len(rows):
        return None, f"the new classifier knows the classes of {known} of {len(rows)} items"
    made: NDArray[np.float32] = apply(_Losses(head), stored, rows)
    return made, ""


class _Logits(Portable):
    """A classifier's logits without margin, row by row."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, vectors: Tensor) -> Tensor:
        """``[n, d]`` -> ``[n, classes]``."""
        return self.head.logits(vectors)


class _Losses(Portable):
    """A classifier's training loss, row by row."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, vectors: Tensor, rows: Tensor) -> Tensor:
        """``[n, d]``, ``[n]`` -> ``[n]``."""
        return self.head.losses(vectors, rows.to(torch.int64))


def _head(folder: Path | None) -> Head | None:
    if folder is None or not (folder / HEAD).exists():
        return None
    return load_module(folder / HEAD)  # type: ignore[return-value]


def _rounded(value: Any) -> Any:
    """Lists of fractions at the precision of curves; single numbers as they are."""
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [round(v, _DIGITS) if isinstance(v, float) else _rounded(v) for v in value]
    return value
