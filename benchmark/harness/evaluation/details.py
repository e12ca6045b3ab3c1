"""Details of an evaluation: results by query, and what pages draw."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.harness.artifacts import load_stored
from benchmark.harness.evaluation.cases import Case
from benchmark.harness.evaluation.neighbours import NearestItems
from benchmark.harness.evaluation.partial_backfill import LastUpdate
from benchmark.harness.work import EvaluationWork
from benchmark.metrics.backfill_orders import by_score
from benchmark.metrics.similarity import unit
from benchmark.metrics.statistics import kendall_tau
from benchmark.records.details import Details, Ordering, Picture, QueryResults, main_cases
from benchmark.records.details_writer import pack
from benchmark.tasks.base import TaskResult

_NEAREST = 3  # classes beside the chosen one, as in MixBCT appendix B.2
_ITEMS = 48  # of a class
_POINTS = 400  # of an ordering
_PERPLEXITY = 30.0  # the default of scikit-learn, less where there are few points
_BLOCK = 1024

Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]


class DetailsCollector:
    """Gathers, case by case, what a details file of an evaluation holds."""

    def __init__(
        self, work: EvaluationWork[Path], items: Evaluation, class_names: Sequence[str]
    ) -> None:
        self.work, self.items = work, items
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
        ordering = compare_priority(self.work, self.items)
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


def compare_priority(work: EvaluationWork[Path], items: Evaluation) -> Ordering | None:
    """The last update's priority against the true distances; ``None`` where one has no meaning."""
    update, rows = LastUpdate(work), items.gallery
    priority, state = update.priority(), update.state
    if priority is None or state.view.shape[1] != state.stored.shape[1] or len(rows) < 2:
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
