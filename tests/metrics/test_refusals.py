"""Arguments that metrics refuse, each in one line that says which and why."""

import numpy as np
import pytest

from benchmark.metrics import (
    backfill_curves,
    backfill_orders,
    compatibility,
    identification,
    intervals,
    similarity,
    statistics,
    verification,
)
from benchmark.metrics.relevance import RelevantRanks, agreement, ndcg, recall
from benchmark.metrics.retrieval import cmc, reciprocal_rank
from benchmark.metrics.templates import templates
from benchmark.ranking import pair_scores, ranks

X, BAD = np.eye(3, 2), np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 1.0]])
ROWS, NAN = np.arange(3), np.array([0.5, np.nan])
NOT_A_NUMBER = {
    "rank": lambda: ranks.rank(X, BAD, ROWS, ROWS),
    "rank, torch": lambda: ranks.rank(BAD, X, ROWS, ROWS, device="torch:cpu"),
    "shard": lambda: ranks.Shard(X, BAD, ROWS, ROWS),
    "curves": lambda: backfill_curves.curves(X, BAD, X, X, ROWS, ROWS, ROWS),
    "search curves": lambda: backfill_curves.search_curves(X, X, BAD, X, ROWS, ROWS, ROWS),
    "area": lambda: backfill_curves.area(NAN),
    "offline": lambda: backfill_curves.offline(NAN),
    "flips": lambda: backfill_curves.flips(BAD),
    "by group": lambda: backfill_curves.by_group(BAD, [0, 1]),
    "search": lambda: identification.search(X, ROWS, BAD, ROWS),
    "pooled": lambda: identification.pooled(BAD, ROWS, [(X, ROWS)]),
    "all pairs, TPIR": lambda: identification.all_pairs_tpir_at_fpir(BAD, ROWS, [(X, ROWS)], [1]),
    "listed": lambda: pair_scores.listed(X, BAD, [0], [0]),
    "all pairs": lambda: pair_scores.all_pairs(BAD, X, ROWS, ROWS),
    "nearest": lambda: verification.tar_at_nearest_far([0.1], NAN, [1.0]),
    "roc": lambda: verification.roc(NAN, [0.1]),
    "eer": lambda: verification.equal_error_rate([0.1], NAN),
    "templates": lambda: templates(BAD, ROWS, ROWS),
    "weights": lambda: templates(X, ROWS, ROWS, weights=[1.0, np.nan, 1.0]),
    "pairwise": lambda: compatibility.pairwise(X, X, BAD, ROWS, ROWS),
    "not hurting": lambda: compatibility.not_hurting(0.1, np.nan),
    "absolute gain": lambda: compatibility.absolute_gain(np.nan, 0.1),
    "update gain": lambda: compatibility.update_gain(0.3, 0.1, np.nan),
    "accuracy": lambda: compatibility.average_accuracy(np.full((2, 2), np.nan)),
    "cka": lambda: similarity.linear_cka([(X, BAD)]),
    "tau": lambda: statistics.kendall_tau(NAN, [1.0, 2.0]),
    "interval": lambda: intervals.mean_interval(NAN),
    "draws": lambda: intervals.drawn_spread(0.5, NAN, 3, intervals.Spread(0.5, 0.1, 0.0, 3)),
    "spreads": lambda: intervals.mean_spreads([NAN], [0, 1]),
    "difference": lambda: intervals.mean_difference(NAN),
    "holm": lambda: statistics.holm(NAN),
}


SQUARE, PAIR, TWO = np.eye(2), [0, 1], np.ones((2, 3), np.float32)
ITEMS = backfill_orders.Items(ids=np.arange(2), labels=np.arange(2))
FOUND = identification.search(SQUARE, PAIR, SQUARE, PAIR)
OPEN = identification.search(np.eye(3), [0, 8, 9], np.eye(3)[:1], [0])
ASKED, CLOSED = np.ones((10, 2)), [(SQUARE[:1], [0]), (SQUARE[1:], [1])]
OFFSET, RANKS, ONES = np.array([0, 2]), np.array([1, 2]), np.ones(2)
JUDGED, NOTHING = RelevantRanks(OFFSET, RANKS, ONES), np.full((1, 3), -1)
ONE = ranks.rank(np.eye(1, 2), np.eye(1, 2), [1], [1])
FAR, OTHER = {"tar_at_far_1e-4": 0.5}, {"tar_at_far_1e-4": 1.0, "tpir_at_fpir_1e-2": 0.75}


def curves(old, new, order=PAIR, third=None, **options):
    return backfill_curves.curves(
        old, old, new if third is None else third, new, PAIR, PAIR, order, **options
    )


def all_pairs(target, subject=0):
    return identification.all_pairs_tpir_at_fpir(ASKED, np.full(10, subject), CLOSED, [target])


def tar(good, bad, target):
    return verification.tar_at_far(np.array(good, float), np.array(bad, float), [target])


def spread(*draws):
    return intervals.drawn_spread(
        0.5, np.array(draws, float), 3, intervals.Spread(0.5, 0.1, 0.0, 3)
    )


