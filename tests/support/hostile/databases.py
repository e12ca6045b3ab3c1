"""Hostile stores of vectors as databases, search engines and vendors' APIs write them.

A sample is a store with one of its files harmed; ``words`` has the name that the store is read by.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.hostile import Sample, in_place
from support.hostile.engine import other_bytes
from support.hostile.modules import DIM

FILES = Path(__file__).parents[2] / "upgrade" / "files"
ROWS = (np.arange(12 * DIM).reshape(12, DIM) / 8 + 1).astype(np.float32)
IDS = [f"doc-{i:02}" for i in range(12)]
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
        "faiss.index": _committed("faiss.index"), "pgvector.copy": _copy(),
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
    out = io.BytesIO()
    flat = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), DIM)
    pq.write_table(pa.table({"id": IDS, "vector": flat}), out)
    about = {
        "namespace": "", "index_name": "docs", "total_vector_count": 12, "data_path": "docs",
        "exported_vector_count": 12, "dimensions": DIM, "model_name": "m",
        "vector_columns": ["vector"], "metric": "Cosine",
    }  # fmt: skip
    meta = {"version": "0.0.6", "file_structure": [], "author": "x", "exported_from": "qdrant",
            "indexes": {"docs": [about]}, "exported_at": "now", "id_column": "id"}  # fmt: skip
    return {"vdf/VDF_META.json": json.dumps(meta).encode(), "vdf/docs/1.parquet": out.getvalue()}
