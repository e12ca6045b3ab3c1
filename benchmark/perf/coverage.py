"""Share of the 95 % intervals that hold the true score, in simulated evaluations.

Each sample draws classes anew: a centre, a noise of its own, and items around the centre. The tasks
evaluate them as they evaluate a model's embeddings. The true score is the mean over all samples.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.metrics import backfill_curves
from benchmark.metrics.intervals import Span, drawn_spread, mean_difference, mean_spread
from benchmark.ranking.arrays import Floats
from benchmark.tasks.base import Task, TaskResult
from benchmark.tasks.identification import Identification
from benchmark.tasks.reidentification import Reidentification
from benchmark.tasks.retrieval import Retrieval
from benchmark.tasks.text_retrieval import TextRetrieval
from benchmark.tasks.verification import Verification

NOMINAL = 0.95
DESIGNS = ((30, 20), (100, 10), (500, 20))  # classes, items of each
_LARGE = 5000  # items from which on half as many samples are drawn, for their time
_PROBES = 4000
LEVELS = {"low": 0.7, "middle": 0.9, "high": 1.8}  # distance of the classes
IMPOSTORS = (10, 30, 100, 1000)  # accepted at the target
_DIM, _UNEVEN, _POINTS = 16, 0.2, 101
_RANKED = ("cmc_at_1", "map")


Tallies = defaultdict[tuple[str, int | None], list[tuple[float, Span | None]]]
"""Score and interval in each sample, by metric, and impostors at the target."""


def rows(samples: int = 400) -> list[dict[str, Any]]:
    """Simulate every metric's interval, up to ``samples`` times for each design and level.

    ``impostors`` are those that the target accepts, where a threshold decides; ``score`` is the
    true one, ``coverage`` the share of the intervals that hold it, None where there is none.
    """
    return [row for design in DESIGNS for row in _design(*design, samples)]


def _design(classes: int, items: int, samples: int) -> Iterator[dict[str, Any]]:
    samples = samples if classes * items < _LARGE else max(1, samples // 2)
    for level, apart in LEVELS.items():
        rng = np.random.default_rng([classes, items])
        problem = CoverageProblem(classes, items)
        tallies: Tallies = defaultdict(list)
        curves: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for _ in range(samples):
            vectors, centre = problem.draw(apart, rng)
            _evaluate(problem, vectors, centre, tallies, rng, level == "middle")
            if level == "middle":
                curves.append(_backfill(problem, vectors, tallies, rng))
        truth = _curve_truth(curves) if curves else {}
        for (metric, impostors), tally in tallies.items():
            score = truth.get(metric, float(np.mean([value for value, _ in tally])))
            known = [span for _, span in tally if span is not None]
            held = [low <= score <= high for low, high in known]
            yield {
                "metric": metric, "classes": classes, "items": items, "level": level,
                "impostors": impostors, "score": score, "nominal": NOMINAL,
                "coverage": float(np.mean(held)) if known else None, "samples": len(known),
            }  # fmt: skip


class CoverageProblem:
    """Items of some classes, the parts that they play, and the targets of their impostors."""

    def __init__(self, classes: int, items: int) -> None:
        n = classes * items
        self.labels = np.repeat(np.arange(classes), items)
        enrolled = np.arange(0, n, items)
        half, each = classes // 2, min(items - 1, _PROBES // classes)
        self.items = Evaluation.of(
            np.zeros((n, 1, 1, 1), np.uint8), self.labels, camera=np.arange(n) % 4,
            probes=(enrolled[:, None] + np.arange(1, each + 1)).ravel(),
            galleries=(enrolled[:half], enrolled[half:]),
        )  # fmt: skip
        self.n_pairs = classes * each * (classes - 1)
        self.n_outside = (classes - half) * each

    def draw(self, apart: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Embeddings ``[n, d]``, and each item's class centre, of new classes."""
        classes = self.labels[-1] + 1
        centre = apart * rng.standard_normal((classes, _DIM))[self.labels]
        noise = np.exp(_UNEVEN * rng.standard_normal(classes))[self.labels, None]
        x = centre + noise * rng.standard_normal(centre.shape)
        return x.astype(np.float32), centre.astype(np.float32)


