"""Vectors in the Universal Vector Dataset Format: parquet files, and what they are in a file.

Source: the specification of vector-io, ``VDF_META.json``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.config.files import read_bytes
from benchmark.config.places import real
from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import MOST_NAMES, cut, listed, metric_of, nameless, the_one
from benchmark.upgrade.formats.parquet import ParquetSource
from benchmark.upgrade.formats.source import Shape, files_of

META = "VDF_META.json"
_MOST = 2**24
_NAMELESS = "NOT_PROVIDED"  # word of vector-io in the place of a model that nobody named


class VdfSource(ParquetSource):
    """An index of the folder; its metric and model are told.

    The only one or ``FOLDER:INDEX``, and its first column of vectors or the one of a name, alone or
    as ``INDEX/COLUMN``.
    """

    format = "VDF"

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        folder = self.path
        with nameless(folder / META):
            document = _object(json.loads(read_bytes(folder / META, _MOST)), META)
        found = list(_indexes(document))[:MOST_NAMES]
        chosen = [
            (name, about, column) for name, about in found
            for i, column in enumerate(_columns(about))
            if self.part in (column, f"{name}/{column}") or (i == 0 and self.part in ("", name))
        ]  # fmt: skip
        name, about, column = the_one("index", chosen, (each for each, _ in found), "FOLDER:INDEX")
        self._others = [each for each in _columns(about) if each != column]
        self._first = self.part in ("", name)
        data = real(folder / str(about.get("data_path", "")))
        if not data.is_relative_to(real(folder)) or not data.exists():
            raise BenchError(f"{cut(name)}: expected its data in the folder, got another place")
        self.part = column
        if not self.id_column and isinstance(document.get("id_column"), str):
            self.id_column = document["id_column"]
        self.metric = metric_of(about.get("metric", ""))
        model = str(about.get("model_name") or _NAMELESS)
        self._model = "" if model == _NAMELESS else model
        self._counts = about.get("exported_vector_count"), about.get("total_vector_count")
        self._folder, self.path = folder, data
        shape, dtype = super()._open()
        stated = about.get("dimensions")  # -1 where the exporter did not know
        if isinstance(stated, int) and stated > 0 and stated != shape[1] and not self._others:
            raise BenchError(f"expected {stated} numbers as {META} says, got {shape[1]}")
        return shape, dtype

    @property
    def paths(self) -> list[Path]:
        """The folder and all that is in it."""
        return files_of(self._folder)

    @property
    def told(self) -> list[str]:
        """The model, if the file names one, the column that was chosen, and vectors not here."""
        said = []
        if self._model:
            said.append(f"{self.name}: vectors are by {cut(self._model)}, as {META} says")
        if self._others and self._first:
            said.append(
                f"{self.name}: vectors of the column {cut(self.part)}, the first; there are also "
                f"{listed(self._others)}, which FOLDER:COLUMN names"
            )
        exported, total = self._counts
        if isinstance(exported, int) and exported != self.rows:
            said.append(
                f"Warning: {self.name}: expected {exported:,} vectors as {META} says, got "
                f"{self.rows:,}"
            )
        elif isinstance(exported, int) and isinstance(total, int) and exported < total:
            said.append(
                f"{self.name}: {exported:,} of {total:,} vectors were exported, as {META} says"
            )
        return said + super().told


def _indexes(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and facts of each index, or of each namespace of one that has several."""
    for name, spaces in _object(document.get("indexes"), "indexes").items():
        # Some exporters nest namespaces once more.
        many = [each for value in spaces.values() for each in value] if isinstance(
            spaces, dict
        ) else spaces  # fmt: skip
        for each in many if isinstance(many, list) else []:
            about = _object(each, str(name))
            space = str(about.get("namespace") or "")
            yield (f"{name}/{space}" if space and len(many) > 1 else str(name)), about


def _columns(about: dict[str, Any]) -> list[str]:
    columns = about.get("vector_columns") or ["vector"]
    return [str(each) for each in (columns if isinstance(columns, list) else [columns])]


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BenchError(f"{cut(name)}: expected an object, got {type(value).__name__}")
    return value
