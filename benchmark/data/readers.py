"""Bases of the datasets that are read from files."""

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import PIL

from benchmark.config.checks import Seed
from benchmark.config.declarations import EvaluationSet, Offer
from benchmark.config.files import file_digest
from benchmark.config.reading import read_json
from benchmark.data.annotations import AS_TEXT, below, in_order, listed_order, read_captions
from benchmark.data.base import Dataset, DatasetReader, ImageSet, group_key
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import Labelled, check_names, content_hash, data_root
from benchmark.data.images import Share, Side, View, images_of
from benchmark.data.splits import HeldOut
from benchmark.errors import BenchError

RESIZED = "resized.json"
"""Of a copy at another size: what was done."""


@dataclass(frozen=True)
class _ResizedCopy:
    """Contents of ``resized.json``."""

    side: int  # of a picture's short side, pixels
    quality: int  # of JPEG
    of: str  # hash of the originals


def read_copy(path: Path) -> dict[str, Any]:
    """Contents of a ``resized.json``; BenchError if it is none."""
    return asdict(read_json(_ResizedCopy, path, 2**16))


@dataclass(frozen=True)
class FileDatasetReader(DatasetReader):
    """Base of a dataset that is read from files below a data root."""

    # raised by whoever changes how files become pixels, classes or splits; part of every cache key
    reading: ClassVar[int] = 1
    needs_root: ClassVar[bool] = True

    later: ClassVar[tuple[str, ...]] = ("class_order",)
    """Options that came after the first records: unused they rename no work."""

    # A file below the data root with a class in each line, by which classes count instead of in
    # their own order; or `as-text`: 0, 1, 10, 11, ..., 2, 20, ..., as FCT's and BT2's code has
    # them, whose folders of CIFAR-100 are named by number.
    class_order: str = ""

    @abstractmethod
    def files(self, root: Path) -> list[Path]:
        """Every file that determines the dataset; BenchError if one is not as expected."""

    @abstractmethod
    def read(self, root: Path) -> Dataset:
        """Read the dataset, of its facts only those that are not common to all."""

    def folder(self, root: Path) -> Path:
        """Folder that the files' names are relative to."""
        return root

    @property
    def decoder(self) -> str:
        """Packages that decode the images, which may move a pixel; empty if nothing is decoded."""
        torchvision = version("torchvision").partition("+")[0]
        return f"pillow {PIL.__version__}, torchvision {torchvision}"

    def files_hash(self, root: Path) -> str:
        """Name for the files in names of work and in records."""
        return content_hash(self.folder(root), self.files(root))

    def source(self, root: Path | None) -> dict[str, Any]:
        """All that determines the images: options, reading version, decoder, hash of the files."""
        root = data_root(root, self.name)
        known = self._options(root) | {"reading": self.reading, "files": self.files_hash(root)}
        if self.decoder:
            known["decoder"] = self.decoder
        copy = root / RESIZED  # what `bench data resize` did
        return known | ({"resized": read_copy(copy)} if copy.is_file() else {})

    def load(self, root: Path | None) -> Dataset:
        """Read the dataset; large sets are decoded while they are used."""
        root = data_root(root, self.name)
        dataset = self.read(root)
        if self.class_order:
            dataset = self._reordered(dataset, root)
        groups = [name for items in dataset.evaluations.values() for name in items.group_names]
        check_names([*dataset.class_names, *groups], f"dataset {self.name}: class or group")
        for items in dataset.evaluations.values():
            if len({*map(group_key, items.group_names)}) < len(items.group_names):
                raise BenchError(
                    f"dataset {self.name}: groups: expected names that differ by more than case, "
                    f"spaces and _, got {', '.join(items.group_names):.200}"
                )
        n_train = len(np.unique(dataset.train.labels))
        counts = {"classes": len(dataset.class_names), "train_classes": n_train}
        return dataclasses.replace(dataset, facts=self.source(root) | counts | {**dataset.facts})

    def class_keys(self, dataset: Dataset, root: Path) -> Sequence[str]:  # noqa: ARG002
        """Name that a list of classes gives each of them."""
        return dataset.class_names

    def _options(self, root: Path) -> dict[str, Any]:
        """Options as they determine the dataset: of a list of classes what it says."""
        options = {name: v for name, v in asdict(self).items() if v or name not in self.later}
        if not self.class_order:
            return options
        listed = self.class_order != AS_TEXT
        order = file_digest(below(root, self.class_order, "class_order")) if listed else AS_TEXT
        return options | {"class_order": order}

    def _reordered(self, dataset: Dataset, root: Path) -> Dataset:
        n_train = len(np.unique(dataset.train.labels))
        if self.class_order == AS_TEXT:
            order = sorted(range(n_train), key=str)
        else:
            path = below(root, self.class_order, "class_order")
            order = listed_order(path, self.class_keys(dataset, root)[:n_train])
        return in_order(dataset, order)


@dataclass(frozen=True)
class HeldOutDatasetReader(FileDatasetReader):
    """Base of a dataset whose classes may be held out.

    ``test`` has these alone, ``seen`` the others; without any both have all.
    """

    evaluation_sets: ClassVar = {"test": EvaluationSet(), "seen": EvaluationSet()}

    # Share of the classes that nobody trains on, to evaluate on classes that no model has seen.
    held_out: HeldOut = 0.0
    # Choose settings without a look at what `test` evaluates: of classes held out as large a share
    # of those that are left; without, a part of what trains in the place of what `test` has.
    tuning: bool = False

    def offers(self, root: Path | None) -> Offer:
        """As declared; where classes are held out no model has seen those of ``test``."""
        plain = super().offers(root)
        sets = {**plain.evaluation_sets, "test": EvaluationSet(unseen=self.held_out > 0)}
        return Offer(plain.columns, sets)


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
    # A table below the data root, `file,caption`: the texts of the images, for text queries.
    captions: str = ""

    @property
    def captioned(self) -> bool:
        """Tell whether its images have captions."""
        return bool(self.captions)

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
        texts = [self._texts(root, files.names) for files in (train, val)]
        items = single_item_templates(
            images_of(val, view), val_labels, seed=self.seed, texts=texts[1]
        )
        train_set = ImageSet(images_of(train, view), labels, texts=texts[0])
        return Dataset(self.name, train_set, {"test": items, "seen": items}, class_names)

    def _options(self, root: Path) -> dict[str, Any]:
        options = super()._options(root)
        if not options.pop("captions"):
            return options
        return options | {"captions": file_digest(below(root, self.captions, "captions"))}

    def _texts(self, root: Path, names: Sequence[str]) -> tuple[str, ...] | None:
        if not self.captions:
            return None
        return read_captions(below(root, self.captions, "captions"), names)
