"""Vectors as columns of Lance data sets, LanceDB's tables among them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lance

from benchmark.upgrade.formats.checks import the_one
from benchmark.upgrade.formats.columns import ColumnsSource, Group
from benchmark.upgrade.formats.source import Shape

ENDING = ".lance"
_AHEAD = 2**14  # rows of a scan


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the library prints where it panics off the terminal: the error says it, too."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


class LanceSource(ColumnsSource):
    """Columns of a table: a folder ``NAME.lance``, or LanceDB's folder with one of them."""

    format = "Lance"
    endings = (ENDING,)

    def _open(self) -> tuple[Shape, Any]:
        tables = sorted(each.name for each in self.path.glob(f"*{ENDING}") if each.is_dir())
        self._table = self.path
        if self.path.suffix != ENDING:
            named = [name for name in tables if name == f"{self.part}{ENDING}"]
            if named:
                tables, self.part = named, ""
            way = "FOLDER/NAME.lance or FOLDER:NAME"
            self._table = self.path / the_one("table", tables, tables, way)
        layout = self._look(self._table)
        self._files, self._places = [self._table], list(layout.places)
        return (layout.rows, layout.dim), layout.dtype

    def _about(self, path: Path) -> tuple[int, Any]:
        with _quiet():
            table = lance.dataset(str(path))
            return table.count_rows(), table.schema

    def _groups(self, path: Path, column: str, size: int) -> Iterator[Group]:
        table = lance.dataset(str(path))
        rows = table.count_rows()
        for first in range(0, rows, _AHEAD):
            yield min(_AHEAD, rows - first), partial(_scan, table, column, size, first)


def _scan(table: Any, column: str, size: int, first: int, _: int) -> Iterator[Any]:
    """A column of some rows; a scan of all of them is read ahead, whatever its options say."""
    for batch in table.to_batches(
        columns=[column], batch_size=size, scan_in_order=True, offset=first, limit=_AHEAD
    ):
        values = batch.column(0)
        yield from (values[a : a + size] for a in range(0, len(values), size))
