"""Protocols: generations, their shares of the data, and the tasks that evaluate the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator

from benchmark.config.checks import (
    Id,
    Interval,
    Name,
    Names,
    Seed,
    Text,
    Version,
    Words,
    holds,
    unique,
)
from benchmark.config.generations import GenerationSpec, overlap
from benchmark.config.reading import Model
from benchmark.errors import unknown
from benchmark.metrics.backfill_orders import ORDERS


class EvaluationSpec(Model):
    """Choice of the dataset's items that are queries and gallery, and their groups."""

    part: str | None = None
    """One of the dataset's evaluation sets; by default the track's."""
    classes: Interval = (0.0, 1.0)
    """Only items of this interval of the training classes, as fractions."""
    groups: Names = ()
    """Only items of these of the track's groups."""
    ranges: Annotated[int, Field(ge=0, le=10_000), holds(lambda n: n != 1, "0 or at least 2")] = 0
    """Items are grouped by this many ranges of the training classes (FCT C); 0: by the dataset's
    groups."""
    against: str | None = None
    """Items of this one of the track's groups make one group, all others another."""

    @model_validator(mode="after")
    def _one_grouping(self) -> EvaluationSpec:
        if self.ranges and self.against is not None:
            raise ValueError("expected ranges or against, got both")
        return self

    @property
    def roles(self) -> set[str]:
        """Groups of the track that it names."""
        return {*self.groups, *([self.against] if self.against is not None else [])}


class Setting(Model):
    """A row group of a protocol's table: the protocol with some fields changed."""

    name: Name
    """``--protocol arch-change:deeper`` runs the setting ``deeper`` alone."""
    title: Text = ""
    """In words; by default its name."""
    set: Mapping[str, JsonValue] = {}
    """Its changes, in the words of ``--set``: ``{old.head: softmax, new.dim: x2}``."""
    version: Version | None = None
    """Version of a setting that alone was changed; by default the protocol's, which is lower."""


class ProtocolRules(Model):
    """Rules of a protocol, all but its name and words; records keep them."""

    generations: Annotated[tuple[GenerationSpec, ...], Field(min_length=2), AfterValidator(unique)]
    tasks: Annotated[Names, Field(min_length=1)]
    """Names of ``benchmark.tasks``."""
    old_head: Literal["kept", "discarded"] = "kept"
    """Permission for a method to see the old classifier."""
    order: Literal["seeded", "dataset"] = "seeded"
    """Classes count in a seeded order, or in the dataset's own (never that of names as text, where
    10 is before 9)."""
    image_order: Literal["seeded", "dataset"] = "seeded"
    """Images of a class count in a seeded order, or in the dataset's own."""
    every_class: bool = False
    """At least one image of every class in an interval of images, as in MixBCT's code: the only
    image of a class is then in each generation."""
    upper: Literal["new", "all"] = "new"
    """Training data of the upper bound of the update gain: the new generation's (BCT), or all
    generations' together (MixBCT 4.1)."""
    split_seed: Seed = 0
    """Seed of the order; part of the protocol, not of a run."""
    apart: bool = False
    """No two generations may share an image; a check, which moves no score."""
    direct: bool = False
    """Conversion of galleries also in one step over several generations (FCT 4.4)."""
    orders: Names = ("random", "priority", "entropy", "true-l2")
    """Orders in which the task ``backfilling`` backfills the gallery; names of
    ``benchmark.metrics.backfill_orders``."""
    evaluation: EvaluationSpec = EvaluationSpec()
    set: Mapping[str, JsonValue] = {}
    """Changes in the words of ``--set``, of a setting."""
    settings: Annotated[
        tuple[Setting, ...], holds(lambda s: len(s) != 1, "none or at least 2"),
        AfterValidator(unique),
    ] = ()  # fmt: skip
    """Row groups of the table, each the protocol with some fields changed."""

    @property
    def upper_bound(self) -> str:
        """Name in records of the bound that the update gain uses."""
        return "upper-all" if self.upper == "all" else "upper"


class Protocol(ProtocolRules):
    """A protocol as a YAML file of ``protocols/`` has it."""

    id: Id
    version: Version
    title: Words
    source: Words
    question: Words
    scenario: Text = ""
    """Plain words for it, as pages have them: ``the new model learns more classes``."""

    @model_validator(mode="after")
    def _consistent(self) -> Protocol:
        # On a track, whose groups may share members, it is checked again.
        for setting in self.settings:
            if setting.version is not None and setting.version <= self.version:
                raise ValueError(
                    f"settings '{setting.name}': version: expected more than the protocol's "
                    f"{self.version}, got {setting.version}"
                )
        shared = overlap(self.generations, tuple) if self.apart else None
        if shared is not None:
            raise ValueError(f"generations: {shared}")
        self._check_backfilling()
        self._check_texts()
        return self

    def _check_backfilling(self) -> None:
        for name in self.orders:
            if name not in ORDERS:
                raise ValueError(f"orders: {unknown('order', name, ORDERS)}")
        if "backfilling" not in self.tasks:
            return
        if not {"retrieval", "identification"} & {*self.tasks}:
            raise ValueError("tasks: expected retrieval or identification beside backfilling")
        if not self.orders:
            raise ValueError("orders: expected at least one for backfilling")

    def _check_texts(self) -> None:
        texts = [g.name for g in self.generations if g.queries == "texts"]
        if texts and (texts != [self.generations[0].name] or len(self.generations) > 2):
            raise ValueError(
                "generations: expected text queries for the first of two generations only, got "
                f"{', '.join(texts)}"
            )
        if bool(texts) != ("text_retrieval" in self.tasks):
            raise ValueError(
                "tasks: expected text_retrieval where the first generation's queries are texts, "
                f"and only there, got {', '.join(self.tasks)}"
            )
        if texts and "backfilling" in self.tasks:
            # The old embeddings that it would replace are those of texts, which nobody stores.
            raise ValueError(
                f"tasks: expected no backfilling where the queries of '{texts[0]}' are texts, "
                f"for its queries are images, got {', '.join(self.tasks)}"
            )

    @property
    def family(self) -> str:
        """The id without the setting."""
        return self.id.partition(":")[0]

    @property
    def roles(self) -> Iterator[tuple[str, str]]:
        """Every group of the track that is named, and where."""
        for i, generation in enumerate(self.generations):
            for role in sorted(generation.roles):
                yield f"generations[{i}]", role
        for role in sorted(self.evaluation.roles):
            yield "evaluation", role
