"""Image files of any size and mode as arrays of one shape, decoded when a batch needs them.

ImageNet at 224 x 224 is 180 GiB of pixels: such sets are kept as a list of files, and a batch is
decoded while the one before it is in use.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, features
from pydantic import Field

from benchmark.config.files import file_size, read_bytes
from benchmark.data import jpeg
from benchmark.data.base import Ints, Pixels
from benchmark.data.files import Files
from benchmark.data.modes import plain_pixels
from benchmark.data.recordio import Records
from benchmark.errors import BenchError

HELD_BYTES = 2 * 2**30
"""Sets whose pixels are fewer are decoded once and kept as an array."""

MOST_PIXELS = 2**26
"""Of a picture: 64 megapixels, 192 MiB of memory."""
MOST_BYTES = 2**28
"""Of a picture's file."""
_AVIF = ("AVIF",) if features.check("avif") else ()
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", *_AVIF)
_HEADER_BYTES = 1024
# Raw portable images: size, and the largest value of grey and colour, with comments between. Plain
# ones are left out, for a file of comments keeps Pillow busy for hours.
_PORTABLE = re.compile(rb"P[456](?:(?:\s|#[^\r\n]*[\r\n])+\d+){2}\s")
_MOST_SCALED = 2**22
"""Pixels of a portable image whose values Pillow brings to 8 or 16 bits one by one."""
_REDUCED = 4
"""Times as large as the view in both directions: Pillow then leaves out three of four pixels."""

Side = Annotated[int, Field(ge=8, le=2048)]
Share = Annotated[float, Field(ge=0.1, le=10)]


@dataclass(frozen=True)
class View:
    """Geometry by which the pictures of a dataset become arrays of one shape."""

    height: Side  # pixels
    width: Side
    channels: int = 3  # 3 for RGB, 1 for grey
    # middle: the largest rectangle of that shape in the middle of the picture, nothing padded or
    # stretched; whole: the picture, stretched; box: the same rectangle around each picture's own
    # box; align: five landmarks brought to where ArcFace has them
    fit: Literal["middle", "whole", "box", "align"] = "middle"
    # share of the rectangle's sides that is kept, its middle (224 of 256: 0.875); above 1 a box is
    # enlarged
    keep: Share = 1.0


# Eyes, nose, corners of the mouth in a face of 112 x 112 (Deng et al., ArcFace, 2019).
_FACE = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655],
     [70.7299, 92.2041]]
)  # fmt: skip
_FACE_SIDE = 112.0


def decode_view(
    encoded: Path | bytes, view: View, where: str, geometry: NDArray[np.float32] | None = None,
    most_pixels: int = MOST_PIXELS, fast: bool = False,
) -> Pixels:  # fmt: skip
    """Decode the first frame of an image: ``[channels, height, width]`` uint8, over white.

    Args:
        encoded: A file, or its bytes; its content decides the format, not its name.
        view: Shape and geometry.
        where: What a BenchError names, if it cannot be decoded or the box lies outside.
        geometry: ``x, y, width, height`` of its box, or x and y of five landmarks.
        most_pixels: Larger pictures are refused before a pixel is decoded.
        fast: As torchvision's ``Resize``: bilinear, not bicubic; JPEGs by its decoder, their
            boxes rounded to whole pixels.
    """
    if fast:
        encoded = read_bytes(encoded, MOST_BYTES) if isinstance(encoded, Path) else encoded
        pixels = _by_torchvision(encoded, view, where, geometry, most_pixels)
        if pixels is not None:
            return pixels
    elif isinstance(encoded, Path):
        file_size(encoded, MOST_BYTES)
    try:
        return _decoded(encoded, view, where, geometry, most_pixels, fast)
    except BenchError:
        raise
    except Exception as error:  # Pillow's readers raise whatever damaged bytes make of them
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(encoded, Path):
            reason = reason.replace(str(encoded), encoded.name)
        reason = re.sub(r" <_io\.BytesIO object at \w+>", "", reason)
        raise BenchError(f"{where}: image cannot be decoded: {reason:.300}") from error


