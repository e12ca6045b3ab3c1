"""Orders in which a gallery is backfilled: pure functions on plain arrays, for any method.

An order is a permutation of the stored items, the first one being recomputed first. Larger scores
come first and ties go by item id, so no order depends on how the items lie in memory. Orders by
losses of new vectors are oracles: they need what backfilling is to give. A ValueError names an
argument whose length differs or which holds NaN, an id that comes twice, and an unknown order.

Sources: FastFill section 4.2 (sigma, and the oracle order by the true loss) and appendix C.3
(entropy, margin and least confidence after RACT, by a classifier's outputs for stored vectors,
table 7); BCT appendix B (class by class: a gallery backfilled by ever more classes);
λ-orthogonality (distance to the mean of an item's class).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmark.ranking import arrays
from benchmark.ranking.arrays import Ints, Values


def random(ids: Any, seed: int) -> Ints:
    """A random order of unique ``ids``; the same seed gives the same items, however they lie.

    Example:
        >>> ids = np.array([30, 10, 20])
        >>> ids[random(ids, 0)].tolist() == ids[::-1][random(ids[::-1], 0)].tolist()
        True
    """
    by_id = _by_id(ids)
    return by_id[np.random.default_rng(seed).permutation(len(by_id))]


def by_score(score: Any, ids: Any) -> Ints:
    """Largest score first, ties by id; a method's own priority (FastFill's sigma), say.

    Example:
        >>> by_score(np.array([0.5, 0.9, 0.5]), ids=np.array([7, 3, 1]))
        array([1, 2, 0])
    """
    values = arrays.scores("score", score)
    names = arrays.one_per_row("ids", ids, len(values))
    _by_id(names)
    return np.lexsort((names, -values)).astype(np.int64)


def class_by_class(labels: Any, ids: Any, seed: int) -> Ints:
    """Classes in a random order, their items by id; labels are integers or strings, ids unique."""
    by_id = _by_id(ids)
    names = arrays.one_per_row("labels", labels, len(by_id))[by_id]
    classes, inverse = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng([seed, 1]).permutation(len(classes))
    return by_id[np.argsort(np.argsort(drawn)[inverse], kind="stable")]


def entropy(logits: Any) -> Values:
    """Uncertainty of a classifier: the entropy of its probabilities, in nats, ``[n]``.

    Logits for the stored vectors are ``[n, classes]``, with at least two classes.

    Example:
        >>> entropy(np.array([[0.0, 0.0], [50.0, 0.0]])).round(3).tolist()
        [0.693, 0.0]
    """
    logs = _log_probabilities(logits)
    return np.asarray(-(np.exp(logs) * logs).sum(1))


def margin(logits: Any) -> Values:
    """Uncertainty of a classifier: minus the gap of its two largest probabilities, ``[n]``.

    Example:
        >>> margin(np.log([[0.5, 0.3, 0.2], [0.9, 0.1, 1e-9]])).round(3).tolist()
        [-0.2, -0.8]
    """
    logs = np.sort(_log_probabilities(logits), axis=1)
    return np.asarray(np.exp(logs[:, -2]) - np.exp(logs[:, -1]))


def least_confidence(logits: Any) -> Values:
    """Uncertainty of a classifier: minus the logarithm of its largest probability, ``[n]``.

    The order is that of ``1 - p``, but near-certain items stay apart.

    Example:
        >>> np.exp(-least_confidence(np.log([[0.5, 0.3, 0.2]]))).round(3).tolist()
        [0.5]
    """
    return np.asarray(-_log_probabilities(logits).max(1))


def squared_distance(converted: Any, new: Any, *, unit: bool = False) -> Values:
    """The alignment loss of each item, FastFill's L_l2: an oracle order's score, ``[n]``.

    It compares stored vectors as the update leaves them, ``[n, d]``, with the same items' vectors
    by the new model, ``[n, d]``; with ``unit`` their directions only.

    Example:
        >>> squared_distance(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]])).tolist()
        [25.0]
    """
    left = arrays.vectors("converted", converted).astype(np.float64)
    right = arrays.vectors("new", new, dim=left.shape[1]).astype(np.float64)
    if len(left) != len(right):
        raise ValueError(f"new: expected {len(left)} rows as converted, got {len(right)}")
    if unit:
        for x in (left, right):
            length = np.linalg.norm(x, axis=1, keepdims=True)
            np.divide(x, np.where(length > 0, length, 1.0), out=x)
    return np.asarray(((left - right) ** 2).sum(1))


def class_distance(converted: Any, labels: Any, gallery: Any = None) -> Values:
    """Distance of each item from the mean of its class in the gallery, ``[n]``.

    Of stored vectors as the update leaves them, ``[n, d]``, and their classes, integers or strings;
    ``gallery`` are the rows that are stored, by default all. An item whose class has no row there
    has the distance 0.

    Source:
        Ricci et al., λ-Orthogonality Regularization (2025): the order of partial backfilling.

    Example:
        >>> class_distance(np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]]), ["a", "a", "b"]).tolist()
        [1.0, 1.0, 0.0]
        >>> class_distance(np.array([[0.0], [2.0], [9.0]]), ["a", "a", "a"], [0, 1]).tolist()
        [1.0, 1.0, 8.0]
    """
    rows = arrays.vectors("converted", converted).astype(np.float64)
    names = arrays.one_per_row("labels", labels, len(rows))
    classes, inverse = np.unique(names, return_inverse=True)
    stored = np.arange(len(rows)) if gallery is None else np.asarray(gallery)
    sums = np.zeros((len(classes), rows.shape[1]))
    np.add.at(sums, inverse[stored], rows[stored])
    counts = np.bincount(inverse[stored], minlength=len(classes))
    distances = np.linalg.norm(rows - (sums / np.maximum(counts, 1)[:, None])[inverse], axis=1)
    distances[counts[inverse] == 0] = 0.0
    # The last digits depend on how items lie; the two items of a class are equally far.
    return np.asarray(distances.astype(np.float32).astype(np.float64))


@dataclass(frozen=True)
class Items:
    """Inputs that orders may depend on, a row an item; None is not known. Item ids are unique.

    Attributes:
        labels: Class of each item, as the gallery has it.
        priority: The method's own, ``[n]``.
        logits: The new classifier's, for the stored vectors after the method's conversion.
        old_logits: The old classifier's, for the old model's vectors as they are stored.
        l2: Squared distance of converted and new vector, ``[n]``; for oracles only.
        disc: Loss of the new classifier on the converted vector, ``[n]``; its labels are those of
            training classes.
        converted: Stored vectors as the update leaves them, ``[n, d]``.
        gallery: Rows of the items that are stored; None where all are.
        why: Name of an attribute -> why it is ``None``.
    """

    ids: Any
    labels: Any
    seed: int = 0
    priority: Any = None
    logits: Any = None
    old_logits: Any = None
    l2: Any = None
    disc: Any = None
    converted: Any = None
    gallery: Any = None
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """An order that a protocol can name: rows, the first one to be filled first.

    It ``needs`` attributes of :class:`Items` to be known. An oracle uses what a deployment has not:
    the new vector, or the item's true class with which to read the new classifier's outputs.
    """

    needs: tuple[str, ...]
    make: Callable[[Items], Ints]
    oracle: bool = False


def _scored(score: Callable[..., Any], *needs: str, oracle: bool = False) -> Order:
    def make(items: Items) -> Ints:
        return by_score(score(*(getattr(items, need) for need in needs)), items.ids)

    return Order(needs, make, oracle)


def _by_class_distance(items: Items) -> Ints:
    return by_score(class_distance(items.converted, items.labels, items.gallery), items.ids)


ORDERS: Mapping[str, Order] = {
    "random": Order((), lambda items: random(items.ids, items.seed)),
    "priority": _scored(arrays.plain, "priority"),
    "entropy": _scored(entropy, "logits"),
    "margin": _scored(margin, "logits"),
    "least-confidence": _scored(least_confidence, "logits"),
    "entropy:old": _scored(entropy, "old_logits"),
    "margin:old": _scored(margin, "old_logits"),
    "least-confidence:old": _scored(least_confidence, "old_logits"),
    "class-by-class": Order((), lambda items: class_by_class(items.labels, items.ids, items.seed)),
    "class-distance": Order(("converted",), _by_class_distance),
    "true-l2": _scored(arrays.plain, "l2", oracle=True),
    "true-disc": _scored(arrays.plain, "disc", oracle=True),
    "true-l2+disc": _scored(np.add, "l2", "disc", oracle=True),
}
"""Names in reading order; ``:old`` reads the old classifier instead of the new one."""


def is_oracle(name: str) -> bool:
    """Tell whether an order needs what only backfilling gives; False if it is unknown."""
    return name in ORDERS and ORDERS[name].oracle


def make_orders(names: Sequence[str], items: Items) -> tuple[dict[str, Ints], dict[str, str]]:
    """Name in ``ORDERS`` -> rows, and for each order that is not possible the reason."""
    orders, left_out = {}, {}
    for name in names:
        if name not in ORDERS:
            raise ValueError(f"orders: expected some of {', '.join(ORDERS)}, got {name!r}")
        missing = [need for need in ORDERS[name].needs if getattr(items, need) is None]
        if missing:
            left_out[name] = items.why.get(missing[0], f"{missing[0]} is not known")
        else:
            orders[name] = ORDERS[name].make(items)
    return orders, left_out


def _by_id(ids: Any) -> Ints:
    names = arrays.one_per_row("ids", ids, len(ids))
    known, first = np.unique(names, return_index=True)
    if len(known) < len(names):
        raise ValueError(f"ids: expected {len(names)} different ones, got {len(known)}")
    return first.astype(np.int64)


def _log_probabilities(logits: Any) -> Values:
    from scipy.special import log_softmax

    table = arrays.plain(logits)
    if table.ndim != 2 or table.dtype.kind != "f" or table.shape[1] < 2:
        got = f"{table.dtype} {table.shape}"
        raise ValueError(f"logits: expected floats [n, classes >= 2], got {got}")
    arrays.finite("logits", table)
    return np.asarray(log_softmax(table.astype(np.float64), axis=1))
