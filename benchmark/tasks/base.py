"""The base of tasks: embeddings in, scores out. Not a task itself."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.declarations import TaskDeclaration
from benchmark.data.base import Evaluation
from benchmark.errors import RefusedError
from benchmark.metrics.catalog import rate
from benchmark.metrics.intervals import Span, drawn_spread, mean_interval, mean_spread
from benchmark.metrics.retrieval import average_precision, cmc
from benchmark.metrics.templates import templates

if TYPE_CHECKING:  # numba takes a third of the time that an answer from records has
    from benchmark.ranking.ranks import Ranking
    from benchmark.ranking.two_lists import Merging

Embeddings = NDArray[np.float32]
Ints = NDArray[np.int64]
Options = Mapping[str, Any]
"""``distance``, ``far`` and ``fpir`` of the track; ``tasks`` of the protocol."""
CLASSES, IDENTITIES = "classes", "identities"
PEOPLE = "identities, impostors among them"
"""Units of an interval, drawn with all their queries or pairs. With ``PEOPLE`` the threshold is
found anew in each draw."""


@dataclass(frozen=True)
class TaskResult:
    """Scores of one case, by metric; intervals are of 95 %, None where too little is known.

    ``over`` says what an interval is over; ``per_query`` has one value a query, for paired
    comparisons, ``identities`` the class or identity of each of these queries, ``draws`` the scores
    in draws of identities where a threshold is found anew in each (None: too few impostors decide
    it), and ``counts`` numbers of queries, items and pairs by name.
    """

    scores: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Span | None] = field(default_factory=dict)
    over: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    per_query: dict[str, NDArray[Any]] = field(default_factory=dict)
    identities: dict[str, NDArray[Any]] = field(default_factory=dict)
    draws: dict[str, NDArray[np.float64] | None] = field(default_factory=dict)

    def add(
        self, name: str, values: NDArray[Any], identity: Ints, over: str,
        score: float | None = None,
    ) -> None:  # fmt: skip
        """Add a score that is the mean of one value a query, ``[n]``.

        The interval is over ``identity``, ``[n]``, the queries' classes or identities. ``score`` is
        the mean, where it is known with less rounding.
        """
        self._keep(name, values, identity, over, score)
        self.intervals[name] = mean_interval(values, identity)

    def add_at_threshold(
        self, name: str, values: NDArray[Any], identity: Ints,
        draws: NDArray[np.float64] | None, n_people: int, score: float | None = None,
    ) -> None:  # fmt: skip
        """Add the mean of values at a threshold that impostors decide.

        ``draws`` are of ``threshold_draws``, of ``n_people`` identities; ``score`` is as of
        :meth:`add`.
        """
        self._keep(name, values, identity, PEOPLE, score)
        self.draws[name] = draws
        self.intervals[name] = None
        if draws is not None:
            kept = mean_spread(values, identity)
            spread = drawn_spread(self.scores[name], draws, n_people, kept)
            self.intervals[name] = spread.interval()

    def _keep(
        self, name: str, values: NDArray[Any], identity: Ints, over: str, score: float | None
    ) -> None:
        self.scores[name], self.over[name] = mean(values) if score is None else score, over
        self.per_query[name], self.identities[name] = values, identity


@dataclass(frozen=True)
class SecondList:
    """Another list of the same items, and how it becomes one with a case's own list."""

    query: Embeddings  # of all items by the query model, [n, e]
    gallery: Embeddings  # of all items as the second gallery has them, [n, e]
    merge: "Merging"


@dataclass(frozen=True)
class Task(TaskDeclaration):
    """Base of a task that evaluates case by case; a file of ``benchmark/tasks`` holds one."""

    @abstractmethod
    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """Score one case.

        Args:
            query: Embeddings of all items by the query model, ``[n, d]``.
            gallery: Embeddings of all items as the gallery has them, ``[n, d]``.
            items: Which of them are queries and gallery, their classes and templates.
            options: As of the evaluation.
        """


@dataclass(frozen=True)
class RankingTask(Task):
    """Base of a task that ranks items, by one list or by two.

    A merged list is an order: what it is sorted by has no threshold that queries could share.
    """

    @abstractmethod
    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options,
        second: SecondList | None = None,
    ) -> TaskResult:  # fmt: skip
        """Score one case, as :meth:`Task.evaluate`; ``second`` is ranked along."""


