"""Imports of an adapter's author: bases of methods, their inputs and results, shared parts."""

from benchmark.config.seeds import drawing_from
from benchmark.contract.bases import CompatibleTraining, FeatureTransformation, FittedMap, VectorMap
from benchmark.contract.classifiers import OldClassifier, OldClassifierTraining
from benchmark.contract.conversion import Conversion
from benchmark.contract.fusion import RankFusion, RankMerge, RescoredList, ScoreMerge
from benchmark.contract.interpolation import Between, chosen_share, turn
from benchmark.contract.lists import TwoLists
from benchmark.contract.maps import (
    LearnedMap,
    SideInformationMap,
    TrainedVectorMap,
    fit_map,
    kl_divergence,
    squared_distance,
)
from benchmark.contract.method import Generation, Method, Step, Update, UpdateJob
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.contract.two_models import JointQuery, ResultLists
from benchmark.errors import BenchError, RefusedError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.ranking.score_scale import Scale
from benchmark.training.data import TrainingData
from benchmark.training.embedding import Batch, Epoch
from benchmark.training.loop import Curve, Trainer

__all__ = [
    "Batch", "BenchError", "Between", "CompatibleTraining", "Conversion", "Curve", "Epoch",
    "FeatureTransformation", "Fitted", "FittedMap", "Generation", "Head", "JointQuery",
    "LearnedMap", "Method", "OldClassifier", "OldClassifierTraining", "Pairs", "Portable",
    "RankFusion", "RankMerge", "RefusedError", "RescoredList", "ResultLists", "Scale", "ScoreMerge",
    "SideInformationMap", "Step", "TrainedVectorMap", "Trainer",
    "TrainingData", "TwoLists", "Update", "UpdateJob", "VectorMap", "chosen_share", "drawing_from",
    "fit_map", "kl_divergence", "squared_distance", "turn",
]  # fmt: skip
