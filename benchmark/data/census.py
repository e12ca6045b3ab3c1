"""Contents of a data root, beside what is published of the dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.config.declarations import Origin
from benchmark.data import downloads
from benchmark.data.base import Dataset, DatasetReader, Evaluation, Images, Ints
from benchmark.data.files import Files
from benchmark.data.images import EncodedImages
from benchmark.data.splits import select
from benchmark.errors import BenchError

_SAMPLE = 16  # images of each set that are decoded


@dataclass(frozen=True)
class Counted:
    """Something that was looked at."""

    what: str
    found: int | str
    expected: int | str | None = None  # None where nothing is published

    @property
    def differs(self) -> bool:
        """Tell whether it is not as published."""
        return self.expected is not None and self.found != self.expected


def take_census(reader: DatasetReader, root: Path | None) -> list[Counted]:
    """Look at files, counts, classes and identities, and decode some images of each set.

    Raises:
        BenchError: If files are missing, or not as the dataset's reader expects them; if an image
            cannot be decoded.
    """
    dataset = reader.load(root)
    origin = reader.origin or Origin("")
    published = dict(origin.counts)
    findings = [] if root is None else [*_archives(root, origin)]
    for what, found in _counts(reader, dataset, origin.counts).items():
        findings.append(Counted(what, found, published.pop(what, None)))
    findings += [Counted(what, 0, expected) for what, expected in published.items()]
    findings += _splits(dataset, origin)
    sets = {"training": dataset.train, **dataset.evaluations}
    for name, items in sets.items():
        findings.append(_decoded(name, items.images))
    return findings


def _archives(root: Path, origin: Origin) -> Iterator[Counted]:
    """Tell whether files for download are the original ones; others are judged by counts."""
    for each in origin.downloads:
        path = root / each.name
        if path.is_file():
            original = downloads.is_original(path, each)
            yield Counted(each.name, "as published" if original else "other bytes than published")


def _counts(
    reader: DatasetReader, dataset: Dataset, published: Mapping[str, int]
) -> dict[str, int]:
    test = dataset.evaluations["test"]
    sizes = np.unique(dataset.train.labels, return_counts=True)[1]
    counts = {
        "classes": len(dataset.class_names), "training classes": len(sizes),
        "training images": len(dataset.train), "smallest training class": int(sizes.min()),
        "largest training class": int(sizes.max()), **_of_items(test, published),
    }  # fmt: skip
    if "groups" in reader.columns:
        counts["groups"] = len(set(reader.class_groups(dataset)))
    if "cameras" in reader.columns:
        counts["cameras"] = len(np.unique(test.camera))
    return counts


def _of_items(items: Evaluation, published: Mapping[str, int]) -> dict[str, int]:
    """Counts of an evaluation set; some that say little only where they are published."""
    sizes = np.unique(items.labels, return_counts=True)[1]
    n, counts = len(items), {"test classes": len(sizes), "test images": len(items)}
    if "smallest test class" in published:
        counts["smallest test class"] = int(sizes.min())
        counts["largest test class"] = int(sizes.max())
    if len(items.group_names) > 1:
        counts["test groups"] = len(items.group_names)
    if len(items.query) < n or len(items.gallery) < n:
        counts["test queries"], counts["test gallery"] = len(items.query), len(items.gallery)
        counts["query classes"] = len(np.unique(items.labels[items.query]))
    if "probe templates" in published:
        counts["probe templates"] = len(items.probes)
        counts["gallery templates"] = sum(map(len, items.galleries))
    if items.pairs is not None:
        counts["pairs"] = len(items.pairs)
    return counts


def _splits(dataset: Dataset, origin: Origin) -> Iterator[Counted]:
    """Training images of generations, counted as a paper counts them."""
    labels: Ints = dataset.train.labels
    for split in origin.splits:
        rows = select(
            labels, classes=split.classes, images=split.images, order="dataset",
            image_order="dataset", every_class=True,
        )  # fmt: skip
        n_classes = len(np.unique(labels[rows]))
        yield Counted(f"{split.title}, images", len(rows), split.n_images)
        yield Counted(f"{split.title}, classes", n_classes, split.n_classes)


def _decoded(name: str, images: Images) -> Counted:
    """Decode some images, far from each other; BenchError if one cannot be, or is missing."""
    n = images.shape[0]
    if isinstance(images, EncodedImages) and isinstance(images.source, Files):
        gone = [path for path in images.source.paths if not path.is_file()]
        if gone:
            raise BenchError(f"{gone[0]}: missing, one of {len(gone)} of {n} {name} images")
    rows = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))
    pixels = images[rows]
    shape = " x ".join(map(str, pixels.shape[1:]))
    return Counted(f"{name} images decoded", f"{len(rows)} of {n:,}, to {shape}")
