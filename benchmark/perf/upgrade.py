"""The report on an upgrade, against the products of vectors that its scores need."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.perf import measure
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.formats import sink_class
from benchmark.upgrade.formats.sink import writing
from benchmark.upgrade.judging import study
from benchmark.upgrade.maps import QUICK
from benchmark.upgrade.reading import read_inputs
from benchmark.upgrade.run import upgrade

_REPORT, _PRODUCTS = "whole report", "score products"
_SAMPLE = 20_000
_STEP = 4096
_LEAST = 1000


def rows(items: int = 1_000_000, dim: int = 384, queries: int = 10_000) -> list[dict[str, Any]]:
    """Time a report by relevance on a float16 file of ``items``, a sample of them embedded anew.

    Maps are those in closed form, as trained ones are timed by steps. The products are float32, one
    for each list that the strategies search, with the scores thrown away. See
    ``benchmark.perf.run``.
    """
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        small = _Vectors(Path(name) / "small", max(_LEAST, _STEP // 4), dim, 50)
        lists = small.lists()  # compiles what is compiled once, too
        whole = _Vectors(Path(name) / "whole", max(items, _LEAST), dim, queries)
        calls = {
            _PRODUCTS: lambda: _products(whole.given["old_queries"], whole.items, lists),
            _REPORT: whole.report,
        }
        timings = measure.together(calls, 1)
    size = f"{queries:,} queries, {whole.items:,} x {dim} float16, {len(lists)} lists"
    return measure.rows(timings, size, _PRODUCTS)


class _Vectors:
    """Vectors of two models in files: one is a rotation of the other with noise."""

    def __init__(self, folder: Path, items: int, dim: int, queries: int) -> None:
        """Write the gallery; each query looks for an item of the sample."""
        folder.mkdir()
        self.items = items
        rng = np.random.default_rng(0)
        turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
        sample = np.sort(rng.choice(items, min(items, _SAMPLE), replace=False))
        wanted = rng.choice(sample, queries)
        stored = folder / "old.npy"
        sink = sink_class(stored)(stored, items, "float16", np.arange(items))
        new, meant = [], np.empty((queries, dim), np.float32)
        with writing([sink]):
            for first in range(0, items, _STEP):
                rows = rng.standard_normal((min(_STEP, items - first), dim), dtype=np.float32)
                sink.write(rows)
                last = first + len(rows)
                new.append(rows[sample[(sample >= first) & (sample < last)] - first])
                here = (wanted >= first) & (wanted < last)
                meant[here] = rows[wanted[here] - first]
        self.given: dict[str, Any] = {
            "old_gallery": stored, "new_gallery": self._other(np.concatenate(new) @ turn, rng, 0.3),
            "queries": self._other(meant @ turn, rng, 0.6),
            "old_queries": self._other(meant, rng, 1.0),
        }  # fmt: skip
        self.more: dict[str, Any] = {
            "qrels": {i: {int(row): 1.0} for i, row in enumerate(wanted)},
            "ids": {"new_gallery": sample, "queries": np.arange(queries),
                    "old_queries": np.arange(queries)},
        }  # fmt: skip

    @staticmethod
    def _other(vectors: Floats, rng: np.random.Generator, noise: float) -> Floats:
        return vectors + noise * rng.standard_normal(vectors.shape, dtype=np.float32)

    def report(self) -> object:
        """What is timed."""
        return upgrade(**self.given, **self.more, maps="quick")

    def lists(self) -> list[int]:
        """Dimensions of the lists that strategies search."""
        plan = study(read_inputs(**self.given, **self.more), QUICK).plan
        used = {name for each in plan.strategies for name in each.uses}
        return [plan.lists[name].queries.shape[1] for name in used]


def _products(queries: Floats, items: int, dims: list[int]) -> None:
    block = np.ones((_STEP, queries.shape[1]), np.float32)
    scores = np.empty((len(queries), _STEP), np.float32)
    for dim in dims:
        query, item = np.ascontiguousarray(queries[:, :dim]), np.ascontiguousarray(block[:, :dim])
        for first in range(0, items, _STEP):
            n = min(_STEP, items - first)
            np.matmul(query, item[:n].T, out=scores[:, :n])
