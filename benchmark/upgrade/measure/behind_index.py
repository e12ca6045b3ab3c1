"""Strategies behind an approximate index, as they are deployed, beside the exact answer.

The index of stored vectors serves every strategy that leaves them as they are. After a conversion
it is evaluated twice: with the old links or lists over the converted vectors, and built anew.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmark.metrics import relevance
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import difference, mean, measured
from benchmark.ranking.arrays import Ints, Values
from benchmark.upgrade.formats.rows import gather
from benchmark.upgrade.measure.evaluation import AGREEMENT, K, counted_ranks, ranks_here, scores_of
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import GalleryBlock
from benchmark.upgrade.read.request import REEMBED
from benchmark.upgrade.search.index import ApproximateIndex, Settings, build, gain_of_building
from benchmark.upgrade.search.lists import ResultList, search
from benchmark.upgrade.search.strategies import Strategy

MOST = 100_000
"""Items of the gallery that is indexed; of a larger one some are drawn."""
TOP = 100
"""Results that an index is asked for."""
AS_IT_IS, KEPT, ANEW = "as it is", "kept", "built anew"


@dataclass(frozen=True)
class Behind:
    """A strategy behind an index."""

    strategy: str
    index: str  # ``AS_IT_IS``, ``KEPT`` or ``ANEW``
    found: Estimate  # share of the ten nearest items that the index finds
    exact: Estimate  # the deciding metric without an index, in the same gallery
    score: Estimate  # the same behind the index
    lost: Estimate  # difference to the exact one, paired by query
    seconds: float  # that building took on this machine; 0 where nothing is built


@dataclass(frozen=True)
class BehindIndex:
    """All strategies of one result list behind an index."""

    settings: Settings
    items: int  # of the gallery that was indexed
    judged_pairs: int  # relevant ones that maps of the first fold have not seen
    shortened: int  # queries of whose results more than ``TOP`` items are left out
    asked: int  # results that the index was asked for, for scores: more where some are left out
    refitted: bool  # maps were fitted several times, and these are of the first fit
    lists: int | None  # that items are kept in; None of a graph
    probes: int | None  # lists that are searched
    rows: list[Behind]  # one for each strategy, two for each map of stored vectors
    # map -> part of the found share that building anew would give back, and whether it is
    # ``needed``, as that may be more than a hundredth
    build_anew: dict[str, dict[str, Any]]
    left_out: list[str]  # strategies that cannot be evaluated so


def behind_index(study: Study, settings: Settings) -> BehindIndex:
    """Evaluate the strategies of one result list behind an index of the stored vectors.

    Raises:
        BenchError: If faiss is not installed.
    """
    plan, distance = study.first.plan, study.inputs.distance
    block, has_new = _indexed(study)
    used = [s for s in plan.strategies if s.merge is None and (has_new or not s.embeds_gallery)]
    run = _Comparison(study, block, {s.name: plan.lists[s.uses[0]] for s in used})
    stored = build(block.old, distance, settings)
    rows: list[Behind] = []
    anew_by_map: dict[str, dict[str, Any]] = {}
    for each in used:
        items = plan.lists[each.uses[0]].items(block)
        if items.shape == block.old.shape and np.may_share_memory(items, block.old):
            rows.append(run(each, stored, AS_IT_IS, 0.0))
            continue
        if each.fitted is not None:
            rows.append(run(each, stored.rewritten(items), KEPT, 0.0))
        anew = build(items, distance, settings)
        rows.append(run(each, anew, ANEW, anew.seconds))
        if each.fitted is not None:
            shares = run.shares[each.name, ANEW], run.shares[each.name, KEPT]
            gained, needed = gain_of_building(*shares)
            anew_by_map[each.name] = {"needed": needed, **asdict(gained)}
    left_out = [s.name for s in plan.strategies if s not in used]
    pairs = int(study.first.relevant.counted.sum())
    short = int((run.n_left_out > TOP).sum())
    n = len(block.rows)
    lists = settings.lists_of(n) if settings.kind == "ivf" else None
    probes = None if lists is None else settings.probes_of(lists)
    return BehindIndex(
        settings, n, pairs, short, run.depth, bool(study.refits), lists, probes, rows,
        anew_by_map, left_out,
    )  # fmt: skip


def _indexed(study: Study) -> tuple[GalleryBlock, bool]:
    """The items that are indexed, and whether all of them have new vectors."""
    gallery, sample = study.inputs.gallery, study.first.sample
    if study.metric == AGREEMENT and not gallery.complete:
        held = sample.held
        return GalleryBlock.whole(sample.rows[held], sample.old[held], sample.new[held]), True
    rows, relevant = np.arange(gallery.rows), study.first.relevant
    if gallery.rows > MOST:
        drawn = np.random.default_rng(0).choice(gallery.rows, MOST, replace=False)
        rows = np.union1d(drawn, relevant.counted_pairs[1])
    old = gather(gallery.stored, rows)
    if gallery.complete:
        return GalleryBlock.whole(rows, old, gallery.new.take(rows)), True
    none = np.empty(0, np.int64), np.empty((0, gallery.new.dim), np.float32)
    return GalleryBlock(rows, old, *none), False


class _Comparison:
    """Scores of strategies with exact results, and with those of an index."""

    def __init__(self, study: Study, block: GalleryBlock, lists: Mapping[str, ResultList]) -> None:
        self.study, self.block, self.lists = study, block, lists
        self.relevant, self.groups = study.first.relevant, study.sample_groups
        self.shares: dict[tuple[str, str], Values] = {}
        """Of a strategy and the state of its index: the found share of each query."""
        out = ~self.relevant.counted & np.isin(self.relevant.row, block.rows)
        self.left_out = self._keys(self.relevant.query[out], self.relevant.row[out])
        self.n_left_out = np.bincount(self.relevant.query[out], minlength=1)
        # An index that is asked for many more than a deployed one finds more of the nearest, too.
        more = min(int(self.n_left_out.max()), TOP)
        self.depth = min(TOP + more, len(block.rows))
        wanted = {name: replace(each, top=self.depth) for name, each in lists.items()}
        self.exact = search(
            lambda: iter([block]), self.relevant.without_others(), study.first.sample.known,
            wanted, study.inputs.distance,
        )  # fmt: skip

    def __call__(
        self, strategy: Strategy, index: ApproximateIndex, state: str, seconds: float
    ) -> Behind:
        """Evaluate one."""
        name, groups = strategy.name, self.groups
        places = index.search(self.lists[name].queries, self.depth)
        rows = self._rows(places)
        exact = self.exact[name].rows
        k = min(K, len(self.block.rows))
        asked = rows  # as a deployment asks: for more it would find more of the nearest
        if self.depth > TOP:
            asked = self._rows(index.search(self.lists[name].queries, TOP))
        share = relevance.agreement(asked[:, :K], exact[:, :K], k)
        self.shares[name, state] = share
        best, reached = (measured(self._scores(each)) for each in (exact, rows))
        return Behind(
            name, state, mean(measured(share)), mean(best, groups), mean(reached, groups),
            difference(best, reached, groups), seconds,
        )  # fmt: skip

    def _rows(self, places: Ints) -> Ints:
        return np.where(places < 0, -1, self.block.rows[places])

    def _keys(self, queries: Ints, rows: Ints) -> Ints:
        """A number for each pair of a query and a row of the gallery."""
        return np.asarray(queries * self.study.inputs.gallery.rows + rows)

    def _counting(self, rows: Ints) -> Ints:
        """The first results without the items that are left out, ``[n, TOP]``; -1 where fewer."""
        keys = self._keys(np.arange(len(rows))[:, None], rows)
        kept = (rows >= 0) & ~np.isin(keys, self.left_out)
        found = np.full((len(rows), TOP), -1)
        for q, (mine, counts) in enumerate(zip(rows, kept, strict=True)):
            first = mine[counts][:TOP]
            found[q, : len(first)] = first
        return found

    def _scores(self, rows: Ints) -> Values:
        """The deciding metric of the first results, by query."""
        rows = self._counting(rows)
        if self.study.metric == AGREEMENT:
            expected = self._counting(self.exact[REEMBED].rows)[:, :K]
            k = ranks_here(K, len(self.block.rows) / self.study.inputs.gallery.rows)
            return np.asarray(relevance.agreement(rows[:, :K], expected, k))
        in_order = np.broadcast_to(-np.arange(rows.shape[1]), rows.shape)
        ranks = counted_ranks(in_order, rows, self.relevant)
        return scores_of(ranks, self.relevant)[self.study.metric]
