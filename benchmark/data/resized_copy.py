"""A copy of a set of photographs at the size that networks see: a small data root of its own.

Its files have the names of the originals, so the dataset's reader reads them; ``resized.json`` says
what was done, and goes into the records. Pixels differ from those of the originals as a picture
that was compressed twice does, so its results are kept apart from theirs.
"""

import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from benchmark.config.files import plain_io_errors, read_bytes, write_json, write_whole
from benchmark.config.places import real
from benchmark.data.base import DatasetReader
from benchmark.data.files import content_hash, data_root
from benchmark.data.images import MOST_BYTES, View, decode_view
from benchmark.data.readers import RESIZED, PhotographDatasetReader, read_copy
from benchmark.errors import BenchError

QUALITY = 95
"""Of the JPEGs that are written."""
_LISTS = (".txt", ".csv", ".json")
_TOGETHER = 1024  # pictures between two words of progress
_TURNED = range(5, 9)  # values of Exif's orientation at which width and height change places
_ORIENTATION = 0x0112


class Copied(NamedTuple):
    """Contents of a copy."""

    images: int
    new: int  # written now, not by an earlier call
    n_bytes: tuple[int, int]  # of the originals, of the copy


def resize_dataset(
    reader: DatasetReader, root: Path | None, out: Path, side: int,
    progress: Callable[[float], None] = lambda share: None,
) -> Copied:  # fmt: skip
    """Write pictures whose short side is longer than ``side`` at ``side``, others as they are.

    A call that was stopped goes on where it stopped.

    Raises:
        BenchError: If the dataset has tables that count in pixels of the originals, a file is
            missing or damaged, or ``out`` lies in the data root.
    """
    if not isinstance(reader, PhotographDatasetReader):
        raise BenchError(
            f"data resize: {reader.name}: expected a set of whole photographs (imagenet, "
            "places365): boxes and landmarks count in pixels of the originals"
        )
    root = data_root(root, reader.name)
    if real(out).is_relative_to(real(root)):
        raise BenchError(f"--out: expected a folder outside of {root}, got {out}")
    (train, _), (val, _), _ = reader.parts(root)
    paths = [*dict.fromkeys(train.paths + val.paths)]
    what = {"side": side, "quality": QUALITY, "of": content_hash(root, reader.files(root))}
    begun = out / f".{RESIZED}"
    with plain_io_errors(out.parent):
        _begin(begun, what)
    sizes, new = [0, 0], 0
    with plain_io_errors(out.parent), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path in sorted(root.iterdir()):  # lists and tables beside the folders of images
            if path.suffix in _LISTS and path.is_file():
                _copy(path, out / path.name)
        for first in range(0, len(paths), _TOGETHER):
            some = paths[first : first + _TOGETHER]
            for before, after, written in pool.map(lambda p: _one(p, root, out, side), some):
                sizes[0], sizes[1], new = sizes[0] + before, sizes[1] + after, new + written
            progress((first + len(some)) / len(paths))
        begun.replace(out / RESIZED)
    return Copied(len(paths), new, (sizes[0], sizes[1]))


def _copy(path: Path, target: Path) -> None:
    """Copy a list; BenchError if another file is there, or a link to one."""
    if target.is_symlink() or (target.exists() and target.read_bytes() != path.read_bytes()):
        raise BenchError(f"{target}: is there, and not a copy of {path}: move it away")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, path.read_bytes())


def _begin(note: Path, what: dict[str, object]) -> None:
    """Note what a copy is of; BenchError if another one was begun in that folder."""
    for earlier in (note, note.with_name(RESIZED)):
        if earlier.is_file() and read_copy(earlier) != what:
            raise BenchError(f"{note.parent}: holds a copy of other files or of another size")
    write_json(note, what)


def _one(path: Path, root: Path, out: Path, side: int) -> tuple[int, int, bool]:
    """Write one picture; bytes before and after, and whether it was not there."""
    target = out / path.relative_to(root)
    if target.exists():
        return path.stat().st_size, target.stat().st_size, False
    raw = read_bytes(path, MOST_BYTES)
    made = _resized(raw, side, str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, made)
    return len(raw), len(made), True


def _resized(raw: bytes, side: int, where: str) -> bytes:
    try:
        with Image.open(io.BytesIO(raw)) as image:
            width, height = image.size
            if image.getexif().get(_ORIENTATION, 1) in _TURNED:
                width, height = height, width
    except Exception as error:  # Pillow's readers raise whatever damaged bytes make of them
        raise BenchError(f"{where}: image cannot be decoded: {error}") from error
    if min(width, height) <= side:
        return raw
    scale = side / min(width, height)
    view = View(round(height * scale), round(width * scale), fit="whole")
    pixels = decode_view(raw, view, where, fast=True)
    file = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()