def _by_torchvision(
    encoded: bytes, view: View, where: str, geometry: NDArray[np.float32] | None, most_pixels: int
) -> Pixels | None:
    """A JPEG by torchvision's decoder; None where that is not for it."""
    if not _is_fast(jpeg.header(encoded), view, most_pixels):
        return None
    try:
        (decoded,) = jpeg.decode([encoded], upright=view.fit in ("middle", "whole"))
    except RuntimeError:
        return None  # Pillow says why
    if view.fit in ("middle", "whole"):
        height, width = decoded.shape[1:]
        box = _rectangle((width, height), view, None, where)
        made: Pixels = jpeg.resize(decoded, box, (view.height, view.width)).numpy()
        return made
    plain = Image.fromarray(decoded.permute(1, 2, 0).numpy())
    return _shaped(plain, view, geometry, where, Image.Resampling.BILINEAR)


def _is_fast(header: jpeg.Header | None, view: View, most_pixels: int) -> bool:
    """Tell whether a picture is one for torchvision: Pillow alone decodes large ones at a half."""
    if header is None or view.channels != 3 or header.width * header.height > most_pixels:
        return False
    large = min(header.width / view.width, header.height / view.height) >= _REDUCED
    return not large or view.fit not in ("middle", "whole")


def _decoded(
    encoded: Path | bytes, view: View, where: str, geometry: NDArray[np.float32] | None,
    most_pixels: int, fast: bool,
) -> Pixels:  # fmt: skip
    size = (view.width, view.height)
    opened = io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded
    formats = (*_FORMATS, "PPM") if _is_portable(encoded, where) else _FORMATS
    with Image.open(opened, formats=formats) as image:
        width, height = image.size
        most = min(most_pixels, _MOST_SCALED) if _is_scaled(image) else most_pixels
        if width * height > most:
            raise BenchError(f"{where}: expected at most {most} pixels, got {width} x {height}")
        upright: Image.Image = image
        if view.fit in ("middle", "whole"):  # the others count in pixels of the file
            image.draft(None, (2 * size[0], 2 * size[1]))
            upright = ImageOps.exif_transpose(image)
        sixteen = image.format == "PPM" and image.mode == "I"
        plain = plain_pixels(upright, "RGB" if view.channels == 3 else "L", sixteen)
    smooth = Image.Resampling.BILINEAR if fast else Image.Resampling.BICUBIC
    return _shaped(plain, view, geometry, where, smooth)


def _shaped(
    plain: Image.Image, view: View, geometry: NDArray[np.float32] | None, where: str,
    smooth: Image.Resampling,
) -> Pixels:  # fmt: skip
    """Pixels of a view, ``[channels, height, width]``."""
    size = (view.width, view.height)
    if view.fit == "align":
        affine = _alignment(np.asarray(geometry, np.float64).reshape(5, 2), view)
        if not np.isfinite(affine).all():
            raise BenchError(f"{where}: expected five landmarks of a face")
        shaped = plain.transform(
            size, Image.Transform.AFFINE, tuple(affine.ravel()), Image.Resampling.BILINEAR
        )
    else:
        box = _rectangle(plain.size, view, geometry, where)
        shaped = plain.resize(size, smooth, box=box)
    return np.asarray(shaped, np.uint8).reshape(*size[::-1], view.channels).transpose(2, 0, 1)


def _is_portable(encoded: Path | bytes, where: str) -> bool:
    """Tell whether it is a raw PBM, PGM or PPM; BenchError if it is one of another kind."""
    if isinstance(encoded, bytes):
        head = encoded[:_HEADER_BYTES]
    else:
        with encoded.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    if head[:2] in (b"P1", b"P2", b"P3"):
        kind = f"expected a raw portable image (P4, P5, P6), got a plain one ({head[:2].decode()})"
        raise BenchError(f"{where}: image cannot be decoded: {kind}")
    return _PORTABLE.match(head) is not None


