"""Template vectors against plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples

from benchmark.metrics.templates import templates


@examples(50)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.integers(1, 3))
def test_templates_follow_the_rule(seed, weighted, mirrored, threads):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    x, y = rng.normal(size=(2, n, 5)).astype(np.float32)
    template, media = rng.integers(0, 9, n), rng.integers(0, 4, n)
    w = rng.random(n) if weighted else None
    ids, got = templates(
        x, template, media, weights=w, flipped=y if mirrored else None, threads=threads
    )
    assert ids.tolist() == sorted(set(template.tolist()))
    for row, t in enumerate(ids):
        total = np.zeros(5)
        for m in set(media[template == t].tolist()):
            rows = np.flatnonzero((template == t) & (media == m))
            total += sum(
                (x[i].astype(float) + (y[i] if mirrored else 0)) * (1 if w is None else w[i])
                for i in rows
            ) / len(rows)
        np.testing.assert_allclose(got[row], total / np.linalg.norm(total), atol=1e-6)
