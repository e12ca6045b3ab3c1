"""Cells: a pair of embedders on a corpus, reports of ``bench upgrade`` beside the truth.

Queries are split into two halves, whole groups of them that share their relevant items. A report
sees new vectors of a random sample and of all items that are relevant to its half, as a user would
have them. The truth of the same strategies is measured in the whole gallery with all items embedded
by both models, on the report's own queries (``same``), with the maps of the report, and on the
other half, with the same maps where these are several, else with two that are fitted on the same
items but for either half of those that are relevant to it: no map scores a relevant item that it
has seen.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmark.errors import BenchError
from benchmark.metrics.kept_share import Scored, difference, mean, measured
from benchmark.pairs.corpora import Corpus, Vectors
from benchmark.pairs.records import METRIC, SCALE, SIZES
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.decide.verdict import Evidence, decide
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.measure.evaluation import Evaluated, Scores, evaluate
from benchmark.upgrade.measure.study import Fold, Study, plan_again, refitted, samples_of, study
from benchmark.upgrade.read.gallery import GalleryBlock, Whole
from benchmark.upgrade.read.inputs import Inputs, read_inputs
from benchmark.upgrade.read.qrels import Qrels
from benchmark.upgrade.read.request import KEEP, UpgradeRequest, missing
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import StrategyPlan, cross_fitted


def sample_sizes(n: int) -> list[int]:
    """Those of ``SIZES`` that leave a fifth of the items out; of a small corpus the first."""
    return [s for s in SIZES if s <= 0.8 * n] or [SIZES[0]]


def query_groups(corpus: Corpus) -> tuple[Qrels, Ints]:
    """Relevance by rows, and the group of each query that shares its relevant items, ``[q]``.

    Raises:
        BenchError: If there is one group alone, which leaves no other queries to check a report on.
    """
    ids = np.array(corpus.query_ids), np.array(corpus.item_ids)
    qrels = Qrels.of(corpus.gains, *ids)
    rows = np.arange(len(corpus.query_ids))
    groups = qrels.groups(rows)
    groups = rows if groups is None else groups
    if len(np.unique(groups)) < 2:
        raise BenchError(
            f"corpus {corpus.source.id}: expected queries of two groups or more that share no "
            f"relevant item, got one of {len(rows)}"
        )
    return qrels, groups


@dataclass(frozen=True)
class CellVectors:
    """A corpus with all vectors of an old and a new model."""

    corpus: Corpus
    old: Vectors
    new: Vectors
    qrels: Qrels  # by rows of queries and items
    groups: Ints  # of queries that share their relevant items, [q]
    seed: int = 0  # of its halves and samples: each cell has others

    @classmethod
    def of(cls, corpus: Corpus, old: Vectors, new: Vectors, seed: int = 0) -> "CellVectors":
        """Join them; BenchError as of :func:`query_groups`."""
        return cls(corpus, old, new, *query_groups(corpus), seed)

    @property
    def n(self) -> int:
        """Items of the gallery."""
        return len(self.corpus.item_ids)

    def halves(self, draw: int) -> tuple[Ints, Ints]:
        """Queries of the report and the others, by whole groups, of nearly equal size."""
        rng = np.random.default_rng([self.seed, draw, 1])
        names, counts = np.unique(self.groups, return_counts=True)
        order = rng.permutation(len(names))
        taken = names[order][np.cumsum(counts[order]) - counts[order] / 2 <= counts.sum() / 2]
        mine = np.isin(self.groups, taken)
        return np.flatnonzero(mine), np.flatnonzero(~mine)

    def relevant(self, queries: Ints) -> Ints:
        """Rows of the items that are relevant to some queries, ascending."""
        return np.unique(self.qrels.rows[np.isin(self.qrels.query, queries)])

    def sample(self, size: int, draw: int) -> Ints:
        """Rows that the report has new vectors of."""
        drawn = np.random.default_rng([self.seed, draw, 2]).permutation(self.n)[:size]
        return np.union1d(drawn, self.relevant(self.halves(draw)[0]))

    def request(self, queries: Ints, rows: Ints | None = None, **more: Any) -> UpgradeRequest:
        """The request of a user with new vectors of some rows, or of no item, and some queries."""
        items, asked = np.array(self.corpus.item_ids), np.array(self.corpus.query_ids)[queries]
        ids = {"old_gallery": items, "queries": asked, "old_queries": asked}
        if rows is not None:
            ids["new_gallery"] = items[rows]
        return UpgradeRequest(
            self.old.items, None if rows is None else self.new.items[rows],
            self.new.queries[queries], self.old.queries[queries], ids=ids,
            qrels={name: self.corpus.gains[name] for name in asked.tolist()}, **more,
        )  # fmt: skip

    def inputs(self, rows: Ints, queries: Ints, seed: int = 0) -> Inputs:
        """Read such a request."""
        return read_inputs(self.request(queries, rows, seed=seed))

    def evaluated(self, inputs: Inputs, plan: StrategyPlan) -> Evaluated:
        """Evaluate a plan in the whole gallery, all of which is embedded by both models."""
        rows = np.arange(self.n)
        known = GalleryBlock.whole(rows, self.old.items, self.new.items)
        return evaluate(Whole(inputs.gallery), inputs.pairs(rows), known, plan, inputs.distance)

    def means(self, lists: Mapping[str, ResultList], queries: Ints) -> dict[str, float]:
        """Mean scores of lists of some queries, by name, as :meth:`evaluated`."""
        inputs = self.inputs(np.arange(self.n), queries)
        found = self.evaluated(inputs, StrategyPlan.of_lists(lists))
        return {name: float(scores[METRIC].mean()) for name, scores in found.scores.items()}


def cell(problem: CellVectors, draw: int, maps: str = "quick") -> Iterator[dict[str, Any]]:
    """Every report of one draw of a cell beside the truth, by size of the sample.

    Yields:
        ``size``, ``draw``, ``embedded`` items, ``queries`` of either half, ``seconds`` of the
        report and of fitting its maps, ``verdict``, ``better`` (re-embedding measurably is),
        ``barred`` (what usual constraints forbid) and by strategy ``COLUMNS`` times ``SCALE``.
    """
    for size in sample_sizes(problem.n):
        yield _report(problem, size, draw, chosen_maps(maps))


def _report(problem: CellVectors, size: int, draw: int, labels: Sequence[str]) -> dict[str, Any]:
    halves, rows = problem.halves(draw), problem.sample(size, draw)
    inputs = problem.inputs(rows, halves[0], draw)
    started = time.process_time()
    report = study(inputs, labels)
    evidence = Evidence.of(report.outcomes, METRIC, report.groups)
    decision = decide(evidence, inputs.request.constraints)
    seconds = time.process_time() - started
    mine = {n: o.scored[METRIC].mean for n, o in report.outcomes.items()}
    mine |= {n: each[METRIC].mean() for n, each in same(problem, report, halves[0]).items()}
    true = {n: measured(each[METRIC]) for n, each in others(problem, report, halves[1]).items()}
    groups, fits = problem.groups[halves[1]], (report.first, *report.refits)
    keep = report.outcomes[KEEP].scored[METRIC]
    return {
        "size": size, "draw": draw, "embedded": len(rows), "queries": [len(h) for h in halves],
        "seconds": round(seconds, 2),
        "fit_seconds": round(sum(f.fit_s for fold in fits for f in fold.maps), 2),
        "verdict": decision.name, "better": evidence.better,
        "barred": [
            name for name, outcome in report.outcomes.items()
            if missing(outcome.strategy.needs, inputs.request.constraints)
        ],
        "strategies": {
            name: _scaled([
                *_numbers(outcome.scored[METRIC], keep, report.groups, estimate=True), mine[name],
                *_numbers(true[name], true[KEEP], groups, estimate=False),
            ])
            for name, outcome in report.outcomes.items()
        },
    }  # fmt: skip


def _numbers(scored: Scored, keep: Scored, groups: Any, *, estimate: bool) -> list[float]:
    whole = mean(scored, groups)
    gain = difference(scored, keep, groups).ends or (np.nan, np.nan)
    sampling = [np.nan if scored.sampling is None else scored.sampling] if estimate else []
    return [whole.known, *(whole.ends or (np.nan, np.nan)), *sampling, *gain]


def _scaled(numbers: Sequence[float]) -> list[int | None]:
    return [None if not np.isfinite(x) else round(float(x) * SCALE) for x in numbers]


def same(problem: CellVectors, report: Study, queries: Ints) -> dict[str, Scores]:
    """Truth of what a report estimates, with its maps: strategies that need all new vectors.

    Returns:
        Strategy -> metric -> values of the report's queries ``[q]``; others are as measured there.
    """
    inputs = problem.inputs(np.arange(problem.n), queries)
    plan = report.plan
    some = [each for each in plan.strategies if each.embeds_gallery]
    return problem.evaluated(inputs, replace(plan, strategies=some)).scores


def others(problem: CellVectors, report: Study, queries: Ints) -> dict[str, Scores]:
    """Truth of every strategy on queries that a report has not seen.

    Maps are those of the report, where several were fitted; else two of the same items but for
    either half of those that are relevant to these queries. No relevant item is scored by maps that
    have seen it.

    Returns:
        Strategy -> metric -> values ``[q]``.
    """
    inputs = problem.inputs(np.arange(problem.n), queries)
    folds = report.refits or _halves(problem, inputs, report.first)
    plans = [plan_again(inputs, fold) for fold in folds]
    return problem.evaluated(inputs, cross_fitted(plans[0], plans, samples_of(folds))).scores


def _halves(problem: CellVectors, inputs: Inputs, fold: Fold) -> list[Fold]:
    """The fold's maps fitted anew, without either half of what is relevant to the queries."""
    sample = fold.sample
    part = (np.random.default_rng(problem.seed).random(problem.n) < 0.5)[sample.rows]
    unwanted = np.isin(sample.rows, inputs.qrels.rows)
    fits = (sample.fitted & ~(unwanted & half) for half in (part, ~part))
    return [refitted(inputs, fold, replace(sample, fitted=each)) for each in fits]


def measured_in_old(problem: CellVectors, mapped: Floats, queries: Ints | None = None) -> float:
    """Score of queries ``[k]``, or of all, by their vectors in the old gallery, ``[k, d_old]``."""
    chosen = np.arange(len(problem.groups)) if queries is None else queries
    return problem.means({KEEP: ResultList(mapped, lambda block: block.old)}, chosen)[KEEP]
