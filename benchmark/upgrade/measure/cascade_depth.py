"""Cascades by depth: scores, and items embedded for the query log when what is embedded is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmark.contract.fusion import RescoredList
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import Scored, mean, share_kept
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.measure.study import Study, score_more
from benchmark.upgrade.read.gallery import Whole
from benchmark.upgrade.read.request import REEMBED, Tell
from benchmark.upgrade.search.lists import search
from benchmark.upgrade.search.strategies import Strategy

DEPTHS = (10, 20, 50, 100, 200, 500, 1_000)
TARGETS = (0.95, 0.99)
"""Shares of re-embedding's score."""


@dataclass(frozen=True)
class Depth:
    """A cascade that rescores so many candidates of each query."""

    depth: int  # candidates of each query
    score: Estimate
    share: Estimate | None  # of re-embedding's score; None where that is 0
    embedded: float  # items for a query of the log, on average, when they are kept
    last: float  # the same of the last quarter of the log
    filled: float  # share of the gallery that is embedded at its end


@dataclass(frozen=True)
class NeededDepth:
    """The least depth that keeps a share of re-embedding's score; None where no depth does."""

    share: float  # one of ``TARGETS``
    depth: int | None
    surely: int | None  # the least one that surely does, by the 95 % interval


@dataclass(frozen=True)
class CascadeDepths:
    """A cascade at every depth."""

    strategy: str  # ``cascade`` or ``cascade-mapped``
    depths: list[Depth]  # shallow ones first
    needed: list[NeededDepth]


def cascade_depths(study: Study, tell: Tell = lambda words: None) -> list[CascadeDepths]:
    """Evaluate every cascade of a study at every depth that its gallery has."""
    some = [s for s in study.first.plan.strategies if isinstance(s.merge, RescoredList)]
    rows, searched = study.inputs.gallery.rows, study.n_gallery
    depths = [d for d in DEPTHS if d < rows and d * searched >= rows]  # one item there, or more
    deeper = [
        replace(each, name=f"{each.name} {d}", merge=RescoredList(d)) for each in some
        for d in depths
    ]  # fmt: skip
    if not deeper:
        return []
    plans = [replace(fold.plan, strategies=deeper) for fold in study.folds]
    scored = score_more(study, plans, tell)
    new = study.outcomes[REEMBED].scored[study.metric]
    return [_by_depth(study, each, depths, scored, new) for each in some]


def _by_depth(
    study: Study, each: Strategy, depths: Sequence[int], scored: dict[str, Scored], new: Scored
) -> CascadeDepths:
    candidates, groups = _candidates(study, each, depths[-1]), study.groups
    found = []
    for d in depths:
        its = scored[f"{each.name} {d}"]
        embedded, last, filled = repeats(candidates[:, :d])
        share = share_kept(its, None, new, groups)
        found.append(Depth(
            d, mean(its, groups), share, embedded, last, filled / study.inputs.gallery.rows
        ))  # fmt: skip
    needed = [
        NeededDepth(
            target, next((e.depth for e in found if e.share and e.share.known >= target), None),
            next((e.depth for e in found if e.share and (e.share.low or 0.0) >= target), None),
        )
        for target in TARGETS
    ]  # fmt: skip
    return CascadeDepths(each.name, found, needed)


def repeats(candidates: Ints) -> tuple[float, float, int]:
    """Items that are embedded for a query, for one of the last quarter, and in all.

    ``candidates`` are rows of the items of each query in turn, ``[n, depth]``; -1 for none. Those
    that an earlier query had are kept.

    Example:
        >>> repeats(np.array([[0, 1], [1, 2], [0, 2], [2, 3]]))
        (1.0, 1.0, 4)
    """
    n = len(candidates)
    flat = candidates.ravel()
    rows, first = np.unique(flat, return_index=True)
    first = first[rows >= 0] // candidates.shape[1]
    start = n - max(1, n // 4)
    return len(first) / n, float((first >= start).sum() / (n - start)), len(first)


def _candidates(study: Study, each: Strategy, depth: int) -> Ints:
    """Rows of the first list in the whole gallery, ``[n_query, depth]``; -1 for none.

    An item that is left out of a query's scores is embedded for it all the same.
    """
    inputs, name = study.inputs, each.uses[0]
    fold, every = study.first, study.relevant.without_others()
    own = inputs.own
    lists = {name: replace(fold.plan.lists[name], top=depth + (own is not None))}
    found = search(Whole(inputs.gallery), every, fold.sample.known, lists, inputs.distance)
    rows = found[name].rows
    if own is None:
        return rows
    others = np.argsort(rows == own[:, None], axis=1, kind="stable")  # a query's own item last
    return np.take_along_axis(rows, others, axis=1)[:, :depth]
