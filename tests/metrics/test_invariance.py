"""Metrics depend neither on the gallery's order nor on threads."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples, problems, same_bits, units

from benchmark.metrics import backfill_curves, identification, verification
from benchmark.metrics.templates import templates
from benchmark.ranking import pair_scores, ranks

seeds = st.integers(0, 2**32 - 1)


@examples(25)
@given(problems(junk=False), st.integers(2, 7))
def test_permuting_the_gallery_leaves_the_curves(p, points):
    """The same items are refilled in the same order, wherever they lie."""
    old_q, old_g = (p.rng.normal(size=(len(x), 4)).astype(np.float32) for x in (p.q, p.g))
    order, moved = p.rng.permutation(len(p.g)), p.rng.permutation(len(p.g))
    place = np.argsort(moved)
    one = backfill_curves.curves(
        old_q, old_g, p.q, p.g, p.ql, p.gl, order, points=points, **p.rules()
    )  # fmt: skip
    two = backfill_curves.curves(
        old_q, old_g[moved], p.q, p.g[moved], p.ql, p.gl[moved], place[order],
        points=points, **p.rules(moved),
    )  # fmt: skip
    same_bits(one, two)
    sides = old_q, old_g, p.q, p.g
    turned = old_q, old_g[moved], p.q, p.g[moved]
    one = backfill_curves.search_curves(*sides, p.ql, p.gl, order, points=points)
    two = backfill_curves.search_curves(*turned, p.ql, p.gl[moved], place[order], points=points)
    same_bits(one, two)


@examples(40)
@given(seeds)
def test_permuting_either_side_leaves_verification(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(int(rng.integers(2, 30)), 5)).astype(np.float32) for _ in range(2))
    a, b = (rng.integers(0, 3, len(z)) for z in (x, y))
    i, j = rng.permutation(len(x)), rng.permutation(len(y))
    one, two = pair_scores.all_pairs(x, y, a, b), pair_scores.all_pairs(x[i], y[j], a[i], b[j])
    same_bits(map(np.sort, one), map(np.sort, two))
    if all(len(side) for side in one):
        assert verification.tar_at_far(*one, [1.0]) == verification.tar_at_far(*two, [1.0])
        assert verification.equal_error_rate(*one) == verification.equal_error_rate(*two)
        same_bits(verification.roc(*one), verification.roc(*two))


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    old_p, old_g, p, g = (rng.normal(size=(n, 19)).astype(np.float32) for n in (330, 270, 330, 270))
    ps, gs = rng.integers(0, 90, 330), rng.integers(0, 60, 270)
    pairs = rng.integers(0, 330, 5000), rng.integers(0, 270, 5000)
    media, weights = rng.integers(0, 4, 330), rng.random(330)

    def all_of(threads):
        result = identification.search(p, ps, g, gs, threads=threads)
        along = backfill_curves.search_curves(
            old_p, old_g, p, g, ps, gs, rng_order, points=11, threads=threads
        )
        return [
            *vars(result).values(),
            *vars(along).values(),
            *pair_scores.all_pairs(p, g, ps, gs, threads=threads),
            pair_scores.listed(p, g, *pairs, threads=threads),
            *templates(p, ps, media, weights=weights, threads=threads),
        ]

    rng_order = rng.permutation(270)
    alone = all_of(1)
    for threads in (2, 3, 5):
        same_bits(alone, all_of(threads))


@examples(30)
@given(seeds)
def test_shards_of_identical_vectors(seed):
    """Ties across the cut, single matches and queries without any."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(2, 40))
    q, g = units(rng, n), units(rng, m)
    g[rng.integers(0, m, m // 2)] = g[0]
    ql, gl = rng.integers(0, m, n), rng.permutation(m)  # one item a class
    whole = ranks.rank(q, g, ql, gl)
    cut = int(rng.integers(0, m + 1))
    parts = [ranks.Shard(q, g[s], ql, gl[s]) for s in (slice(cut), slice(cut, m))]
    joined = ranks.join([part.matches for part in parts])
    result = ranks.ranking_of(joined.scores, sum(part.count(joined) for part in parts))
    same_bits(whole, result)
