"""Open-set 1:N identification: TPIR@FPIR, rank-1 and -5 of each enrolment gallery; their mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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

Part = tuple[NDArray[np.float64], Ints, NDArray[np.float64] | None]
"""Hits, each one's identity, and the score in draws of identities, if there are any."""


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
                values.setdefault(f"rank_{k}", {})[i] = rank_k(searched, k), subject[mated], None
            non_mated = int((~mated).sum())
            targets = base.measurable(options["fpir"], non_mated)
            for point in tpir_at_fpir(searched, targets) if targets else ():
                name = base.key("tpir_at_fpir", point.target)
                draws = identification_draws(searched, who, len(people), point.target)
                values.setdefault(name, {})[i] = point.hits, subject[mated], draws
                accepted = round(point.fpir * non_mated)
                result.counts[f"n_accepted_outsiders_g{i}_{name}"] = accepted
            result.counts.update({
                f"n_enrolled_g{i}": len(enrolled), f"n_mated_g{i}": int(mated.sum()),
                f"n_outsiders_g{i}": non_mated,
            })  # fmt: skip
        for name, parts in values.items():
            if len(parts) == len(items.galleries):  # a mean is of all
                _add(result, name, _joined([*parts.values()]), len(people))
            if len(items.galleries) > 1:  # of a single gallery the mean says it all
                for i, part in parts.items():
                    _add(result, f"g{i}_{name}", part, len(people))
        return result


def _joined(parts: Sequence[Part]) -> Part:
    """The mean of the galleries' means: of values weighted by their gallery's size."""
    n = sum(len(hits) for hits, _, _ in parts)
    weighted = [hits * (n / (len(parts) * len(hits))) for hits, _, _ in parts]
    drawn = [draws for _, _, draws in parts if draws is not None]
    draws = np.mean(drawn, axis=0) if len(drawn) == len(parts) else None
    return np.concatenate(weighted), np.concatenate([who for _, who, _ in parts]), draws


def _add(result: TaskResult, name: str, part: Part, n_people: int) -> None:
    hits, identity, draws = part
    if describe(name).threshold:
        result.add_at_threshold(name, hits, identity, draws, n_people)
    else:
        result.add(name, hits, identity, IDENTITIES)
