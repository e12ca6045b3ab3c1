"""One ``probe`` of rebasis with vectors that are given, run by a Python that has that package.

``python rebasis_probe.py FOLDER`` reads ``vectors.npz`` (``old`` and ``new`` vectors of the same
items, ``old_queries`` and ``queries`` by the new model, ``others``: more of these, of the new
model) and ``relevant.json`` (rows of the items that are relevant to each query). It writes
``said.json`` and ``bridged.npy``, the others in the old space. It imports nothing of this project.
"""

import json
import sys
from pathlib import Path

import numpy as np

HELD_OUT = 0.1
"""Of the items, that no map is fitted on: the default, 1,000, would leave few of small samples."""


def main(folder: Path) -> None:
    """Probe, and write what came of it."""
    from rebasis.embed.backends.precomputed import PrecomputedEmbedder
    from rebasis.probe.session import QueryLog, probe_store
    from rebasis.store.backends.memory import MemoryStore
    from rebasis.types import EncodingProfile

    with np.load(folder / "vectors.npz") as file:
        v = {name: file[name].astype(np.float32) for name in file.files}
    relevant = json.loads((folder / "relevant.json").read_text())
    items = [f"item {i}" for i in range(len(v["old"]))]
    queries = [f"query {i}" for i in range(len(v["queries"]))]
    old, new = (
        PrecomputedEmbedder(
            EncodingProfile(name, v[name].shape[1]), dict(zip(items, v[name], strict=True)),
            query_vectors=dict(zip(queries, v[asked], strict=True)),
        )
        for name, asked in (("old", "old_queries"), ("new", "queries"))
    )  # fmt: skip
    log = QueryLog(queries, [{items[row] for row in rows} for rows in relevant])
    result, _ = probe_store(
        MemoryStore(items, v["old"], items), new, old_embedder=old, query_log=log,
        size=len(items), heldout=int(HELD_OUT * len(items)),
    )  # fmt: skip
    said = result.to_dict()
    np.save(folder / "bridged.npy", result.adapter.apply(v["others"]))
    (folder / "said.json").write_text(json.dumps({
        "decision": said["decision"], "provisional": said["provisional"],
        "adapter": str(said["best_adapter"].get("method", type(result.adapter).__name__)),
    }))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
