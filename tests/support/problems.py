"""Random ranking problems: small integers give ties, duplicates and identical vectors."""

import os
from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st


def same_bits(left, right):
    """Tell two results, or two lists, whose arrays are equal bit for bit."""
    pair = [vars(side).values() if hasattr(side, "__dict__") else side for side in (left, right)]
    for a, b in zip(*pair, strict=True):
        assert a.tobytes() == b.tobytes()


def examples(n):
    """Settings of ``n`` examples; the environment's METRIC_EXAMPLES in their place if it is set."""
    return settings(max_examples=int(os.environ.get("METRIC_EXAMPLES", n)), deadline=None)


def units(rng, n):
    """Vectors of one or four equal entries: lengths are powers of two, cosines exact in float32."""
    x = np.zeros((n, 5), np.float32)
    for row in x:
        some = rng.permutation(5)[: rng.choice([1, 4])]
        row[some] = rng.choice([-1, 1], len(some)) * 2.0 ** rng.integers(-2, 3)
    return x


@dataclass
class Problem:
    q: np.ndarray
    g: np.ndarray
    ql: np.ndarray
    gl: np.ndarray
    ids: tuple | None
    cameras: tuple | None
    junk: np.ndarray | None
    rng: np.random.Generator

    def rules(self, items=slice(None)):
        """Keyword arguments of rank, for some of the gallery."""
        out = {}
        if self.ids is not None:
            out.update(query_ids=self.ids[0], gallery_ids=self.ids[1][items])
        if self.cameras is not None:
            out.update(query_cameras=self.cameras[0], gallery_cameras=self.cameras[1][items])
        if self.junk is not None:
            out.update(junk=self.junk[items])
        return out


@st.composite
def problems(draw, most=70, junk=True):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(1, most // 2)), draw(st.integers(1, most))
    d, k = draw(st.integers(1, 9)), draw(st.integers(1, 12))
    reach = draw(st.sampled_from([0, 1, 3, 9]))
    ids = draw(st.sampled_from([None, 5, 100]))
    cameras = draw(st.sampled_from([None, 2]))
    return Problem(
        q=rng.integers(-reach, reach + 1, (n, d)).astype(np.float32),
        g=rng.integers(-reach, reach + 1, (m, d)).astype(np.float32),
        ql=rng.integers(0, k, n),
        gl=rng.integers(0, k, m),
        ids=ids and (rng.integers(0, ids, n), rng.integers(0, ids, m)),
        cameras=cameras and (rng.integers(0, cameras, n), rng.integers(0, cameras, m)),
        junk=rng.random(m) < 0.2 if junk and draw(st.booleans()) else None,
        rng=rng,
    )
