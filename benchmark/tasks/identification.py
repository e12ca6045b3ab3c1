"""Open-set 1:N identification: TPIR@FPIR, rank-1 and -5 of each enrolment gallery; their mean."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation
from benchmark.metrics.identification import rank_k, search, tpir_at_fpir
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Ints, Options, Task, TaskResult, template_vectors


@dataclass(frozen=True)
class Identification(Task):
    """Search each enrolment gallery (IJB-C's G1, G2) with every probe.

    Each gallery has its own threshold; ``g1_...`` and ``g2_...`` are the galleries' scores, the
    plain names their mean. Targets below one non-mated probe are left out. The intervals draw probe
    identities with replacement and keep the thresholds.
    """

    scores: ClassVar = ("rank_1", "rank_5", "tpir_at_fpir_", "g1_", "g2_")
    needs: ClassVar = ("templates",)

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """TPIR at each FPIR, rank-1 and rank-5."""
        probes, subject = template_vectors(query, items, items.probes)
        result = TaskResult(counts={"n_probe": len(probes)})
        values: dict[str, dict[int, tuple[NDArray[np.float64], Ints]]] = {}
        for i, enrolled in enumerate(items.galleries, 1):
            searched = search(probes, subject, *template_vectors(gallery, items, enrolled))
            identity = subject[searched.mated]
            for k in (1, 5):
                values.setdefault(f"rank_{k}", {})[i] = rank_k(searched, k), identity
            non_mated = int((~searched.mated).sum())
            targets = base.measurable(options["fpir"], non_mated)
            for point in tpir_at_fpir(searched, targets) if targets else ():
                name = base.key("tpir_at_fpir", point.target)
                values.setdefault(name, {})[i] = point.hits, identity
                accepted = round(point.fpir * non_mated)
                result.counts[f"n_accepted_outsiders_g{i}_{name}"] = accepted
            result.counts.update({
                f"n_enrolled_g{i}": len(enrolled), f"n_mated_g{i}": len(identity),
                f"n_outsiders_g{i}": non_mated,
            })  # fmt: skip
        for name, parts in values.items():
            # The mean of the galleries' means: of values weighted by their gallery's size.
            n = sum(len(hits) for hits, _ in parts.values())
            weighted = [hits * (n / (len(parts) * len(hits))) for hits, _ in parts.values()]
            identities = np.concatenate([identity for _, identity in parts.values()])
            result.add(name, np.concatenate(weighted), groups=identities)
            if len(items.galleries) > 1:  # of a single gallery the mean says it all
                for i, (hits, identity) in parts.items():
                    result.add(f"g{i}_{name}", hits, groups=identity)
        return result
