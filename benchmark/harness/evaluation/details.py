"""Details of an evaluation: results by query, side-information, and what pages draw."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config import registry
from benchmark.data.base import Evaluation
from benchmark.harness.evaluation.cases import Case
from benchmark.harness.evaluation.partial_backfill import LastUpdate
from benchmark.harness.store import load_stored
from benchmark.harness.work import EvaluationWork
from benchmark.metrics.backfill_orders import by_score
from benchmark.metrics.similarity import linear_cka, unit
from benchmark.metrics.statistics import kendall_tau
from benchmark.records.details import (
    Details,
    Nearest,
    Ordering,
    Picture,
    QueryResults,
    kept_rows,
    main_cases,
)
from benchmark.records.slim import pack
from benchmark.tasks.base import TaskResult

_NEAREST = 3  # classes beside the chosen one, as in MixBCT appendix B.2
_ITEMS = 48  # of a class
_POINTS = 400  # of an ordering
_PERPLEXITY = 30.0  # the default of scikit-learn, less where there are few points
_BLOCK = 1024

Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]
_QUERIES = 128  # of which pages choose a dozen: fixed, broken and typical ones
_FOUND = 5  # of each query


class DetailsCollector:
    """Gathers, case by case, what a details file of an evaluation holds."""

    def __init__(
        self, work: EvaluationWork[Path], items: Evaluation, class_names: Sequence[str]
    ) -> None:
        self.work, self.items = work, items
        self.update = LastUpdate(work)
        self.class_names = class_names
        self.results: dict[tuple[str, str], QueryResults] = {}
        self.picture: Picture | None = None
        self.main = cross, new, old, _ = main_cases(work.generations)
        self.cross, by_item = cross, "retrieval" in work.tasks
        self.nearest = NearestItems(items, work.distance, (old, cross, new)) if by_item else None

    def add(self, case: Case, results: Sequence[TaskResult]) -> None:
        """Keep the results of a case by query; draw it if it is the cross-test."""
        for result in results:
            for name, values in result.per_query.items():
                rows, identity = np.arange(len(values)), result.identities[name]
                column = np.asarray(values, np.float64)
                self.results[case.name, name] = QueryResults(
                    column, identity, rows, len(rows), draws=result.draws.get(name)
                )
        if self.nearest is not None and not case.texts:
            self.nearest.add(case)
        if self.work.drawn and case.name == self.cross and not case.swapped:
            old, _ = load_stored(self.work, 0)
            self.picture = draw(case, old, self.items, self.class_names, self.work.distance)

    def pack(self) -> bytes:
        """The details file."""
        ordering = compare_priority(self.update, self.items)
        nearest = None if self.nearest is None else self.nearest.found()
        return pack(Details(self.results, self.picture, ordering, nearest), self.main)


def draw(
    case: Case, old: Vectors, items: Evaluation, class_names: Sequence[str], distance: str
) -> Picture | None:
    """t-SNE of the items of one class and its three nearest, old and new vectors of a cross-test.

    ``old``, the old model's embeddings of all items, choose the classes, so that all methods after
    one old model show the same. The class is the one whose nearest is as near as is usual, the
    median of all classes: neither the best nor the worst separated. With the distance ``cosine``
    only directions count. ``None`` if there are fewer than four items, or nothing differs.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    used = np.unique(np.concatenate([items.query, items.gallery]))
    # Sums would depend on the number of threads in their last bits, and the picture with them.
    with threadpool_limits(1):
        shown = _neighbours(unit(old[used], distance), items.labels[used])
        rows, label = _rows(items, used, shown)
        points = unit(np.concatenate([case.gallery[rows], case.query[rows]]), distance)
        if len(rows) < 4 or not points.std(axis=0).any():
            return None
        perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
        xy = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(points)
    xy = xy.astype(np.float64) - xy.min(axis=0)
    xy /= xy.max()
    names = tuple(class_names[k] for k in shown.tolist())
    return Picture(case.name, names, label, xy[: len(rows)], xy[len(rows) :])


