"""docs/vector-databases.md: its own blocks, out of a database, through a conversion and back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import benchmark
from benchmark.contract.conversion import Conversion, Dims
from benchmark.models.parts import Affine, KeepSide

PAGE = Path(__file__).parents[1] / "docs" / "vector-databases.md"
N, OLD, NEW = 1010, 6, 4  # more than a batch


def blocks(title: str) -> list[str]:
    """The two blocks of a database: to parquet, and back."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.S | re.M)
    assert section
    found = re.findall(r"```python\n(.*?)```", section[1], re.S)
    assert len(found) == 2
    return found


@pytest.mark.parametrize("title", re.findall(r"^## (\w+)", PAGE.read_text(), re.M))
def test_blocks_are_short_and_compile(title):
    for block in blocks(title):
        compile(block, title, "exec")
        assert len(block.splitlines()) <= 20
    assert ("Untried" in PAGE.read_text().partition(f"## {title}")[2][:40]) == (title == "Weaviate")


@pytest.fixture
def vectors(tmp_path, monkeypatch):
    """Vectors of a database in the current folder, of length 1 as some keep them."""
    monkeypatch.chdir(tmp_path)
    return unit(np.random.default_rng(0).standard_normal((N, OLD)).astype(np.float32))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def there_and_back(title, vectors, ids):
    """Run both blocks around a conversion; gives converted vectors in the order of the ids."""
    torch.manual_seed(0)
    parts = {"convert": KeepSide(Affine.of(torch.randn(NEW, OLD)))}
    conversion = Conversion("made-up", {}, "cosine", Dims(old=OLD, new=NEW), False, parts)
    out, back = blocks(title)
    exec(out, {})
    found, rows = benchmark.read_vectors("old.parquet")
    order = {str(i): row for row, i in enumerate(found.tolist())}
    assert sorted(order) == sorted(map(str, ids))
    place = [order[str(i)] for i in ids]
    np.testing.assert_allclose(rows[place], vectors, atol=1e-6)
    conversion.save("conversion")
    benchmark.convert_file("conversion", "old.parquet", "converted.parquet")
    exec(back, {})
    return conversion.convert(rows)[place]


@pytest.mark.slow
@pytest.mark.parametrize("uuids", [False, True])
def test_qdrant(vectors, uuids):
    client_of = pytest.importorskip("qdrant_client")
    ids = [f"00000000-0000-0000-0000-{i:012}" if uuids else 3 * i for i in range(N)]
    client = client_of.QdrantClient(path="qdrant")
    models = client_of.models
    client.create_collection(
        "docs", models.VectorParams(size=OLD, distance=models.Distance.COSINE)
    )  # fmt: skip
    client.upsert("docs", [
        models.PointStruct(id=i, vector=v.tolist(), payload={"text": f"of {i}"})
        for i, v in zip(ids, vectors, strict=True)
    ])  # fmt: skip
    client.close()
    wanted = there_and_back("Qdrant", vectors, ids)
    client = client_of.QdrantClient(path="qdrant")
    points = client.retrieve("docs-new", ids, with_vectors=True, with_payload=True)
    client.close()
    found = {p.id: p for p in points}
    np.testing.assert_allclose(
        unit(np.array([found[i].vector for i in ids])), unit(wanted), atol=1e-5
    )
    assert all(found[i].payload == {"text": f"of {i}"} for i in ids)


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
def test_milvus(vectors, words):
    package = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    ids = [f"doc {i}" if words else 3 * i for i in range(N)]
    client = package.MilvusClient("milvus.db")
    kind = {"id_type": "string", "max_length": 64} if words else {"id_type": "int"}
    client.create_collection("docs", OLD, metric_type="COSINE", **kind)
    client.insert("docs", [
        {"id": i, "vector": v.tolist(), "text": f"of {i}"}
        for i, v in zip(ids, vectors, strict=True)
    ])  # fmt: skip
    client.close()
    wanted = there_and_back("Milvus", vectors, ids)
    client = package.MilvusClient("milvus.db")
    rows = client.get("docs_new", ids, output_fields=["*"])
    client.close()
    found = {row["id"]: row for row in rows}
    np.testing.assert_allclose([found[i]["vector"] for i in ids], wanted, rtol=1e-5, atol=1e-5)
    assert all(found[i]["text"] == f"of {i}" for i in ids)


@pytest.fixture
def postgres(tmp_path_factory, monkeypatch):
    """A server with the extension: the one that PGHOST or PGSERVICE names, else pgserver's."""
    psycopg = pytest.importorskip("psycopg")
    if {"PGHOST", "PGSERVICE"} & set(os.environ):
        yield psycopg
        return
    package = pytest.importorskip("pgserver", reason="no PGHOST, PGSERVICE or package pgserver")
    folder = tmp_path_factory.mktemp("pg")
    with package.get_server(folder, cleanup_mode="stop"):
        for name, value in (("HOST", folder), ("USER", "postgres"), ("DATABASE", "postgres")):
            monkeypatch.setenv(f"PG{name}", str(value))
        yield psycopg


@pytest.mark.slow
def test_pgvector(vectors, postgres):
    psycopg = postgres
    ids = [3 * i for i in range(N)]
    with psycopg.connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        db.execute("DROP TABLE IF EXISTS docs")
        db.execute(f"CREATE TABLE docs (id bigint PRIMARY KEY, embedding vector({OLD}))")
        rows = [(i, v.tolist()) for i, v in zip(ids, vectors, strict=True)]
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO docs VALUES (%s, %s::real[]::vector)", rows)
    wanted = there_and_back("pgvector", vectors, ids)
    with psycopg.connect() as db:
        found = dict(db.execute("SELECT id, embedding_new::real[] FROM docs").fetchall())
        db.execute("DROP TABLE docs")
    np.testing.assert_allclose([found[i] for i in ids], wanted, rtol=1e-5, atol=1e-5)


def test_other_columns_may_stand_beside(tmp_path):
    table = {"text": ["a", "b"], "id": [7, 8], "vector": [[1.0, 2.0], [3.0, 4.0]]}
    pq.write_table(pa.table(table), tmp_path / "old.parquet")
    ids, rows = benchmark.read_vectors(tmp_path / "old.parquet")
    assert ids.tolist() == [7, 8] and rows.tolist() == [[1, 2], [3, 4]]
