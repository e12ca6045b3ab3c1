"""The report on an upgrade, against the products of vectors that its scores need."""

import resource
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.perf import measure
from benchmark.perf.ranking import products
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.fit.maps import QUICK
from benchmark.upgrade.formats import sink_class
from benchmark.upgrade.formats.sink import writing
from benchmark.upgrade.measure.study import study
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.request import UpgradeRequest
from benchmark.upgrade.run import upgrade

_REPORT, _PRODUCTS = "whole report", "score products"
_SAMPLE = 20_000
_STEP = 4096
_BLOCK = 1 << 16
_LEAST = 1000
_BUSY = ", processor time"


def rows(
    items: int = 1_000_000, dim: int = 384, queries: int = 10_000, samples: int = 20_000
) -> list[dict[str, Any]]:
    """Time a report by relevance on a float16 file of ``items``, ``samples`` of them embedded anew.

    Maps are those in closed form, as trained ones are timed by steps. The products are float32, one
    for each list that the strategies search, with the scores thrown away: two are timed, one before
    the report and one after, so that a busy machine is busy for both, and stand for all. Processor
    time is of all threads. See ``benchmark.perf.run``.
    """
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        small = _Vectors(Path(name) / "small", max(_LEAST, _STEP // 4), dim, 50, samples)
        lists = small.lists()  # compiles what is compiled once, too
        small.report()
        whole = _Vectors(Path(name) / "whole", max(items, _LEAST), dim, queries, samples)
        one = partial(_products, whole.old_queries, whole.items)
        before, report = measure.once(one), measure.once(whole.report)
        # Of the process in the report: the next measurement sets it back.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        after = measure.once(one)
    wanted = measure.Timing(
        lists / 2 * (before.seconds + after.seconds),
        busy_s=lists / 2 * (before.busy_s + after.busy_s),
    )
    size = (
        f"{queries:,} queries, {whole.items:,} x {dim} float16, {whole.embedded:,} anew, "
        f"{lists} lists"
    )
    busy = {f"{_PRODUCTS}{_BUSY}": wanted.busy, f"{_REPORT}{_BUSY}": measure.Timing(report.busy_s)}
    size_busy = f"{size}; peak of the process in the report {peak:.2f} GiB"
    timings = {_PRODUCTS: wanted, _REPORT: report}
    return measure.rows(timings, size, _PRODUCTS) + measure.rows(
        busy, size_busy, f"{_PRODUCTS}{_BUSY}"
    )


class _Vectors:
    """Vectors of two models in files: one is a rotation of the other with noise."""

    def __init__(self, folder: Path, items: int, dim: int, queries: int, samples: int) -> None:
        """Write both galleries; each query looks for an item of the sample."""
        folder.mkdir()
        self.items, self.embedded = items, min(items, max(samples, _LEAST // 2))
        rng = np.random.default_rng(0)
        turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
        sample = np.sort(rng.choice(items, self.embedded, replace=False))
        wanted = rng.choice(sample[:_SAMPLE], queries)
        stored, new = folder / "old.npy", folder / "new.npy"
        sinks = [
            sink_class(path)(path, len(ids), "float16", ids)
            for path, ids in ((stored, np.arange(items)), (new, sample))
        ]
        meant = np.empty((queries, dim), np.float32)
        with writing(sinks):
            for first in range(0, items, _STEP):
                rows = rng.standard_normal((min(_STEP, items - first), dim), dtype=np.float32)
                sinks[0].write(rows)
                last = first + len(rows)
                anew = rows[sample[slice(*np.searchsorted(sample, [first, last]))] - first]
                if len(anew):
                    sinks[1].write(self._other(anew @ turn, rng, 0.3))
                here = (wanted >= first) & (wanted < last)
                meant[here] = rows[wanted[here] - first]
        self.old_queries = self._other(meant, rng, 1.0)
        self.given: dict[str, Any] = {
            "old_gallery": stored, "new_gallery": new,
            "queries": self._other(meant @ turn, rng, 0.6), "old_queries": self.old_queries,
        }  # fmt: skip
        self.more: dict[str, Any] = {
            "qrels": {i: {int(row): 1.0} for i, row in enumerate(wanted)},
            "ids": {"queries": np.arange(queries), "old_queries": np.arange(queries)},
        }  # fmt: skip

    @staticmethod
    def _other(vectors: Floats, rng: np.random.Generator, noise: float) -> Floats:
        return vectors + noise * rng.standard_normal(vectors.shape, dtype=np.float32)

    def report(self) -> object:
        """Make the report that is timed."""
        return upgrade(**self.given, **self.more, maps="quick")

    def lists(self) -> int:
        """Number of lists that strategies search, all of vectors of the same size."""
        request = UpgradeRequest(**self.given, **self.more)
        plan = study(read_inputs(request), QUICK).first.plan
        return len({name for each in plan.strategies for name in each.uses})


def _products(queries: Floats, items: int) -> None:
    """All products of the queries and as many items, which are the same ones again and again."""
    block = np.ones((_BLOCK, queries.shape[1]), np.float32)
    for first in range(0, items, _BLOCK):
        products(queries, block[: items - first])
