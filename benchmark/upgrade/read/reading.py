"""Reads what the user brings, from files or arrays, into :class:`Inputs`."""

import json
import math
import numbers
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import read_bytes
from benchmark.errors import BenchError, located
from benchmark.ranking.arrays import Ints
from benchmark.ranking.grouping import offsets
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.formats.checks import cut, shown
from benchmark.upgrade.formats.ids import Ids, as_ids
from benchmark.upgrade.formats.joining import rows_of
from benchmark.upgrade.formats.rows import ArrayRows, Rows
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.inputs import (
    Inputs,
    Judge,
    joined_gallery,
    joined_queries,
    require_dims,
)
from benchmark.upgrade.read.names import INPUTS
from benchmark.upgrade.read.qrels import Relevance, of_classes, read_class_labels, read_relevance

Vectors = str | Path | NDArray[Any]
Qrels = str | Path | Mapping[Any, Mapping[Any, float]]
Columns = str | Mapping[str, str]
"""A column of all inputs, or of each by its name."""
_MOST_BYTES = 2**28


def read_inputs(
    old_gallery: Vectors, new_gallery: Vectors, queries: Vectors,
    old_queries: Vectors | None = None, *, qrels: Qrels | None = None,
    labels: tuple[Any, Any] | None = None, ids: Mapping[str, Any] | None = None,
    distance: Literal["cosine", "l2"] = "cosine", texts: str | Path | None = None,
    reads: str | Path | None = None, queries_are_items: bool = False,
    id_column: Columns = "", vector_column: Columns = "", cluster: Cluster | None = None,
) -> Inputs:  # fmt: skip
    """Check and join everything; arguments as of :func:`benchmark.upgrade.run.upgrade`."""
    given = dict(ids or {})
    for name, each in (("ids", given), ("id_column", id_column), ("vector_column", vector_column)):
        if isinstance(each, Mapping) and (unknown := each.keys() - set(INPUTS)):
            raise BenchError(f"{name}: expected names of arguments, got {cut(min(unknown))}")

    def rows(name: str, vectors: Vectors) -> Rows:
        if not isinstance(vectors, str | Path):
            return ArrayRows(name, vectors, given.get(name))
        columns = (_of(each, name) for each in (vector_column, id_column))
        return open_vectors(vectors, *columns)

    if qrels is not None and labels is not None:
        raise BenchError("qrels, labels: expected one of them, got both")
    old, new = rows("old_gallery", old_gallery), rows("new_gallery", new_gallery)
    gallery, told = joined_gallery(old, new, distance, cluster)
    of_old = None if old_queries is None else rows("old_queries", old_queries)
    of_new = rows("queries", queries)
    require_dims(gallery, of_new, of_old)
    vectors, old_vectors, query_ids = joined_queries(of_new, of_old, distance)
    gallery_ids = np.arange(old.rows) if old.ids is None else old.ids
    relevance, judge = _relevance(qrels, labels, query_ids, gallery_ids)
    if judge == "qrels":
        told.append(str(relevance))
    told[:0] = [line for each in (old, new, of_new, of_old) for line in getattr(each, "told", [])]
    return Inputs(
        gallery, vectors, old_vectors, relevance, judge, distance, query_ids, old.ids,
        {} if texts is None else _texts(Path(texts)),
        None if reads is None else _reads(Path(reads), gallery_ids),
        rows_of(list(map(str, query_ids)), gallery_ids) if queries_are_items else None,
        tuple(told),
    )  # fmt: skip


def _of(column: Columns, name: str) -> str:
    """The column of one input."""
    return column if isinstance(column, str) else column.get(name, "")


def _relevance(
    qrels: Qrels | None, labels: tuple[Any, Any] | None, query_ids: Ids, gallery_ids: Ids
) -> tuple[Relevance, Judge]:
    if labels is not None:
        if isinstance(labels[0], str | Path) and isinstance(labels[1], str | Path):
            return read_class_labels(*labels, query_ids, gallery_ids), "labels"
        mine, its = as_ids(labels[0]), as_ids(labels[1])
        if (len(mine), len(its)) != (len(query_ids), len(gallery_ids)):
            raise BenchError(
                f"labels: expected {len(query_ids)} of queries and {len(gallery_ids)} of the "
                f"gallery, got {len(mine)} and {len(its)}"
            )
        return of_classes(mine, its), "labels"
    if not (qrels is None or isinstance(qrels, Mapping | str | Path)):
        raise BenchError(f"qrels: expected a file, or query -> item -> gain, got {cut(qrels)}")
    if isinstance(qrels, Mapping):
        return _of_mapping(qrels, query_ids, gallery_ids), "qrels"
    relevance = read_relevance(qrels, query_ids, gallery_ids)
    return relevance, "agreement" if qrels is None else "qrels"


