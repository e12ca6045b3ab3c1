"""``folder``: anybody's images, from folders named after their classes.

Either one folder a class directly under the data root, or ``train/CLASS/...``,
``gallery/CLASS/...`` and ``query/CLASS/...``. In the first case two thirds of the classes, drawn by
``seed``, train; every image of the other classes is both a query and a gallery item, and no query
finds itself. In the second the folders say it: those of ``query`` are searched for in ``gallery``.
Other images of training classes, in ``seen/CLASS/...``, are an evaluation set of their own. Any
size, mode and orientation: the middle square is resized.

``items.csv`` in the data root, or ``pattern``, may say more of each image: its class, camera, group
and part (``train``, ``query``, ``gallery``, ``test`` for both of these, ``seen``). Otherwise each
image counts as a camera of its own, and groups are unknown.
"""

import hashlib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from benchmark.config.checks import Seed
from benchmark.config.declarations import EvaluationSet, Offer
from benchmark.config.files import read_bytes
from benchmark.data import listing
from benchmark.data.base import Dataset, Evaluation, Images, ImageSet, Ints
from benchmark.data.enrolment import single_item_templates
from benchmark.data.files import Files, data_root, readable
from benchmark.data.images import MOST_BYTES, Side, View, images_of
from benchmark.data.listing import SEEN, TABLE, TEST, Item
from benchmark.data.readers import FileDatasetReader
from benchmark.data.splits import seeded_order, two_thirds
from benchmark.errors import BenchError, PassedOverWarning

Items = Sequence[Item]


