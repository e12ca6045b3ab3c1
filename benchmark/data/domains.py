"""``domains``: two datasets as one, for models that are trained on one and judged on another.

Classes of the first come before those of the second; each dataset is a group by its own name, which
protocols choose by the track's roles ``home`` and ``away`` (FCT 4.3, B and I). Each has a folder of
its own: ``--data-root imagenet=DIR,places365=DIR``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from benchmark.config import registry
from benchmark.config.data_roots import Root
from benchmark.config.declarations import Offer
from benchmark.data.base import (
    Dataset,
    DatasetReader,
    Evaluation,
    Images,
    ImageSet,
    Ints,
    Pixels,
    feed,
    read_options,
)
from benchmark.errors import BenchError

_JOINED = ("template", "media", "ids", "camera")
_BOTH = frozenset({"templates", "texts"})


@dataclass(frozen=True)
class Domains(DatasetReader):
    """Two datasets, whose images have one size."""

    home: str = "imagenet"  # a dataset
    away: str = "places365"  # another
    options: Mapping[str, JsonValue] = field(default_factory=dict)  # of both

    @property
    def members(self) -> tuple[str, ...]:
        """Both datasets."""
        return (self.home, self.away)

    def _parts(self, root: Root) -> list[tuple[str, DatasetReader, Path | None]]:
        """Both datasets with their folders; BenchError if one is not there, or both are one."""
        others = {name: it for name, it in registry.datasets().items() if name != self.name}
        for name in self.members:
            registry.known("dataset", name, others)
        if self.home == self.away:
            raise BenchError(f"dataset {self.name}: expected two datasets, got {self.home} twice")
        folders = root if isinstance(root, Mapping) else dict.fromkeys(self.members, root)
        return [(m, read_options(m, self.options), folders.get(m)) for m in self.members]

    @property
    def captioned(self) -> bool:
        """Tell whether the images of both have captions."""
        return all(reader.captioned for _, reader, _ in self._parts(None))

    def offers(self, root: Root) -> Offer:
        """Offers of both, and the groups that they are."""
        one, other = (reader.offers(folder) for _, reader, folder in self._parts(root))
        shared = one.evaluation_sets.keys() & other.evaluation_sets.keys()
        sets = {name: one.evaluation_sets[name] for name in sorted(shared)}
        return Offer((one.columns & other.columns & _BOTH) | {"groups"}, sets)

    def source(self, root: Root) -> dict[str, Any]:
        """All that determines both."""
        return {name: reader.source(folder) for name, reader, folder in self._parts(root)}

    def load(self, root: Root) -> Dataset:
        """Read both and put them together; BenchError if their images differ in size."""
        parts = [reader.load(folder) for _, reader, folder in self._parts(root)]
        shapes = [part.train.images.shape[1:] for part in parts]
        if shapes[0] != shapes[1]:
            sizes = " and ".join(" x ".join(map(str, shape)) for shape in shapes)
            raise BenchError(f"dataset {self.name}: expected images of one size, got {sizes}")
        first = len(parts[0].class_names)
        of = dict(zip(self.members, parts, strict=True))
        names = [f"{member}: {name}" for member, part in of.items() for name in part.class_names]
        groups = [member for member, part in of.items() for _ in part.class_names]
        train = _joined_set([part.train for part in parts], first)
        shared = parts[0].evaluations.keys() & parts[1].evaluations.keys()
        evaluations = {
            name: _joined_items([part.evaluations[name] for part in parts], first, self.members)
            for name in sorted(shared)
        }
        facts = {member: dict(part.facts) for member, part in of.items()}
        return Dataset(self.name, train, evaluations, tuple(names), facts, tuple(groups))


def _joined_set(parts: Sequence[ImageSet], first: int) -> ImageSet:
    labels = np.concatenate([part.labels + i * first for i, part in enumerate(parts)])
    return ImageSet(joined([part.images for part in parts]), labels, texts=_texts(parts))


def _texts(parts: Sequence[ImageSet]) -> tuple[str, ...] | None:
    found = [part.texts for part in parts]
    return None if None in found else tuple(text for part in found for text in part or ())


def _joined_items(parts: Sequence[Evaluation], first: int, names: tuple[str, ...]) -> Evaluation:
    """Items of both, each of its dataset's group; numbers of the second follow the first's."""
    items = _joined_set(parts, first)
    offset = {name: int(getattr(parts[0], name).max()) + 1 for name in _JOINED}
    offset["rows"] = len(parts[0])

    def column(name: str, of: str) -> Ints:
        columns = [cast(Ints, getattr(part, name)) for part in parts]
        shifted = [each + i * (offset[of] * (each >= 0)) for i, each in enumerate(columns)]
        return np.concatenate(shifted)

    columns: dict[str, Any] = {name: column(name, name) for name in _JOINED}
    columns |= {name: column(name, "rows") for name in ("query", "gallery")}
    columns["probes"] = column("probes", "template")
    galleries = zip(*(part.galleries for part in parts), strict=False)
    columns["galleries"] = tuple(
        np.concatenate([each + i * offset["template"] for i, each in enumerate(pair)])
        for pair in galleries
    )
    group = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return Evaluation.of(
        items.images, items.labels, texts=items.texts, group=group, group_names=names, **columns
    )


def joined(parts: Sequence[Images]) -> Images:
    """Images of one set after those of another; in memory where both are."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(cast(list[Pixels], list(parts)))
    return JoinedImages(tuple(parts), np.arange(sum(part.shape[0] for part in parts)))


class JoinedImages:
    """Random access to the images of several sets, of which some may stay in their files."""

    def __init__(self, parts: tuple[Images, ...], index: Ints) -> None:
        self.parts, self.index = parts, index
        self._starts = np.cumsum([0, *(part.shape[0] for part in parts)])

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, c, h, w)``."""
        return (len(self.index), *self.parts[0].shape[1:])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Ints) -> NDArray[Any]:
        found = [(places, part[inside]) for part, places, inside in self._parted(rows)]
        kind = np.result_type(*(images.dtype for _, images in found)) if found else np.uint8
        out = np.empty((len(rows), *self.shape[1:]), kind)
        for places, images in found:
            out[places] = images
        return out

    def prefetch(self, rows: Ints) -> None:
        """Begin to decode the rows that come next."""
        for part, _, inside in self._parted(rows):
            if hasattr(part, "prefetch"):
                part.prefetch(inside)

    def take_rows(self, rows: Ints) -> "JoinedImages":
        """Some of the images, still where they are."""
        return JoinedImages(self.parts, self.index[rows])

    def _parted(self, rows: Ints) -> list[tuple[Images, Ints, Ints]]:
        """Of each part that has any: places among the rows, and rows of the part."""
        chosen = self.index[np.asarray(rows, np.int64)]
        which = np.searchsorted(self._starts, chosen, side="right") - 1
        found = []
        for i, part in enumerate(self.parts):
            places = np.flatnonzero(which == i)
            if len(places):
                found.append((part, places, chosen[places] - self._starts[i]))
        return found

    def fingerprint(self) -> str:
        """Hash of the parts and of the order; decodes nothing that is in files."""
        digest = hashlib.sha256(np.ascontiguousarray(self.index).tobytes())
        for part in self.parts:
            feed(digest, part)
        return digest.hexdigest()
