"""Write small files of vectors by the programs that people have, and note their versions.

Run it in an environment of its own with pandas, tables, duckdb, polars, daft, datasets, pyarrow,
h5py, numpy and safetensors: ``python write_files.py``. The tests read what it has written.
"""

import json
import uuid
from importlib.metadata import version
from pathlib import Path

import daft
import datasets
import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

HERE = Path(__file__).parent
N, DIM = 12, 4
ROWS = (np.arange(N * DIM).reshape(N, DIM) / 8).astype(np.float32)
TEXT = [f"doc-{i:02}-of-a-long-name" for i in range(N)]
UUIDS = [uuid.UUID(int=2**120 + i) for i in range(N)]
PROGRAMS = ("daft", "datasets", "duckdb", "h5py", "numpy", "pandas", "polars", "pyarrow",
            "safetensors", "tables")  # fmt: skip


def by_pandas() -> None:
    frame = pd.DataFrame({"vector": list(ROWS)}, index=TEXT)
    frame.to_parquet(HERE / "pandas-index.parquet")
    pd.DataFrame(ROWS, index=TEXT).to_hdf(HERE / "pandas-index.h5", key="frame")
    numbers = pd.DataFrame({"docid": np.arange(N)[::-1] * 3.0, "vector": list(ROWS)})
    numbers.to_parquet(HERE / "pandas-numbers.parquet")


def by_duckdb() -> None:
    db = duckdb.connect()
    frame = pd.DataFrame({"uid": map(str, UUIDS), "name": TEXT, "embedding": list(ROWS)})
    db.register("frame", frame)
    vector = f"embedding::FLOAT[{DIM}] AS embedding"
    for name, column in (
        ("uuid", "uid::UUID AS uid"), ("blob", "name::BLOB AS _id"),
        ("hugeint", "(length(name) * 0 + row_number() OVER ())::HUGEINT AS item_id"),
    ):  # fmt: skip
        target = HERE / f"duckdb-{name}.parquet"
        db.execute(f"COPY (SELECT {column}, {vector} FROM frame) TO '{target}' (FORMAT parquet)")


def by_polars() -> None:
    frame = pl.DataFrame(
        {"key": TEXT, "emb": ROWS}, schema_overrides={"emb": pl.Array(pl.Float32, DIM)}
    )
    frame.write_parquet(HERE / "polars.parquet")
    frame.write_ipc(HERE / "polars.arrow", compression="uncompressed")
    frame.write_ipc(HERE / "polars-packed.feather", compression="lz4")


def by_daft() -> None:
    frame = daft.from_pydict({"doc_id": TEXT, "embedding": list(ROWS)})
    kind = daft.DataType.tensor(daft.DataType.float32(), (DIM,))
    frame = frame.with_column("embedding", daft.col("embedding").cast(kind))
    folder = HERE / "daft"
    frame.write_parquet(str(folder))
    (written,) = folder.glob("*.parquet")
    written.replace(HERE / "daft-tensor.parquet")
    folder.rmdir()


def by_datasets() -> None:
    columns = {
        "_id": TEXT, "title": ["A title"] * N, "text": [f"Text {i}" for i in range(N)],
        "emb": ROWS.tolist(),
    }  # fmt: skip
    features = datasets.Features({
        "_id": datasets.Value("string"), "title": datasets.Value("string"),
        "text": datasets.Value("string"),
        "emb": datasets.Sequence(datasets.Value("float32")),
    })  # fmt: skip
    made = datasets.Dataset.from_dict(columns, features=features)
    made.to_parquet(HERE / "datasets.parquet")
    made.save_to_disk(HERE / "datasets-saved", num_shards=2)


def by_arrow() -> None:
    flat = pa.array(ROWS.reshape(-1))
    fixed = pa.FixedSizeListArray.from_arrays(flat, DIM)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [DIM]), fixed)
    ids = {
        "binary": pa.array([t.encode() for t in TEXT]),
        "digest": pa.array([u.bytes[::-1] for u in UUIDS], pa.binary(16)),
        "string-view": pa.array(TEXT, pa.string_view()),
        "dictionary": pa.array(TEXT).dictionary_encode(),
        "uuid": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([u.bytes for u in UUIDS], pa.binary(16))
        ),
    }
    for name, column in ids.items():
        table = pa.table({"id": column, "vector": tensor})
        pq.write_table(table, HERE / f"pyarrow-{name}.parquet")
    table = pa.table(
        {"id": pa.array(TEXT, pa.string_view()), "vector": fixed.cast(pa.list_(pa.float32()))}
    )
    with (
        pa.OSFile(str(HERE / "pyarrow-stream.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=5)


def by_others() -> None:
    np.savez(HERE / "numpy-filenames.npz", features=ROWS, filenames=np.array(TEXT))
    np.savez(HERE / "numpy-bytes.npz", features=ROWS, ids=np.array(TEXT, np.bytes_))
    with h5py.File(HERE / "h5py.h5", "w") as file:
        file["features"] = ROWS
        file["image_names"] = TEXT
        file["labels"] = np.arange(N) // 2
    save_file({"emb": ROWS, "doc_ids": np.arange(N) * 7}, HERE / "safetensors.safetensors")


if __name__ == "__main__":
    for write in (by_pandas, by_duckdb, by_polars, by_daft, by_datasets, by_arrow, by_others):
        write()
    versions = {name: version(name) for name in PROGRAMS}
    (HERE / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
