"""Declarations of methods, datasets and tasks, by which a run is checked beforehand.

The classes that do the work derive from these: ``benchmark.contract.Method``,
``benchmark.data.base.DatasetReader`` and the tasks of ``benchmark.tasks``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmark.config.embedders import Modality
from benchmark.config.reading import STRICT

FIDELITIES = {
    "paper": "the publication itself was read, or one that has it as a baseline",
    "code": "the authors' published code was read, not the paper",
    "second-hand": "neither was read: quotations, a re-implementation, a translation or memory",
    "ours": "a control, a baseline, or textbook algebra that is written out here",
}
"""Sources that an adapter may be built from -> in words."""
NEEDS = ("old_head", "independent", "side:<kind>")
"""Parts that a plan can provide to a method."""
CHANGES = ("training", "gallery", "queries", "dimension")
"""Changes that a method can make."""


@dataclass(frozen=True)
class MethodDeclaration(ABC):
    """Declarations of a method; its fields are its hyper-parameters.

    ``fidelity``, ``fitted`` and ``baseline`` are no part of its code.
    """

    __pydantic_config__ = STRICT
    paper: ClassVar[str] = ""  # where it comes from: title, authors, year
    # what it was built from, see FIDELITIES; where variants differ, a mapping of variants, "" for
    # the method itself and all others
    fidelity: ClassVar[str | Mapping[str, str]] = ""
    # False when the new model is the independent one, so nothing is trained or embedded again
    own_model: ClassVar[bool] = True
    own_first: ClassVar[bool] = False  # the first generation is trained the method's own way
    # the old model itself embeds new images, beside or instead of the new one; such a method cannot
    # serve text queries, whose old model reads texts
    runs_old_model: ClassVar[bool] = False
    # False when it makes nothing of the old classifier where a protocol keeps it: then a training
    # is shared with protocols that discard it
    reads_old_head: ClassVar[bool] = True
    # True where a later update of a sequence asks it all the same if old embeddings have lengths
    asks_old_lengths: ClassVar[bool] = False
    model_runs: ClassVar[int] = 1  # embedding models that run on a query
    indexes: ClassVar[int] = 1  # of the gallery that are kept, at most at one time
    fitted: ClassVar[bool] = True  # False where no pairs of vectors are needed to fit on
    control: ClassVar[bool] = False  # which a page shows without a rank
    # where hardly any work already gives it: what that is, in words for pages
    baseline: ClassVar[str] = ""
    # what is trained at an update, in words for its card; empty: a new model, or none without
    # ``own_model``
    trains: ClassVar[str] = ""
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # named sets of parameters
    builds_on: ClassVar[tuple[str, ...]] = ()  # methods that it takes parts of, with their code
    # the method of which it is a variant that needs code of its own; ``every`` method leaves it
    # out, as it does other variants
    variant_of: ClassVar[str] = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts that the plan must provide, any of :data:`NEEDS`."""
        return ()

    @property
    def uses(self) -> tuple[str, ...]:
        """Other inputs of what every plan has, in words for its card."""
        return ()

    @property
    def new_embeddings(self) -> int:
        """Items that the new model embeds while a query waits, at most."""
        return 0

    @property
    def changes(self) -> tuple[str, ...]:
        """Changes that it makes, any of :data:`CHANGES`."""
        return ("training",)

    @abstractmethod
    def refuses(self, step: Any) -> str | None:
        """The reason why the method cannot make this update; ``None`` if it can."""

    @abstractmethod
    def first(self, job: Any) -> Any:
        """Train generation 1 the method's own way; only with ``own_first``."""

    @abstractmethod
    def fit(self, *arrays: Any, **options: Any) -> Any:
        """Fit on plain arrays."""

    @abstractmethod
    def update(self, job: Any) -> Any:
        """Train or fit the new generation, given the earlier ones."""