def _is_scaled(image: Image.Image) -> bool:
    """Tell whether each value of a portable image is brought to 8 or 16 bits by itself."""
    tiles = getattr(image, "tile", ())
    return image.format == "PPM" and any(tile[0] != "raw" for tile in tiles)


def _rectangle(
    size: tuple[int, int], view: View, box: NDArray[np.float32] | None, where: str
) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of what is resized."""
    width, height = size
    if view.fit == "whole":
        return 0.0, 0.0, float(width), float(height)
    x, y, w, h = (0.0, 0.0, float(width), float(height)) if box is None else map(float, box)
    if w <= 0 or h <= 0 or x >= width or y >= height or x + w <= 0 or y + h <= 0:
        raise BenchError(f"{where}: box {x:g},{y:g},{w:g},{h:g} lies outside {width} x {height}")
    # A picture is cut to the shape; a box is filled up to it.
    fit = max if view.fit == "box" else min
    unit = view.keep * fit(w / view.width, h / view.height)
    half = unit * view.width / 2, unit * view.height / 2
    left, right = max(0.0, x + w / 2 - half[0]), min(float(width), x + w / 2 + half[0])
    top, bottom = max(0.0, y + h / 2 - half[1]), min(float(height), y + h / 2 + half[1])
    return left, top, right, bottom


def _alignment(points: NDArray[np.float64], view: View) -> NDArray[np.float64]:
    """From pixels of the result to those of the picture, ``[2, 3]``, in Pillow's coordinates.

    The similarity transform that brings the landmarks nearest to where ArcFace has them, inverted;
    not the one that brings those places nearest to the landmarks, which enlarges faces whose
    landmarks are squeezed. Landmarks count from the middle of the first pixel, Pillow from its
    corner. NaN where the landmarks are no face.

    Source:
        Umeyama, Least-squares estimation of transformation parameters (1991), as in
        deepinsight/insightface, python-package/insightface/utils/face_align.py, ``estimate_norm``.
    """
    try:
        from skimage.transform import SimilarityTransform
    except ImportError as error:
        raise BenchError(
            "faces are aligned by scikit-image, which is not installed: "
            "pip install 'compatbench[faces]'"
        ) from error
    face = _FACE * [view.width / _FACE_SIDE, view.height / _FACE_SIDE]
    found = np.isfinite(points).all() and SimilarityTransform.from_estimate(
        points + 0.5, face + 0.5
    )
    if not found:
        return np.full((2, 3), np.nan)
    affine: NDArray[np.float64] = np.asarray(found.inverse.params)[:2]
    return affine


class EncodedImages:
    """Random access to images that are decoded on demand: ``[n, c, h, w]`` uint8.

    Where the view needs it, ``geometry`` has the box ``[n, 4]`` or landmarks ``[n, 10]`` of each.
    """

    def __init__(
        self, source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
    ) -> None:
        if geometry is not None and len(geometry) != len(source):
            raise ValueError(f"geometry: expected {len(source)} rows, got {len(geometry)}")
        self.source, self.view, self.geometry = source, view, geometry
        self.threads = min(32, os.cpu_count() or 1)
        self._device = ""  # of the last batch; pixels that come next are brought there too
        self._ahead: tuple[bytes, Future[Any]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, c, h, w)``."""
        return (len(self.source), self.view.channels, self.view.height, self.view.width)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Ints) -> Pixels:
        pixels: Pixels = self._next(rows, "")
        return pixels

    def on_device(self, rows: Ints, device: str) -> Any:
        """The images of ``rows`` as a tensor on a device, decoded there as far as it can.

        A GPU's decoder rounds otherwise than the CPU's.
        """
        return self._next(rows, device)

    def prefetch(self, rows: Ints) -> None:
        """Begin to decode the rows that come next, to where the last ones were asked for."""
        rows = np.asarray(rows, np.int64)
        # A pool of its own: a job that waits for others of the same pool could wait for ever.
        job = _pool("prefetch", 1).submit(self._made, rows, self._device)
        self._ahead = self._key(rows, self._device), job

    def _next(self, rows: Ints, device: str) -> Any:
        rows, self._device = np.asarray(rows, np.int64), device
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == self._key(rows, device):
            return ahead[1].result()
        return self._made(rows, device)

    def _made(self, rows: Ints, device: str) -> Any:
        return self._tensor(rows, device) if device else self._decoded(rows)

    @staticmethod
    def _key(rows: Ints, device: str) -> bytes:
        return device.encode() + rows.tobytes()

    def take_rows(self, rows: Ints) -> EncodedImages:
        """Some of the images, still in their files."""
        geometry = None if self.geometry is None else self.geometry[rows]
        return EncodedImages(self.source.take(rows), self.view, geometry)

    def _decoded(self, rows: Ints) -> Pixels:
        view = self.view
        # Channels last, as decoders write and networks read them.
        pixels = np.empty((len(rows), view.height, view.width, view.channels), np.uint8)
        pixels = pixels.transpose(0, 3, 1, 2)

        def fill(places: range) -> None:
            for place in places:
                row = int(rows[place])
                where, encoded = self.source.read(row)
                geometry = None if self.geometry is None else self.geometry[row]
                pixels[place] = decode_view(encoded, view, where, geometry, fast=True)

        self._share(fill, len(rows))
        return pixels

    def _share(self, work: Callable[[range], None], n: int) -> None:
        """Carry out work on ``range(n)`` in threads, some at a time: to wake one takes long."""
        step = max(1, min(16, n // self.threads))
        pieces = [range(first, min(first + step, n)) for first in range(0, n, step)]
        list(_pool("decode", self.threads).map(work, pieces))

    def _tensor(self, rows: Ints, device: str) -> Any:
        """``[k, c, h, w]`` uint8: JPEGs by the device's decoder, all else by the CPU's."""
        import torch

        out = torch.empty((len(rows), *self.shape[1:]), dtype=torch.uint8, device=device)

        raws: list[bytes | None] = [None] * len(rows)

        def read(places: range) -> None:
            for place in places:
                _, encoded = self.source.read(int(rows[place]))
                raw = read_bytes(encoded, MOST_BYTES) if isinstance(encoded, Path) else encoded
                head = jpeg.header(raw)
                turned = head is None or head.has_exif or self.view.fit not in ("middle", "whole")
                if _is_fast(head, self.view, MOST_PIXELS) and not turned:
                    raws[place] = raw

        self._share(read, len(rows))
        there = [place for place, raw in enumerate(raws) if raw is not None]
        try:
            decoded = jpeg.decode([raw for raw in raws if raw is not None], device)
        except RuntimeError:  # one is damaged: the CPU's decoder says which
            there, decoded = [], []
        for place, pixels in zip(there, decoded, strict=True):
            height, width = pixels.shape[1:]
            box = _rectangle((width, height), self.view, None, "")
            out[place] = jpeg.resize(pixels, box, (self.view.height, self.view.width))
        others = np.setdiff1d(np.arange(len(rows)), there)
        if len(others):
            out[torch.from_numpy(others)] = torch.from_numpy(self._decoded(rows[others])).to(device)
        return out

    def fingerprint(self) -> str:
        """Hash of the list of files, the view and the geometry; decodes nothing."""
        digest = hashlib.sha256(json.dumps(asdict(self.view), sort_keys=True).encode())
        digest.update(self.source.key())
        if self.geometry is not None:
            digest.update(np.ascontiguousarray(self.geometry).tobytes())
        return digest.hexdigest()


def images_of(
    source: Files | Records, view: View, geometry: NDArray[np.float32] | None = None
) -> EncodedImages | Pixels:
    """Images as an array where that is small, else left in their files."""
    images = EncodedImages(source, view, geometry)
    small = int(np.prod(images.shape, dtype=np.int64)) <= HELD_BYTES
    return images[np.arange(len(images))] if small else images


@cache
def _pool(name: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=name)
