"""Vectors in text: JSON lines, CSV and TSV, PostgreSQL's COPY; a record a row.

A record's fields are found by content: the vector is the field with a list of numbers, nested or
not, by a usual name or because there is no other one. Every record is read twice, once to count.
"""

import csv
import io
import itertools
import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import (
    MOST_DIM,
    MOST_NAMES,
    another_column,
    cut,
    listed,
    require_file,
)
from benchmark.upgrade.formats.ids import AT_ONCE
from benchmark.upgrade.formats.source import Shape, Source

Record = Mapping[str, Any]
_VECTORS = ("vector", "embedding", "values", "embeddings", "emb", "dense_vector")
_IDS = ("id", "_id")
_SPARSE = {"indices", "values"}  # of a sparse vector
DEEPEST = 6
_LONGEST = 2**25  # bytes of a line, or of a cell


class RecordsSource(Source):
    """A vector and an id in each record of a text."""

    has_columns = True

    @abstractmethod
    def _records(self) -> Iterator[Record]:
        """Fields of each record, nested ones by ``outer.inner``."""

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path)
        rows, dim = 0, 0
        for record in self._records():
            if not rows:
                self.fields = dict(record)
                if len(self.fields) > MOST_NAMES:
                    raise BenchError(f"expected at most {MOST_NAMES} fields in a record")
                self._asked, self.part = self.part, self._vector_field(record)
                dim = len(_numbers(record[self.part]) or ())
            rows += 1
        return (rows, dim), np.dtype(np.float32)

    def _vector_field(self, record: Record) -> str:
        """The field of vectors: by the name asked for, a usual one, or the only one."""
        found = [name for name, value in record.items() if _numbers(value) is not None]
        wanted = self.part
        if wanted:
            if field := _field(found, wanted):
                return field
            raise BenchError(f"expected a field '{cut(wanted)}' of numbers, got {listed(found)}")
        for usual in _VECTORS:
            if field := _field(found, usual):
                return field
        if len(found) != 1:
            raise BenchError(
                f"expected a field with a list of numbers, got {listed(found or record)}; "
                + another_column(() if found else record, "FILE:FIELD or --vector-column names one")
            )
        return found[0]

    @property
    def told(self) -> list[str]:
        """Lines about fields that were found under other names than the usual ones."""
        usual = self._asked or self.part.rpartition(".")[2] in _VECTORS
        found = [] if usual else [f"{self.name}: vectors are those of '{cut(self.part)}'"]
        return found + super().told

    def _id_places(self) -> tuple[str | None, list[str]]:
        plain = [
            name for name, value in self.fields.items()
            if name != self.part and isinstance(value, str | int) and not isinstance(value, bool)
        ]  # fmt: skip
        beside = ("", self.part.rpartition(".")[0])  # an id elsewhere is that of something else
        parts = {name: name.rpartition(".") for name in plain}
        usual = [name for name, (of, _, own) in parts.items() if own in _IDS and of in beside]
        usual.sort(key=lambda name: name.count("."))
        return (usual[0] if usual else None), [name for name in plain if name not in usual]

    def _stored_ids(self, place: str) -> Iterator[Any]:
        rows = enumerate(self._records())
        yield from _in_parts((self._id(place, record, row) for row, record in rows), AT_ONCE)

    def _id(self, place: str, record: Record, row: int) -> Any:
        value, kind = record.get(place), type(self.fields[place])
        if type(value) is not kind:
            got = "none" if value is None else cut(repr(value))
            raise BenchError(
                f"{cut(place)}: expected an id in each row, a {kind.__name__} as in the first, "
                f"got {got} in row {row}"
            )
        # numpy would make floats of all.
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise BenchError(f"{cut(place)}: expected whole numbers below 2^63, got {cut(value)}")
        return value

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        rows = itertools.islice(enumerate(self._records()), first, None)
        yield from _in_parts((self._vector(record, row) for row, record in rows), size)

    def _vector(self, record: Record, row: int) -> NDArray[np.float32]:
        numbers = _numbers(record.get(self.part))
        if numbers is None or len(numbers) != self.dim:
            got = "none" if numbers is None else str(len(numbers))
            raise BenchError(f"expected {self.dim} numbers, got {got} in row {row}")
        try:
            with np.errstate(over="ignore"):
                return np.array(numbers, np.float64).astype(np.float32)
        except (ValueError, TypeError, OverflowError) as error:
            raise BenchError(f"expected numbers, got something else in row {row}") from error


class JsonLinesSource(RecordsSource):
    """A JSON object a line, as exports of Elastic, OpenSearch and of vendors' batches have it."""

    format = "JSON lines"

    def _records(self) -> Iterator[Record]:
        about: Record = {}  # what a line says of the next one
        with _opened(self.path) as file:
            for line, text in enumerate(_lines(file), 1):
                if not text.strip():
                    continue
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise BenchError(f"line {line}: expected a JSON object: {error}") from error
                if (found := _bulk_action(value)) is not None:
                    about = found
                    continue
                record = flat(value, line)
                for name, given in about.items():  # the document's own come first
                    record.setdefault(name, given)
                about = {}
                yield record


