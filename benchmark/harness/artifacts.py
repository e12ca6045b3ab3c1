"""Names of the files that stages write, and what evaluations wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MODEL = "model.safetensors"


HEAD = "head.safetensors"


VECTORS = "vectors.npy"


REFILL = "backfilling.json"


IMAGES = "images"
"""The image encoder of a generation whose model reads texts."""


DETAILS = "details.gz"


def read_cases(folder: Path) -> dict[str, dict[str, Any]]:
    """What :func:`evaluate` wrote: case -> scores, intervals, counts."""
    value: dict[str, dict[str, Any]] = json.loads((folder / "cases.json").read_text())
    return value


def read_backfilling(folder: Path) -> dict[str, Any]:
    """What :func:`evaluate` wrote of partly refilled galleries; empty if nothing."""
    path = folder / REFILL
    value: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return value
