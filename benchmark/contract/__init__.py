"""What an adapter's author imports.

``Method`` and its bases ``CompatibleTraining``, ``OldClassifierTraining``,
``FeatureTransformation``, ``VectorMap``, ``LearnedMap`` and ``SidedMap``; what they are given
(``UpdateJob``, ``Batch``, ``Pairs``) and return (``Update``, ``Fitted``); and the parts that losses
and maps share.
"""

from benchmark.config.checks import in_range
from benchmark.config.seeds import drawing_from
from benchmark.contract.bases import CompatibleTraining, FeatureTransformation, VectorMap
from benchmark.contract.conversion import Conversion
from benchmark.contract.maps import (
    LearnedMap,
    SidedMap,
    divergence,
    fit_map,
    squared,
    target_of,
)
from benchmark.contract.method import Generation, Method, Step, Update, UpdateJob
from benchmark.contract.new_classifier import new_head, new_head_and_labels
from benchmark.contract.old_head import (
    OldClassifierTraining,
    OldHead,
    distillation,
    frozen_old_head,
)
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.errors import BenchError, RefusedError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.training.data import TrainingData
from benchmark.training.embedding import Batch, Epoch
from benchmark.training.loop import Curve, Trainer

__all__ = [
    "Batch", "BenchError", "CompatibleTraining", "Conversion", "Curve", "Epoch",
    "FeatureTransformation", "Fitted", "Generation", "Head", "LearnedMap", "Method",
    "OldClassifierTraining", "OldHead", "Pairs", "Portable", "RefusedError", "SidedMap", "Step",
    "Trainer", "TrainingData", "Update", "UpdateJob", "VectorMap", "distillation", "divergence",
    "drawing_from", "fit_map", "frozen_old_head", "in_range", "new_head", "new_head_and_labels",
    "squared", "target_of",
]  # fmt: skip
