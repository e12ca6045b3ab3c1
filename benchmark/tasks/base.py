"""What a task is asked and what it answers. Not a task itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import rate

if TYPE_CHECKING:
    from benchmark.data.base import Evaluation

Options = Mapping[str, Any]
"""``distance``, ``far`` and ``fpir`` of the track."""


@dataclass(frozen=True)
class TaskResult:
    """Scores of one case.

    Attributes:
        scores: Metric -> value.
        intervals: Metric -> (low, high), 95 %.
        counts: Name -> number of queries, items, pairs.
        per_query: Name -> one value a query, for paired comparisons.
        identities: Name -> which identity each of these queries belongs to.
    """

    scores: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    per_query: dict[str, NDArray[Any]] = field(default_factory=dict)
    identities: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        values: NDArray[Any],
        groups: NDArray[Any] | None = None,
        identity: NDArray[Any] | None = None,
    ) -> None:
        """A score that is the mean of one value a query.

        Args:
            name: Metric.
            values: ``[n]``.
            groups: What the interval draws with replacement together (identities), ``[n]``; by
                default each query by itself.
            identity: Whom each query shows, ``[n]``, where that is not what the interval draws.
        """
        from benchmark.metrics.statistics import bootstrap

        self.scores[name] = float(np.mean(values, dtype=np.float64))
        low, high = bootstrap(values, groups=groups)
        self.intervals[name] = (float(low), float(high))
        self.per_query[name] = values
        who = groups if identity is None else identity
        self.identities[name] = np.arange(len(values)) if who is None else who


@dataclass(frozen=True)
class Refill:
    """Vectors of all items around an update, for a gallery that is refilled item by item.

    Attributes:
        old: By the old model, as stored before the update, ``[n, d_old]``.
        stored: The same after the method's conversion: what an item has until it is refilled.
        view: New queries as they ask among the stored ones, ``[n, d]`` as ``stored``.
        new: By the new model, ``[n, d_new]``: queries, and what a refilled item has.
    """

    old: NDArray[np.float32]
    stored: NDArray[np.float32]
    view: NDArray[np.float32]
    new: NDArray[np.float32]


def key(prefix: str, target: float) -> str:
    """``tar_at_far_1e-4``: the cut-off last, as the catalogue of metrics writes it.

    Example:
        >>> key("tar_at_far", 1e-4), key("tpir_at_fpir", 0.02)
        ('tar_at_far_1e-4', 'tpir_at_fpir_2e-2')
    """
    return f"{prefix}_{rate(target)}"


def template_vectors(
    vectors: NDArray[Any], items: Evaluation, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors and subjects of some templates, in the order of ``wanted``.

    An item counts as much as it shows of a face, where the dataset says how much.
    """
    from benchmark.metrics.templates import templates

    rows = np.flatnonzero(np.isin(items.template, wanted))
    weights = None if items.weight is None else items.weight[rows]
    ids, made = templates(vectors[rows], items.template[rows], items.media[rows], weights=weights)
    _, first = np.unique(items.template[rows], return_index=True)
    place = np.searchsorted(ids, wanted)
    return made[place], items.labels[rows[first]][place]