def _of_mapping(
    qrels: Mapping[Any, Mapping[Any, float]], query_ids: Ids, gallery_ids: Ids
) -> Relevance:
    gains: dict[tuple[str, str], float] = {}
    for query, items in qrels.items():
        if not isinstance(items, Mapping):
            raise BenchError(
                f"qrels: expected query -> item -> gain, got {cut(items)} for query {shown(query)}"
            )
        for item, gain in items.items():
            pair, number = (str(query), str(item)), _gain(query, item, gain)
            if gains.setdefault(pair, number) != number:  # 7 and "7" are one id
                raise BenchError(
                    f"qrels: expected one gain of item {pair[1]} for query {pair[0]}, got "
                    f"{gains[pair]:g} and {number:g}"
                )
    queries = _rows_of([q for q, _ in gains], query_ids)
    rows = _rows_of([i for _, i in gains], gallery_ids)
    values = np.array([*gains.values()])
    used = (queries >= 0) & (rows >= 0) & (values > 0)
    if not used.any():
        raise BenchError("qrels: expected a relevant item of one of the queries, got none")
    order = np.lexsort((rows, queries))
    kept: Ints = order[used[order]]
    sizes = np.bincount(queries[kept], minlength=len(query_ids))
    return Relevance(offsets(sizes), rows[kept], values[kept])


def _gain(query: Any, item: Any, gain: Any) -> float:
    """A gain as a number; BenchError if it is none, or not finite."""
    with suppress(OverflowError):
        if isinstance(gain, numbers.Real) and math.isfinite(number := float(gain)):
            return number
    raise BenchError(
        f"qrels: gain of item {shown(item)} for query {shown(query)}: expected a finite number, "
        f"got {cut(repr(gain))}"
    )


def _rows_of(names: list[str], ids: Ids) -> Ints:
    """The row of each name, some of which may come again; -1 where it is none of the ids."""
    known = list(dict.fromkeys(names))
    rows = dict(zip(known, rows_of(known, ids).tolist(), strict=True))
    return np.array([rows[name] for name in names], np.int64)


def _texts(path: Path) -> dict[str, str]:
    """Id -> text, from BEIR's JSON lines (``_id``, ``text``) or from lines of two columns."""
    found: dict[str, str] = {}
    with located(str(path)):
        for line, text in _lines(path):
            if path.suffix.lower() == ".jsonl":
                try:
                    value = json.loads(text)
                    name, words = value["_id"], value["text"]
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise BenchError(
                        f'line {line}: expected {{"_id": ..., "text": ...}}, got {shown(text)}'
                    ) from error
            else:
                name, words = _two(line, text, "id, text")
            found[str(name)] = str(words)
    return found


def _reads(path: Path, gallery_ids: Ids) -> Ints:
    """How often each item is read, from lines of an id and a number; 0 where none is given."""
    reads = np.zeros(len(gallery_ids), np.int64)
    with located(str(path)):
        names, counts = [], []
        for line, text in _lines(path):
            name, count = _two(line, text, "id, reads")
            if not count.isdecimal() or len(count) > 15:
                raise BenchError(f"line {line}: reads: expected a whole number, got {shown(count)}")
            names.append(name)
            counts.append(int(count))
        rows = _rows_of(names, gallery_ids)
        if not (rows >= 0).any():
            raise BenchError("expected ids of the gallery, got none of them")
        np.add.at(reads, rows[rows >= 0], np.array(counts)[rows >= 0])
    return reads


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        content = read_bytes(path, _MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise BenchError("expected UTF-8") from error
    except BenchError as error:
        raise BenchError(str(error.args[0]).removeprefix(f"{path}: ")) from error
    lines = enumerate(content.removeprefix("\ufeff").split("\n"), 1)
    return [(line, text.rstrip("\r")) for line, text in lines if text.strip()]


def _two(line: int, text: str, names: str) -> tuple[str, str]:
    columns = text.split("\t")
    if len(columns) != 2:
        raise BenchError(
            f"line {line}: expected 2 columns ({names}) between tabs, got {len(columns)}"
        )
    return columns[0], columns[1]
