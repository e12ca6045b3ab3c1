"""Vectors in JSON arrays, as vendors' and search engines' interfaces give them."""

from collections.abc import Iterator
from typing import Any

import ijson
import numpy as np

from benchmark.errors import BenchError
from benchmark.upgrade.formats.checks import require_file
from benchmark.upgrade.formats.records import DEEPEST, Record, RecordsSource, flat
from benchmark.upgrade.formats.source import Shape

_BESIDE = ("metadata", "payload", "properties")  # whose numbers are no vectors


class JsonSource(RecordsSource):
    """A JSON array of objects, wherever it lies: ``data``, ``hits.hits``; or objects by id."""

    format = "JSON"

    def _open(self) -> tuple[Shape, np.dtype[Any]]:
        require_file(self.path)
        self._place, self._by_key = self._found()
        return super()._open()

    def _found(self) -> tuple[str, bool]:
        """The place of records: the first array of objects, or objects by key with a list."""
        stack: list[tuple[str, str]] = []  # maps and arrays around, and where they are
        with self.path.open("rb") as file:
            for prefix, event, _ in ijson.parse(file):
                kinds = [kind for kind, _ in stack[-3:]]
                if event == "start_map" and kinds[-1:] == ["start_array"]:
                    return prefix, False
                in_map = event == "number" and kinds == ["start_map", "start_map", "start_array"]
                if in_map and stack[-2][1].rpartition(".")[2] not in _BESIDE:
                    return stack[-3][1], True
                if event in ("start_map", "start_array"):
                    stack.append((event, prefix))
                elif event in ("end_map", "end_array"):
                    stack.pop()
                if len(stack) > DEEPEST:
                    break
        raise BenchError("expected an array of objects, or objects by their ids, got neither")

    def _records(self) -> Iterator[Record]:
        with self.path.open("rb") as file:
            if not self._by_key:
                for row, value in enumerate(ijson.items(file, self._place, use_float=True)):
                    yield flat(value, row)
                return
            pairs = ijson.kvitems(file, self._place, use_float=True)
            for row, (key, value) in enumerate(pairs):
                yield {"id": key} | flat(value, row)
