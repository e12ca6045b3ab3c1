"""Bases of the datasets that are read from files."""

import dataclasses
from abc import abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import PIL

from benchmark.config.checks import Seed
from benchmark.config.declarations import EvaluationSet
from benchmark.data.base import Dataset, DatasetReader, ImageSet
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import Labelled, check_names, content_hash, data_root
from benchmark.data.images import Share, Side, View, images_of


@dataclass(frozen=True)
class FileDatasetReader(DatasetReader):
    """Base of a dataset that is read from files below a data root.

    Class attributes:
        reading: Raised by whoever changes how files become pixels, classes or splits; part of
            every cache key.
    """

    reading: ClassVar[int] = 1

    @abstractmethod
    def files(self, root: Path) -> list[Path]:
        """Every file that determines the dataset; BenchError if one is not as expected."""

    @abstractmethod
    def read(self, root: Path) -> Dataset:
        """Read the dataset, of its facts only those that are not common to all."""

    def folder(self, root: Path) -> Path:
        """What the files' names are relative to."""
        return root

    def source(self, root: Path | None) -> dict[str, Any]:
        """What determines the images: options, reading version, decoder, hash of the files."""
        root = data_root(root, self.name)
        return asdict(self) | {
            "reading": self.reading,
            "decoder": f"pillow {PIL.__version__}",  # may move a pixel between releases
            "files": content_hash(self.folder(root), self.files(root)),
        }

    def load(self, root: Path | None) -> Dataset:
        """Read the dataset; large sets are decoded while they are used."""
        dataset = self.read(data_root(root, self.name))
        groups = [name for items in dataset.evaluations.values() for name in items.group_names]
        check_names([*dataset.class_names, *groups], f"dataset {self.name}: class or group")
        n_train = len(np.unique(dataset.train.labels))
        counts = {"classes": len(dataset.class_names), "train_classes": n_train}
        return dataclasses.replace(dataset, facts=self.source(root) | counts | {**dataset.facts})


@dataclass(frozen=True)
class PhotographDatasetReader(FileDatasetReader):
    """Base of a set of photographs whose validation images are of the training classes.

    ``test`` and ``seen`` are both its validation set; each item is a template of its own.
    """

    columns: ClassVar = frozenset({"templates", "texts"})
    evaluation_sets: ClassVar = {"test": EvaluationSet(), "seen": EvaluationSet()}

    image_size: Side = 224  # of an image, pixels
    keep: Share = 0.875  # share of the short side that is kept: 224 of 256
    seed: Seed = 0  # decides which items are enrolled, and in which gallery

    @abstractmethod
    def parts(self, root: Path) -> tuple[Labelled, Labelled, tuple[str, ...]]:
        """Training and validation images with their classes, and the names of the classes."""

    def files(self, root: Path) -> list[Path]:
        """Every image."""
        (train, _), (val, _), _ = self.parts(root)
        return train.paths + val.paths

    def read(self, root: Path) -> Dataset:
        """Put the parts together."""
        (train, labels), (val, val_labels), class_names = self.parts(root)
        view = View(self.image_size, self.image_size, keep=self.keep)
        items = single_item_templates(images_of(val, view), val_labels, seed=self.seed)
        train_set = ImageSet(images_of(train, view), labels)
        return Dataset(self.name, train_set, {"test": items, "seen": items}, class_names)
