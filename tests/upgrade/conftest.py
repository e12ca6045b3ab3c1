"""Conversions made by hand, and vectors in files of every format."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from support.vector_files import FILES, write

from benchmark.contract.conversion import Conversion, Dims
from benchmark.models.module import Portable
from benchmark.models.parts import Affine, KeepSide

collect_ignore = [
    "files/write_files.py",
    "files/write_databases.py",
]  # it needs the programs whose files it writes
OLD, NEW, SIDE = 6, 5, 3


class Beside(Portable):
    """The first numbers of a vector and its side-information, and the side-information doubled."""

    def forward(self, vectors, side):
        return torch.cat([vectors[:, :2], side], 1), side * 2


class AddsSide(Portable):
    """A vector plus the sum of its side-information."""

    def forward(self, vectors, side):
        return vectors + side.sum(1, keepdim=True), None


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """A report draws fewer galleries as they may be, of which it is half; estimates' tests all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.upgrade.measure.list_estimate.DRAWS", 6)
        yield


@pytest.fixture(scope="session")
def writers():
    """Writers of stores of vectors, by the databases' own programs."""
    spec = importlib.util.spec_from_file_location("databases", FILES / "write_databases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def vectors():
    """A thousand rows and some, more than a block."""
    return np.random.default_rng(0).standard_normal((1300, OLD)).astype(np.float32)


@pytest.fixture
def conversion():
    """Distance -> an affine map of vectors alone."""

    def made(distance="l2", old=OLD, new=NEW):
        torch.manual_seed(0)
        weights = torch.randn(new, old)
        parts = {"convert": KeepSide(Affine.of(weights))}
        return Conversion("made-up", {}, distance, Dims(old=old, new=new), False, parts)

    return made


@pytest.fixture
def with_side():
    """A map that takes side-information."""
    return Conversion(
        "made-up", {}, "l2", Dims(old=OLD, new=OLD, side=SIDE), False, {"convert": AddsSide()}
    )


@pytest.fixture
def maps_side():
    """A map that takes side-information and gives some."""
    return Conversion(
        "made-up", {}, "l2", Dims(old=OLD, new=2 + SIDE, side=SIDE), True, {"convert": Beside()}
    )


@pytest.fixture
def saved(conversion, tmp_path) -> Path:
    """The folder of a conversion for vectors that are compared by cosine."""
    folder = tmp_path / "conversion"
    conversion("cosine").save(folder)
    return folder


@pytest.fixture
def gallery(tmp_path, vectors):
    """Ending -> a file of the vectors in that format, with text ids unless told otherwise."""

    def made(ending, rows=None, ids="text", name="gallery"):
        rows = vectors if rows is None else rows
        if isinstance(ids, str):
            ids = [f"item-{i}" for i in range(len(rows))]
        path = tmp_path / f"{name}{ending}"
        write(path, rows, ids)
        return path

    return made