@dataclass(frozen=True)
class EvaluationSet:
    """One of a dataset's evaluation sets, as it is declared."""

    unseen: bool = False  # no class of it is trained on
    # task -> why its scores would mean nothing on these items
    rules_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Download:
    """A file that may be downloaded, and what it must be."""

    name: str  # below the data root
    url: str  # the official address
    sha256: str
    n_bytes: int
    part_of: str = ""  # another file that holds all of it: downloaded only where asked for
    # A zip that is packed anew for whoever asks: its hash is over the names and contents of its
    # files, and its size about what comes.
    packed_anew: bool = False


@dataclass(frozen=True)
class PublishedSplit:
    """Images of a generation as a paper counts them; intervals as of a protocol."""

    title: str
    images: tuple[float, float]
    classes: tuple[float, float]
    n_images: int
    n_classes: int


@dataclass(frozen=True)
class Origin:
    """Source and size of a dataset."""

    page: str  # the official one
    licence: str = ""  # as stated with the files; empty: none is, or whoever asks is told the terms
    how: str = ""  # how to have what may not be downloaded without asking
    downloads: tuple[Download, ...] = ()
    # published numbers, in the words of ``bench data check``
    counts: Mapping[str, int] = field(default_factory=dict)
    source: str = ""  # where these numbers are published
    splits: tuple[PublishedSplit, ...] = ()

    @property
    def terms(self) -> str:
        """The licence in words."""
        if self.licence:
            return self.licence
        asked = f"terms of its provider, who is asked for it: {self.page}"
        return f"no licence is stated on {self.page}" if self.downloads else asked


@dataclass(frozen=True)
class Offer:
    """Offers of a dataset, as far as is known: as the attributes of its declaration."""

    columns: frozenset[str]
    evaluation_sets: Mapping[str, EvaluationSet]


@dataclass(frozen=True)
class DatasetDeclaration(ABC):
    """Declarations of a dataset; its fields are the options that a track may set."""

    __pydantic_config__ = STRICT
    # beside images and classes: any of ``cameras``, ``templates``, ``groups``, ``texts``
    columns: ClassVar[frozenset[str]] = frozenset()
    evaluation_sets: ClassVar[Mapping[str, EvaluationSet]] = {"test": EvaluationSet()}
    more: ClassVar[str] = ""  # what a user may do about columns that it has not; empty: nothing
    modality: ClassVar[Modality] = "image"  # texts stand as their bytes in place of pixels
    pictures: ClassVar[bool] = False  # its licence lets small pictures of its items be passed on
    needs_root: ClassVar[bool] = False  # it is read from a folder
    stores_queries: ClassVar[bool] = False  # every query is in the gallery, too
    origin: ClassVar[Origin | None] = None  # of its files; None where it is drawn, or the user's

    @property
    def captioned(self) -> bool:
        """Tell whether its images have captions: texts of their own, not their classes' names."""
        return False

    @property
    def members(self) -> tuple[str, ...]:
        """Datasets that it joins, each of which has a folder of its own; none by default."""
        return ()

    def offers(self, root: Path | None) -> Offer:  # noqa: ARG002
        """Its columns and evaluation sets; of some datasets the files below ``root`` decide."""
        return Offer(self.columns, self.evaluation_sets)

    def sizes(self) -> dict[str, int] | None:
        """``train_classes`` and ``train_images``, where they are known without the data."""
        return None

    @abstractmethod
    def source(self, root: Path | None) -> dict[str, Any]:
        """All that determines the data: options, reading version, hash of the files."""

    @abstractmethod
    def load(self, root: Path | None) -> Any:
        """Read the dataset."""


@dataclass(frozen=True)
class TaskDeclaration(ABC):
    """Declarations of a task."""

    scores: ClassVar[tuple[str, ...]] = ()  # keys of its scores, whole or as they begin
    needs: ClassVar[tuple[str, ...]] = ()  # columns that a dataset must have
    text_queries: ClassVar[bool] = False  # it evaluates the cases of text queries, and only these
    # ``old/new`` is evaluated beside ``new/old``, as 1:1 verification has no gallery
    both_directions: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, *embeddings: Any) -> Any:
        """Embeddings in, scores out."""