REFUSED = [
    (lambda: curves(TWO, TWO, [0, 0]), "order: expected each"),
    (lambda: curves(TWO[:, :2], TWO, distance="l2"), "distance: expected cosine for dimensions"),
    (lambda: curves(TWO, TWO, third=TWO[:1]), "new_query: expected 2 rows"),
    (lambda: backfill_curves.moments(5, 1), "points"),
    (lambda: backfill_curves.area([]), "curve"),
    (lambda: backfill_curves.flips([1, 0]), "hits"),
    (lambda: backfill_curves.worst([]), "curve: expected at least one point"),
    (lambda: backfill_curves.share_above([], 0.5), "curve: expected at least one point"),
    (lambda: backfill_orders.random([1, 1], 0), "ids: expected 2 different ones, got 1"),
    (lambda: backfill_orders.by_score([1.0], [1, 2]), r"ids: expected shape \(1,\)"),
    (lambda: backfill_orders.by_score([np.nan], [1]), "score: expected finite"),
    (lambda: backfill_orders.entropy(BAD), "logits: expected finite"),
    (lambda: backfill_orders.margin(X[:, :1]), r"logits: expected floats \[n, classes >= 2\]"),
    (lambda: backfill_orders.squared_distance(SQUARE, X), "new: expected 2 rows"),
    (lambda: backfill_orders.squared_distance(SQUARE, TWO), "new: expected dimen"),
    (lambda: backfill_orders.class_by_class([1], [1, 2], 0), "labels: expected shape"),
    (lambda: backfill_orders.make_orders(["sigma"], ITEMS), "orders: expected some of random"),
    (lambda: identification.search(SQUARE, PAIR, SQUARE[:0], ROWS[:0]),
     "gallery_vectors: expected at least one"),
    (lambda: identification.tpir_at_fpir(FOUND, [0.5]), "expected mated and non-mated"),
    (lambda: identification.tpir_at_fpir(OPEN, [0.4]), "non-mated probes"),
    (lambda: identification.rank_k(FOUND, 0), "k: expected at least 1"),
    (lambda: identification.search(BAD, ROWS, X, ROWS), "probe_vectors: expected finite"),
    (lambda: all_pairs(0.0), "targets: expected rates"),
    (lambda: all_pairs(1.1), "targets: expected rates"),
    (lambda: all_pairs(0.2, 7), "probe_subjects: expected one"),
    (lambda: tar([], [0.5], 1.0), "genuine: expected at least one"),
    (lambda: tar([0.5], [], 1.0), "impostor: expected at least one"),
    (lambda: tar([np.nan], [0.5], 1.0), "genuine: expected finite"),
    (lambda: tar([0.5], [0.5], 0.0), "targets: expected rates"),
    (lambda: tar([0.5], [0.5], 1.5), "targets: expected rates"),
    (lambda: tar([0.5], [0.5] * 9, 0.1), "expected at least 1/9"),
    (lambda: compatibility.average(FAR, FAR, OTHER), "new_old: expected 'tpir_at_fpir_1e-2'"),
    (lambda: compatibility.compatible(np.nan, 0.1), "new_old: expected a finite"),
    (lambda: compatibility.average_compatibility([[1.0]]), "matrix"),
    (lambda: compatibility.average_compatibility([[1.0, 2.0]]), "matrix"),
    (lambda: compatibility.average_compatibility([[0.1, 0.1], [np.nan, 0.2]]), "matrix"),
    (lambda: intervals.mean_interval(np.zeros(0)), "values: expected at least one"),
    (lambda: intervals.mean_interval(np.ones(3), level=1.0), "level"),
    (lambda: intervals.mean_interval(np.ones(3), [0, 1]), "groups: expected shape"),
    (spread, "draws: expected at least one"),
    (lambda: list(intervals.weights(0)), "weights: expected"),
    (lambda: statistics.holm(np.array([1.5])), "p_values"),
    (lambda: similarity.linear_cka([(X, np.ones((3, 2)))]), "constant side"),
    (lambda: similarity.linear_cka([(X, np.full((3, 2), 0.1))] * 3), "constant side"),
    (lambda: similarity.linear_cka([]), "at least 2 items"),
    (lambda: similarity.linear_cka([(X, X[:2])]), "as many rows"),
    (lambda: similarity.linear_cka([(X, X), (X[:, :1], X)]), "expected dimensions"),
    (lambda: templates(TWO, PAIR, [0]), "media"),
    (lambda: templates(TWO, PAIR, PAIR, weights=[1.0]), "weights: expected shape"),
    (lambda: templates(TWO, PAIR, PAIR, flipped=TWO[:1]), "flipped: expected 2 rows"),
    (lambda: RelevantRanks(np.array([0, 3]), RANKS, ONES), "offset: expected 0 first and 2 last"),
    (lambda: RelevantRanks(np.array([0, 3, 2]), RANKS, ONES), "offset: expected ascending"),
    (lambda: RelevantRanks(OFFSET, ONES.astype(int), ONES), "rank: expected at least 2 at 0, got"),
    (lambda: RelevantRanks(OFFSET, np.array([-1, 1]), ONES), "rank: expected at least"),
    (lambda: RelevantRanks(OFFSET, RANKS, np.array([1.0, 0.0])), "gain: expected 2 finite numbers"),
    (lambda: RelevantRanks(OFFSET, RANKS, NAN), "gain: expected 2 finite"),
    (lambda: agreement(NOTHING, NOTHING, 2), "expected an item in each row, got none in 0"),
    (lambda: agreement(NOTHING, NOTHING, 4), "k: expected at most the items given, got 4"),
    (lambda: agreement(np.zeros((2, 3), int), NOTHING, 1), "found: expected 1 rows"),
    *((lambda f=f: f(JUDGED, 0), "k: expected at least 1, got 0")
      for f in (ndcg, recall, reciprocal_rank)),
    *((lambda f=f: f(ONE, 0), "k: expected at least 1") for f in (cmc, reciprocal_rank)),
    *((call, "finite") for call in NOT_A_NUMBER.values()),
]  # fmt: skip
NAMES = [f"{i}-{words[:30]}" for i, (_, words) in enumerate(REFUSED[: -len(NOT_A_NUMBER)])]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[*NAMES, *NOT_A_NUMBER])
def test_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)
