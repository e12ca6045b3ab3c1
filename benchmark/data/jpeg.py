"""JPEG by torchvision's decoder, on CPUs and GPUs: about twice as fast as by Pillow.

Only what both decode to the same pixels: whole frames of 8 bits, grey or colour. Anything else, and
whatever this decoder refuses, is left to Pillow, which also words the error. A torchvision without
decoders (deprecated since 0.29) is slower and gives the same pixels: Pillow decodes for it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image, ImageOps

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_START, _SCAN, _EXIF = b"\xff\xd8", 0xDA, 0xE1
_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive
_OTHER_FRAMES = frozenset(range(0xC3, 0xD0)) - {0xC4, 0xC8, 0xCC}
_COMPONENTS = (1, 3)


class Header(NamedTuple):
    """Of a JPEG that torchvision decodes as Pillow does."""

    width: int
    height: int
    has_exif: bool  # which may say that it is turned


def header(encoded: bytes) -> Header | None:
    r"""Size of a JPEG, read from its first frame; ``None`` if it is anything else.

    Example:
        >>> header(b"\xff\xd8\xff\xc0\0\x11\x08\0\x0a\0\x14\x03" + bytes(9))
        Header(width=20, height=10, has_exif=False)
    """
    if encoded[:2] != _START:
        return None
    at, has_exif = 2, False
    try:
        while True:
            mark, kind, length = struct.unpack_from(">BBH", encoded, at)
            if mark != 0xFF or kind in _OTHER_FRAMES or kind == _SCAN or length < 2:
                return None
            if kind in _FRAMES:
                bits, height, width, components = struct.unpack_from(">BHHB", encoded, at + 4)
                plain = bits == 8 and components in _COMPONENTS and width and height
                return Header(width, height, has_exif) if plain else None
            has_exif |= kind == _EXIF
            at += 2 + length
    except struct.error:
        return None


def decode(
    encoded: Sequence[bytes], device: torch.device | str = "cpu", upright: bool = False
) -> list[Tensor]:
    """Pixels of some JPEGs on a device, ``[3, height, width]`` uint8 each.

    ``upright`` turns them as Exif says, on CPUs alone. A RuntimeError says that one is damaged.
    """
    import torch

    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return [_by_pillow(each, upright).to(device) for each in encoded]
    raw = [torch.frombuffer(bytearray(each), dtype=torch.uint8) for each in encoded]
    if torch.device(device).type == "cuda":
        on_gpu: list[Tensor] = decode_jpeg(raw, ImageReadMode.RGB, device=device)
        return on_gpu
    options = {"mode": ImageReadMode.RGB, "apply_exif_orientation": upright}
    return [decode_jpeg(each, **options) for each in raw]


def _by_pillow(encoded: bytes, upright: bool) -> Tensor:
    import torch

    try:
        with Image.open(io.BytesIO(encoded), formats=("JPEG",)) as image:
            turned: Image.Image = ImageOps.exif_transpose(image) if upright else image
            pixels = np.array(turned.convert("RGB"))
    except Exception as error:  # Pillow's readers raise whatever damaged bytes make of them
        raise RuntimeError(str(error)) from error
    return torch.from_numpy(pixels).permute(2, 0, 1)


def resize(pixels: Tensor, box: tuple[float, float, float, float], size: tuple[int, int]) -> Tensor:
    """Whole pixels of a box (left, top, right, bottom) brought to ``size`` (height, width).

    Bilinear with antialiasing: torchvision's ``Resize``, which the papers' code uses.
    """
    import torch

    left, top = round(box[0]), round(box[1])
    right, bottom = max(left + 1, round(box[2])), max(top + 1, round(box[3]))
    # Resizing the box within the picture gives the same, and takes a third longer.
    part = pixels[None, :, top:bottom, left:right].contiguous(memory_format=torch.channels_last)
    if part.shape[2:] == size:
        return part[0]
    smooth = partial(torch.nn.functional.interpolate, size=size, mode="bilinear", antialias=True)
    if part.device.type == "cpu":  # whole numbers, as torchvision has them on CPUs
        return smooth(part)[0]
    return smooth(part.float())[0].round().clamp(0, 255).to(torch.uint8)
