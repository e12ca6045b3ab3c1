"""Strategies behind an approximate index, as they are deployed, beside the exact answer.

The index of stored vectors serves every strategy that leaves them as they are. After a conversion
it is judged twice: with the old links or lists over the converted vectors, and built anew.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmark.metrics import relevance
from benchmark.metrics.estimate import Estimate
from benchmark.ranking.arrays import Floats, Ints
from benchmark.ranking.engine import spans
from benchmark.upgrade.formats.rows import gather
from benchmark.upgrade.measure.evaluation import AGREEMENT, METRICS, K, Values
from benchmark.upgrade.measure.statistics import difference, mean, measured
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.gallery import Block
from benchmark.upgrade.search.index import ApproximateIndex, Blocks, Settings, build, needs_building
from benchmark.upgrade.search.lists import Found, ResultList, judged_of, search
from benchmark.upgrade.search.strategies import REEMBED, Strategy

MOST = 100_000
"""Items of the gallery that is indexed; of a larger one some are drawn."""
TOP = 100
"""Results that an index is asked for."""
_PAIRS = 1 << 16
AS_IT_IS, KEPT, ANEW = "as it is", "kept", "built anew"


@dataclass(frozen=True)
class Behind:
    """A strategy behind an index.

    Attributes:
        strategy: Its name.
        index: What is done to the index: nothing, links or lists kept, or built anew.
        found: Share of the ten nearest items that the index finds.
        exact: The deciding metric without an index, in the same gallery.
        score: The same behind the index.
        lost: How much lower it is, paired by query.
        seconds: That building took on this machine; 0 where nothing is built.
    """

    strategy: str
    index: str
    found: Estimate
    exact: Estimate
    score: Estimate
    lost: Estimate
    seconds: float


@dataclass(frozen=True)
class BehindIndex:
    """All strategies of one result list behind an index.

    Attributes:
        settings: Of the index.
        items: Of the gallery that was indexed.
        rows: One for each strategy, two for each map of stored vectors.
        build_anew: Map -> what building anew would give back of the found share, and whether that
            may be more than a hundredth.
        left_out: Strategies that cannot be judged so.
    """

    settings: Settings
    items: int
    rows: list[Behind]
    build_anew: dict[str, tuple[Estimate, bool]]
    left_out: list[str]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "settings": asdict(self.settings), "items": self.items,
            "rows": [asdict(each) for each in self.rows],
            "build_anew": {
                name: {"needed": needed, **gained.document()}
                for name, (gained, needed) in self.build_anew.items()
            },
            "left_out": self.left_out,
        }  # fmt: skip


def behind_index(study: Study, settings: Settings) -> BehindIndex:
    """Judge the strategies of one result list behind an index of the stored vectors.

    Raises:
        BenchError: If faiss is not installed.
    """
    block, has_new = _indexed(study)
    single = [s for s in study.plan.strategies if s.merge is None]
    judged = [s for s in single if has_new or not s.embeds_gallery]
    judge = _Judge(study, block, {s.name: study.plan.lists[s.uses[0]] for s in judged})
    stored = _build(block.old, study.distance, settings)
    rows: list[Behind] = []
    gained: dict[str, tuple[Estimate, bool]] = {}
    for each in judged:
        items = study.plan.lists[each.uses[0]].items(block)
        if items.shape == block.old.shape and np.may_share_memory(items, block.old):
            rows.append(judge(each, stored, AS_IT_IS, 0.0))
            continue
        if each.fitted is not None:
            kept = stored.rewritten(_passes(items), items.shape[1])
            rows.append(judge(each, kept, KEPT, 0.0))
            del kept  # three galleries at a time are enough
        anew = _build(items, study.distance, settings)
        rows.append(judge(each, anew, ANEW, anew.seconds))
        if each.fitted is not None:
            shares = judge.shares[each.name, ANEW], judge.shares[each.name, KEPT]
            gained[each.name] = difference(*map(measured, shares)), needs_building(*shares)
    left_out = [s.name for s in study.plan.strategies if s not in judged]
    return BehindIndex(settings, len(block.rows), rows, gained, left_out)


def _build(items: Floats, distance: str, settings: Settings) -> ApproximateIndex:
    return build(_passes(items), len(items), items.shape[1], distance, settings)


def _passes(items: Floats) -> Blocks:
    return lambda: [items]


def _indexed(study: Study) -> tuple[Block, bool]:
    """The items that are indexed, and whether all of them have new vectors."""
    gallery, sample = study.inputs.gallery, study.sample
    if study.metric == AGREEMENT and not gallery.complete:
        held = sample.held
        return Block.whole(sample.rows[held], sample.old[held], sample.new[held]), True
    rows = np.arange(gallery.rows)
    if gallery.rows > MOST:
        drawn = np.random.default_rng(0).choice(gallery.rows, MOST, replace=False)
        rows = np.union1d(drawn, study.on_sample.row[study.on_sample.judged])
    old = gather(gallery.stored, rows)
    if gallery.complete:
        return Block.whole(rows, old, gallery.new.take(rows)), True
    return Block(
        rows, old, np.empty(0, np.int64), np.empty((0, gallery.new.dim), np.float32)
    ), False


class _Judge:
    """What strategies reach with exact results, and with those of an index."""

    def __init__(self, study: Study, block: Block, lists: dict[str, ResultList]) -> None:
        self.study, self.block, self.lists = study, block, lists
        self.shares: dict[tuple[str, str], Values] = {}
        """Of a strategy and what is done to the index: the found share of each query."""
        wanted = {name: replace(each, top=TOP) for name, each in lists.items()}
        self.exact = search(
            self._blocks, study.on_sample, study.sample.known, wanted, study.distance
        )

    def _blocks(self) -> Iterator[Block]:
        yield self.block

    def __call__(
        self, strategy: Strategy, index: ApproximateIndex, state: str, seconds: float
    ) -> Behind:
        """Judge one."""
        name, groups = strategy.name, self.study.sample_groups
        rows = self._search(index, self.lists[name].queries)
        exact = self.exact[name]
        k = min(K, len(self.block.rows))
        share = relevance.agreement(rows[:, :K], exact.rows[:, :K], k)
        self.shares[name, state] = share
        best = measured(self._exact_scores(exact))
        reached = measured(self._scores(self._ranks(rows), rows))
        return Behind(
            name, state, mean(measured(share)), mean(best, groups), mean(reached, groups),
            difference(best, reached, groups), seconds,
        )  # fmt: skip

    def _search(self, index: ApproximateIndex, queries: Floats) -> Ints:
        """Rows of the gallery that an index finds, without those that are left out."""
        relevant = self.study.on_sample
        query, row = relevant.query[~relevant.judged], relevant.row[~relevant.judged]
        out = min(int(np.bincount(query, minlength=1).max()), TOP)
        places = index.search(queries, min(TOP + out, len(self.block.rows)))[0]
        rows = np.where(places < 0, -1, self.block.rows[places])
        left_out = {(int(q), int(r)) for q, r in zip(query, row, strict=True)}
        found = np.full((len(rows), TOP), -1)
        for q, mine in enumerate(rows):
            kept = [r for r in mine.tolist() if r >= 0 and (q, r) not in left_out][:TOP]
            found[q, : len(kept)] = kept
        return found

    def _ranks(self, rows: Ints) -> Ints:
        """The rank of each judged pair among the results; 0 where it is not found."""
        relevant = self.study.on_sample
        query, row = relevant.query[relevant.judged], relevant.row[relevant.judged]
        ranks = np.zeros(len(row), np.int64)
        for a, b in spans(len(row), _PAIRS):
            hits = rows[query[a:b]] == row[a:b, None]
            ranks[a:b] = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, 0)
        return ranks

    def _exact_scores(self, found: Found) -> Values:
        return self._scores(self._ranks(found.rows), found.rows)

    def _scores(self, ranks: Ints, rows: Ints) -> Values:
        """The deciding metric of the first results, by query."""
        if self.study.metric == AGREEMENT:
            expected = self.exact[REEMBED].rows[:, :K]
            k = min(K, len(self.block.rows))
            return np.asarray(relevance.agreement(rows[:, :K], expected, k))
        return METRICS[self.study.metric](judged_of(ranks, self.study.on_sample))