@dataclass(frozen=True)
class BackfillState:
    """Embeddings of all items around an update, for a gallery that is backfilled item by item."""

    old: Embeddings  # by the old model, as stored before the update, [n, d_old]
    stored: Embeddings  # the same after the method's conversion: what an unfilled item has, [n, d]
    view: Embeddings  # new queries in the space of the unfilled gallery, [n, d]
    new: Embeddings  # by the new model, [n, d_new]: queries, and what a filled item has
    merge: "Merging | None" = None  # of both lists; None: scores are compared as they are


@dataclass(frozen=True)
class GalleryTask(TaskDeclaration):
    """Base of a task that evaluates partly backfilled galleries, as ``Backfilling`` does."""


def mean(values: NDArray[Any]) -> float:
    """Mean in float64."""
    return float(np.mean(values, dtype=np.float64))


def rank_items(
    query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options,
    second: SecondList | None = None,
) -> "Ranking":  # fmt: skip
    """Rank the gallery for every query; an item never finds itself."""
    q, g = items.query, items.gallery
    rules = {"query_ids": items.ids[q], "gallery_ids": items.ids[g]}
    return rank_lists(query, gallery, items, second, distance=options["distance"], **rules)


def rank_lists(
    query: Embeddings, gallery: Embeddings, items: Evaluation, second: SecondList | None,
    **options: Any,
) -> "Ranking":  # fmt: skip
    """Rank the gallery for every query, by one list or by two."""
    from benchmark.ranking import two_lists
    from benchmark.ranking.spread import rank_anywhere

    q, g = items.query, items.gallery
    labels = items.labels[q], items.labels[g]
    if second is None:
        return rank_anywhere(query[q], gallery[g], *labels, **options)
    sides = (query[q], gallery[g]), (second.query[q], second.gallery[g])
    return two_lists.rank(*sides, labels, second.merge, **options)


def ranking_result(
    ranking: "Ranking", identity: Ints, n_gallery: int, cut_offs: Sequence[int] = (1, 5),
    over: str = CLASSES,
) -> TaskResult:  # fmt: skip
    """CMC at some cut-offs, mAP and counts; ``identity`` is the class of each query, ``[n]``.

    Raises:
        RefusedError: If no query has a match.
    """
    if not ranking.answered.any():
        raise RefusedError(
            f"queries: expected a match for one at least, got none for any of {len(identity)}: an "
            "item of its class that is not the query itself, nor left out, as by its camera"
        )
    result = TaskResult()
    identity = identity[ranking.answered]
    for k in cut_offs:
        result.add(f"cmc_at_{k}", cmc(ranking, k), identity, over)
    result.add("map", average_precision(ranking), identity, over)
    result.counts.update(
        n_query=len(ranking.n_positives), n_gallery=n_gallery,
        n_query_without_match=ranking.n_excluded,
    )  # fmt: skip
    return result


def measurable(targets: Sequence[float], n: float) -> list[float]:
    """Error rates that ``n`` trials can measure: those at which at least one may be an error."""
    return [target for target in targets if target * n >= 1]


def key(prefix: str, target: float) -> str:
    """``tar_at_far_1e-4``: the cut-off last, as the catalogue of metrics writes it.

    Example:
        >>> key("tar_at_far", 1e-4), key("tpir_at_fpir", 0.02)
        ('tar_at_far_1e-4', 'tpir_at_fpir_2e-2')
    """
    return f"{prefix}_{rate(target)}"


def template_vectors(
    vectors: NDArray[Any], items: Evaluation, chosen: Ints
) -> tuple[Embeddings, Ints]:
    """Vectors and subjects of some templates, in the order of ``chosen``.

    An item counts as much as it shows of a face, where the dataset says how much.
    """
    rows = np.flatnonzero(np.isin(items.template, chosen))
    weights = None if items.weight is None else items.weight[rows]
    ids, pooled = templates(vectors[rows], items.template[rows], items.media[rows], weights=weights)
    _, first = np.unique(items.template[rows], return_index=True)
    place = np.searchsorted(ids, chosen)
    return pooled[place], items.labels[rows[first]][place]
