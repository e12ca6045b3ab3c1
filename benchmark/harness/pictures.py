"""Make the pictures of items that pages show: from a dataset, for the queries looked at."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import DatasetReader, read_options
from benchmark.errors import BenchError
from benchmark.records.details import Nearest
from benchmark.records.details_files import find_details
from benchmark.records.files import StoredRecord
from benchmark.records.pictures import SIDE, Pictures, look_at, pictures_name

_QUALITY = 60  # of WebP: a picture of 32 pixels takes some 300 bytes


def items_shown(stored: Sequence[StoredRecord]) -> dict[str, tuple[StoredRecord, set[int]]]:
    """Name of a file of pictures -> one of its records, and the rows that pages show, if any."""
    nearest = {id(each): found for each in stored if (found := _nearest(each)) is not None}
    bounds = {_board(s): nearest[id(s)] for s in stored if s.record.method == "independent"
              and id(s) in nearest}  # fmt: skip
    shown: dict[str, tuple[StoredRecord, set[int]]] = {}
    for each in stored:
        name, bound = pictures_name(each.record), bounds.get(_board(each))
        if name is None or bound is None or id(each) not in nearest:
            continue
        rows = shown.setdefault(name, (each, set()))[1]
        for looked in look_at(nearest[id(each)], bound):
            rows |= {looked.query, *(item for item, _ in (*looked.before, *looked.after))}
    return shown


def may_be_passed_on(record: StoredRecord) -> bool:
    """Tell a dataset whose licence lets its pictures be committed."""
    return _reader(record).pictures


def draw_pictures(stored: StoredRecord, rows: Iterable[int], root: Path | None) -> Pictures:
    """Pictures of items of a record's evaluation set; BenchError if its data are not there."""
    record, reader = stored.record, _reader(stored)
    dataset = reader.load(root)
    wanted = record.dataset.fingerprint if record.dataset else ""
    if dataset.fingerprint() != wanted:
        raise BenchError(
            f"{stored.path}: of other data of {dataset.name} than {root or 'those drawn here'}"
        )
    part = (pictures_name(record) or "").rpartition("-")[2]
    items = reader.evaluation(dataset, part)
    order = sorted(rows)
    return {row: _webp(items.images[np.array([row])][0]) for row in order}


def _reader(stored: StoredRecord) -> DatasetReader:
    rules = stored.record.parameters
    if rules is None:
        raise BenchError(f"{stored.path}: does not say which options its dataset has")
    return read_options(rules.track.dataset, rules.track.data)


def _board(stored: StoredRecord) -> tuple[object, ...]:
    r = stored.record
    changed = repr(sorted(r.changed.items()))
    return r.protocol, r.protocol_version, r.track, r.track_version, r.seed, changed


def _nearest(stored: StoredRecord) -> Nearest | None:
    try:
        details = find_details(stored.record, stored.path, with_results=False)
    except BenchError:
        return None
    return None if details is None else details.nearest


def _webp(pixels: NDArray[np.uint8]) -> bytes:
    """An image ``[c, h, w]`` uint8 as WebP."""
    from PIL import Image

    channels = pixels.transpose(1, 2, 0)
    image = Image.fromarray(channels[..., 0] if channels.shape[2] == 1 else channels)
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.convert("RGB").save(content, "WEBP", quality=_QUALITY, method=4)
    return content.getvalue()
