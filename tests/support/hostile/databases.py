"""Hostile stores of vectors as databases, search engines and vendors' APIs write them.

A sample is a store with one of its files harmed; ``words`` has the name that the store is read by.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.hostile import Sample, in_place
from support.hostile.engine import other_bytes
from support.hostile.modules import DIM

FILES = Path(__file__).parents[2] / "upgrade" / "files"
ROWS = (np.arange(12 * DIM).reshape(12, DIM) / 8 + 1).astype(np.float32)
IDS = [f"doc-{i:02}" for i in range(12)]
INDEXES = ("faiss", "faiss-sq8", "faiss-pq", "faiss-ivf")
_HARMS = 8
"""Places of a file where bytes are overwritten and added, beside cuts."""


def databases() -> Iterator[Sample]:
    """Every store as it is, and with each of its files harmed or replaced."""
    for name, files in stores().items():
        yield Sample("database", f"sound-{name}", files, (name,))
        for path, raw in files.items():
            label = f"{name}-{Path(path).name}" if path != name else name
            for harm, content in other_bytes(raw, most=_HARMS):
                yield Sample("database", f"{label}-{harm}", {**files, path: content}, (name,))
        main = next(iter(files))
        for sample in in_place("database", main, files):
            yield Sample("database", f"{name}-{sample.name}", sample.files, (name,))


def stores() -> dict[str, dict[str, bytes]]:
    """Name to read it by -> its files; the first one is that which every reader opens."""
    return {
        **{f"{n}.index": _committed(f"{n}.index") for n in INDEXES}, "pgvector.copy": _copy(),
        "a.jsonl": {"a.jsonl": b"".join(_json(k) + b"\n" for k in range(12))},
        "a.json": {"a.json": b"[" + b",".join(_json(k) for k in range(12)) + b"]"},
        "a.csv": {"a.csv": _cells(",", '"')}, "a.tsv": {"a.tsv": _cells("\t", "")},
        "chroma": _chroma(), "lancedb": _lance(), "vdf": _vdf(),
    }  # fmt: skip


def _committed(name: str) -> dict[str, bytes]:
    return {name: (FILES / name).read_bytes()}


def _json(k: int) -> bytes:
    return json.dumps({"id": IDS[k], "embedding": ROWS[k].tolist()}).encode()


def _copy() -> dict[str, bytes]:
    lines = (f"{name}\t{row.tolist()}\n" for name, row in zip(IDS, ROWS, strict=True))
    return {"pgvector.copy": "".join(lines).encode()}


def _cells(separator: str, quote: str) -> bytes:
    lines = [f"id{separator}embedding"]
    for name, row in zip(IDS, ROWS, strict=True):
        lines.append(f"{name}{separator}{quote}{row.tolist()}{quote}")
    return "\n".join(lines).encode()


def _chroma() -> dict[str, bytes]:
    with zipfile.ZipFile(FILES / "chroma.zip") as archive:
        names = [n for n in archive.namelist() if not n.endswith("/")]
        names.sort(key=lambda name: (not name.endswith(".sqlite3"), name))
        return {name: archive.read(name) for name in names}


def _lance() -> dict[str, bytes]:
    root = FILES / "lancedb"
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(FILES)): path.read_bytes() for path in paths}


def _vdf() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        write_vdf(Path(name), ROWS, IDS)
        names = ("VDF_META.json", "docs/1.parquet")
        return {f"vdf/{each}": Path(name, each).read_bytes() for each in names}


def write_vdf(folder: Path, rows: np.ndarray, ids: Any, **changes: Any) -> Path:
    """A folder as vector-io writes it, with other facts of its index."""
    (folder / "docs").mkdir(parents=True)
    dim = rows.shape[1]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), dim)
    table = pa.table({"id": ids, "vector": flat})
    pq.write_table(table, folder / "docs" / "1.parquet", row_group_size=2000)
    about = {
        "namespace": "", "index_name": "docs", "total_vector_count": len(rows),
        "data_path": "docs", "exported_vector_count": len(rows), "dimensions": dim,
        "model_name": "all-MiniLM-L6-v2", "vector_columns": ["vector"], "metric": "Dot", **changes,
    }  # fmt: skip
    meta = {"version": "0.0.6", "file_structure": [], "author": "x", "exported_from": "qdrant",
            "indexes": {"docs": [about]}, "exported_at": "now", "id_column": "id"}  # fmt: skip
    (folder / "VDF_META.json").write_text(json.dumps(meta))
    return folder
