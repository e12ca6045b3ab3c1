"""Write small stores of vectors by the databases' own programs, and note their versions.

Run it in an environment of its own with chromadb, lancedb, faiss-cpu, psycopg and pgserver:
``python write_databases.py``. Tests read what it has written, and call its functions where the
programs are there.
"""

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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        by_chroma(Path(folder, "chroma"), space="cosine")
        shutil.make_archive(str(HERE / "chroma"), "zip", folder, "chroma")
    shutil.rmtree(HERE / "lancedb", ignore_errors=True)
    by_lancedb(HERE / "lancedb")
    by_faiss(HERE / "faiss.index")
    by_faiss(HERE / "faiss-sq8.index", "SQ8")
    by_postgres(HERE)
    versions = {name: version(name) for name in
                ("chromadb", "lancedb", "faiss-cpu", "psycopg", "pgserver")}  # fmt: skip
    (HERE / "versions-databases.json").write_text(json.dumps(versions, indent=1) + "\n")