def _neighbours(vectors: Vectors, labels: Ints) -> Ints:
    """The chosen class and its nearest ones, by the middles of the classes."""
    classes, member = np.unique(labels, return_inverse=True)
    middle = np.zeros((len(classes), vectors.shape[1]))
    np.add.at(middle, member, vectors)
    middle /= np.bincount(member)[:, None]
    blocks = np.split(np.arange(len(classes)), range(_BLOCK, len(classes), _BLOCK))
    nearest = np.concatenate([_apart(middle, rows).min(axis=1, initial=np.inf) for rows in blocks])
    chosen = np.argsort(nearest, kind="stable")[(len(classes) - 1) // 2]
    others = np.argsort(_apart(middle, np.array([chosen]))[0], kind="stable")
    return classes[[chosen, *others[: min(_NEAREST, len(classes) - 1)]]]


def _apart(middle: NDArray[np.float64], rows: Ints) -> NDArray[np.float64]:
    """Squared distances of some classes to all; infinite to itself."""
    squares = (middle**2).sum(axis=1)
    distances = squares[rows, None] + squares - 2.0 * middle[rows] @ middle.T
    distances[np.arange(len(rows)), rows] = np.inf
    return np.asarray(distances)


def _rows(items: Evaluation, used: Ints, shown: Ints) -> tuple[Ints, Ints]:
    """Items of the classes, those with the lowest ids, and the place of each one's class."""
    rows = []
    for label in shown:
        members = used[items.labels[used] == label]
        rows.append(members[np.argsort(items.ids[members], kind="stable")][:_ITEMS])
    return np.concatenate(rows), np.repeat(np.arange(len(rows)), list(map(len, rows)))


def compare_priority(update: LastUpdate, items: Evaluation) -> Ordering | None:
    """The update's priority against the true distances; ``None`` where one has no meaning."""
    priority, rows = update.priority, items.gallery
    if priority is None or len(rows) < 2:
        return None
    if update.state.view.shape[1] != update.state.stored.shape[1]:
        return None
    distance = update.true_distance()
    if distance is None:
        return None
    scores = (priority, distance)
    orders = (by_score(score[rows], items.ids[rows]) for score in scores)
    # Share of the items that come before each.
    predicted, true = (np.argsort(order) / (len(rows) - 1) for order in orders)
    some = np.sort(np.random.default_rng(0).permutation(len(rows))[:_POINTS])
    return Ordering(predicted[some], true[some], kendall_tau(predicted, true), len(rows))


def score_side_information(work: EvaluationWork[Path], items: Evaluation) -> dict[str, Any]:
    """Size, scores and CKA of the side-information of each generation; empty where none is used.

    Items are ranked as the evaluation's tasks say, if at all.

    Returns:
        ``side``: the kind and, by generation, numbers and bytes an item, its own scores
        (``side/side``) where items are ranked, and its linear CKA with the embedding on the
        gallery (FCT 5.3), which is ``None`` where one of the two is constant.
    """
    if work.side is None:
        return {}
    kind, bits = work.side["kind"], work.side["bits"]
    ranking = next((t for t in ("retrieval", "reidentification") if t in work.tasks), None)
    generations = {}
    for i, name in enumerate(work.generations):
        vectors, side = load_stored(work, i)
        if side is None:
            continue
        task = registry.task(ranking) if ranking else None
        stored = side[items.gallery], vectors[items.gallery]
        constant = any((x == x[:1]).all() for x in stored)
        dim = int(stored[0].shape[1])
        generations[name] = {
            "scores": task.evaluate(side, side, items, work.params()).scores if task else {},
            "cka": None if constant else linear_cka([stored]), "dim": dim, "bytes": bits * dim / 8,
        }  # fmt: skip
    return {"side": {"kind": kind, "generations": generations}}


class NearestItems:
    """Gathers the nearest items of the same queries, case by case."""

    def __init__(self, items: Evaluation, distance: str, cases: Sequence[str]) -> None:
        self.items, self.distance, self.cases = items, distance, cases
        self.queries = items.query[kept_rows(len(items.query), _QUERIES)]
        self._found: dict[str, Ints] = {}

    def add(self, case: Case) -> None:
        """Keep a case if it is one of those looked at; an item never finds itself."""
        if case.name not in self.cases or case.swapped:
            return
        items, gallery = self.items, self.items.gallery
        own = items.ids[self.queries][:, None] == items.ids[gallery]
        scores = self._scores(case.query, case.gallery)
        if case.second is not None:
            both = scores, self._scores(case.second.query, case.second.gallery)
            scores = case.second.merge.merge(*(np.where(own, np.nan, each) for each in both))
        scores[own] = -np.inf
        count = min(_FOUND, len(gallery) - 1)
        self._found[case.name] = gallery[np.argsort(-scores, axis=1, kind="stable")[:, :count]]

    def _scores(self, query: Vectors, gallery: Vectors) -> Vectors:
        vectors = query[self.queries], gallery[self.items.gallery]
        return _scores(*(unit(each, self.distance) for each in vectors))

    def found(self) -> Nearest | None:
        """Neighbours gathered; ``None`` without queries, or if there is nothing to find."""
        kept = {name: self._found[name] for name in self.cases if name in self._found}
        nearest = np.stack([*kept.values()]) if kept else np.empty((0, 0, 0), np.int64)
        if not nearest.size:
            return None
        labels = self.items.labels
        right = labels[nearest] == labels[self.queries][:, None]
        return Nearest(tuple(kept), self.queries, nearest, right)


@cache
def _libraries() -> Any:
    """The libraries of products: looking for them takes longer than many a product."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _scores(query: Vectors, gallery: Vectors) -> Vectors:
    """Nearness of each item to each query, ``[n_query, n_gallery]``: larger is nearer."""
    # Sums would depend on the number of threads in their last bits, and so would the order of ties.
    with _libraries().limit(limits=1):
        return 2 * query @ gallery.T - np.einsum("ij,ij->i", gallery, gallery)
