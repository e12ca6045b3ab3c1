"""One image file, whatever its size and mode, as a square of bytes. Not a dataset itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
_SEE_THROUGH = frozenset(("LA", "La", "PA", "RGBA", "RGBa"))


def decode(path: Path, size: int, channels: int) -> NDArray[np.uint8]:
    """Decode the first frame, upright, over white; resize its middle square.

    The short side becomes ``size`` and what the long side has more is cut off evenly: nothing is
    padded, nothing stretched.

    Args:
        path: A file in one of the formats of ``SUFFIXES``; its content decides, not its name.
        size: Side of the result.
        channels: 3 for RGB, 1 for grey.

    Returns:
        ``[channels, size, size]`` uint8.

    Raises:
        BenchError: Naming the file, if it cannot be decoded.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=_FORMATS) as image:
            image.draft(None, (2 * size, 2 * size))  # JPEG: decode no more than twice what is kept
            upright = ImageOps.exif_transpose(image)
            plain = _plain(upright, "RGB" if channels == 3 else "L")
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        reason = str(error).replace(str(path), path.name)
        raise BenchError(f"{path}: image cannot be decoded: {reason}") from error
    side = min(plain.size)
    left, top = (plain.width - side) / 2, (plain.height - side) / 2
    square = plain.resize(
        (size, size), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )
    return np.asarray(square, np.uint8).reshape(size, size, channels).transpose(2, 0, 1)


def _plain(image: Picture, mode: str) -> Picture:
    """Eight bits a channel, without transparency."""
    from PIL import Image

    if image.mode in ("F", "I") or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert(mode)
    if image.mode in _SEE_THROUGH or "transparency" in image.info:
        over = image.convert("RGBA")
        white = Image.new("RGBA", over.size, "white")
        return Image.alpha_composite(white, over).convert(mode)
    return image.convert("RGB").convert(mode) if image.mode != "L" else image.convert(mode)


def _eight_bits(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Integers beyond 255 are 16 bit; floating point up to 1 is a share, else out of 255."""
    wide = np.nan_to_num(values.astype(np.float64))
    most = float(wide.max(initial=0.0))
    if values.dtype.itemsize == 2 or (values.dtype.kind in "iu" and most > 255):
        wide /= 257
    elif values.dtype.kind == "f" and most <= 1:
        wide *= 255
    return np.clip(np.rint(wide), 0, 255).astype(np.uint8)