@dataclass(frozen=True)
class Folder(FileDatasetReader):
    """Anybody's images; each item is a template of its own."""

    columns: ClassVar = frozenset({"templates"})
    more: ClassVar = "items.csv in the data root, or data.pattern, may say cameras, groups, parts"

    image_size: Annotated[Side, Field(le=1024)] = 64  # of the square in the middle of each image
    channels: Literal[1, 3] = 3  # 3 for colour, 1 for grey
    seed: Seed = 0  # order of the classes, their split, the enrolled items
    items: str = ""
    """CSV table in the data root, with a header of ``file`` and any of ``class``, ``camera``,
    ``group``, ``part``; by default ``items.csv``, if there is one."""
    pattern: str = ""
    """Regular expression (RE2) for the whole path of each image below the data root; named groups
    are any of ``class``, ``camera``, ``group``, ``part``."""

    def __post_init__(self) -> None:
        """Refuse a table elsewhere, or a pattern that is none."""
        if Path(self.items).name != self.items:
            raise ValueError(f"items: expected a file's name, got '{self.items:.80}'")
        if self.items and self.pattern:
            raise ValueError("pattern: expected a table or a pattern, got both")
        if self.pattern:
            listing.Pattern(self.pattern)

    def offers(self, root: Path | None) -> Offer:
        """Cameras, groups and the set ``seen``, where the table, names or folders have them."""
        plain = super().offers(root)
        if root is None:
            fields = set(listing.Pattern(self.pattern).fields) if self.pattern else set()
            has_seen = "part" in fields
        elif self.pattern or self._table(root) is not None:
            items = self._listing(data_root(root, self.name))
            fields = {field for field in ("camera", "group") if getattr(items[0], field)}
            has_seen = any(item.part == SEEN for item in items)
        else:
            fields, has_seen = set(), root.is_dir() and listing.has_seen(root)
        columns = {f"{field}s" for field in fields & {"camera", "group"}}
        sets = {SEEN: EvaluationSet()} if has_seen else {}
        return Offer(plain.columns | columns, {**plain.evaluation_sets, **sets})

    def files(self, root: Path) -> list[Path]:
        """Every image, and the table; a BenchError on what their names alone show is wrong."""
        table, every = self._table(root), self._listing(root)
        _class_groups(root, every)
        if not any(item.part for item in every):
            self._divided(root, every)  # a plan tells of classes that a run would refuse
        return [item.path for item in every] + ([] if table is None else [table])

    def read(self, root: Path) -> Dataset:
        """Decode the images and split them; classes are in a seeded order.

        Equal files of one class are one item of an evaluation set, so that a photograph in both
        gallery/ and query/ does not find itself. None is a query that is trained on; those of two
        classes are told.
        """
        every = self._listing(root)
        facts = self._facts(root, every)
        train, gallery, query, seen = self._parts(root, every)
        digests = {item.path: _digest(item) for item in [*train, *gallery, *query, *seen]}
        _refuse_trained(train, query + seen, digests)
        _tell_two_classes([*train, *gallery, *query, *seen], digests)
        names = dict.fromkeys([*self._ordered(train), *self._ordered(gallery + query)])
        _refuse_two_spellings(root, names)
        index = {name: i for i, name in enumerate(names)}
        groups = _class_groups(root, every)
        group_names = tuple(sorted(set(groups.values())))
        images = ImageSet(*self._images(root, index, train))
        more = index, digests, group_names
        evaluations = {TEST: self._evaluation(root, gallery, query, *more)}
        if seen:
            evaluations[SEEN] = self._evaluation(root, seen, seen, *more)
        return Dataset(
            self.name, images, evaluations, tuple(index), facts,
            tuple(groups[name] for name in index) if groups else (),
        )  # fmt: skip

    def _parts(self, root: Path, every: Items) -> list[list[Item]]:
        """Items to train on, of the gallery, the queries and ``seen``; BenchError if they lack."""
        if not any(item.part for item in every):
            every = self._divided(root, every)
        parts = [
            [item for item in every if item.part in names]
            for names in (("train",), ("gallery", TEST), ("query", TEST), (SEEN,))
        ]
        _check_parts(root, *parts)
        return parts

    def _table(self, root: Path) -> Path | None:
        """The table, if there is one."""
        path = root / (self.items or TABLE)
        if self.items and not path.is_file():
            raise BenchError(f"{path}: data.items: there is no such table")
        if self.pattern and path.is_file():
            raise BenchError(f"{path}: expected a table or data.pattern, got both")
        return path if path.is_file() else None

    def _listing(self, root: Path) -> list[Item]:
        table = self._table(root)
        if table is not None:
            return listing.of_table(table, root)
        return listing.of_names(root, self.pattern) if self.pattern else listing.of_folders(root)

    def _facts(self, root: Path, items: Items) -> dict[str, Any]:
        """The record's words of the listing."""
        table = self._table(root)
        by = "one folder a class" if not items[0].part else "train, gallery, query"
        if table is not None or self.pattern:
            by = f"table {table.name}" if table is not None else "pattern"
        known = {"cameras": {item.camera for item in items}, "groups": {i.group for i in items}}
        return {"layout": by} | {k: len(names) for k, names in known.items() if names != {""}}

    def _ordered(self, items: Items) -> list[str]:
        names = sorted({item.class_name for item in items})
        return [names[i] for i in seeded_order(names, self.seed)]

    def _divided(self, root: Path, items: Items) -> list[Item]:
        """Two thirds of the classes to train on, the others, two or more, to evaluate."""
        _need_two(root, items, "")
        names = self._ordered(items)
        if len(names) < 4:
            raise BenchError(
                f"{root}: expected at least 4 classes to split, got {len(names)}: {_some(items)}"
            )
        trained = set(names[: two_thirds(len(names))])
        return [i._replace(part="train" if i.class_name in trained else TEST) for i in items]

    def _images(self, root: Path, index: Mapping[str, int], items: Items) -> tuple[Images, Ints]:
        """Images by class ``[n, channels, size, size]`` uint8, and their labels ``[n]``."""
        items = sorted(items, key=lambda item: index[item.class_name])
        files = Files(root, tuple(item.path.relative_to(root).as_posix() for item in items))
        view = View(self.image_size, self.image_size, self.channels)
        labels = np.array([index[item.class_name] for item in items], np.int64)
        return images_of(files, view), labels

    def _evaluation(
        self, root: Path, gallery: Items, query: Items, index: Mapping[str, int],
        digests: Mapping[Path, str], group_names: tuple[str, ...],
    ) -> Evaluation:  # fmt: skip
        """The photographs to evaluate, equal files of a class once, by path of the first."""
        keys: dict[Path, tuple[str, str]] = {}
        first: dict[tuple[str, str], Item] = {}
        for item in sorted([*gallery, *query], key=lambda item: index[item.class_name]):
            if item.path in keys:
                continue
            key = keys[item.path] = item.class_name, digests[item.path]
            other = first.setdefault(key, item)
            if other.camera != item.camera:
                raise BenchError(
                    f"{item.path}: expected camera {other.camera} as of {other.path}, which is the "
                    f"same photograph, got {item.camera}"
                )
        items = list(first.values())
        _need_two(root, items, " to evaluate (equal files count once)")
        members = [{keys[item.path] for item in part} for part in (gallery, query)]
        rows = [np.flatnonzero([key in part for key in first]) for part in members]
        images, labels = self._images(root, index, items)
        columns: dict[str, Any] = {"query": rows[1]}
        if items[0].camera:
            columns["camera"] = np.unique([item.camera for item in items], return_inverse=True)[1]
        if group_names:
            place = {name: i for i, name in enumerate(group_names)}
            columns["group"] = np.array([place[item.group] for item in items])
            columns["group_names"] = group_names
        return single_item_templates(images, labels, seed=self.seed, gallery=rows[0], **columns)


