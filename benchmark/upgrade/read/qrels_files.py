"""Text files of judgements and of labels, line by line: what is damaged is told with its line."""

import io
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.config.files import file_size, read_bytes
from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import cut, shown
from benchmark.upgrade.formats.ids import LONGEST, Ids
from benchmark.upgrade.formats.joining import rows_of

Ints = NDArray[np.int64]

_MOST_BYTES = 2**28
_BEIR = ["query-id", "corpus-id", "score"]
_LABELS = ["id", "label"]
_GAIN = re.compile(rb"[+-]?\d{1,9}(\.\d{1,9})?")


class Judgements(NamedTuple):
    """Judgements as they stand in a file, ``[n]`` each."""

    queries: Ints  # rows of query_names
    items: Ints  # rows of item_names
    gains: NDArray[np.float64]
    lines: Ints  # from 1
    query_names: list[str]
    item_names: list[str]


def read_judgements(path: Path) -> Judgements:
    """Judgements in TREC's or BEIR's form.

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
        query, item, gain = _beir(line, raw) if is_beir else _trec(line, raw)
        if not _GAIN.fullmatch(gain):
            raise BenchError(f"line {line}: gain: expected a number, got {shown(_loose(gain))}")
        queries.append(names[0].setdefault(_name(line, "query", query), len(names[0])))
        items.append(names[1].setdefault(_name(line, "item", item), len(names[1])))
        gains.append(float(gain))
        lines.append(line)
    if not lines:
        raise BenchError("expected judgements, got none")
    return Judgements(
        np.frombuffer(queries, np.int64), np.frombuffer(items, np.int64), np.frombuffer(gains),
        np.frombuffer(lines, np.int64), list(names[0]), list(names[1]),
    )  # fmt: skip


def _is_header(raw: bytes) -> bool:
    """Whether the first line is BEIR's header, as it should be or nearly: an id may be its word."""
    words = raw.split()
    return bool({b"query-id", b"corpus-id"} & {*words}) and not _GAIN.fullmatch(words[-1])


def _trec(line: int, raw: bytes) -> tuple[bytes, bytes, bytes]:
    fields = raw.split()
    if len(fields) != 4:
        raise BenchError(
            f"line {line}: expected 4 columns (query, iteration, item, gain), or first of all the "
            f"header {' '.join(_BEIR)} with tabs, got {len(fields)} columns"
        )
    return fields[0], fields[2], fields[3]


def _beir(line: int, raw: bytes) -> tuple[bytes, bytes, bytes]:
    query, item, gain = _columns(line, raw, _BEIR)
    return query, item, gain


def _columns(line: int, raw: bytes, names: list[str]) -> list[bytes]:
    fields = raw.split(b"\t")
    if len(fields) != len(names):
        raise BenchError(
            f"line {line}: expected {len(names)} columns ({', '.join(names)}) between tabs, got "
            f"{len(fields)}"
        )
    return fields


def _require_header(line: int, raw: bytes, names: list[str]) -> None:
    got = _loose(raw).split("\t")
    if got != names:
        raise BenchError(
            f"line {line}: expected the header {' '.join(names)} with tabs, got "
            f"{shown(' '.join(got))}"
        )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not empty, numbered from 1."""
    try:
        file_size(path, _MOST_BYTES)  # before as many are read
        content = read_bytes(path, _MOST_BYTES)
    except BenchError as error:
        raise BenchError(str(error.args[0]).removeprefix(f"{path}: ")) from error
    for line, raw in enumerate(io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")), 1):
        if raw.strip():
            yield line, raw.rstrip(b"\r\n")


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


def read_labels(path: Path, ids: Ids) -> Ids:
    """The label of each id, text ``[n]``, from a file with the header ``id``, ``label``.

    Raises:
        BenchError: Without the file's name, if one is missing, comes twice or is damaged.
    """
    labels: dict[str, str] = {}
    is_first = True
    for line, raw in _lines(path):
        if is_first:
            _require_header(line, raw, _LABELS)
            is_first = False
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
