"""``omniglot``: hand-drawn characters of many alphabets, 20 writers each (Lake et al. 2015).

Reads the original archives without extracting them, or extracted folders. A class is a character,
a camera a writer, a group an alphabet, a template two writers' drawings of a character. A character
that occurs in several archives is one class.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.config.reading import build
from benchmark.config.split_sizes import boundary
from benchmark.data.base import Dataset, Evaluation, ImageSet, Ints
from benchmark.data.files import content_hash, decoder, root_of
from benchmark.data.seeding import generator, seeded_order
from benchmark.data.templates import enrol
from benchmark.errors import BenchError

ARCHIVES = (
    "images_background",
    "images_evaluation",
    "images_background_small1",
    "images_background_small2",
)
SIZE = 32
TRAIN_SHARE = 2 / 3
SEEN_WRITERS = 4
WRITERS_PER_TEMPLATE = 2
READING = 1
"""Raised by whoever changes how files become pixels or splits; part of every cache key."""

_NAME = re.compile(r"(?:images_\w+/)?([^/\\]+)/(character\d{2,})/(\d{4,})_(\d{2})\.png")
_STRAY = re.compile(r"(?:.*/)?(?:\.[^/]*|__MACOSX/.*|Thumbs\.db)")
_MOST_BYTES = 2**20
_MOST_PIXELS = 2**20


@dataclass(frozen=True)
class Options:
    """What may be asked for.

    Attributes:
        seed: Order of the classes, their split, the writers held out, the templates.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed: expected 0 or more, got {self.seed}")


OFFERS = ("seen", "cameras", "templates", "groups")
"""What its items carry beside images and classes, and the evaluation sets beside ``test``."""

UNSEEN = ("test",)
"""Evaluation sets without a class that is trained on."""


@dataclass(frozen=True, order=True)
class Drawing:
    """Who drew what."""

    alphabet: str
    character: str
    writer: int


def source(data_root: Path | None, **options: object) -> dict[str, object]:
    """What determines the images: options, reading version, decoder, the files' hash."""
    root = root_of(data_root, "omniglot")
    files = [
        f for place in _places(root) for f in (place.rglob("*") if place.is_dir() else [place])
    ]
    return {
        **asdict(build(Options, options, "dataset omniglot")),
        "reading": READING,
        "decoder": decoder(),
        "files": content_hash(root, [f for f in files if f.is_file()]),
    }


def class_group(name: str) -> str:
    """The alphabet of a class."""
    return name.rpartition(" ")[0]


def load(data_root: Path | None, **options: object) -> Dataset:
    """Read the drawings and split them.

    Args:
        data_root: Holds the archives, the folders they extract to, or the alphabets' folders.
        **options: See ``Options``.

    Returns:
        Two thirds of the classes to train on, without four writers; evaluations ``test`` (the other
        classes, all writers) and ``seen`` (training classes, the four writers).

    Raises:
        BenchError: For a missing root, a broken archive, an unexpected name or image, a class that
            lacks a writer.
    """
    chosen = build(Options, options, "dataset omniglot")
    root = root_of(data_root, "omniglot")
    drawings = _merged(root)
    names, writers = _checked(drawings, root)
    pixels = np.stack(
        [[drawings[Drawing(*name, writer)] for writer in writers] for name in names]
    )  # [class, writer, 32, 32]
    order = seeded_order([" ".join(name) for name in names], chosen.seed)
    names, pixels = [names[i] for i in order], pixels[order]
    n_train = min(boundary(TRAIN_SHARE, len(names)), len(names) - 2)
    train, test = np.arange(n_train), np.arange(n_train, len(names))
    held = np.sort(generator(chosen.seed, 0).permutation(len(writers))[:SEEN_WRITERS])
    kept = np.setdiff1d(np.arange(len(writers)), held)
    return Dataset(
        name="omniglot",
        train=ImageSet(_rows(pixels, train, kept), np.repeat(train, len(kept))),
        evaluations={
            "test": _evaluation(pixels, names, test, np.arange(len(writers)), chosen.seed),
            "seen": _evaluation(pixels, names, train, held, chosen.seed),
        },
        class_names=tuple(" ".join(name) for name in names),
        facts={
            **source(data_root, **options),
            "classes": len(names),
            "train_classes": n_train,
            "writers": len(writers),
            "seen_writers": [writers[i] for i in held],
            "archives": [place.name for place in _places(root)],
        },
    )


def _rows(pixels: NDArray[np.uint8], classes: Ints, writers: Ints) -> NDArray[np.uint8]:
    """``[n_class * n_writer, 1, 32, 32]`` uint8, class by class."""
    return np.ascontiguousarray(pixels[np.ix_(classes, writers)]).reshape(-1, 1, SIZE, SIZE)