def _evaluate(
    problem: CoverageProblem, vectors: Floats, centre: Floats, tallies: Tallies,
    rng: np.random.Generator, compared: bool,
) -> None:  # fmt: skip
    """Tally every task's scores of one sample, and the differences to a second model."""
    far = {k: k / problem.n_pairs for k in IMPOSTORS}
    fpir = {k: k / problem.n_outside for k in IMPOSTORS if k < problem.n_outside / 2}
    noisy = (vectors + 0.5 * rng.standard_normal(vectors.shape)).astype(np.float32)
    text = (centre + 0.5 * rng.standard_normal(centre.shape)).astype(np.float32)

    def run(task: Task, query: Floats, gallery: Floats) -> TaskResult:
        options = {"distance": "cosine", "far": far.values(), "fpir": fpir.values()}
        return task.evaluate(query, gallery, problem.items, options)

    first = run(Retrieval(), vectors, vectors)

    def keep(label: str, impostors: int | None, result: TaskResult, name: str) -> None:
        tallies[label, impostors].append((result.scores[name], result.intervals[name]))

    for name in _RANKED:
        keep(name, None, first, name)
    keep("map, texts", None, run(TextRetrieval(), text, vectors), "map")
    pairs = run(Verification(), vectors, vectors)
    people = run(Identification(), vectors, vectors)
    keep("rank_1", None, people, "rank_1")
    for result, kind, targets in ((pairs, "tar_at_far", far), (people, "tpir_at_fpir", fpir)):
        for k, name in zip(targets, _at_targets(result, kind), strict=True):
            keep(kind, k, result, name)
    if compared:
        keep("minp", None, run(Reidentification(), vectors, vectors), "minp")
        second = run(Retrieval(), noisy, noisy)
        for name in ("cmc_at_1", "map"):
            left, right = first.per_query[name], second.per_query[name]
            found = mean_difference(left - right, first.identities[name])
            tallies[f"difference of {name}", None].append((found.value, found.interval()))
        other = run(Verification(), noisy, noisy)
        for k, name in zip(far, _at_targets(pairs, "tar_at_far"), strict=True):
            span, draws = None, (pairs.draws[name], other.draws[name])
            kept = mean_spread(
                pairs.per_query[name] - other.per_query[name], pairs.identities[name]
            )
            if draws[0] is not None and draws[1] is not None:
                spread = drawn_spread(kept.value, draws[0] - draws[1], kept.n_groups, kept)
                span = spread.interval(share=False)
            tallies["difference of tar_at_far", k].append((kept.value, span))


def _at_targets(result: TaskResult, kind: str) -> list[str]:
    return [name for name in result.scores if name.startswith(kind)]


def _backfill(
    problem: CoverageProblem, new: Floats, tallies: Tallies, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tally the worst point and the share above old/old of one sample; its curve and old/old."""
    n = len(new)
    rough, shift = rng.standard_normal((2, *new.shape))
    old = (new + 0.6 * rough).astype(np.float32)
    stored = (new + 1.1 * rough + 0.9 * shift).astype(np.float32)
    some = problem.labels % max(1, (problem.labels[-1] + 1) // 100) == 0
    query = np.flatnonzero(some & (np.arange(n) % 2 == 0))
    labels, ids = problem.labels, np.arange(n)
    options: Any = {"query_ids": ids[query], "gallery_ids": ids}
    order = rng.permutation(n)
    curve = backfill_curves.curves(
        new[query], stored, new[query], new, labels[query], labels, order, points=_POINTS, **options
    ).cmc(1)
    before = backfill_curves.curves(
        old[query], old, old[query], old, labels[query], labels, order, points=2, **options
    ).cmc(1)[0]
    means = curve.mean(1)
    share = backfill_curves.share_above(means, float(before.mean()))
    span = backfill_curves.worst_interval(curve, labels[query])
    tallies["worst_cmc_at_1", None].append((backfill_curves.worst(means), span))
    span = backfill_curves.share_above_interval(curve, before, labels[query])
    tallies["share_above_cmc_at_1", None].append((1.0 if share is None else share, span))
    return means, before.mean(keepdims=True)


def _curve_truth(curves: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> dict[str, float]:
    """Of the mean curve: the mean of the lowest points lies below the lowest mean."""
    means, before = (np.mean(column, axis=0) for column in zip(*curves, strict=True))
    share = backfill_curves.share_above(means, float(before[0]))
    truth = {"worst_cmc_at_1": backfill_curves.worst(means)}
    return truth | ({} if share is None else {"share_above_cmc_at_1": share})
