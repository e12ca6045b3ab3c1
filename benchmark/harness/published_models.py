"""Published models: first generations and independent ones that a run takes instead of training.

So records of any machine start from one old model. A folder has an index, from the name of the
stage that trains a model to its files, and the files, each named by its SHA-256. A stage that takes
one is named by what it takes, so nothing that stands on it is confused with work on a model that
was trained here.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from benchmark.config.declarations import Download
from benchmark.config.files import file_size, read_sealed, sha256_of
from benchmark.config.reading import Model, build
from benchmark.errors import BenchError
from benchmark.harness.graph import Stage
from benchmark.harness.store import MODEL
from benchmark.harness.work import TakenWork
from benchmark.records.files import evidence_file
from benchmark.records.record import KeptCurve, NotNegative, StageRun

FOLDER = "models"
INDEX = "index.json"
_LARGEST_INDEX = 16 * 1024 * 1024
_LARGEST_FILE = 2**30
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StageName = Annotated[str, Field(pattern=r"^train-[0-9a-f]{24}$")]
FileName = Annotated[str, Field(pattern=r"^[a-z]+\.safetensors$")]


class PublishedFile(Model):
    """A file of a model."""

    sha256: Sha256
    bytes: int = Field(ge=1, le=_LARGEST_FILE)


class TrainingFacts(Model):
    """Facts of a training about its outcome."""

    checkpoint: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    parameters: NotNegative
    image_parameters: NotNegative | None = None
    """Of the image encoder, where queries are texts."""
    n_images: NotNegative
    n_classes: NotNegative
    curves: Mapping[str, KeptCurve]
    weights_sha256: Sha256 | None = None
    """Of the weights that it began with."""
    fit: Mapping[str, float | None] | None = None
    """The classifier's loss on training images, and that of a guess."""


class PublishedModel(Model):
    """A model, and what its training said of itself."""

    title: str
    files: Annotated[Mapping[FileName, PublishedFile], Field(min_length=1)]
    facts: TrainingFacts
    run: StageRun
    """Times and device of its training in the record that it is of."""

    @model_validator(mode="after")
    def _is_its_checkpoint(self) -> Self:
        weights = self.files.get(MODEL)
        if weights is None or self.facts.checkpoint != f"sha256:{weights.sha256}":
            raise ValueError(f"facts: checkpoint: expected the hash of {MODEL}")
        return self


class Index(Model):
    """Content of ``index.json``."""

    format: Literal[1] = 1
    address: Annotated[str, Field(pattern=r"^(https?://.+/)?$")] = ""
    """Address of files that are not in the folder, ``<address><sha256>.safetensors``;
    empty: models without their files are trained."""
    models: Mapping[StageName, PublishedModel]
    """By the name of the stage that trains it."""


@dataclass(frozen=True)
class PublishedModels:
    """Published models of a folder."""

    folder: Path  # of their files
    index: Index

    def instead_of(self, training: Stage) -> Stage:
        """The stage that takes the published model; the training itself where none is here."""
        model = self.index.models.get(training.name)
        if model is None or not self._can_be_had(model):
            return training
        files = {name: file.model_dump() for name, file in model.files.items()}
        work = TakenWork[Stage](
            data=training.work.data, frozen=training.work.frozen, files=files,
            facts=model.facts.model_dump(mode="json", exclude_none=True),
            folder=str(self.folder.absolute()), address=self.index.address,
            run=model.run.model_dump(exclude_none=True),
        )  # fmt: skip
        return Stage(training.about, work)

    def only(self, checkpoints: Mapping[str, str]) -> Self:
        """Those of some titles and hashes alone.

        Raises:
            BenchError: If there is none of one of them.
        """
        found = {
            name: model for name, model in self.index.models.items()
            if checkpoints.get(model.title) == model.facts.checkpoint
        }  # fmt: skip
        for title in checkpoints.keys() - {model.title for model in found.values()}:
            raise BenchError(
                f"{self.folder}: no published model of '{title}', {checkpoints[title]:.80}"
            )
        return replace(self, index=self.index.model_copy(update={"models": found}))

    def _can_be_had(self, model: PublishedModel) -> bool:
        return bool(self.index.address) or all(
            path_of(self.folder, file.sha256).is_file() for file in model.files.values()
        )


def path_of(folder: Path, sha256: str) -> Path:
    """Place of a file of a published model."""
    return folder / f"{sha256}.safetensors"


def read_published(folder: Path | None = None) -> PublishedModels | None:
    """The published models of a folder, by default of ``results/models`` here or of the checkout.

    ``None`` where no folder is named and there is none; BenchError if the index of a named one is
    missing, or one is damaged or wrong.
    """
    if folder is None:
        try:
            path = evidence_file(f"{FOLDER}/{INDEX}")
        except BenchError:
            return None
    else:
        path = folder / INDEX
    value = read_sealed(path, _LARGEST_INDEX)
    return PublishedModels(path.parent, build(Index, value, str(path)))


def parse_published(given: str | Path | None) -> PublishedModels | None:
    """As ``--published`` says it: a folder, ``none``, or nothing for that of the checkout."""
    return None if given == "none" else read_published(None if given is None else Path(given))


def take_files(files: Mapping[str, Any], folder: Path, address: str, out: Path) -> None:
    """Copy or fetch a model's files into a stage's folder; BenchError if not as published."""
    for name, value in files.items():
        file = build(PublishedFile, value, "stage: files")
        source = path_of(folder, file.sha256)
        if not source.is_file() and address:
            from benchmark.data.downloads import fetch

            url = f"{address}{source.name}"
            fetch(Download(name=name, url=url, n_bytes=file.bytes, sha256=file.sha256), out)
            continue
        if file_size(source, _LARGEST_FILE) == file.bytes:
            shutil.copyfile(source, out / name)
            if sha256_of(out / name) == file.sha256:
                continue
        raise BenchError(
            f"{source}: not the published model, of {file.bytes} bytes and the SHA-256 that it is "
            "named by; restore it, or train one with --published none"
        )
