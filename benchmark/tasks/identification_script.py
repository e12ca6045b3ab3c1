"""1:N identification as a script in common use reports it: all pairs, no rank condition."""

from dataclasses import dataclass
from typing import ClassVar

from benchmark.data.base import Evaluation
from benchmark.metrics.identification import all_pairs_tpir_at_fpir
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Options, Task, TaskResult, template_vectors


@dataclass(frozen=True)
class IdentificationScript(Task):
    """Compare every probe with all galleries together, for comparison with that script only.

    No intervals.
    """

    scores: ClassVar = ("all_pairs_tpir_at_fpir_",)
    needs: ClassVar = ("templates",)

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """The share of mates above the threshold of each FPIR, and the negative pairs above it."""
        probes, subject = template_vectors(query, items, items.probes)
        galleries = [template_vectors(gallery, items, enrolled) for enrolled in items.galleries]
        targets = base.measurable(options["fpir"], len(probes))
        result = TaskResult()
        for point in all_pairs_tpir_at_fpir(probes, subject, galleries, targets):
            name = base.key("all_pairs_tpir_at_fpir", point.target)
            result.scores[name] = point.tar
            result.counts[f"n_accepted_pairs_{name}"] = round(point.far * len(probes))
        return result
