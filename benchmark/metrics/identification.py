"""Open-set 1:N identification.

A probe is mated if its subject is in the gallery; of several templates of one subject the best
counts. Probes are vectors ``[n, d]`` with subjects ``[n]``, integers or strings; a gallery is the
same, ``[m, d]`` and ``[m]``. A ValueError names an argument of the wrong shape, type or value, a
target that the scores cannot resolve, or a search without mated or without non-mated probes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.catalog import metric
from benchmark.metrics.retrieval import cut_off
from benchmark.metrics.verification import RATE, OperatingPoint, thresholds
from benchmark.ranking import arrays
from benchmark.ranking.arrays import Floats, Ints, Mask


@dataclass(frozen=True)
class Search:
    """One gallery searched with every probe, in the probes' order.

    Attributes:
        rank: 1 + the number of templates of other subjects that score at least as high as the
            probe's own subject, int64 ``[n]``; 0 for a probe that is not mated.
        own: The score of the probe's own subject, float32 ``[n]``; NaN for one not mated.
        best: The highest score in the gallery, float32 ``[n]``.
    """

    rank: Ints
    own: Floats
    best: Floats

    @property
    def mated(self) -> Mask:
        """Probes whose subject is in the gallery, bool ``[n]``."""
        return self.rank > 0


@dataclass(frozen=True)
class IdentificationPoint:
    """TPIR at the score that is the threshold for a target FPIR, with what was achieved."""

    target: float
    tpir: float  # share of mated probes whose own subject ranks first and reaches the threshold
    fpir: float  # share of non-mated probes whose best score reaches it, the achieved FPIR
    threshold: float
    n_mated: int
    n_nonmated: int
    # 0.0 or 1.0 for each mated probe, in the probes' order; their mean is ``tpir``
    hits: NDArray[np.float64]


def _enrolled(counts: Mapping[str, float]) -> float:
    """Subjects of a gallery, mean over both."""
    return (counts["n_enrolled_g1"] + counts["n_enrolled_g2"]) / 2


@metric("g1_{metric}", "{metric} (G1)", "Gallery G1 alone.", rises=True)
@metric("g2_{metric}", "{metric} (G2)", "Gallery G2 alone.", rises=True)
def search(
    probe_vectors: Any, probe_subjects: Any, gallery_vectors: Any, gallery_subjects: Any, *,
    threads: int | None = None,
) -> Search:  # fmt: skip
    """Score every probe against the whole gallery by cosine, in CPU threads (all by default)."""
    from benchmark.ranking import blocks, engine, pair_kernels

    names = "probe_vectors", "gallery_vectors"
    scorer = engine.Scorer(probe_vectors, gallery_vectors, names=names, threads=threads)
    n = scorer.shape[0]
    if not scorer.shape[1]:
        raise ValueError("gallery_vectors: expected at least one row, got none")
    ps, gs = arrays.codes("subjects", (probe_subjects, gallery_subjects), scorer.shape)
    result = Search(np.zeros(n, np.int64), np.full(n, np.nan, np.float32), np.empty(n, np.float32))

    def work(first: int, last: int, scores: Floats) -> None:
        here = (column[first:last] for column in (result.rank, result.own, result.best))
        pair_kernels.search(scores, ps[first:last], gs, *here)

    blocks.blocks(scorer, work)
    return result


@metric(
    "pooled_{metric}", "{metric}, pooled", "Both galleries joined to one, a rule of its own.",
    rises=True,
)  # fmt: skip
def pooled(
    probe_vectors: Any, probe_subjects: Any, galleries: Iterable[tuple[Any, Any]], *,
    threads: int | None = None,
) -> Search:  # fmt: skip
    """Search several galleries joined to one, a rule of its own (keys ``pooled_...``).

    MixBCT's text speaks of one gallery of 3,531 templates; IJB-C's protocol has two.
    """
    return search(probe_vectors, probe_subjects, *_joined(galleries), threads=threads)


@metric(
    "tpir_at_fpir_{rate}", "TPIR@FPIR {rate}",
    f"Ranked first and above the threshold; each gallery apart. {RATE}",
    threshold=True, rises=True, chance=lambda rate, counts: rate / _enrolled(counts),
)  # fmt: skip
def tpir_at_fpir(result: Search, targets: Iterable[float]) -> tuple[IdentificationPoint, ...]:
    """TPIR at the smallest threshold whose FPIR is within each target, in [1/non-mated probes, 1].

    Source: IJB-C's protocol: TPIR counts a mated probe only where its subject ranks first *and*
    reaches the threshold. BCT prints TNIR@FPIR for the same.
    """
    first, own, bad = _open_set(result)
    points = []
    for target, threshold in thresholds(own, bad, targets, "non-mated probes"):
        hits = (first & (own >= threshold)).astype(np.float64)
        tpir, fpir = float(hits.mean()), int(np.count_nonzero(bad >= threshold)) / len(bad)
        points.append(IdentificationPoint(target, tpir, fpir, threshold, len(own), len(bad), hits))
    return tuple(points)


@metric(
    "all_pairs_tpir_at_fpir_{rate}", "TPIR@FPIR {rate}, all pairs",
    "Galleries pooled, all negative pairs impostors, no rank condition; above the "
    "ceil(probes x FPIR)-th largest negative score, strictly. Only for comparison with scripts.",
    threshold=True, rises=True,
)  # fmt: skip
def all_pairs_tpir_at_fpir(
    probe_vectors: Any, probe_subjects: Any, galleries: Iterable[tuple[Any, Any]],
    targets: Iterable[float], *, threads: int | None = None,
) -> tuple[OperatingPoint, ...]:  # fmt: skip
    """Galleries pooled, every negative pair an impostor, no rank condition: for comparison only.

    The threshold is the ceil(n * target)-th largest score of a negative pair, n the number of
    probes; pairs count that score higher. A point's ``far`` is the number of such negative pairs
    by probe. It is not comparable with :func:`tpir_at_fpir`. A ValueError also names a target that
    is not in (0, 1] or asks for more negative pairs than there are.

    Source: insightface, recognition/_evaluation_/ijb/ijb_1n.py (1b8d928).
    """
    from benchmark.ranking import pair_scores

    vectors, subjects = _joined(galleries)
    sides = probe_vectors, vectors, probe_subjects, subjects
    good, bad = pair_scores.all_pairs(*sides, threads=threads)
    if not len(good):
        raise ValueError("probe_subjects: expected one that is in a gallery, got none")
    points, n = [], len(arrays.plain(probe_subjects))
    for target in map(float, targets):
        place = math.ceil(n * target)
        if not 0.0 < target <= 1.0 or place > len(bad):
            raise ValueError(f"targets: expected rates in (0, 1] of {len(bad)} pairs, got {target}")
        threshold = float(np.partition(bad, len(bad) - place)[len(bad) - place])
        tpir, above = np.mean(good > threshold), np.count_nonzero(bad > threshold)
        points.append(OperatingPoint(
            target, float(tpir), above / n, threshold, len(good), len(bad)
        ))  # fmt: skip
    return tuple(points)


@metric(
    "rank_{k}", "Rank-{k}",
    "Closed set: mated probes only, whatever the score. Ties rank the probe's subject last.",
    rises=True, chance=lambda k, counts: min(1.0, k / _enrolled(counts)),
)  # fmt: skip
def rank_k(result: Search, k: int) -> NDArray[np.float64]:
    """1.0 for each mated probe whose own subject is among the ``k`` best, whatever the score."""
    return (result.rank[result.mated] <= cut_off(k)).astype(np.float64)


def dir_curve(result: Search) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """FPIR, ascending from 0 to 1, at every non-mated probe's score, and the TPIR within it.

    TPIR is the detection and identification rate, at the smallest threshold within the FPIR.
    """
    first, own, bad = _open_set(result)
    values, counts = np.unique(bad, return_counts=True)
    right = np.sort(own[first])
    above = len(right) - np.searchsorted(right, values[::-1], side="right")  # refuses this value
    fpir = np.concatenate([[0.0], np.cumsum(counts[::-1]) / len(bad)])
    return fpir, np.concatenate([above, [len(right)]]) / len(own)


def _joined(galleries: Iterable[tuple[Any, Any]]) -> Iterator[NDArray[Any]]:
    """Vectors and subjects of several galleries."""
    for column in zip(*galleries, strict=True):
        yield np.concatenate([arrays.plain(part) for part in column])


def _open_set(result: Search) -> tuple[Mask, Floats, Floats]:
    """The mated probes' subjects that rank first, their scores, and the non-mated ones' best."""
    mated = result.mated
    if not mated.any() or mated.all():
        some = f"{int(mated.sum())} mated of {len(mated)}"
        raise ValueError(f"result: expected mated and non-mated probes, got {some}")
    return result.rank[mated] == 1, result.own[mated], result.best[~mated]
