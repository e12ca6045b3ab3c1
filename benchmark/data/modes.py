"""Images of any mode as eight bits a channel."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmark.data.base import Pixels

_SEE_THROUGH = frozenset(("LA", "La", "PA", "RGBA", "RGBa"))


def plain_pixels(image: Image.Image, mode: str, sixteen: bool = False) -> Image.Image:
    """Eight bits a channel, without transparency; of 16 bits where only the format says so."""
    if sixteen:
        return Image.fromarray(_eight_bits(np.asarray(image).astype(np.uint16))).convert(mode)
    if image.mode in ("F", "I") or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert(mode)
    if image.mode in _SEE_THROUGH or "transparency" in image.info:
        over = image.convert("RGBA")
        white = Image.new("RGBA", over.size, "white")
        return Image.alpha_composite(white, over).convert(mode)
    return image.convert("RGB").convert(mode) if image.mode != "L" else image.convert(mode)


def _eight_bits(values: NDArray[np.generic]) -> Pixels:
    """Integers beyond 255 are 16 bit; floating point up to 1 is a share, else out of 255."""
    wide = np.nan_to_num(values.astype(np.float64))
    most = float(wide.max(initial=0.0))
    if values.dtype.itemsize == 2 or (values.dtype.kind in "iu" and most > 255):
        wide /= 257
    elif values.dtype.kind == "f" and most <= 1:
        wide *= 255
    return np.clip(np.rint(wide), 0, 255).astype(np.uint8)
