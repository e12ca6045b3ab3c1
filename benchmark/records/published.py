"""Numbers that papers print: read strictly, shown apart, never ranked with measured ones."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from benchmark.config import registry
from benchmark.config.checks import holds
from benchmark.config.files import read_bytes
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import AbsentError, BenchError, nearest
from benchmark.metrics.catalog import describe
from benchmark.records.files import choose
from benchmark.records.record import Record

WORDS = "papers.yaml"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_LINES = 20_000
_LONGEST = 1000
_LARGEST = {"%": 100.0, "fraction": 1.0, "M": math.inf, "count": math.inf}


def _tidy(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError(f"unprintable text or spaces around it, got {text!r:.60}")
    return text


Text = Annotated[str, AfterValidator(_tidy), Field(max_length=_LONGEST)]
_NOT_EMPTY = holds(bool, "a value")
Given = Annotated[Text, _NOT_EMPTY]
_DECIMAL = re.compile(r"(-?[0-9]{1,9}(\.[0-9]{1,9})?)?")
Decimal = Annotated[Text, holds(_DECIMAL.fullmatch, "a number such as 77.86")]


class Paper(Model):
    """Origin of the numbers."""

    title: Given
    authors: Given
    venue: Given
    caveats: tuple[Given, ...]
    """Notes on all its numbers; single ones have their own."""
    code: Text = ""
    """Address of its authors' code."""


class Number(Model):
    """One printed number: a line of a paper's file, and the paper."""

    table: Given
    """Table, section or abstract that prints it."""
    protocol: Given
    """The setting that is closest; the details are in ``variant`` and ``note``."""
    dataset: Given
    """Data that it was evaluated on."""
    method: Given
    """Our method where there is one."""
    variant: Text
    """The paper's words for this row."""
    old_model: Text
    new_model: Text
    query: Text
    """Model of the queries; empty where the paper names none."""
    gallery: Text
    """Model of the gallery."""
    metric: Given
    """Our metric where there is one."""
    printed: Annotated[Decimal, _NOT_EMPTY] = Field(alias="value")
    """The value with its digits, in ``unit``."""
    unit: Literal["%", "fraction", "M", "count"]
    printed_std: Decimal = Field(alias="std")
    """Standard deviation; empty if none is printed."""
    note: Text
    """Caveats."""
    paper: str
    """Id of the paper."""

    @model_validator(mode="after")
    def _consistent(self) -> Number:
        if bool(self.query) != bool(self.gallery):
            raise ValueError("query and gallery: expected both or none")
        if self.value > _LARGEST[self.unit] or self.printed_std.startswith("-"):
            most = f"{_LARGEST[self.unit]:g}{self.unit.replace('fraction', '')}"
            raise ValueError(f"value: expected at most {most}, got {self.value}")
        return self

    @property
    def value(self) -> float:
        """The printed value, in ``unit``."""
        return float(self.printed)

    @property
    def std(self) -> float | None:
        """Standard deviation, if printed."""
        return float(self.printed_std) if self.printed_std else None

    @property
    def case(self) -> str:
        """``new/old``, as printed."""
        return f"{self.query}/{self.gallery}" if self.query else ""

    @property
    def models(self) -> str:
        """``old to new``, as far as the paper names them."""
        return " to ".join(filter(None, (self.old_model, self.new_model)))

    @property
    def words(self) -> str:
        """The value with deviation and unit, as printed."""
        unit = {"%": " %", "M": " M"}.get(self.unit, "")
        return f"{self.printed}{'' if self.std is None else f' ± {self.std:g}'}{unit}"

    @property
    def fraction(self) -> float | None:
        """The value as measured ones are stored; ``None`` for counts."""
        if self.unit == "%":
            return self.value / 100
        return self.value if self.unit == "fraction" else None

    def row(self) -> dict[str, str | float | None]:
        """Column -> text or number, for tables and files."""
        texts = self.model_dump(exclude={"printed", "printed_std", "unit", "note", "paper"})
        return {
            "paper": self.paper, **texts, "value": self.value, "printed": self.printed,
            "unit": self.unit, "std": self.std, "note": self.note,
        }  # fmt: skip


COLUMNS = tuple(field.alias or name for name, field in Number.model_fields.items())[:-1]