def _digest(item: Item) -> str:
    with readable(item.path):
        return hashlib.sha256(read_bytes(item.path, MOST_BYTES)).hexdigest()


def _refuse_trained(train: Items, query: Items, digests: Mapping[Path, str]) -> None:
    """Refuse queries that are byte for byte files of ``train``: they would be memorised."""
    trained = {digests[item.path]: item.path for item in train}
    found = [item for item in query if digests[item.path] in trained]
    if found:
        item, more = found[0], f"; {len(found):,} such files" if len(found) > 1 else ""
        same = trained[digests[item.path]]
        raise BenchError(f"{item.path}: {item.part}: trained on, as {same} is the same file{more}")


def _tell_two_classes(items: Items, digests: Mapping[Path, str]) -> None:
    """Warn of photographs that are in two classes: at most one of them can be right."""
    first: dict[str, Item] = {}
    two = [
        (item, other) for item in items
        if (other := first.setdefault(digests[item.path], item)).class_name != item.class_name
    ]  # fmt: skip
    if two:
        item, other = two[0]
        n = len({digests[item.path] for item, _ in two})
        words = f"{n:,} photographs are" if n > 1 else "a photograph is"
        more = ", for one" if n > 1 else ""
        warnings.warn(
            PassedOverWarning(
                f"{words} in two classes{more}: {item.path} is the same file as {other.path}"
            ),
            stacklevel=2,
        )


def _refuse_two_spellings(root: Path, names: Iterable[str]) -> None:
    """Refuse a class that is two by how accents are encoded, as archives of other systems make."""
    known: dict[str, str] = {}
    for name in names:
        if known.setdefault(unicodedata.normalize("NFC", name), name) != name:
            raise BenchError(f"{root}: class {name}: spelt in two ways, with accents apart and not")


def _check_parts(root: Path, train: Items, gallery: Items, query: Items, seen: Items) -> None:
    """Refuse parts that cannot be trained on or evaluated."""
    for name, part in (("train", train), ("gallery", gallery), ("query", query)):
        if not part:
            raise BenchError(f"{root}: {name}: expected images of this part, got none")
    known = {item.class_name for item in gallery} & {item.class_name for item in query}
    if not known:
        raise BenchError(
            f"{root}: gallery and query have no class in common: gallery has {_some(gallery)}, "
            f"query has {_some(query)}"
        )
    _need_two(root, train, " to train on")
    for name, part in (("train", train), ("gallery", gallery)):
        n = len({item.class_name for item in part})
        if n < 2:
            raise BenchError(f"{root}: {name}: expected at least 2 classes, got {n}")
    trained = {item.class_name for item in train}
    for item in seen:
        if item.class_name not in trained:
            raise BenchError(
                f"{item.path}: {SEEN}: expected a class of train, got {item.class_name}"
            )


def _class_groups(root: Path, items: Items) -> dict[str, str]:
    """Class -> its group; empty where none is known."""
    groups: dict[str, str] = {}
    for item in items:
        if groups.setdefault(item.class_name, item.group) != item.group:
            raise BenchError(
                f"{root}: class {item.class_name}: expected one group, got "
                f"{groups[item.class_name]} and {item.group}"
            )
    return groups if any(groups.values()) else {}


def _some(items: Items) -> str:
    names = sorted({item.class_name for item in items})
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _need_two(root: Path, items: Items, purpose: str) -> None:
    for name, n in Counter(item.class_name for item in items).items():
        if n < 2:
            raise BenchError(f"{root}: class {name}: expected at least 2 images{purpose}, got 1")
