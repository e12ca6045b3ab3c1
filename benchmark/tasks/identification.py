"""Open-set 1:N identification: TPIR@FPIR, rank-1 and -5 of each enrolment gallery; their mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.metrics.catalog import describe
from benchmark.metrics.identification import rank_k, search, tpir_at_fpir
from benchmark.metrics.threshold_draws import identification_draws
from benchmark.tasks import base
from benchmark.tasks.base import (
    IDENTITIES,
    Embeddings,
    Ints,
    Options,
    Task,
    TaskResult,
    template_vectors,
)  # fmt: skip


class Part(NamedTuple):
    """Hits in a gallery, or in all of them."""

    hits: NDArray[np.float64]  # one a mated probe; of all galleries weighted, so that they average
    identity: Ints  # of each
    draws: NDArray[np.float64] | None  # the score in draws of identities, if there are any
    score: float


@dataclass(frozen=True)
class Identification(Task):
    """Search each enrolment gallery (IJB-C's G1, G2) with every probe.

    Each gallery has its own threshold; ``g1_...`` and ``g2_...`` are the galleries' scores, the
    plain names their mean where all have one. Targets below one non-mated probe are left out.
    The intervals draw identities, mated and non-mated, and find the thresholds anew; where fewer
    than 30 non-mated probes decide a threshold, there is none.
    """

    scores: ClassVar = ("rank_1", "rank_5", "tpir_at_fpir_", "g1_", "g2_")
    needs: ClassVar = ("templates",)

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """TPIR at each FPIR, rank-1 and rank-5."""
        probes, subject = template_vectors(query, items, items.probes)
        people, who = np.unique(subject, return_inverse=True)
        result = TaskResult(counts={"n_probe": len(probes)})
        values: dict[str, dict[int, Part]] = {}
        for i, enrolled in enumerate(items.galleries, 1):
            searched = search(probes, subject, *template_vectors(gallery, items, enrolled))
            mated = searched.mated
            for k in (1, 5):
                hits = rank_k(searched, k)
                part = Part(hits, subject[mated], None, base.mean(hits))
                values.setdefault(f"rank_{k}", {})[i] = part
            non_mated = int((~mated).sum())
            targets = base.measurable(options["fpir"], non_mated)
            for point in tpir_at_fpir(searched, targets) if targets else ():
                name = base.key("tpir_at_fpir", point.target)
                draws = identification_draws(searched, who, len(people), point.target)
                part = Part(point.hits, subject[mated], draws, point.tpir)
                values.setdefault(name, {})[i] = part
                accepted = round(point.fpir * non_mated)
                result.counts[f"n_accepted_outsiders_g{i}_{name}"] = accepted
            result.counts.update({
                f"n_enrolled_g{i}": len(enrolled), f"n_mated_g{i}": int(mated.sum()),
                f"n_outsiders_g{i}": non_mated,
            })  # fmt: skip
        for name, parts in values.items():
            if len(parts) == len(items.galleries):  # a mean is of all
                _add(result, name, joined([*parts.values()]), len(people))
            if len(items.galleries) > 1:  # of a single gallery the mean says it all
                for i, part in parts.items():
                    _add(result, f"g{i}_{name}", part, len(people))
        return result


def joined(parts: Sequence[Part]) -> Part:
    """The mean of the galleries' means: of values weighted by their gallery's size.

    The score is not theirs, which is rounded by where the hits stand: equal numbers of hits give
    equal scores, of which neither is better.
    """
    n = sum(len(part.hits) for part in parts)
    weighted = [part.hits * (n / (len(parts) * len(part.hits))) for part in parts]
    drawn = [part.draws for part in parts if part.draws is not None]
    draws = np.mean(drawn, axis=0) if len(drawn) == len(parts) else None
    identity = np.concatenate([part.identity for part in parts])
    score = float(np.mean([part.score for part in parts]))
    return Part(np.concatenate(weighted), identity, draws, score)


def _add(result: TaskResult, name: str, part: Part, n_people: int) -> None:
    hits, identity, draws, score = part
    if describe(name).threshold:
        result.add_at_threshold(name, hits, identity, draws, n_people, score)
    else:
        result.add(name, hits, identity, IDENTITIES, score)
