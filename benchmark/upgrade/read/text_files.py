"""Text files of others, line by line: errors name the line that is damaged."""

import io
import json
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.config.files import file_size, read_bytes
from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.formats.checks import cut, nameless, shown
from benchmark.upgrade.formats.ids import LONGEST, Ids, rows_of

_MOST_BYTES = 2**28
_BEIR = ("query-id", "corpus-id", "score")
_LABELS = ("id", "label")
_SLICES = ("id", "slice")
_MOST_SLICES = 1000
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd",
           b"PK\x03\x04": "zip"}  # fmt: skip
_GAIN = re.compile(rb"[+-]?(\d{1,9}(\.\d{0,20})?|\.\d{1,20})([eE][+-]?0?\d)?")


@dataclass(frozen=True)
class NamedQrels:
    """Relevance judgements by names, ``[n]`` each, as they were given."""

    queries: Ints  # places in ``query_names``
    items: Ints  # places in ``item_names``
    gains: NDArray[np.float64]
    lines: Ints  # from 1
    query_names: list[str]  # each once
    item_names: list[str]  # each once


def read_qrels(path: Path) -> NamedQrels:
    """Read relevance judgements in TREC's or BEIR's form.

    Raises:
        BenchError: Without the file's name, if a line is damaged or there is none.
    """
    names: tuple[dict[str, int], dict[str, int]] = ({}, {})
    queries, items, gains, lines = array("q"), array("q"), array("d"), array("q")
    is_beir = False
    for line, raw in _lines(path):
        if not lines and not is_beir and _is_header(raw):
            _require_header(line, raw, _BEIR)
            is_beir = True
            continue
        query, item, gain = _columns(line, raw, _BEIR) if is_beir else _trec(line, raw)
        if not _GAIN.fullmatch(gain):
            raise BenchError(
                f"line {line}: gain: expected a number, as 2, 0.5 or 5e-1, of at most 9 digits "
                f"before the point and 20 after it, got {shown(_loose(gain))}"
            )
        queries.append(names[0].setdefault(_name(line, "query", query), len(names[0])))
        items.append(names[1].setdefault(_name(line, "item", item), len(names[1])))
        gains.append(float(gain))
        lines.append(line)
    if not lines:
        raise BenchError("expected judgements, got none")
    return NamedQrels(
        np.frombuffer(queries, np.int64), np.frombuffer(items, np.int64), np.frombuffer(gains),
        np.frombuffer(lines, np.int64), list(names[0]), list(names[1]),
    )  # fmt: skip


def read_labels(path: Path, ids: Ids) -> Ids:
    """Read the label of each id, text ``[n]``, from a file with the header ``id``, ``label``.

    Raises:
        BenchError: Without the file's name, if one is missing, comes twice or is damaged.
    """
    labels: dict[str, str] = {}
    for place, (line, raw) in enumerate(_lines(path)):
        if not place:
            _require_header(line, raw, _LABELS)
            continue
        name, label = map(_name, (line, line), _LABELS, _columns(line, raw, _LABELS))
        if labels.setdefault(name, label) != label:
            raise BenchError(
                f"line {line}: label: expected {shown(labels[name])} of id {shown(name)}, as "
                f"before, got {shown(label)}"
            )
    rows = rows_of(list(labels), ids)
    known = rows >= 0
    if known.sum() < len(ids):
        lost = np.setdiff1d(np.arange(len(ids)), rows)
        raise BenchError(
            f"expected a label for each of {len(ids)} ids, {len(lost)} have none, the first is "
            f"{shown(str(ids[lost[0]]))}"
        )
    out: Ids = np.empty(len(ids), StringDType())
    out[rows[known]] = np.array(list(labels.values()), StringDType())[known]
    return out


def read_texts(path: Path, ids: Ids) -> dict[str, str]:
    """Read id -> text, from BEIR's JSON lines (``_id``, ``text``) or from lines of two columns.

    Raises:
        BenchError: If a line is something else, or none is of these ids.
    """
    with located(str(path)):
        if path.suffix.lower() == ".jsonl":
            texts = read_json_texts(path)
        else:
            rows = (_columns(line, raw, ("id", "text")) for line, raw in _lines(path))
            texts = {_decoded(name): _decoded(text) for name, text in rows}
        if texts and (rows_of(list(texts), ids) < 0).all():
            first = shown(next(iter(texts)))
            raise BenchError(f"expected ids of queries, got none, the first is {first}")
        return texts


def read_json_texts(path: Path, most: int = _MOST_BYTES, *, titled: bool = False) -> dict[str, str]:
    """Read id -> text, below its title if ``titled``, from BEIR's JSON lines of at most some bytes.

    Raises:
        BenchError: Without the file's name, if a line is something else.
    """
    out: dict[str, str] = {}
    for line, raw in _lines(path, most):
        try:
            found = json.loads(raw)
            name = str(found["_id"] if "_id" in found else found["id"])
            words = found.get("title") if titled else "", found["text"]
            out[name] = " ".join(str(word) for word in words if word)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BenchError(
                f'line {line}: expected {{"_id": ..., "text": ...}}, got {shown(_loose(raw))}'
            ) from error
    return out


