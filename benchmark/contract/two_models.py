"""Bases of methods that embed a query by the old and by the new model; the gallery stays."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from benchmark.contract.bases import FeatureTransformation
from benchmark.contract.lists import TwoLists
from benchmark.contract.method import Step
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.errors import RefusedError
from benchmark.models.module import Portable
from benchmark.models.parts import OldQuery
from benchmark.training.loop import Trainer


@dataclass(frozen=True)
class TwoModels(FeatureTransformation):
    """Base of methods that need both models at query time."""

    runs_old_model = True
    reads_old_head = False
    model_runs = 2

    @property
    def uses(self) -> tuple[str, ...]:
        """Pairs of features, and the old model for as long as the gallery lasts."""
        return (*super().uses, "the old model on all queries")

    @property
    def changes(self) -> tuple[str, ...]:
        """The queries."""
        return ("queries",)


@dataclass(frozen=True)
class JointQuery(TwoModels):
    """Base of queries made of both models' vectors, for a gallery of old ones: :meth:`fit_view`.

    They are directions, for cosine alone. New/new is the independent model's.
    """

    trains: ClassVar[str] = "nothing: the old and the independent model, and a map in closed form"

    def refuses(self, step: Step) -> str | None:
        """Only cosine compares directions."""
        return None if step.distance == "cosine" else f"needs cosine, got {step.distance}"

    @abstractmethod
    def fit_view(self, pairs: Pairs, trainer: Trainer) -> Portable:
        """Vectors of a query by the new and the old model -> the old model's space, ``[n, d]``."""

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Fit the view."""
        if pairs.distance != "cosine":
            raise RefusedError(f"{type(self).__name__}: needs cosine, got {pairs.distance}")
        return Fitted(joint_view=self.fit_view(pairs, trainer))


@dataclass(frozen=True)
class ResultLists(TwoModels):
    """Base of methods that rank two lists, by the old and by the new query: :meth:`fit_merge`.

    The old query goes to unfilled items, the new one to filled ones. Before anything is filled
    new/old is old/old; when all is, new/new is the independent model's.
    """

    indexes = 2
    trains: ClassVar[str] = "nothing: the old and the independent model side by side"

    @abstractmethod
    def fit_merge(self, pairs: Pairs, trainer: Trainer) -> TwoLists:
        """The merge of the two lists into one."""

    def learn(self, pairs: Pairs, trainer: Trainer) -> Fitted:
        """Fit the merge."""
        return Fitted(joint_view=OldQuery(), merge=self.fit_merge(pairs, trainer))
