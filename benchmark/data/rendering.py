"""Characters drawn from the DejaVu faces that matplotlib installs. Not a dataset itself."""

from __future__ import annotations

import hashlib
import importlib.util
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchError

FACES = tuple(
    f"DejaVu{family}{'-' + style if style else ''}"
    for family, slanted in (("Sans", "Oblique"), ("SansMono", "Oblique"), ("Serif", "Italic"))
    for style in ("", "Bold", slanted, "Bold" + slanted)
)
"""The 12 faces, in the order that numbers the cameras."""

SIZE = 64
EM = 44
BASELINE = 50
"""One em size and one baseline for all, so that ``o``, ``O`` and the degree sign stay apart."""

SAME = 0.05
"""Two drawings count as equal below this squared difference, as a share of the ink, over all
faces at 32 px: homoglyphs of two scripts, and accents that melt into a capital."""


@cache
def faces() -> tuple[Path, ...]:
    """The font files, found without importing matplotlib.

    Raises:
        BenchError: If one of them is missing.
    """
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or not spec.submodule_search_locations:
        raise BenchError("dataset glyphs: needs the fonts that matplotlib installs, not found")
    folder = Path(next(iter(spec.submodule_search_locations))) / "mpl-data" / "fonts" / "ttf"
    paths = tuple(folder / f"{name}.ttf" for name in FACES)
    for path in paths:
        if not path.is_file():
            raise BenchError(f"dataset glyphs: font file missing: {path}")
    return paths


@cache
def font_hash() -> str:
    """SHA-256 over the 12 font files."""
    digest = hashlib.sha256()
    for path in faces():
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def renderer() -> str:
    """The FreeType that draws, which may move a pixel from one release to the next."""
    from PIL import features

    return f"freetype {features.version('freetype2')}"


def code_points() -> list[int]:
    """Letters, digits, symbols and punctuation that all faces have, ascending.

    Without the block elements: only their size and place tell them apart, which distortion changes.
    """
    from matplotlib.ft2font import FT2Font

    common = set.intersection(*(set(FT2Font(str(path)).get_charmap()) for path in faces()))
    return sorted(
        c for c in common if unicodedata.category(chr(c))[0] in "LNSP" and not 0x2580 <= c <= 0x259F
    )


def draw(codes: list[int]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Draw characters at one em size on one baseline, centred from left to right.

    Returns:
        Ink ``[n, 12, 64, 64]`` uint8, 255 fully covered; and ``[n]`` bool, whether the drawing is
        visible and whole within the frame in every face.
    """
    from PIL import ImageFont

    ink = np.zeros((len(codes), len(FACES), SIZE, SIZE), np.uint8)
    whole = np.ones(len(codes), np.bool_)
    for f, path in enumerate(faces()):
        font = ImageFont.truetype(str(path), EM, layout_engine=ImageFont.Layout.BASIC)
        for i, code in enumerate(codes):
            mask, (_, top) = font.getmask2(chr(code), mode="L", anchor="ls")
            width, height = mask.size
            x, y = (SIZE - width) // 2, BASELINE + int(top)
            if not width * height or min(x, y) < 0 or y + height > SIZE:
                whole[i] = False
                continue
            pixels = np.frombuffer(bytes(mask), np.uint8).reshape(height, width)
            ink[i, f, y : y + height, x : x + width] = pixels
    return ink, whole & (ink.max((2, 3)) > SIZE).all(1)


def distinct(ink: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Rows whose drawing equals no earlier kept one's (see ``SAME``).

    A float product at 16 px proposes pairs: a mean over cells never lies further apart than the
    cells do, so it misses none. Integers at 32 px decide, hence no rounding does.

    Args:
        ink: ``[n, 12, 64, 64]`` uint8.

    Returns:
        Kept rows, ascending, ``[k]``.
    """
    n = len(ink)
    cells = ink.reshape(n, len(FACES), 32, 2, 32, 2).sum((3, 5), dtype=np.int32)  # 0..1020
    total = cells.sum((1, 2, 3), dtype=np.int64)
    least = np.minimum(total[:, None], total[None])
    coarse = cells.reshape(n, len(FACES), 16, 2, 16, 2).mean((3, 5), dtype=np.float32)
    flat = coarse.reshape(n, -1) / 1020
    norm = np.einsum("ij,ij->i", flat, flat)
    apart = (norm[:, None] + norm[None] - 2 * flat @ flat.T) * 4
    near = np.triu(apart < (SAME + 0.01) * least / 1020, 1)
    gone = np.zeros(n, np.bool_)
    for i in range(n):
        if gone[i]:
            continue
        for j in np.flatnonzero(near[i] & ~gone):
            squared = int(np.square(cells[i] - cells[j]).sum(dtype=np.int64))
            gone[j] = squared < SAME * 1020 * int(least[i, j])
    return np.flatnonzero(~gone)


def script(code: int) -> str:
    """The group of a character: its script, or the kind of symbol.

    >>> [script(ord(c)) for c in "aЖ→½∑"]
    ['Latin', 'Cyrillic', 'Arrows', 'Numbers', 'Mathematical symbols']
    """
    name, category = unicodedata.name(chr(code)), unicodedata.category(chr(code))
    first = name.split()[0].title()
    if category in ("Lu", "Ll", "Lt", "Lo") and first in _SCRIPTS:
        return first
    for low, high, group in _RANGES:
        if low <= code <= high:
            return group
    return _CATEGORIES.get(category[0] if category != "Sm" else category, "Other")


_SCRIPTS = ("Latin", "Greek", "Cyrillic", "Armenian", "Georgian")
_RANGES = (
    (0x2190, 0x21FF, "Arrows"), (0x27F0, 0x27FF, "Arrows"), (0x2900, 0x297F, "Arrows"),
    (0x2B00, 0x2B1A, "Arrows"), (0x2500, 0x257F, "Box drawing"),
    (0x25A0, 0x25FF, "Geometric shapes"), (0x2200, 0x22FF, "Mathematical symbols"),
    (0x02B0, 0x02FF, "Modifier letters"), (0x1D00, 0x1DBF, "Modifier letters"),
    (0xA700, 0xA721, "Modifier letters"),
)  # fmt: skip
_CATEGORIES = {
    "Sm": "Mathematical symbols", "N": "Numbers", "P": "Punctuation", "L": "Modifier letters"
}  # fmt: skip
