"""Datasets: images to train on, and evaluation sets of queries and gallery items."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from benchmark.config import registry
from benchmark.config.declarations import DatasetDeclaration

Ints = NDArray[np.int64]
Pixels = NDArray[np.uint8]

JUNK = -1
"""The label of images that count neither for nor against (Market-1501's identity -1)."""


class Images(Protocol):
    """Random access to images: an array, a reader that decodes on demand, or stored features."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, c, h, w)``."""

    def __getitem__(self, rows: Ints) -> Any:
        """The images of ``rows``, ``[k, c, h, w]``: uint8, or float as models take them."""


def take(images: Images, rows: Ints) -> Images:
    """Some of the images: in memory, or still in their files."""
    take_rows = getattr(images, "take_rows", None)
    subset: Images = take_rows(rows) if take_rows else np.ascontiguousarray(images[rows])
    return subset


@dataclass(frozen=True)
class ImageSet:
    """Images with a class each."""

    images: Images  # [n, c, h, w] uint8, by rows
    labels: Ints  # class of each image, [n] int64, an index into Dataset.class_names
    texts: tuple[str, ...] | None = field(default=None, kw_only=True)  # caption of each image

    def __len__(self) -> int:
        return len(self.labels)


def take_items(items: ImageSet, rows: Ints) -> ImageSet:
    """Some of the images with their classes and captions."""
    texts = None if items.texts is None else tuple(items.texts[row] for row in rows.tolist())
    return ImageSet(take(items.images, rows), items.labels[rows], texts=texts)


def group_key(name: str) -> str:
    """A group as scores are named after it: ``Box drawing`` -> ``box_drawing``."""
    return "_".join(name.lower().split())


@dataclass(frozen=True)
class Evaluation(ImageSet):
    """The items of an evaluation set, and the part that each of them plays."""

    ids: Ints  # of each item, [n], unique; equal ids are the same photograph
    query: Ints  # rows used as queries, [n_query]
    gallery: Ints  # rows in the gallery, [n_gallery]; may be the same as query
    camera: Ints  # of each item, [n]
    media: Ints  # of each item, [n]; frames of one video share it
    group: Ints  # of each item (script, alphabet, demographic), [n]
    template: Ints  # of each item, [n]; -1 where it belongs to none
    probes: Ints  # ids of the templates that are searched for, [n_probe]
    # of each enrolment gallery (IJB-C's G1, G2) the template ids, one template a subject; a probe
    # whose subject is not enrolled is non-mated
    galleries: tuple[Ints, ...]
    group_names: tuple[str, ...]
    # how much of a face each item shows, [n], which weighs the items of a template; None: all alike
    weight: NDArray[np.float32] | None = None
    # templates that 1:1 verification compares, [n_pair, 2], the first with the second; None: every
    # probe with every enrolled one
    pairs: Ints | None = None

    @classmethod
    def of(cls, images: Images, labels: Ints, **columns: Any) -> Evaluation:
        """Items with some columns given.

        By default each item is a query and in the gallery, has a camera, a medium and a template of
        its own and the one group ``all``; no template is searched for or enrolled.
        """
        rows = np.arange(len(labels))
        defaults: dict[str, Any] = {
            **dict.fromkeys(("ids", "query", "gallery", "camera", "media", "template"), rows),
            "group": np.zeros(len(rows), np.int64), "group_names": ("all",),
            "probes": rows[:0], "galleries": (),
        }  # fmt: skip
        return cls(images, labels, **defaults | columns)


@dataclass(frozen=True)
class Dataset:
    """A dataset, split into training images and evaluation sets."""

    name: str
    train: ImageSet  # class order is the order that fractions count in
    # scores come from "test"; others serve protocols that name them ("seen": other images of
    # training classes)
    evaluations: Mapping[str, Evaluation]
    class_names: tuple[str, ...]  # readable; texts of a text modality
    # numbers worth keeping beside a result (draws, strength, source files)
    facts: Mapping[str, object] = field(default_factory=dict)
    class_groups: tuple[str, ...] = ()  # where files say them rather than the classes' names

    def fingerprint(self) -> str:
        """SHA-256 over every pixel, label and column: equal data, equal fingerprint."""
        digest = hashlib.sha256()
        for part in (self.train, *(self.evaluations[k] for k in sorted(self.evaluations))):
            for name, column in sorted(vars(part).items()):
                if column is not None:  # a column that came later renames no earlier dataset
                    digest.update(name.encode())
                    for array in column if isinstance(column, tuple) else (column,):
                        feed(digest, array)
        digest.update("\0".join(self.class_names + self.class_groups).encode())
        return digest.hexdigest()


def feed(digest: hashlib._Hash, column: Any) -> None:
    """Add a text, an array or images to a hash."""
    if isinstance(column, str):
        digest.update(column.encode())
    elif hasattr(column, "fingerprint"):  # images that stay in their files
        digest.update(column.fingerprint().encode())
    else:
        for start in range(0, column.shape[0], 4096):
            rows = np.arange(start, min(start + 4096, column.shape[0]))
            digest.update(np.ascontiguousarray(column[rows]).tobytes())


@dataclass(frozen=True)
class DatasetReader(DatasetDeclaration):
    """Base of a dataset, whose fields are the options that a track may set: one a file."""

    @property
    def name(self) -> str:
        """Id of the dataset: the name of its file, or of another package's entry point."""
        module = type(self).__module__
        names = (name for name, its in registry.datasets().items() if its == module)
        return next(names, module.rpartition(".")[2])

    @abstractmethod
    def load(self, root: Path | None) -> Dataset:
        """Read the dataset, or draw it; BenchError if files are missing or not as expected."""

    def evaluation(self, dataset: Dataset, name: str) -> Evaluation:
        """One of the evaluation sets of the loaded dataset; BenchError if there is none."""
        return registry.known(f"evaluation set of {dataset.name}", name, dataset.evaluations)

    def class_groups(self, dataset: Dataset) -> tuple[str, ...]:
        """Group of each class of the loaded dataset."""
        return dataset.class_groups or tuple(map(self.class_group, dataset.class_names))

    def class_group(self, class_name: str) -> str:
        """Group of a class; overridden by datasets whose names of classes say it."""
        raise NotImplementedError(f"{type(self).__name__}.class_group")


def read_options(name: str, options: Mapping[str, object] | None = None) -> DatasetReader:
    """A dataset with options; BenchError on an unknown name or option."""
    return cast(DatasetReader, registry.check_options(name, options or {}, f"dataset {name}"))
