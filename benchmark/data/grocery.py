"""``grocery``: 81 products photographed in shops with a phone (Klasson et al., 2019).

A class is a product, a group one of 43 coarse kinds (the paper says 42), a text the product's
description. Queries are the photographs of ``test``; the gallery holds those of ``train`` and
``val``, of other days and shops. Reads the folder of the authors, or ``grocery.zip``, an archive of
their repository or of a smaller copy.
"""

import csv
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmark.config.checks import Seed
from benchmark.config.declarations import Download, Origin
from benchmark.config.files import file_size, read_bytes
from benchmark.data.base import Dataset, Ints, Pixels
from benchmark.data.enrolment import divided_sets
from benchmark.data.files import Files, contents_hash, readable
from benchmark.data.images import MOST_BYTES, Share, Side, View, decode_view, images_of
from benchmark.data.readers import HeldOutDatasetReader
from benchmark.data.splits import divided_classes
from benchmark.errors import BenchError

ARCHIVE, TABLE = "grocery.zip", "classes.csv"
PARTS = ("train", "val", "test")
_COMMIT = "fc80ba90f803d79d0383df52c5a4ac5de99ff6fc"  # of the authors' repository
_MOST_TEXT = 2**20  # bytes of a table, a list or a description
_MOST_ARCHIVE = 2**30
_COLUMNS = (
    "Class Name (str)",
    "Class ID (int)",
    "Coarse Class Name (str)",
    "Product Description Path (str)",
)


@dataclass(frozen=True)
class Product:
    """A class as ``classes.csv`` has it."""

    name: str
    kind: str
    description: str  # below the root


@dataclass(frozen=True)
class Grocery(HeldOutDatasetReader):
    """Products; each photograph is a template of its own.

    With classes held out ``test`` has these alone, ``seen`` the others.
    """

    columns: ClassVar = frozenset({"templates", "texts", "groups"})
    captioned: ClassVar = True
    pictures: ClassVar = True
    later: ClassVar = ("class_order", "exchanged")
    origin: ClassVar = Origin(
        "https://github.com/marcusklasson/GroceryStoreDataset",
        licence="MIT",
        downloads=(Download(
            ARCHIVE, f"https://codeload.github.com/marcusklasson/GroceryStoreDataset/zip/{_COMMIT}",
            "aaf3c8054b4f7603879382a4e2a43bd1420ae2ce2aac473128c927d8708b9ce9", 123_934_653,
            packed_anew=True,
        ),),
        counts={
            "training classes": 81, "training images": 2640, "test classes": 81,
            "test images": 5421,
        },
        source="Klasson, Zhang, Kjellström, A Hierarchical Grocery Store Image Dataset, WACV 2019",
    )  # fmt: skip

    image_size: Side = 224  # of an image, pixels
    keep: Share = 1.0  # share of the short side that is kept
    exchanged: bool = False  # are the photographs of ``test`` stored, and searched by the others?
    # decides which items are enrolled, in which gallery, and which classes are held out
    seed: Seed = 0

    def files(self, root: Path) -> list[Path]:
        """The archive; or the table, the lists, every photograph and every description."""
        if (root / ARCHIVE).is_file():
            return [root / ARCHIVE]
        return [root / name for name in _names(root)]

    def files_hash(self, root: Path) -> str:
        """SHA-256 over what is read: the same of the folder and of an archive that holds it."""
        path = root / ARCHIVE
        if not path.is_file():
            return super().files_hash(root)
        stat = path.stat()
        return _archive_hash(root, stat.st_size, stat.st_mtime_ns)

    def read(self, root: Path) -> Dataset:
        """Decode every photograph once."""
        found = products(root)
        names = tuple(product.name for product in found)
        with _opened(root) as place:
            texts = [_description(place, product) for product in found]
        parts = [listed(root, part) for part in PARTS]
        labels = np.array([label for part in parts for _, label in part])
        if labels.max() >= len(names):
            raise BenchError(f"{root}: expected classes below {len(names)}, got {labels.max()}")
        images = self._images(root, [name for part in parts for name, _ in part])
        part = np.repeat(np.arange(len(PARTS)), [len(each) for each in parts])
        kept, held = divided_classes(names, self.seed, self.held_out, self.tuning)
        train, gallery, query = self._roles(part)
        if self.exchanged:
            gallery, query = query, gallery
        # Classes keep their order but for those held out, which come last.
        order = np.concatenate([kept, held, np.setdiff1d(np.arange(len(names)), [*kept, *held])])
        kinds = tuple(found[c].kind for c in order)
        train_set, evaluations = divided_sets(
            images, np.argsort(order)[labels], (len(kept), len(kept) + len(held)), self.seed,
            trains=train, gallery=gallery, query=query, class_groups=kinds,
            class_texts=[texts[c] for c in order],
        )  # fmt: skip
        class_names = tuple(names[c] for c in order)
        return Dataset(self.name, train_set, evaluations, class_names, class_groups=kinds)

    def _roles(self, part: Ints) -> tuple[Any, Any, Any]:
        """Masks of what trains, of the gallery and of the queries."""
        train, val, test = (part == number for number in range(len(PARTS)))
        if self.tuning and not self.held_out:
            return train, train, val
        return train, train | val, test

    def _images(self, root: Path, names: Sequence[str]) -> Pixels:
        view = View(self.image_size, self.image_size, keep=self.keep)
        if not (root / ARCHIVE).is_file():
            images = images_of(Files.checked(root, names), view)
            return np.ascontiguousarray(images[np.arange(len(names))])
        pixels = np.empty((len(names), 3, view.height, view.width), np.uint8)
        with _opened(root) as archive:
            for row, name in enumerate(names):
                where = f"{root / ARCHIVE}: {name}"
                pixels[row] = decode_view(archive(name, MOST_BYTES), view, where, fast=True)
        return pixels


