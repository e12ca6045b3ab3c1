"""``banking77``: questions of a bank's customers, each with its intent (Casanueva et al., 2020).

Queries are the questions of the test part, the gallery holds those of the training part. Reads the
authors' ``train.csv`` and ``test.csv``, or BEIR's layout with classes: ``docs.jsonl``,
``queries.jsonl`` and ``*.labels.tsv``, where texts that are empty, or of the class ``None``, are
passed over.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic_core import from_json

from benchmark.config.checks import Seed
from benchmark.config.declarations import Origin
from benchmark.data.base import Dataset
from benchmark.data.enrolment import divided_sets
from benchmark.data.files import read_text
from benchmark.data.splits import divided_classes, in_folds
from benchmark.data.texts import TextDatasetReader, as_bytes
from benchmark.errors import BenchError, located

_PARTS = (("train.csv", "docs"), ("test.csv", "queries"))
_MOST_BYTES = 2**26
Labelled = tuple[list[str], list[str]]
"""Texts and their classes."""


@dataclass(frozen=True)
class Banking77(TextDatasetReader):
    """Short questions of 77 intents."""

    origin: ClassVar = Origin(
        "https://github.com/PolyAI-LDN/task-specific-datasets",
        licence="CC BY 4.0",
        how="the folder `banking_data` of a clone of this repository",
        counts={"training classes": 77, "training images": 10_003, "test images": 13_083},
        source="Casanueva and others, Efficient intent detection with dual sentence encoders, 2020",
    )

    seed: Seed = 0  # decides which items are enrolled, and which classes are held out

    def files(self, root: Path) -> list[Path]:
        """The two tables, or the four files."""
        if (root / _PARTS[0][0]).is_file():
            return [root / table for table, _ in _PARTS]
        names = (name for _, side in _PARTS for name in (f"{side}.jsonl", f"{side}.labels.tsv"))
        return [root / name for name in names]

    def read(self, root: Path) -> Dataset:
        """Read both parts."""
        tables = (root / _PARTS[0][0]).is_file()
        train, test = (
            _table(root / table) if tables else _lines(root, side) for table, side in _PARTS
        )
        names = sorted({*train[1]})
        unknown = sorted({*test[1]} - {*names})
        if unknown:
            raise BenchError(f"{root}: test has a class that train has not: {unknown[0]:.80}")
        kept, held = divided_classes(names, self.seed, self.held_out, self.tuning)
        order = [*kept, *held]
        number = {names[c]: place for place, c in enumerate(order)}
        labels = np.array([number.get(name, -1) for name in (*train[1], *test[1])])
        texts = as_bytes([*train[0], *test[0]])
        gallery = np.arange(len(labels)) < len(train[0])
        trains, query = gallery, ~gallery
        if self.tuning and not self.held_out:
            query = gallery & (in_folds(labels, 5, self.seed) == 0)
            trains = gallery = gallery & ~query
        train_set, evaluations = divided_sets(
            texts, labels, (len(kept), len(order)), self.seed,
            trains=trains, gallery=gallery, query=query,
        )  # fmt: skip
        return Dataset(self.name, train_set, evaluations, tuple(names[c] for c in order))


def _table(path: Path) -> Labelled:
    """A table ``text,category``."""
    reader = csv.DictReader(io.StringIO(read_text(path, _MOST_BYTES)), strict=True)
    with located(str(path)):
        try:
            rows = list(reader)
        except csv.Error as error:
            raise BenchError(f"expected a table: {error}") from error
        if not rows or {"text", "category"} - {*(reader.fieldnames or ())}:
            raise BenchError("expected the columns text and category, and a row")
        if any(row["text"] is None or not row["category"] for row in rows):
            raise BenchError("expected a text and a category in each row")
        return [row["text"] for row in rows], [row["category"] for row in rows]


def _lines(root: Path, side: str) -> Labelled:
    """Texts of a file of JSON lines, and their classes in a table of ids."""
    path = root / f"{side}.labels.tsv"
    lines = read_text(path, _MOST_BYTES).splitlines()
    with located(str(path)):
        rows = [line.split("\t") for line in lines[1:] if line]
        if any(len(row) != 2 for row in rows):
            raise BenchError("expected an id and a label in each line")
        label = dict(rows)
    path = root / f"{side}.jsonl"
    lines = read_text(path, _MOST_BYTES).splitlines()
    with located(str(path)):
        found = [_entry(line) for line in lines if line]
        missing = [name for name, _ in found if name not in label]
        if missing or not found:
            raise BenchError(f"expected a label of every text, got none of {missing[:1] or 'any'}")
        kept = [(text, label[name]) for name, text in found if text and label[name] != "None"]
        return [text for text, _ in kept], [name for _, name in kept]


def _entry(line: str) -> tuple[str, str]:
    try:
        value = from_json(line)
        name, text = value["id"], value["text"]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"expected an object with id and text, got {line:.60}") from error
    if not isinstance(name, str) or not isinstance(text, str):
        raise BenchError(f"expected id and text as texts, got {line:.60}")
    return name, text