def read_slices(path: Path, *ids: Ids) -> list[tuple[str, str]]:
    """Read an id of a query or item, and the name of a slice it is in, from each line.

    Raises:
        BenchError: If a line is damaged, none has an id of ``ids``, or there are too many slices.
    """
    with located(str(path)):
        out = []
        for line, raw in _lines(path):
            parts = _columns(line, raw, _SLICES)
            if parts != [b"id", b"slice"]:
                out.append((_name(line, "id", parts[0]), _name(line, "slice", parts[1])))
        n = len({name for _, name in out})
        if not 1 <= n <= _MOST_SLICES:
            raise BenchError(f"expected 1 to {_MOST_SLICES} slices, got {n}")
        names = [key for key, _ in out]
        if not any((rows_of(names, each) >= 0).any() for each in ids):
            raise BenchError(
                f"expected ids of queries or items, got none, the first is {shown(names[0])}"
            )
    return out


def read_counts(path: Path, ids: Ids) -> tuple[Ints, str]:
    """Read how often each item is read, from lines of an id and a number; 0 where none is given.

    As with slices, a first line may name the columns: ``id`` and ``reads``. Beside the counts comes
    a line that says of how many items, and how many lines are of others.
    """
    out = np.zeros(len(ids), np.int64)
    with located(str(path)):
        names, counts = [], []
        for line, raw in _lines(path):
            name, count = (_decoded(part) for part in _columns(line, raw, ("id", "reads")))
            if (name, count) == ("id", "reads"):
                continue
            if not count.isdecimal() or len(count) > 15:
                raise BenchError(f"line {line}: reads: expected a whole number, got {shown(count)}")
            names.append(name)
            counts.append(int(count))
        rows = rows_of(names, ids)
        if not (rows >= 0).any():
            raise BenchError("expected ids of the gallery, got none of them")
        np.add.at(out, rows[rows >= 0], np.array(counts)[rows >= 0])
        if not out.any():
            raise BenchError("expected reads of items, got 0 of each item of the gallery")
    told = f"{path}: {np.count_nonzero(out):,} of {len(ids):,} items are read"
    others = int((rows < 0).sum())
    return out, told + f"; {others:,} of {len(rows):,} lines name no item" * bool(others)


def _is_header(raw: bytes) -> bool:
    """Tell BEIR's header, as it should be or nearly, from a line whose ids are its words."""
    words = raw.split()
    return bool({b"query-id", b"corpus-id"} & {*words}) and not _GAIN.fullmatch(words[-1])


def _trec(line: int, raw: bytes) -> list[bytes]:
    parts = raw.split()
    if len(parts) != 4:
        commas = " with commas in them" * (b"," in raw)
        raise BenchError(
            f"line {line}: expected 4 columns (query, iteration, item, gain), or first of all the "
            f"header {' '.join(_BEIR)} with tabs, got {len(parts)} columns{commas}"
        )
    return [parts[0], parts[2], parts[3]]


def _columns(line: int, raw: bytes, names: tuple[str, ...]) -> list[bytes]:
    parts = raw.split(b"\t")
    if len(parts) != len(names):
        raise BenchError(
            f"line {line}: expected {len(names)} columns ({', '.join(names)}) between tabs, got "
            f"{len(parts)}"
        )
    return parts


def _require_header(line: int, raw: bytes, names: tuple[str, ...]) -> None:
    got = _loose(raw).split("\t")
    if got != [*names]:
        raise BenchError(
            f"line {line}: expected the header {' '.join(names)} with tabs, got "
            f"{shown(' '.join(got))}"
        )


def _lines(path: Path, most: int = _MOST_BYTES) -> Iterator[tuple[int, bytes]]:
    """Lines that are not empty, numbered from 1."""
    with nameless(path):
        file_size(path, most)  # before as many are read
        content = read_bytes(path, most)
    for start, name in _PACKED.items():
        if content.startswith(start):
            raise BenchError(f"expected text, got a file compressed by {name}: unpack it first")
    head = content[:1000]
    if b"\0" in head and head.decode("utf-8", "ignore").encode() != head:
        raise BenchError("expected text in UTF-8, got bytes that are none")
    for line, raw in enumerate(io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")), 1):
        if raw.strip():
            yield line, raw.rstrip(b"\r\n")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BenchError("expected UTF-8") from error


def _name(line: int, field: str, raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise BenchError(
            f"line {line}: {field}: expected UTF-8, got {shown(_loose(raw))}"
        ) from error
    if not 1 <= len(name) <= LONGEST or "\0" in name:
        raise BenchError(
            f"line {line}: {field}: expected 1 to {LONGEST} letters, got {len(name)}: {cut(name)!r}"
        )
    return name


def _loose(raw: bytes) -> str:
    """Bytes of others for a message."""
    return raw[:200].decode("utf-8", "backslashreplace")
