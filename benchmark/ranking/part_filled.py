"""One ranking of a partly filled gallery by scores: each list scores and counts its own items.

Curves do the same at every point, for which each item is scored in both lists; here one is enough.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking import engine, matching
from benchmark.ranking.arrays import Ints, Mask
from benchmark.ranking.engine import Scorer
from benchmark.ranking.grouping import Grouped, Labels, Ragged, spread
from benchmark.ranking.ranks import Matches, Ranking, ranking_of
from benchmark.ranking.score_scale import Scale, rounded_up
from benchmark.ranking.whole_lists import put_back


def by_score(
    first: Scorer, second: Scorer, labels: Labels, scale: Scale | None, filled: Mask
) -> Ranking:
    """Rank filled items by the second list's scores, the others by the first one's after a scale.

    Equal to the last bit to that point of a curve.
    """
    by = labels.grouped(np.argsort(labels.query, kind="stable"))
    matches, left_out = _scores(first, second, labels, scale, filled, by)
    junk = np.zeros(len(filled), bool) if labels.junk is None else labels.junk
    above = np.zeros(len(matches.values), np.int64)
    for scorer, t, others in zip(
        (first, second), _thresholds(matches, scale), (filled, ~filled), strict=True
    ):
        above += scorer.count_above(by.q_order, t, others | junk)
    n = len(by.q_order)
    engine.share(
        lambda a, b: matching.take_away(matches, matches, left_out, a, b, above),
        engine.spans(n, 1024),
        first.threads,
    )
    return put_back(ranking_of(matches, above), by.q_order)


def _scores(
    first: Scorer, second: Scorer, labels: Labels, scale: Scale | None, filled: Mask, by: Grouped
) -> Matches:
    """Scores of the matches, ascending, and of what is left out, on the second list's scale."""

    def placed(items: Ints, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        return np.where(filled[items], new, old if scale is None else scale(old))

    own = by.g_order[spread(by.start, by.stop)]
    scores = placed(own, first.class_scores(by), second.class_scores(by))
    matches, left_out = Ragged(by.offset, scores).split(*first.left_out(by, labels))
    rows, items = labels.strangers(by.q_order)
    if len(rows):
        pairs = by.q_order[rows], items
        left_out = left_out.added(rows, placed(items, first.pairs(*pairs), second.pairs(*pairs)))
    engine.share(
        lambda a, b: engine.sort(matches, a, b), engine.spans(len(matches.sizes), 1024),
        first.threads,
    )  # fmt: skip
    return Matches(matches, left_out)


def _thresholds(matches: Ragged, scale: Scale | None) -> tuple[Ragged, Ragged]:
    """The scores of either list that reach each match."""
    if scale is None:
        return matches, matches
    least = Ragged(matches.offset, scale.reaching(matches.values))
    return least, Ragged(matches.offset, rounded_up(matches.values))
