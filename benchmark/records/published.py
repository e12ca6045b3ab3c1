"""Numbers that papers print: read strictly, shown apart, never ranked with measured ones."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from benchmark.config import registry
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import BenchError, nearest
from benchmark.metrics.catalog import describe
from benchmark.records.record import Record

COLUMNS = (
    "table", "protocol", "dataset", "method", "variant", "old_model", "new_model", "query",
    "gallery", "metric", "value", "unit", "std", "note",
)  # fmt: skip
WORDS = "papers.yaml"

Unit = Literal["%", "fraction", "M", "count"]


class Paper(Model):
    """Where numbers come from."""

    title: str
    authors: str
    venue: str
    caveats: tuple[str, ...]
    """What a reader of all its numbers must know; single ones have notes."""


@dataclass(frozen=True)
class Number:
    """One printed number.

    Attributes:
        paper: Id of the paper.
        table: Table, section or abstract that prints it.
        protocol: The setting that is closest; the details are in ``variant`` and ``note``.
        dataset: What it was evaluated on.
        method: Our method where there is one.
        variant: What the paper says of this row.
        query: Which embedding asks; empty where that says nothing.
        gallery: Which embedding is stored.
        metric: Our metric where there is one.
        value: As printed, in ``unit``.
        printed: The text of it, with its digits.
        std: Standard deviation, if printed.
        note: Caveats.
    """

    paper: str
    table: str
    protocol: str
    dataset: str
    method: str
    variant: str
    old_model: str
    new_model: str
    query: str
    gallery: str
    metric: str
    value: float
    printed: str
    unit: Unit
    std: float | None
    note: str

    @property
    def case(self) -> str:
        """``new/old``, as printed."""
        return f"{self.query}/{self.gallery}" if self.query else ""

    @property
    def fraction(self) -> float | None:
        """The value as measured ones are stored; ``None`` for counts."""
        if self.unit == "%":
            return self.value / 100
        return self.value if self.unit == "fraction" else None


@dataclass(frozen=True)
class Published:
    """All numbers, and words about them.

    Attributes:
        papers: By id.
        numbers: In the order of the papers and of their files.
        tracks: Dataset -> our tracks with the same data.
        words: Slugs of methods and metrics that are not ours -> what they mean.
    """

    papers: Mapping[str, Paper]
    numbers: tuple[Number, ...]
    tracks: Mapping[str, tuple[str, ...]]
    words: Mapping[str, str]


class _Words(Model):
    """What ``papers.yaml`` holds."""

    papers: Mapping[str, Paper]
    protocols: tuple[str, ...]
    datasets: Mapping[str, tuple[str, ...]]
    methods: Mapping[str, str] = {}
    metrics: Mapping[str, str] = {}


def default_folder() -> Path:
    """``results/published`` here, in the checkout that this package runs from, or its copy.

    Raises:
        BenchError: If there is none.
    """
    here = Path("results/published")
    checkout = Path(__file__).parents[2] / here
    # A wheel has a copy in the package.
    packed = Path(__file__).parents[2] / "compatbench" / "published"
    for folder in (here, checkout, packed):
        if (folder / WORDS).is_file():
            return folder
    raise BenchError(f"{here}: no published numbers here (a folder with {WORDS})")


def read_published(folder: Path | None = None) -> Published:
    """Read and validate every paper of a folder.

    Raises:
        BenchError: Naming file, line and column, on anything unknown, missing or impossible, on a
            line that comes twice, a paper without a file or a file without a paper.
    """
    folder = folder or default_folder()
    words = build(_Words, read_yaml(folder / WORDS), str(folder / WORDS))
    papers = words.papers
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in papers:
            raise BenchError(f"{path}: not among the papers of {WORDS}{nearest(path.stem, papers)}")
    numbers = [number for name in papers for number in _read(folder / f"{name}.csv", words)]
    return Published(papers, tuple(numbers), words.datasets, {**words.methods, **words.metrics})


def _read(path: Path, words: _Words) -> list[Number]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            heads = tuple(next(reader, ()))
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    if heads != COLUMNS:
        raise BenchError(f"{path}: expected the columns {', '.join(COLUMNS)}")
    seen: dict[tuple[str, ...], int] = {}
    numbers = []
    for line, row in rows:
        where = f"{path}: line {line}"
        if len(row) != len(COLUMNS):
            raise BenchError(f"{where}: expected {len(COLUMNS)} values, got {len(row)}")
        if tuple(row) in seen:
            raise BenchError(f"{where}: the same as line {seen[tuple(row)]}")
        seen[tuple(row)] = line
        numbers.append(_number(path.stem, dict(zip(COLUMNS, row, strict=True)), where, words))
    return numbers


def _number(paper: str, row: dict[str, str], where: str, words: _Words) -> Number:
    for column in ("table", "protocol", "dataset", "method", "metric", "value", "unit"):
        if not row[column]:
            raise BenchError(f"{where}: {column}: expected a value, got none")
    for column, text in row.items():
        if not (text.isprintable() and text == text.strip()):
            raise BenchError(f"{where}: {column}: unprintable text or spaces around it: {text!r}")
    for column, known in (("protocol", words.protocols), ("dataset", words.datasets)):
        if row[column] not in known:
            raise BenchError(
                f"{where}: {column}: unknown '{row[column]}'{nearest(row[column], known)}"
            )
    if row["unit"] not in get_args(Unit):
        raise BenchError(f"{where}: unit: expected {', '.join(get_args(Unit))}, got {row['unit']}")
    if bool(row["query"]) != bool(row["gallery"]):
        raise BenchError(f"{where}: query and gallery: expected both or none")
    _check_names(row, where, words)
    value = _decimal(row["value"], f"{where}: value")
    std = _decimal(row["std"], f"{where}: std") if row["std"] else None
    most = {"%": 100.0, "fraction": 1.0}.get(row["unit"], math.inf)
    if value > most or (std is not None and std < 0):
        raise BenchError(f"{where}: value: expected at most {most:g}{row['unit']}, got {value}")
    rest = {k: v for k, v in row.items() if k not in ("value", "std", "unit")}
    unit: Any = row["unit"]
    return Number(paper=paper, value=value, printed=row["value"], unit=unit, std=std, **rest)


def _check_names(row: Mapping[str, str], where: str, words: _Words) -> None:
    if row["method"] not in words.methods:
        try:
            registry.method_file(row["method"])
        except BenchError as error:
            raise BenchError(f"{where}: method: {error}, nor in {WORDS}") from error
    if row["metric"] not in words.metrics:
        try:
            describe(row["metric"])
        except ValueError as error:
            raise BenchError(f"{where}: metric: {error}, nor in {WORDS}") from error


def _decimal(text: str, where: str) -> float:
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise BenchError(f"{where}: expected a number such as 77.86, got '{text}'")
    return float(text)


def select(published: Published, **chosen: Sequence[str]) -> list[Number]:
    """Numbers with certain papers, protocols, datasets, methods, metrics or cases.

    Args:
        published: All.
        **chosen: Column -> values; an empty list is no restriction. A method without a variant
            (``fct``) also means its variants.

    Raises:
        BenchError: If a value is in no number.
    """
    found = list(published.numbers)
    for column, values in chosen.items():
        if not values:
            continue
        known = dict.fromkeys(str(getattr(n, column)) for n in published.numbers)
        if column == "method":
            known |= dict.fromkeys(name.partition(":")[0] for name in known)
        for value in values:
            if value not in known:
                raise BenchError(f"published: {column}: unknown '{value}'{nearest(value, known)}")
        found = [n for n in found if _fits(str(getattr(n, column)), values, column)]
    return found


def _fits(value: str, wanted: Sequence[str], column: str) -> bool:
    return value in wanted or (column == "method" and value.partition(":")[0] in wanted)


def beside(published: Published, records: Iterable[Record]) -> list[Number]:
    """Numbers on the protocol and the data of some records, without changes to either."""
    settings = {(r.protocol, track) for r in records if not r.changed for track in _data(r)}
    return [
        n
        for n in published.numbers
        if any(
            (n.protocol, track) in settings for track in (n.dataset, *published.tracks[n.dataset])
        )
    ]


def _data(record: Record) -> tuple[str, str]:
    return record.track, record.dataset.name