def _bulk_action(value: Any) -> Record | None:
    """The id that a line of Elastic's bulk form gives the next document; None for a document."""
    if not isinstance(value, dict) or not value or value.keys() - {"index", "create"}:
        return None
    (action, *_) = value.values()
    return {"_id": action["_id"]} if isinstance(action, dict) and "_id" in action else {}


class CsvSource(RecordsSource):
    """Cells between commas or tabs, with a header; a vector is a bracketed list in a cell.

    Without a header, where the first line has a vector, columns are ``1``, ``2``, ...; so are those
    of PostgreSQL's ``COPY ... TO``.
    """

    format = "CSV"
    _separator = ","

    def _records(self) -> Iterator[Record]:
        csv.field_size_limit(_LONGEST)
        with _opened(self.path) as file:
            rows = self._cells(file)
            first = next(rows, None)
            if first is None:
                return
            has_header = not any(_numbers(cell) is not None for cell in first)
            names = first if has_header else [str(k + 1) for k in range(len(first))]
            if again := [name for name, n in Counter(names).items() if n > 1]:
                raise BenchError(f"expected each column once, got '{cut(again[0])}' twice")
            if not has_header:
                yield dict(zip(names, first, strict=True))
            for row, cells in enumerate(rows, int(not has_header)):
                if len(cells) != len(names):
                    between = "tabs" if self._separator == "\t" else "commas"
                    raise BenchError(
                        f"expected {len(names)} cells between {between} as in the first line, got "
                        f"{len(cells)} in row {row}"
                    )
                yield dict(zip(names, cells, strict=True))

    def _cells(self, file: IO[str]) -> Iterator[list[Any]]:
        yield from (cells for cells in csv.reader(_lines(file), strict=True,
                                                  delimiter=self._separator) if cells)  # fmt: skip


class TsvSource(CsvSource):
    """The same between tabs."""

    format = "TSV"
    _separator = "\t"


class CopySource(TsvSource):
    """PostgreSQL's text form of COPY: no header, no quotes, a backslash before what is special."""

    format = "COPY"

    def _cells(self, file: IO[str]) -> Iterator[list[Any]]:
        for text in _lines(file):
            line = text.rstrip("\r\n")
            if line == "\\.":
                return
            if line:
                cells = line.split("\t")
                yield [None if cell == r"\N" else _unescaped(cell) for cell in cells]


_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescaped(cell: str) -> str:
    return re.sub(r"\\(.?)", lambda found: _ESCAPES.get(found[1], found[1]), cell)


def _numbers(value: Any) -> Any:
    """A list of numbers, or the text of one in brackets, as a list; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) < 3 or text[0] + text[-1] not in ("[]", "{}"):
            return None
        inner = text[1:-1]
        parts = inner.split(",") if "," in inner else inner.split()
        if len(parts) > MOST_DIM:
            return None
        try:
            return [float(part) for part in parts]
        except ValueError:
            return None
    if isinstance(value, dict):  # Elastic's sparse and Pinecone's other forms are none
        return None
    is_list = isinstance(value, list) and 0 < len(value) <= MOST_DIM
    first = value[0] if is_list else None
    return value if isinstance(first, int | float) and not isinstance(first, bool) else None


def _field(found: list[str], name: str) -> str:
    """The field of a name, or the only inner one that ends in it; empty for none."""
    close = [field for field in found if field.rpartition(".")[2] == name]
    return name if name in found else close[0] if len(close) == 1 else ""


def flat(value: Any, row: int) -> dict[str, Any]:
    """Fields of an object, those of inner objects by ``outer.inner``."""
    if not isinstance(value, dict):
        raise BenchError(f"expected an object, got {type(value).__name__} in record {row}")
    out: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        before, inner, depth = waiting.pop()
        for key, each in inner.items():
            name = f"{before}{key}"
            if isinstance(each, dict) and depth < DEEPEST and each.keys() != _SPARSE:
                waiting.append((f"{name}.", each, depth + 1))
            else:
                out[name] = each
    return out


def _in_parts(rows: Iterator[Any], size: int) -> Iterator[NDArray[Any]]:
    """Rows as arrays of so many of them."""
    while part := list(itertools.islice(rows, size)):
        is_text = all(isinstance(value, str) for value in part)
        yield np.array(part, StringDType() if is_text else None)


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    with path.open("rb") as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
        yield text


def _lines(file: IO[str]) -> Iterator[str]:
    """Lines of a text; a BenchError for one that is too long to be one."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise BenchError(f"expected lines of less than {_LONGEST} bytes, got a longer one")
        yield line
