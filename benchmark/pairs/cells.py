"""Cells: a pair of embedders on a corpus, reports of ``bench upgrade`` beside the truth.

Queries are split into two halves, whole groups of them that share their relevant items. A report
sees new vectors of a random sample and of all items that are relevant to its half, as a user would
have them; no item that is relevant to the other half alone is in the sample, so that no map has
seen it. The truth of the same strategies, with the same maps, is measured in the whole gallery with
all items embedded by both models, on the report's own queries (``same``) and on the other half.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmark.contract.arrays import apply
from benchmark.contract.interpolation import Between, turn
from benchmark.metrics.kept_share import Scored, difference, mean, measured
from benchmark.pairs.corpora import Corpus
from benchmark.pairs.vectors import Vectors
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.decide.verdict import Evidence, decide
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.measure.evaluation import Scores, evaluate, scores_of
from benchmark.upgrade.measure.query_groups import query_groups
from benchmark.upgrade.measure.study import Fold, study
from benchmark.upgrade.read.gallery import GalleryBlock, Whole
from benchmark.upgrade.read.inputs import Inputs, read_inputs
from benchmark.upgrade.read.qrels import Qrels
from benchmark.upgrade.read.request import UpgradeRequest, missing
from benchmark.upgrade.search.lists import possible_ranks
from benchmark.upgrade.search.strategies import KEEP, make_plan

SIZES = (300, 1000, 3000)
"""Items of the random sample."""
DRAWS = 3
METRIC = "ndcg_at_10"
SCALE = 10_000
"""Of numbers in a record, which are whole ones."""
COLUMNS = (
    "score", "low", "high", "sampling", "gain_low", "gain_high",
    "same", "other", "other_low", "other_high", "other_gain_low", "other_gain_high",
)  # fmt: skip
"""Of a strategy: what the report says of it, then the truth. A gain is over keeping the old model;
its value is a difference of scores. ``sampling`` is None where nothing is estimated."""


@dataclass(frozen=True)
class Problem:
    """A corpus with all vectors of an old and a new model.

    Attributes:
        qrels: By rows of queries and items.
        groups: Of queries that share their relevant items, ``[q]``.
    """

    corpus: Corpus
    old: Vectors
    new: Vectors
    qrels: Qrels
    groups: Ints

    @classmethod
    def of(cls, corpus: Corpus, old: Vectors, new: Vectors) -> "Problem":
        """Join them."""
        ids = np.array(corpus.query_ids), np.array(corpus.item_ids)
        qrels = Qrels.of(corpus.gains, *ids)
        rows = np.arange(len(corpus.query_ids))
        groups = query_groups(qrels, "qrels", rows)
        return cls(corpus, old, new, qrels, rows if groups is None else groups)

    @property
    def n(self) -> int:
        """Items of the gallery."""
        return len(self.corpus.item_ids)

    def halves(self, draw: int) -> tuple[Ints, Ints]:
        """Queries of the report and the others, by whole groups, of nearly equal size."""
        rng = np.random.default_rng([draw, 1])
        names, counts = np.unique(self.groups, return_counts=True)
        order = rng.permutation(len(names))
        taken = names[order][np.cumsum(counts[order]) - counts[order] / 2 <= counts.sum() / 2]
        mine = np.isin(self.groups, taken)
        return np.flatnonzero(mine), np.flatnonzero(~mine)

    def relevant(self, queries: Ints) -> Ints:
        """Rows of the items that are relevant to some queries, ascending."""
        of = np.repeat(np.arange(len(self.groups)), np.diff(self.qrels.offset))
        return np.unique(self.qrels.rows[np.isin(of, queries)])

    def free(self, draw: int) -> Ints:
        """Rows that a sample may have: all but those that are relevant to the others alone."""
        mine, others = (self.relevant(half) for half in self.halves(draw))
        return np.setdiff1d(np.arange(self.n), np.setdiff1d(others, mine))

    def sample(self, size: int, draw: int) -> Ints:
        """Rows that the report has new vectors of."""
        drawn = np.random.default_rng([draw, 2]).permutation(self.free(draw))[:size]
        return np.union1d(drawn, self.relevant(self.halves(draw)[0]))

    def inputs(self, rows: Ints, queries: Ints, seed: int = 0) -> Inputs:
        """Inputs of a user who has new vectors of some rows, and some of the queries."""
        items, asked = np.array(self.corpus.item_ids), np.array(self.corpus.query_ids)[queries]
        ids = {"old_gallery": items, "new_gallery": items[rows], "queries": asked,
               "old_queries": asked}  # fmt: skip
        gains = {name: self.corpus.gains[name] for name in asked.tolist()}
        return read_inputs(UpgradeRequest(
            self.old.items, self.new.items[rows], self.new.queries[queries],
            self.old.queries[queries], qrels=gains, ids=ids, seed=seed,
        ))  # fmt: skip

    def sizes(self) -> list[int]:
        """Those of ``SIZES`` that leave items unseen in every draw; of a small corpus the first."""
        found = [s for s in SIZES if all(s < len(self.free(d)) for d in range(DRAWS))]
        return found or [SIZES[0]]


def cell(
    problem: Problem, maps: str = "quick", tell: Callable[[str], None] = lambda words: None
) -> Iterator[dict[str, Any]]:
    """Every report of a cell beside the truth, one after the other.

    Yields:
        ``size``, ``draw``, ``embedded`` items, ``queries`` of either half, ``seconds`` of the
        report and of fitting its maps, ``verdict``, ``better`` (re-embedding measurably is),
        ``barred`` (what usual constraints forbid) and by strategy ``COLUMNS`` times ``SCALE``.
    """
    for size in problem.sizes():
        for draw in range(DRAWS):
            tell(f"a report on {size:,} items, draw {draw + 1} of {DRAWS}")
            yield _report(problem, size, draw, chosen_maps(maps))


def _report(problem: Problem, size: int, draw: int, labels: Sequence[str]) -> dict[str, Any]:
    halves, rows = problem.halves(draw), problem.sample(size, draw)
    inputs = problem.inputs(rows, halves[0], draw)
    started = time.process_time()
    report = study(inputs, labels)
    evidence = Evidence.of(report.outcomes, METRIC, report.groups)
    decision = decide(evidence, inputs.request.constraints)
    seconds = time.process_time() - started
    true = truth(problem, np.concatenate(halves), report.folds)
    n = len(halves[0])
    mine = {name: each[METRIC][:n] for name, each in true.items()}
    others = {name: each[METRIC][n:] for name, each in true.items()}
    groups = problem.groups[halves[1]]
    keep = report.outcomes[KEEP].scored[METRIC], measured(others[KEEP])
    return {
        "size": size, "draw": draw, "embedded": len(rows), "queries": [n, len(halves[1])],
        "seconds": round(seconds, 2),
        "fit_seconds": round(sum(f.fit_s for fold in report.folds for f in fold.maps), 2),
        "verdict": decision.name, "better": evidence.better,
        "barred": [
            name for name, outcome in report.outcomes.items()
            if missing(outcome.strategy.needs, inputs.request.constraints)
        ],
        "strategies": {
            name: _scaled([
                *_numbers(outcome.scored[METRIC], keep[0], report.groups, estimate=True),
                mine[name].mean(),
                *_numbers(measured(others[name]), keep[1], groups, estimate=False),
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


def truth(problem: Problem, queries: Ints, folds: Sequence[Fold]) -> dict[str, Scores]:
    """Scores of all strategies in the whole gallery, with the maps of a report.

    Each relevant item is ranked by maps that have not seen it.

    Args:
        problem: All vectors.
        queries: Rows, in the report's order first, ``[q]``.
        folds: Of the report.

    Returns:
        Strategy -> metric -> values ``[q]``.
    """
    rows = np.arange(problem.n)
    inputs = problem.inputs(rows, queries)
    relevant = inputs.pairs(rows)
    by_fold = []
    for fold in folds:
        known = GalleryBlock.whole(rows, problem.old.items, problem.new.items)
        plan = make_plan(
            inputs.gallery, inputs.queries, inputs.old_queries, _between(inputs, fold), fold.maps,
            fold.best,
        )  # fmt: skip
        whole = Whole(inputs.gallery)
        by_fold.append((plan, evaluate(whole, relevant, known, plan, inputs.distance).ranks))
    row, query = relevant.row[relevant.counted], relevant.query[relevant.counted]
    held = [np.isin(row, fold.sample.rows[fold.sample.held]) for fold in folds]
    out = {}
    for name, first in by_fold[0][1].items():
        ranks = first.copy()
        for mine, (_, its) in zip(held[1:], by_fold[1:], strict=True):
            ranks[mine & ~held[0]] = its[name][mine & ~held[0]]
        ranks = possible_ranks(ranks, query) if len(folds) > 1 else ranks
        out[name] = scores_of(ranks, relevant)
    return out


def _between(inputs: Inputs, fold: Fold) -> dict[str, Floats]:
    """Queries between both models', with the report's rotation and shares."""
    sample = fold.sample
    pairs = (np.ascontiguousarray(each[sample.fitted]) for each in (sample.old, sample.new))
    turned = turn(*map(torch.from_numpy, pairs))
    old = inputs.old_queries
    slerp = np.empty_like(old)
    for half, share in enumerate(fold.shares):
        slerp[half::2] = apply(Between(turned, share), inputs.queries, old)[half::2]
    return {"midpoint": apply(Between(turned, 0.5), inputs.queries, old), "slerp": slerp}
