"""Vectors of a collection in Chroma's folder: its database, and the files of its graph.

New records wait in a table of the database, the write-ahead log; older ones lie in the graph's file
``data_level0.bin``, in hnswlib's layout. The file that says which id has which place there is
pickled: its opcodes are looked at one by one, nothing of it is carried out. Where the collection
compares by cosine, Chroma keeps vectors in the graph at length 1.
"""

import pickletools
import re
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import (
    MOST_DIM,
    MOST_NAMES,
    cut,
    metric_of,
    require_file,
    the_one,
)
from benchmark.upgrade.formats.ids import AT_ONCE
from benchmark.upgrade.formats.source import Shape, Source

DATABASE = "chroma.sqlite3"
_TABLES = ("collections", "segments", "embeddings", "embeddings_queue", "collection_metadata")
_HEADER = struct.Struct("<iQQQQQQ")
"""Of a graph: version, level's offset, room, elements, bytes of one, places of label and vector."""
_SPACE = re.compile(r'"space"\s*:\s*"(\w+)"')
_STRINGS = ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE")
_INTS = ("BININT", "BININT1", "BININT2", "LONG1", "INT")


class ChromaSource(Source):
    """A collection, the only one or ``FOLDER:NAME``, with its ids."""

    format = "Chroma"

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path / DATABASE)
        with closing(self._database()) as db:
            collection, dim = self._collection(db)
            segments = dict(db.execute(
                "SELECT scope, id FROM segments WHERE collection = ?", (collection,)
            ))  # fmt: skip
            self.metric = self._space(db, collection)
            self._topic = f"%/{collection}"
            live = {str(name) for (name,) in db.execute(
                "SELECT embedding_id FROM embeddings WHERE segment_id = ?",
                (segments.get("METADATA"),),
            )}  # fmt: skip
            waiting = {
                str(name): seq for name, seq in db.execute(
                    "SELECT id, MAX(seq_id) FROM embeddings_queue WHERE topic LIKE ? AND vector "
                    "IS NOT NULL GROUP BY id", (self._topic,),
                )
            }  # fmt: skip
        self._places, self._names = np.empty(0, np.int64), list[str]()
        rest = live - waiting.keys()
        if rest:
            self._read_graph(str(segments.get("VECTOR", "")), dim, rest)
        queued = sorted((seq, name) for name, seq in waiting.items() if name in live)
        self._queued = [seq for seq, _ in queued]
        self._names += [name for _, name in queued]
        if len(self._names) != len(live):
            raise BenchError(f"expected {len(live)} vectors, got {len(self._names)}")
        return (len(self._names), dim), np.dtype("<f4")

    def _database(self) -> sqlite3.Connection:
        place = (self.path / DATABASE).absolute().as_uri()
        db = sqlite3.connect(f"{place}?mode=ro", uri=True)
        db.execute("PRAGMA trusted_schema = OFF")
        for name in _TABLES:
            found = db.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (name,))
            kind, sql = found.fetchone() or ("nothing", "")
            if kind != "table" or "VIRTUAL" in str(sql)[:30].upper():
                db.close()
                raise BenchError(f"expected a table '{name}' in {DATABASE}, got {cut(kind)}")
        return db

    def _collection(self, db: sqlite3.Connection) -> tuple[str, int]:
        """The collection's id and its dimension."""
        rows = db.execute("SELECT name, id, dimension FROM collections").fetchmany(MOST_NAMES)
        found = [row for row in rows if self.part in ("", row[0])]
        names = (str(row[0]) for row in rows)
        name, collection, dim = the_one("collection", found, names, "FOLDER:NAME")
        if not isinstance(dim, int) or not 1 <= dim <= MOST_DIM:
            raise BenchError(f"expected vectors in the collection '{cut(name)}', got none")
        self.part = str(name)
        return str(collection), dim

    def _space(self, db: sqlite3.Connection, collection: str) -> str:
        found = db.execute(
            "SELECT str_value FROM collection_metadata WHERE collection_id = ? AND key = "
            "'hnsw:space'", (collection,),
        ).fetchone()  # fmt: skip
        if found is not None:
            return metric_of(found[0])
        columns = {row[1] for row in db.execute("PRAGMA table_info(collections)")}
        for column in ("config_json_str", "schema_str"):
            if column in columns:
                query = f"SELECT {column} FROM collections WHERE id = ?"
                (text,) = db.execute(query, (collection,)).fetchone()
                if space := _SPACE.search(str(text)):
                    return metric_of(space[1])
        return "l2"

    def _read_graph(self, segment: str, dim: int, wanted: set[str]) -> None:
        """Places of vectors in the graph's file, ascending, and their ids."""
        if not re.fullmatch(r"[0-9a-fA-F-]{1,64}", segment):
            raise BenchError("expected a segment of vectors")
        folder = self.path / segment
        self._data = folder / "data_level0.bin"
        header, size = folder / "header.bin", require_file(self._data)
        require_file(header)
        with header.open("rb") as file:
            raw = file.read(_HEADER.size)
        _, _, _, n, stride, label_at, vector_at = _HEADER.unpack(raw)
        if not (vector_at + 4 * dim == label_at and label_at + 8 == stride) or n * stride > size:
            raise BenchError(f"expected a graph of vectors of {dim} numbers, got another layout")
        self._element = np.dtype({
            "names": ["vector", "label"], "formats": [("<f4", (dim,)), "<u8"],
            "offsets": [vector_at, label_at], "itemsize": stride,
        })  # fmt: skip
        labels = {label: name for name, label in _labels(folder) if name in wanted}
        for start in range(0, n, AT_ONCE):
            part = np.fromfile(self._data, self._element, min(AT_ONCE, n - start),
                               offset=start * stride)["label"].tolist()  # fmt: skip
            at = [k for k, label in enumerate(part) if label in labels]
            self._names += [labels[part[k]] for k in at]
            self._places = np.append(self._places, np.array(at, np.int64) + start)

    def _id_places(self) -> tuple[str | None, list[str]]:
        return "id", []

    def _stored_ids(self, place: str) -> Iterator[Any]:  # noqa: ARG002
        for a in range(0, len(self._names), AT_ONCE):
            yield np.array(self._names[a : a + AT_ONCE], StringDType())

    def _blocks(self, size: int, first: int) -> Iterator[NDArray[Any]]:
        for a in range(first, len(self._places), size):
            here = self._places[a : a + size]
            start = int(here[0])
            stored = np.fromfile(
                self._data, self._element, int(here[-1]) + 1 - start,
                offset=start * self._element.itemsize,
            )  # fmt: skip
            yield stored["vector"][here - start]
        rest = self._queued[max(0, first - len(self._places)) :]
        with closing(self._database()) as db:
            for a in range(0, len(rest), size):
                yield np.stack([self._one(db, seq) for seq in rest[a : a + size]])

    def _one(self, db: sqlite3.Connection, seq: int) -> NDArray[np.float32]:
        query = "SELECT vector, encoding FROM embeddings_queue WHERE seq_id = ?"
        raw, encoding = db.execute(query, (seq,)).fetchone()
        if encoding != "FLOAT32" or not isinstance(raw, bytes) or len(raw) != 4 * self.dim:
            raise BenchError(f"expected {self.dim} numbers of FLOAT32 in record {seq}")
        vector: NDArray[np.float32] = np.frombuffer(raw, "<f4")
        length = np.linalg.norm(vector) if self.metric == "cosine" else 0.0
        return vector / length if length > 0 else vector  # of length 1, as in the graph


def _labels(folder: Path) -> Iterator[tuple[str, int]]:
    """Ids and the labels that the graph knows them by, from the pickled file's opcodes."""
    path = folder / "index_metadata.pickle"
    require_file(path)
    inside, name = False, None
    with path.open("rb") as file:
        for code, value, _ in pickletools.genops(file):
            if code.name in _STRINGS:
                if value == "id_to_label":
                    inside = True
                elif value in ("label_to_id", "id_to_seq_id"):
                    inside = False
                name = value
            elif code.name in _INTS and inside and isinstance(name, str) and isinstance(value, int):
                yield name, value
                name = None