def _names(root: Path) -> list[str]:
    """Names of all that is read: the table, the lists, every photograph and every description."""
    names = [TABLE, *(f"{part}.txt" for part in PARTS)]
    names += [name for part in PARTS for name, _ in listed(root, part)]
    return names + [product.description for product in products(root)]


@lru_cache(maxsize=2)
def _archive_hash(root: Path, size: int, changed: int) -> str:  # noqa: ARG001
    """Hash of what the archive holds, for as long as its size and time stay as they are."""
    names = sorted(set(_names(root)))
    with _opened(root) as place:
        return contents_hash((name, place(name, MOST_BYTES)) for name in names)


@contextmanager
def _opened(root: Path) -> Iterator[Any]:
    """A function from a name below the root, and the most bytes, to the bytes."""
    path = root / ARCHIVE
    if not path.is_file():
        yield lambda name, most: read_bytes(root / name, most)
        return
    file_size(path, _MOST_ARCHIVE)
    with readable(path), zipfile.ZipFile(path) as archive:
        # The authors' repository has the table in a folder, as an archive of it has.
        tables = [name for name in archive.namelist() if f"/{name}".endswith(f"/{TABLE}")]
        above = min(tables, key=len, default=TABLE).removesuffix(TABLE)

        def read(name: str, most: int) -> bytes:
            try:
                about = archive.getinfo(above + name)
            except KeyError:
                raise BenchError(f"{path}: expected {name}, found none") from None
            if about.file_size > most:
                raise BenchError(f"{path}: {name}: expected at most {most} bytes")
            with archive.open(about) as member:
                return member.read(most)

        yield read


def _text(root: Path, name: str) -> str:
    with _opened(root) as place:
        raw: bytes = place(name, _MOST_TEXT)
    with readable(root / name):
        return raw.decode("utf-8-sig")


def _description(place: Any, product: Product) -> str:
    raw: bytes = place(product.description, _MOST_TEXT)
    return " ".join(raw.decode("utf-8-sig", "replace").split())


def products(root: Path) -> list[Product]:
    """The classes in the order of their numbers; BenchError if the table is not as expected."""
    rows: Mapping[str, str]
    found: dict[int, Product] = {}
    where = root / TABLE
    for line, rows in enumerate(csv.DictReader(io.StringIO(_text(root, TABLE))), 2):
        try:
            name, number, kind, text = (str(rows[column] or "").strip() for column in _COLUMNS)
            found[int(number)] = Product(name, kind, text.lstrip("/"))
        except (KeyError, ValueError) as error:
            raise BenchError(f"{where}:{line}: expected columns {', '.join(_COLUMNS)}") from error
    if sorted(found) != list(range(len(found))) or not found:
        raise BenchError(f"{where}: expected classes numbered from 0, got {sorted(found)[:9]}")
    Files.checked(root, [product.description for product in found.values()])
    return [found[number] for number in range(len(found))]


def listed(root: Path, part: str) -> list[tuple[str, int]]:
    """Photographs of a part below the root, and the class of each."""
    found = []
    for line, text in enumerate(_text(root, f"{part}.txt").splitlines(), 1):
        cells = [cell.strip() for cell in text.split(",")]
        if cells == [""]:
            continue
        if len(cells) != 3 or not cells[1].isdecimal():
            raise BenchError(
                f"{root / part}.txt:{line}: expected a file and two numbers, got '{text[:80]}'"
            )
        found.append((cells[0], int(cells[1])))
    if not found:
        raise BenchError(f"{root / part}.txt: expected photographs, found none")
    Files.checked(root, [name for name, _ in found])
    return found
