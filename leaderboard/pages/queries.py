"""Queries looked at on a record's page: their nearest items as pictures, before and after."""

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.records.details import Nearest
from benchmark.records.files import StoredRecord
from benchmark.records.pictures import FOLDER, Pictures, pictures_name, read_pictures
from benchmark.records.record import Record
from benchmark.report.looked_at import KINDS, look_at
from leaderboard.read.records import read_details


class QueriesLookedAt:
    """Queries of a board with their nearest items, and pictures of these."""

    def __init__(self, roots: Sequence[Path], drawn: Mapping[str, Pictures] | None = None) -> None:
        """Pictures are read from ``pictures/`` in or beside folders of records, or just drawn."""
        beside = [place for root in roots for place in (root, root.parent)]
        self._folders, self._drawn = [place / FOLDER.name for place in beside], drawn or {}
        self.damaged: list[BenchError] = []  # files of pictures that were passed over
        self._pictures: dict[str, Pictures] = {}
        self._bounds: dict[Path, Nearest | None] = {}

    def page(
        self, own: Nearest | None, stored: StoredRecord, independent: Mapping[int, StoredRecord]
    ) -> dict[str, list[dict[str, Any]]]:
        """Values of the template by kind of query; empty without neighbours or pictures.

        Args:
            own: Neighbours of the record itself.
            stored: The record.
            independent: Seed -> the board's record of ``independent``, which chooses the queries.
        """
        kinds: dict[str, list[dict[str, Any]]] = {}
        pictures = {} if own is None else self.pictures(stored.record)
        chooser = independent.get(stored.record.seed)
        if own is None or chooser is None or not pictures:
            return kinds
        bounds = own if chooser is stored else self._neighbours(chooser)
        if bounds is None:
            return kinds
        for looked in look_at(own, bounds):
            rows = [("before", own.cases[0], looked.before), ("after", own.cases[1], looked.after)]
            items = [looked.query, *(item for _, _, found in rows for item, _ in found)]
            if all(item in pictures for item in items):
                kinds.setdefault(KINDS[looked.kind], []).append({
                    "query": _tile(pictures[looked.query]),
                    "rows": [
                        (words, case, [(_tile(pictures[item]), right) for item, right in found])
                        for words, case, found in rows
                    ],
                })  # fmt: skip
        return kinds

    def pictures(self, record: Record) -> Pictures:
        """Those of a record's evaluation set; none where there is no file, or a damaged one."""
        name = pictures_name(record)
        if name is None:
            return {}
        if name not in self._pictures:
            self._pictures[name] = self._drawn.get(name) or self._read(name)
        return self._pictures[name]

    def _read(self, name: str) -> Pictures:
        paths = [folder / f"{name}.safetensors" for folder in self._folders]
        try:
            return next((read_pictures(path) for path in paths if path.is_file()), {})
        except BenchError as error:
            self.damaged.append(error)
            return {}

    def _neighbours(self, stored: StoredRecord) -> Nearest | None:
        """Those of a record; None where it has none, or damaged ones."""
        if stored.path not in self._bounds:
            try:
                details = read_details(stored)[0]
            except BenchError:
                details = None
            self._bounds[stored.path] = None if details is None else details.nearest
        return self._bounds[stored.path]


@lru_cache(maxsize=1 << 12)
def _tile(webp: bytes) -> str:
    return f"data:image/webp;base64,{base64.b64encode(webp).decode()}"
