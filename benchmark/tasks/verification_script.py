"""1:1 verification as a script in common use reports it: TAR at the nearest FAR."""

from dataclasses import dataclass
from typing import ClassVar

from benchmark.data.base import Evaluation
from benchmark.metrics.verification import tar_at_nearest_far
from benchmark.tasks import base
from benchmark.tasks.base import Embeddings, Options, Task, TaskResult
from benchmark.tasks.verification import compared


@dataclass(frozen=True)
class VerificationScript(Task):
    """Compare the pairs of ``verification``, for comparison with numbers of that script only.

    The FAR may exceed the target. Targets below one impostor pair are left out; no intervals.
    """

    scores: ClassVar = ("tar_at_nearest_far_",)
    needs: ClassVar = ("templates",)
    both_directions: ClassVar = True

    def evaluate(
        self, query: Embeddings, gallery: Embeddings, items: Evaluation, options: Options
    ) -> TaskResult:
        """TAR at the FAR nearest to each target, and the impostors accepted there."""
        pairs = compared(query, gallery, items)
        genuine, impostor = pairs.genuine, pairs.impostors.scores
        result = TaskResult()
        targets = base.measurable(options["far"], impostor.size)
        for point in tar_at_nearest_far(genuine, impostor, targets) if targets else ():
            name = base.key("tar_at_nearest_far", point.target)
            result.scores[name] = point.tar
            result.counts[f"n_accepted_impostor_{name}"] = round(point.far * impostor.size)
        return result