def _evaluation(
    pixels: NDArray[np.uint8],
    names: list[tuple[str, str]],
    classes: Ints,
    writers: Ints,
    seed: int,
) -> Evaluation:
    n, per_class = len(classes), len(writers) // WRITERS_PER_TEMPLATE
    alphabets = tuple(sorted({names[c][0] for c in classes}))
    rows = np.arange(n * len(writers))
    slots = np.minimum(np.arange(len(writers)) // WRITERS_PER_TEMPLATE, per_class - 1)
    slot = generator(seed, 1, len(writers)).permuted(np.tile(slots, (n, 1)), axis=1)
    probes, galleries = enrol(
        classes,
        template_class=np.repeat(classes, per_class),
        enrolled=np.arange(n) * per_class,
        seed=seed,
    )
    return Evaluation(
        images=_rows(pixels, classes, writers),
        labels=np.repeat(classes, len(writers)),
        ids=rows,
        query=rows,
        gallery=rows,
        camera=np.tile(writers, n),
        media=rows,
        group=np.repeat([alphabets.index(names[c][0]) for c in classes], len(writers)),
        template=(np.arange(n)[:, None] * per_class + slot).reshape(-1),
        probes=probes,
        galleries=galleries,
        group_names=alphabets,
    )


def _checked(
    drawings: dict[Drawing, NDArray[np.uint8]], root: Path
) -> tuple[list[tuple[str, str]], list[int]]:
    """Classes and writers, sorted; every class must have been drawn by every writer."""
    writers = sorted({d.writer for d in drawings})
    names = sorted({(d.alphabet, d.character) for d in drawings})
    for name in names:
        for writer in writers:
            if Drawing(*name, writer) not in drawings:
                raise BenchError(
                    f"{root}: class {'/'.join(name)}: expected {len(writers)} writers as in the "
                    f"other classes, writer {writer:02d} is missing"
                )
    if len(writers) < SEEN_WRITERS + 2 or len(names) < 4:
        raise BenchError(
            f"{root}: expected at least 4 classes by {SEEN_WRITERS + 2} writers, "
            f"got {len(names)} by {len(writers)}"
        )
    return names, writers


def _places(root: Path) -> list[Path]:
    """Archives and, where there is no archive, the folders they extract to; or else the root."""
    found = []
    for stem in ARCHIVES:
        for place in (root / f"{stem}.zip", root / stem):
            if place.exists():
                found.append(place)
                break
    if found:
        return found
    if any(root.glob("*/character*")):
        return [root]
    raise BenchError(
        f"{root}: no class folder found: expected {ARCHIVES[0]}.zip or another of the original "
        "archives, or folders ALPHABET/characterNN/NNNN_WW.png"
    )


def _merged(root: Path) -> dict[Drawing, NDArray[np.uint8]]:
    """Every drawing once, ``[32, 32]`` uint8 each."""
    merged: dict[Drawing, NDArray[np.uint8]] = {}
    for place in _places(root):
        members = _zipped(place) if place.suffix == ".zip" else _extracted(place)
        for name, raw in members:
            where = f"{place}: {name}"
            match = _NAME.fullmatch(name)
            if match is None or match[1] in (".", ".."):
                raise BenchError(
                    f"{where}: unexpected name, expected ALPHABET/characterNN/NNNN_WW.png"
                )
            drawing = Drawing(match[1], match[2], int(match[4]))
            pixels = _decode(raw, where)
            earlier = merged.setdefault(drawing, pixels)
            if not np.array_equal(earlier, pixels):
                raise BenchError(f"{where}: differs from the same writer's drawing read earlier")
    return merged


def _zipped(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of an archive's files; nothing is written to disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.infolist(), key=lambda m: m.filename):
                if member.is_dir() or _STRAY.fullmatch(member.filename):
                    continue
                if member.file_size > _MOST_BYTES:
                    raise BenchError(
                        f"{path}: {member.filename}: expected at most {_MOST_BYTES} bytes, "
                        f"got {member.file_size}"
                    )
                yield member.filename, archive.read(member)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise BenchError(f"{path}: archive is broken: {error}") from error


def _extracted(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Relative names and bytes of a folder's drawings."""
    try:
        for path in sorted(folder.glob("*/character*/*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not _STRAY.fullmatch(name):
                yield name, path.read_bytes()
    except OSError as error:
        raise BenchError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _decode(raw: bytes, where: str) -> NDArray[np.uint8]:
    """A drawing as 32 x 32 grey, dark ink on light paper."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(raw), formats=("PNG",)) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise BenchError(
                    f"{where}: expected at most {_MOST_PIXELS} pixels, "
                    f"got {image.width} x {image.height}"
                )
            small = image.convert("L").resize((SIZE, SIZE), Image.Resampling.BICUBIC)
            return np.asarray(small, np.uint8)
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise BenchError(f"{where}: image cannot be decoded: {error}") from error
