"""Packages of somebody else, as an installation of them lies on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmark.config import backbones, entry_points, registry

CACHES = (
    registry._methods, registry._tracks, registry._datasets, backbones.added_backbones,
    registry._class_modules, entry_points.package_of,
)  # fmt: skip


def write_package(
    folder: Path, files: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]
) -> None:
    """Write files, and what an installer notes of them: group -> name -> module."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = folder / "others_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others-package\nVersion: 1.0\n")
    lines = [
        line
        for group, names in entries.items()
        for line in (f"[{group}]", *(f"{name} = {module}" for name, module in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Put a folder of packages on the path for a while; what is imported of them is forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        for cache in CACHES:
            cache.cache_clear()
        yield
    for cache in CACHES:
        cache.cache_clear()
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
