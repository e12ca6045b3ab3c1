"""A partly backfilled gallery, from the outputs of stages: its embeddings, orders and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from benchmark.config import registry
from benchmark.contract import Head, Portable
from benchmark.contract.arrays import apply, apply_part
from benchmark.data.base import Evaluation
from benchmark.errors import BenchError
from benchmark.harness.artifacts import HEAD, Inputs, load_stored, n_generations
from benchmark.harness.evaluation.cases import convert, has_part, view
from benchmark.metrics import backfill_orders
from benchmark.models.module import load_module
from benchmark.tasks.base import BackfillState

_DIGITS = 4
"""Curves are for plots; areas keep their precision."""

Floats = NDArray[np.float32]


class LastUpdate(NamedTuple):
    """The last update of a chain.

    Attributes:
        folder: Its output; ``None`` where there is no update.
        generation: The generation that is replaced.
        state: Embeddings of all items around it.
    """

    folder: Path | None
    generation: int
    state: BackfillState


def last_update(inputs: Inputs) -> LastUpdate:
    """Embeddings of all items around the last update."""
    last = n_generations(inputs) - 1
    folder = inputs.get(f"update{last}")
    old, new = load_stored(inputs, last - 1), load_stored(inputs, last)[0]
    state = BackfillState(old[0], convert(old, folder)[0], view(new, folder), new)
    return LastUpdate(folder, last - 1, state)


def evaluate_backfilling(
    params: Mapping[str, Any], inputs: Inputs, items: Evaluation
) -> dict[str, Any]:
    """Scores along the backfilling of the gallery at the last update.

    Args:
        params: ``generations``, ``orders``, ``seed``, ``distance``, ``fpir``.
        inputs: As for the cases, and ``head_new`` and, where it is kept, ``head_old``: folders
            of the models whose classifiers orders may use.
        items: Queries and gallery.

    Returns:
        What the task ``backfilling`` gives, the generations' names, and ``omitted``: order ->
        why it is not possible; a ``reason`` alone where nothing can be compared.
    """
    update = last_update(inputs)
    names = dict(zip(("old", "new"), params["generations"][-2:], strict=True))
    reason = _incomparable(update.state, params["distance"])
    if reason is not None:
        return {**names, "reason": reason}
    known = known_items(params, inputs, items, update)
    orders, omitted = backfill_orders.make_orders(params["orders"], known)
    curves = registry.task("backfilling").evaluate(update.state, orders, items, params)
    return {**names, **_rounded(curves), "omitted": omitted}


def _incomparable(state: BackfillState, distance: str) -> str | None:
    query, stored, new = state.view.shape[1], state.stored.shape[1], state.new.shape[1]
    if query != stored:
        return f"queries of {query} dimensions cannot rank a gallery of {stored}"
    if distance == "l2" and stored != new:
        return f"l2 distances in {stored} and {new} dimensions cannot be ranked together"
    return None


def known_items(
    params: Mapping[str, Any], inputs: Inputs, items: Evaluation, update: LastUpdate
) -> backfill_orders.Items:
    """What orders may depend on."""
    state, why = update.state, {"priority": "the method gives no priority"}
    new_head, why["logits"] = _new_head(inputs, update)
    old_head = _head(inputs.get("head_old"))
    why["old_logits"] = "the old classifier is not kept"
    if old_head is not None and old_head.dim != state.old.shape[1]:
        old_head, why["old_logits"] = None, "the old classifier reads vectors of another size"
    losses, why["disc"] = None, why["logits"]
    if new_head is not None:
        losses, why["disc"] = _losses(new_head, state.stored, items)
    return backfill_orders.Items(
        ids=items.ids,
        labels=items.labels,
        seed=params["seed"],
        priority=_priority(update, inputs),
        logits=None if new_head is None else apply(_Function(new_head.logits), state.stored),
        old_logits=None if old_head is None else apply(_Function(old_head.logits), state.old),
        l2=_true_distance(params, state, new_head),
        disc=losses,
        why=why,
    )


def priority(
    params: Mapping[str, Any], inputs: Inputs
) -> tuple[Floats, NDArray[np.float64]] | None:
    """The last update's own priority of all items, and the distances that it predicts.

    Returns:
        ``None`` where the method gives no priority, or old and new vectors cannot be compared.
    """
    update = last_update(inputs)
    scores = _priority(update, inputs)
    if scores is None or update.state.view.shape[1] != update.state.stored.shape[1]:
        return None
    return scores, _true_distance(params, update.state, _new_head(inputs, update)[0])


def _true_distance(
    params: Mapping[str, Any], state: BackfillState, new_head: Head | None
) -> NDArray[np.float64]:
    """How far each item's stored vector lies from its new one."""
    # As maps are fitted: a softmax classifier reads the lengths of vectors.
    lengths = new_head is not None and not new_head.normalised
    unit = params["distance"] == "cosine" and not lengths
    return backfill_orders.squared_distance(state.stored, state.view, unit=unit)


def _priority(update: LastUpdate, inputs: Inputs) -> Floats | None:
    if update.folder is None or not has_part(update.folder, "priority"):
        return None
    stored = load_stored(inputs, update.generation)
    scores: Floats = apply_part(update.folder, "priority", *stored)
    if scores.shape != (len(stored[0]),) or not np.isfinite(scores).all():
        raise BenchError(
            f"priority: expected a finite number for each of {len(stored[0])} items, got shape "
            f"{scores.shape}" + ("" if np.isfinite(scores).all() else " with NaN or infinity")
        )
    return scores


def _head(folder: Path | None) -> Head | None:
    if folder is None or not (folder / HEAD).exists():
        return None
    return load_module(folder / HEAD).eval()  # type: ignore[return-value]


def _new_head(inputs: Inputs, update: LastUpdate) -> tuple[Head | None, str]:
    """The new classifier where it may read the gallery, else the reason."""
    head = _head(inputs.get("head_new"))
    if head is None:
        return None, "the method leaves no new classifier"
    if has_part(update.folder, "query_view"):
        return None, "queries go to the old space, which the new classifier does not know"
    if head.dim != update.state.stored.shape[1]:
        return None, "the new classifier reads vectors of another size than the stored ones"
    return head, ""


def _losses(head: Head, stored: Floats, items: Evaluation) -> tuple[Floats | None, str]:
    """The new classifier's loss of each item if it knows the classes of all, else the reason."""
    classes = head.classes.numpy()
    by_class = np.argsort(classes)
    place = np.searchsorted(classes, items.labels, sorter=by_class)
    rows = by_class[np.minimum(place, len(classes) - 1)]
    known = int((classes[rows] == items.labels).sum())
    if known < len(rows):
        return None, f"the new classifier knows the classes of {known} of {len(rows)} items"
    return apply(_Function(head.losses), stored, rows), ""


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
