"""Write small stores of vectors by the databases' own programs, and note their versions.

Run it in an environment of its own with chromadb, lancedb, pylance, faiss-cpu, psycopg, pgserver,
openai, pinecone, pandas, halo and qdrant-client, and vdf-io without its dependencies (``pip install
--no-deps vdf-io``):
``python write_databases.py``. Tests read what it has written, and call its functions where the
programs are there.
"""

import contextlib
import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
N, DIM = 12, 4
ROWS = (np.arange(N * DIM).reshape(N, DIM) / 8).astype(np.float32)
TEXT = [f"doc-{i:02}-of-a-long-name" for i in range(N)]


def by_chroma(folder, rows=ROWS, ids=TEXT, space="l2"):
    """Write a collection ``docs``."""
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    collection = client.create_collection("docs", metadata={"hnsw:space": space})
    for start in range(0, len(rows), 500):
        some = slice(start, start + 500)
        collection.add(ids=ids[some], embeddings=rows[some].tolist())
    return collection


def by_lancedb(folder, rows=ROWS, ids=TEXT):
    """Write a table ``docs``."""
    import lancedb

    table = [{"id": name, "vector": row.tolist()} for name, row in zip(ids, rows, strict=True)]
    return lancedb.connect(str(folder)).create_table("docs", table)


def by_vdf_io(folder, rows=ROWS, ids=TEXT, model=None):
    """Export a table of LanceDB as vector-io does, and return the folder."""
    from vdf_io.export_vdf.lancedb_export import ExportLanceDB

    by_lancedb(folder / "lancedb", rows, ids)
    asked = {
        "endpoint": str(folder / "lancedb"), "tables": "docs", "batch_size": 5,
        "library_version": version("vdf-io"),
    }  # fmt: skip
    with contextlib.chdir(folder):  # where it writes
        export = ExportLanceDB(asked | ({"model_name": model} if model else {}))
        export.get_data()
    return folder / export.vdf_directory


def by_faiss(path, spec="IDMap2,Flat", rows=ROWS, inner=False):
    """Write an index; with ids where ``spec`` maps them."""
    import faiss

    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    index = faiss.index_factory(rows.shape[1], spec, metric)
    index.train(rows)
    if spec.startswith("IDMap"):
        index.add_with_ids(rows, np.arange(len(rows)) * 7)
    else:
        index.add(rows)
    faiss.write_index(index, str(path))


def by_postgres(folder, rows=ROWS, ids=TEXT):
    """Write pgvector's ``COPY TO``, as text and as CSV, of a table with a column of vectors."""
    import pgserver
    import psycopg

    server = pgserver.get_server(tempfile.mkdtemp(dir="/tmp"))
    with psycopg.connect(server.get_uri()) as db:
        db.execute("CREATE EXTENSION vector")
        db.execute(f"CREATE TABLE docs (id text, note text, embedding vector({rows.shape[1]}))")
        for name, row in zip(ids, rows, strict=True):
            db.execute(
                "INSERT INTO docs VALUES (%s, %s, %s)",
                (name, f"tab\there, back\\slash {name}", str(row.tolist())),
            )
        for ending, options in (("copy", ""), ("csv", " WITH (FORMAT csv, HEADER)")):
            with (
                (folder / f"pgvector.{ending}").open("wb") as file,
                db.cursor().copy(f"COPY docs TO STDOUT{options}") as copy,
            ):
                for block in copy:
                    file.write(block)
    server.cleanup()


def by_clients(folder, rows=ROWS, ids=TEXT):
    """Write answers of servers in the types of their clients, and what a scroll of Qdrant gives."""
    from openai.types import CreateEmbeddingResponse, Embedding
    from openai.types.create_embedding_response import Usage
    from pinecone import FetchResponse, Vector
    from qdrant_client import QdrantClient, models

    lists = rows.tolist()
    data = [Embedding(object="embedding", index=k, embedding=v) for k, v in enumerate(lists)]
    usage = Usage(prompt_tokens=1, total_tokens=1)
    openai = CreateEmbeddingResponse(object="list", model="m", data=data, usage=usage)
    (folder / "openai.json").write_text(openai.to_json())
    vectors = {name: Vector(id=name, values=v) for name, v in zip(ids, lists, strict=True)}
    (folder / "pinecone.json").write_text(
        json.dumps(FetchResponse(vectors=vectors, namespace="").to_dict())
    )
    client = QdrantClient(":memory:")
    client.create_collection(
        "docs", models.VectorParams(size=rows.shape[1], distance=models.Distance.EUCLID)
    )
    client.upsert("docs", [models.PointStruct(id=k, vector=v) for k, v in enumerate(lists)])
    points, _ = client.scroll("docs", limit=len(rows), with_vectors=True)
    (folder / "qdrant.jsonl").write_text("\n".join(each.model_dump_json() for each in points))


def by_pandas(folder, rows=ROWS, ids=TEXT):
    """Write JSON lines, a JSON array, and lists in cells."""
    import pandas as pd

    frame = pd.DataFrame({"id": ids, "note": "a, b", "embedding": rows.tolist()})
    frame.to_json(folder / "pandas.jsonl", orient="records", lines=True)
    frame.to_json(folder / "pandas.json", orient="records")
    frame.to_csv(folder / "pandas.csv", index=False)
    frame.to_csv(folder / "pandas.tsv", index=False, sep="\t")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        by_chroma(Path(folder, "chroma"), space="cosine")
        shutil.make_archive(str(HERE / "chroma"), "zip", folder, "chroma")
    shutil.rmtree(HERE / "lancedb", ignore_errors=True)
    by_lancedb(HERE / "lancedb")
    by_faiss(HERE / "faiss.index")
    by_faiss(HERE / "faiss-sq8.index", "SQ8")
    by_faiss(HERE / "faiss-pq.index", "PQ2x2np")
    by_faiss(HERE / "faiss-ivf.index", "IVF2,Flat")
    by_postgres(HERE)
    by_clients(HERE)
    by_pandas(HERE)
    with tempfile.TemporaryDirectory() as folder:
        made = by_vdf_io(Path(folder), model="all-MiniLM-L6-v2")
        shutil.copytree(made, HERE / "vdf", dirs_exist_ok=True)
    programs = ("chromadb", "lancedb", "faiss-cpu", "psycopg", "pgserver", "vdf-io", "openai",
                "pinecone", "qdrant-client", "pandas")  # fmt: skip
    versions = {name: version(name) for name in programs}
    (HERE / "versions-databases.json").write_text(json.dumps(versions, indent=1) + "\n")
