"""Small vectors that come along: glyphs by the old and the new model of the main job.

Gallery items of the track ``glyphs`` by the old model of ``open-class``, seed 0, and those of 100
classes and some others by the independent new one, as int8. Four items of each of these classes
are queries, and not in the gallery. :func:`write_demo` made the file from a store.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("demo.npz")
_TITLES = {
    "old": "embed test images: independent, old", "new": "embed test images: independent, new",
    "data": "dataset glyphs",
}  # fmt: skip


def demo_arguments() -> dict[str, Any]:
    """Arguments of :func:`benchmark.upgrade.run.upgrade`."""
    with np.load(FILE, allow_pickle=False) as file:
        arrays = dict(file)
    ids = {name: arrays[f"{name}_ids"] for name in ("old_gallery", "new_gallery", "queries")}
    return {
        **{name: arrays[name] for name in ("old_gallery", "new_gallery", "queries", "old_queries")},
        "labels": (arrays["query_labels"], arrays["gallery_labels"]),
        "ids": {**ids, "old_queries": ids["queries"]},
        "maps": "quick",
    }


def write_demo(stages: Path, target: Path = FILE) -> None:
    """Make the file from the stages of ``bench run -m independent -p open-class``."""
    found: dict[str, Path] = {}
    for path in sorted(stages.glob("*/stage.json")):
        title = json.loads(path.read_text())["title"]
        found |= {name: path.parent for name, known in _TITLES.items() if known == title}
    old, new = (np.load(found[name] / "vectors.npy") for name in ("old", "new"))
    with np.load(found["data"] / "test.npz") as items:
        labels, query, gallery = (items[name] for name in ("labels", "query", "gallery"))
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.unique(labels))[:100]
    of_class = (rng.permutation(query[labels[query] == each])[:4] for each in classes)
    queries = np.concatenate(list(of_class))
    gallery = np.setdiff1d(gallery, queries)
    embedded = np.isin(labels[gallery], classes) | (rng.random(len(gallery)) < 0.2)
    np.savez_compressed(
        target, allow_pickle=False, old_gallery=_int8(old)[gallery],
        new_gallery=_int8(new)[gallery[embedded]], queries=_int8(new)[queries],
        old_queries=_int8(old)[queries], old_gallery_ids=gallery,
        new_gallery_ids=gallery[embedded], queries_ids=queries,
        query_labels=labels[queries], gallery_labels=labels[gallery],
    )  # fmt: skip


def _int8(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Directions, 127 being the largest number of any."""
    x = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.round(x * (127 / np.abs(x).max())).astype(np.int8)
