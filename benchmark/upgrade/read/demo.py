"""Small vectors that come along: glyphs by the old and the new model of the main job.

Gallery items of the track ``glyphs`` by the old model of ``open-class``, seed 0, and those of 100
classes and a fifth of the others by the independent new one, as int8 directions. Four items of each
of these classes are queries, and not in the gallery.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmark.upgrade.read.request import INPUTS

FILE = Path(__file__).with_name("demo.npz")


def demo_arguments() -> dict[str, Any]:
    """Fields of an :class:`UpgradeRequest`."""
    with np.load(FILE, allow_pickle=False) as file:
        arrays = dict(file)
    ids = {name: arrays[f"{name}_ids"] for name in INPUTS[:3]}
    return {
        **{name: arrays[name].astype(np.float32) for name in INPUTS},  # as an index has them
        "labels": (arrays["query_labels"], arrays["gallery_labels"]),
        "ids": {**ids, "old_queries": ids["queries"]},
    }