class Published(Model):
    """All numbers, with what ``papers.yaml`` holds about them."""

    papers: Mapping[str, Paper]
    """By id."""
    protocols: tuple[str, ...]
    datasets: Mapping[str, tuple[str, ...]]
    """Dataset -> our tracks with the same data."""
    methods: Mapping[str, str] = {}
    """Slugs of methods that are not ours -> what they mean."""
    metrics: Mapping[str, str] = {}
    """The same of metrics."""
    numbers: tuple[Number, ...] = ()
    """In the order of the papers and of their files."""


def default_folder() -> Path:
    """``results/published`` here, in this package's checkout, or a wheel's; else AbsentError."""
    here, root = Path("results/published"), Path(__file__).parents[2]
    for folder in (here, root / here, root / "compatbench" / "published"):
        if (folder / WORDS).is_file():
            return folder
    raise AbsentError(f"{here}: no published numbers here (a folder with {WORDS})")


def read_published(folder: Path | None = None) -> Published:
    """Read and validate every paper of a folder.

    Raises:
        BenchError: Naming file, line and column, on anything unknown, missing or impossible, on a
            line that comes twice, a paper without a file or a file without a paper.
    """
    folder = folder or default_folder()
    words = build(Published, read_yaml(folder / WORDS), str(folder / WORDS))
    papers = words.papers
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in papers:
            raise BenchError(f"{path}: not among the papers of {WORDS}{nearest(path.stem, papers)}")
    numbers = tuple(number for name in papers for number in _read(folder / f"{name}.csv", words))
    return words.model_copy(update={"numbers": numbers})


def _read(path: Path, words: Published) -> list[Number]:
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        heads = tuple(next(reader, ()))
        rows = [(reader.line_num, row) for row in islice(reader, _MOST_LINES + 1)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    if len(rows) > _MOST_LINES:
        raise BenchError(f"{path}: expected at most {_MOST_LINES} numbers")
    if heads != COLUMNS:
        raise BenchError(f"{path}: expected the columns {', '.join(COLUMNS)}")
    lines: dict[tuple[str, ...], int] = {}
    numbers = []
    for line, row in rows:
        where = f"{path}: line {line}"
        if len(row) != len(COLUMNS):
            raise BenchError(f"{where}: expected {len(COLUMNS)} values, got {len(row)}")
        if tuple(row) in lines:
            raise BenchError(f"{where}: the same as line {lines[tuple(row)]}")
        lines[tuple(row)] = line
        values = dict(zip(COLUMNS, row, strict=True)) | {"paper": path.stem}
        number = build(Number, values, where)
        _check_names(number, where, words)
        numbers.append(number)
    return numbers


def _check_names(number: Number, where: str, words: Published) -> None:
    """Refuse names of protocols, datasets, methods and metrics that nothing explains."""
    for column, known in (("protocol", words.protocols), ("dataset", words.datasets)):
        name = getattr(number, column)
        if name not in known:
            raise BenchError(f"{where}: {column}: unknown '{name}'{nearest(name, known)}")
    for column, explained, look_up in (
        ("method", words.methods, registry.method_file), ("metric", words.metrics, describe),
    ):  # fmt: skip
        name = getattr(number, column)
        try:
            _ = name in explained or look_up(name)
        except (BenchError, ValueError) as error:
            raise BenchError(f"{where}: {column}: {error}, nor in {WORDS}") from error


def select(published: Published, **chosen: Sequence[str]) -> list[Number]:
    """Numbers with certain papers, protocols, datasets, methods, metrics or cases.

    ``chosen`` has values by column; an empty list is no restriction. A method without a variant
    (``fct``) also means its variants. A BenchError if a value is in no number.
    """
    message = "published: {field}: unknown '{value}'"
    return choose(published.numbers, getattr, chosen, "method", message)


def beside(published: Published, records: Iterable[Record]) -> list[Number]:
    """Numbers on the protocol and the data of some records, without changes to either."""
    settings = {
        (record.protocol, data)
        for record in records
        if not record.changed
        for data in (record.track, record.dataset.name)
    }
    return [
        number
        for number in published.numbers
        for tracks in [published.datasets[number.dataset]]
        if any((number.protocol, data) in settings for data in (number.dataset, *tracks))
    ]
