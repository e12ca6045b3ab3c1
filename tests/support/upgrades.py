"""Upgrades made by hand, whose outcome is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def unit(vectors: np.ndarray) -> np.ndarray:
    """Directions in float64."""
    x = np.asarray(vectors, np.float64)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def all_scores(queries: np.ndarray, items: np.ndarray, distance: str = "cosine") -> np.ndarray:
    """Scores of all pairs by brute force, ``[queries, items]``, float64."""
    a, b = (unit(x) if distance == "cosine" else np.float64(x) for x in (queries, items))
    return -((a[:, None] - b) ** 2).sum(axis=2) if distance == "l2" else a @ b.T


def ndcg(scores: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """nDCG@10 by query, of one relevant item, ties against it; what is left out scores -inf."""
    own = scores[np.arange(len(relevant)), relevant]
    ranks = (scores >= own[:, None] - 1e-9).sum(axis=1)
    return np.where(np.isfinite(own) & (ranks <= 10), 1 / np.log2(1 + ranks), 0.0)


@dataclass(frozen=True)
class Planted:
    """A new model, and an old one that is a noisy rotation of it, or pure noise.

    Each query has one relevant item, from which it differs by noise.
    """

    new: np.ndarray
    queries: np.ndarray
    old: np.ndarray
    old_queries: np.ndarray
    relevant: np.ndarray  # row of each query
    rotation: np.ndarray

    @property
    def qrels(self) -> dict[int, dict[int, float]]:
        return {q: {int(row): 1.0} for q, row in enumerate(self.relevant)}

    def sample(self, n: int) -> np.ndarray:
        """Rows of a sample, in any order, relevant items among them."""
        rng = np.random.default_rng(1)
        return rng.permutation(np.union1d(rng.choice(len(self.new), n, False), self.relevant))

    def arguments(self, rows: np.ndarray) -> dict[str, Any]:
        """Of ``benchmark.upgrade``, with new vectors of some rows."""
        return {
            "old_gallery": self.old, "new_gallery": self.new[rows], "queries": self.queries,
            "old_queries": self.old_queries, "qrels": self.qrels,
            "ids": {"old_gallery": np.arange(len(self.old)), "new_gallery": rows},
            "maps": "procrustes,procrustes:query,linear",
        }  # fmt: skip

    def whole(self, **changes: Any) -> dict[str, Any]:
        """As :meth:`arguments`, with new vectors of all rows, without ids, by one map."""
        given = self.arguments(np.arange(len(self.new))) | {"ids": None, "maps": "procrustes"}
        return given | changes


def planted(noise: float = 0.15, n: int = 1500, q: int = 80, dim: int = 24) -> Planted:
    """The old model adds noise to items, and more of it to queries, before it rotates them."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    new = draw(20, dim)[rng.integers(0, 20, n)] + draw(n, dim)
    relevant = rng.choice(n, q, replace=False)
    queries = new[relevant] + 1.2 * draw(q, dim)
    rotation = np.linalg.qr(draw(dim, dim))[0].astype(np.float32)
    old = (new + noise * draw(n, dim)) @ rotation
    old_queries = (queries + 1.2 * draw(q, dim)) @ rotation
    return Planted(new, queries, old, old_queries, relevant, rotation)


def noise(n: int = 1500) -> Planted:
    """The old model knows nothing of the items."""
    made = planted(n=n)
    old = np.random.default_rng(2).standard_normal(made.old.shape).astype(np.float32)
    return Planted(made.new, made.queries, old, made.old_queries, made.relevant, made.rotation)


def studied(given: dict[str, Any], cluster: Any = None) -> Any:
    """The study of a request."""
    from benchmark.upgrade.fit.maps import chosen_maps
    from benchmark.upgrade.measure.study import study
    from benchmark.upgrade.read.inputs import read_inputs
    from benchmark.upgrade.read.request import UpgradeRequest

    request = UpgradeRequest(**given)
    return study(read_inputs(request, cluster), chosen_maps(request.maps))


def write_upgrade(
    folder: Any, made: Planted, rows: Any = None, without: Sequence[str] = ()
) -> list[Any]:
    """Write an upgrade as npy files; the words of ``bench upgrade`` that name them but for some."""
    from support.vector_files import write

    rows = np.arange(len(made.new)) if rows is None else rows
    ids = np.arange(len(made.new))
    for name, vectors, names in (
        ("old-gallery", made.old, ids), ("new-gallery", made.new[rows], ids[rows]),
        ("queries", made.queries, None), ("old-queries", made.old_queries, None),
    ):  # fmt: skip
        write(folder / f"{name}.npy", vectors, names)
    qrels = "".join(f"{q} 0 {row} 1\n" for q, row in enumerate(made.relevant))
    (folder / "qrels.tsv").write_text(qrels)
    options = ("old-gallery", "new-gallery", "queries", "old-queries")
    files = {option: folder / f"{option}.npy" for option in options}
    files["qrels"] = folder / "qrels.tsv"
    named = {option: file for option, file in files.items() if option not in without}
    words = [word for option, file in named.items() for word in (f"--{option}", file)]
    return ["upgrade", *words, "--maps", "procrustes"]
