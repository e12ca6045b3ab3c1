"""Characters drawn from the DejaVu faces that matplotlib installs, and their distortion."""

import hashlib
import importlib.util
import platform
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import ImageFont, features

from benchmark.config.files import digest, read_sealed, user_cache, write_sealed
from benchmark.data.base import Ints, Pixels
from benchmark.errors import BenchError

Floats = NDArray[np.float32]

FACES = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique",
    "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique",
    "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic",
)  # fmt: skip
"""The 12 faces, in the order that numbers the cameras."""

SIZE = 64
EM = 44
BASELINE = 50
"""One em size and one baseline for all, so that ``o``, ``O`` and the degree sign stay apart."""

SAME = 0.05
"""Two drawings count as equal below this squared difference, as a share of the ink, over all
faces at 32 px: homoglyphs of two scripts, and accents that melt into a capital."""

OUT = 32
PARAMETERS = 12
PLACE = 6
"""Of them, those that say where the ink is."""
PAPER, INK = np.float32(0.95), np.float32(0.05)
MOST_PAPER, MOST_CONTRAST = np.float32(0.4), np.float32(0.75)
"""However strong the distortion, paper stays lighter than ink."""

_LARGEST_HASH = 4096  # bytes of the file that keeps one


@cache
def faces() -> tuple[Path, ...]:
    """The font files, found without importing matplotlib; BenchError if one is missing."""
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise BenchError("dataset glyphs: needs the fonts that matplotlib installs, not found")
    paths = [Path(spec.origin).parent / f"mpl-data/fonts/ttf/{name}.ttf" for name in FACES]
    for path in paths:
        if not path.is_file():
            raise BenchError(f"dataset glyphs: font file missing: {path}")
    return tuple(paths)


def characters() -> tuple[list[int], Pixels]:
    """Code points whose drawings are whole and differ, ascending, and their ink.

    ``[n]`` and ``[n, 12, 64, 64]`` uint8, 255 fully covered; drawing takes seconds.
    """
    codes = code_points()
    ink, whole = draw(codes)
    rows = np.flatnonzero(whole)
    rows = rows[distinct(ink[rows])]
    return [codes[r] for r in rows], ink[rows]


@cache
def ink_hash() -> str:
    """SHA-256 over every pixel of :func:`characters`, which are drawn once for each renderer.

    Another release of FreeType, Pillow or the fonts that draws the same is the same data. The
    user's cache keeps the hash by all that draws; a file of it that is damaged is drawn anew.
    """
    path = user_cache() / "ink" / f"{digest(_drawn_by())}.json"
    with suppress(BenchError):
        kept = str(read_sealed(path, _LARGEST_HASH).get("sha256"))
        if re.fullmatch(r"[0-9a-f]{64}", kept):
            return kept
    codes, ink = characters()
    found = hashlib.sha256(np.array(codes, "<u4").tobytes() + ink.tobytes()).hexdigest()
    with suppress(BenchError, OSError):  # it only saves time
        write_sealed(path, {"sha256": found}, durable=False)
    return found


def _drawn_by() -> list[str]:
    """All that may move a pixel: the fonts, this file, the libraries, and where they run."""
    files = [*faces(), Path(__file__)]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    renderer = f"pillow {PIL.__version__}, freetype {features.version('freetype2')}"
    unicode = unicodedata.unidata_version  # categories of characters
    return [*hashes, renderer, unicode, platform.machine(), platform.system()]


def code_points() -> list[int]:
    """Letters, digits, symbols and punctuation that all faces have, ascending.

    Without the block elements: only their size and place tell them apart, which distortion changes.
    """
    from matplotlib.ft2font import FT2Font

    common = set.intersection(*(set(FT2Font(str(path)).get_charmap()) for path in faces()))
    blocks = range(0x2580, 0x25A0)
    return sorted(c for c in common - {*blocks} if unicodedata.category(chr(c))[0] in "LNSP")


def draw(codes: list[int]) -> tuple[Pixels, NDArray[np.bool_]]:
    """Draw characters at one em size on one baseline, centred from left to right.

    Ink ``[n, 12, 64, 64]`` uint8, 255 fully covered; and whether the drawing is visible and whole
    within the frame in every face, ``[n]``.
    """
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


def distinct(ink: Pixels) -> Ints:
    """Rows of ``ink`` that equal no earlier kept one (see ``SAME``), ascending, ``[k]``.

    A float product at 16 px proposes pairs: a mean over cells never lies further apart than the
    cells do, so it misses none. Integers at 32 px decide, hence no rounding does.
    """
    n = len(ink)
    cells = _fours(ink, np.int16)  # 0..1020
    total = cells.sum((1, 2, 3), dtype=np.int64)
    least = np.minimum(total[:, None], total[None])
    coarse = _fours(cells, np.int32).astype(np.float32) / 4
    flat = coarse.reshape(n, -1) / 1020
    norm = np.einsum("ij,ij->i", flat, flat)
    apart = (norm[:, None] + norm[None] - 2 * flat @ flat.T) * 4
    near = np.triu(apart < (SAME + 0.01) * least / 1020, 1)
    kept = np.ones(n, np.bool_)
    for i in range(n):
        for j in np.flatnonzero(near[i] & kept) if kept[i] else ():
            difference = (cells[i] - cells[j]).ravel().astype(np.int64)
            kept[j] = difference @ difference >= SAME * 1020 * least[i, j]
    return np.flatnonzero(kept)


def _fours(cells: NDArray[Any], narrow: type[np.signedinteger[Any]]) -> NDArray[np.int32]:
    """Sums of squares of 2 by 2, by slices: sooner than axes of two are summed.

    ``narrow`` holds the sums of two.
    """
    pairs = cells[..., ::2, :].astype(narrow) + cells[..., 1::2, :]
    return np.add(pairs[..., ::2], pairs[..., 1::2], dtype=np.int32)


def script(code: int) -> str:
    """The group of a character: its script, or the kind of symbol.

    >>> [script(ord(c)) for c in "aЖ→½∑"]
    ['Latin', 'Cyrillic', 'Arrows', 'Numbers', 'Mathematical symbols']
    """
    name, category = unicodedata.name(chr(code)), unicodedata.category(chr(code))
    first = name.split()[0].title()
    if category in ("Lu", "Ll", "Lt", "Lo") and first in _SCRIPTS:
        return first
    ranges = (group for low, high, group in _RANGES if low <= code <= high)
    kind = _CATEGORIES.get(category) or _CATEGORIES.get(category[0], "Other")
    return next(ranges, kind)


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


@dataclass(frozen=True)
class Amounts:
    """Reach of each distortion at strength 1; all grow in proportion to the strength."""

    rotation: float = 15.0  # degrees, either way
    shear: float = 0.15  # horizontal, either way
    scale: float = 0.15  # logarithm of the size, either way
    aspect: float = 0.08  # logarithm of width over height, either way
    shift: float = 2.0  # pixels of the 32, either way, in each direction
    contrast: float = 0.4  # share of the ink's darkness that may be lost
    paper: float = 0.15  # share of the paper's brightness that may be lost
    slope: float = 0.12  # brightness between the middle and an edge, either way, in each direction
    bowl: float = 0.08  # brightness between the middle and a corner, either way
    noise: float = 0.08  # largest standard deviation of a pixel's noise, brightness in [0, 1]


def distort(
    ink: Pixels, uniform: Floats, noise: Floats, strength: float, amounts: Amounts
) -> Pixels:
    """Warp, downscale and light drawings: dark ink on light paper, ``[k, 32, 32]`` uint8.

    Args:
        ink: ``[k, h, h]`` uint8, 255 fully covered.
        uniform: What is drawn for each image, in [-1, 1), ``[k, PARAMETERS]`` float32.
        noise: Standard normal, ``[k, 32, 32]`` float32.
        strength: Multiplies every amount; 0 only downscales.
        amounts: How far each distortion reaches at strength 1.
    """
    a, draws = amounts, (uniform * np.float32(strength)).T[:, :, None, None]  # [12, k, 1, 1]
    covered = warp(ink, draws[:PLACE], a)
    contrast, paper = draws[PLACE:8]
    bright = PAPER - np.minimum(np.abs(paper) * a.paper, MOST_PAPER)
    dark = (bright - INK) * (1 - np.minimum(np.abs(contrast) * a.contrast, MOST_CONTRAST))
    value: Floats = bright - dark * covered
    return expose(value, draws[8:], noise, a)


def expose(value: Floats, draws: Floats, noise: Floats, a: Amounts) -> Pixels:
    """Light brightness unevenly, add noise and round, ``[..., k, 32, 32]`` float32 to uint8.

    Args:
        value: In [0, 1]; changed in place.
        draws: Of slopes, bowl and noise, ``[4, k, 1, 1]``.
        noise: Standard normal, ``[k, 32, 32]``.
        a: How far each reaches.
    """
    slope_x, slope_y, bowl, grain = draws
    unit = ((np.arange(OUT, dtype=np.float32) + np.float32(0.5)) * 2 / OUT - 1)[None]
    x, y = unit[:, None, :], unit[:, :, None]
    value += slope_x * a.slope * x + slope_y * a.slope * y
    value += bowl * a.bowl * (x * x + y * y - 1)
    value += np.abs(grain) * a.noise * noise
    return np.clip(np.rint(value * 255), 0, 255).astype(np.uint8)


def warp(ink: Pixels, draws: Floats, a: Amounts) -> Floats:
    """Share of each output pixel that ink covers, ``[k, 32, 32]``.

    Args:
        ink: ``[k, h, h]`` uint8.
        draws: The first :data:`PLACE` parameters, ``[6, k, 1, 1]`` float32.
        a: How far each reaches.
    """
    rotation, shear, scale, aspect, shift_x, shift_y = draws
    k, size = ink.shape[:2]
    step = np.float32(size / OUT)
    grid = np.arange(OUT, dtype=np.float32) - np.float32((OUT - 1) / 2)
    x, y = grid[None, None, :] - shift_x * a.shift, grid[None, :, None] - shift_y * a.shift
    angle = np.deg2rad(rotation * a.rotation)
    cos, sin = np.cos(angle), np.sin(angle)
    # Output to source: turn back, undo the shear, undo the scales.
    turned_y = cos * y - sin * x
    turned_x = cos * x + sin * y - shear * a.shear * turned_y
    inverse = step * np.exp(-scale * a.scale)
    half = np.exp(aspect * a.aspect / 2)
    middle = np.float32((size - 1) / 2 + 1)  # in the padded source
    last = np.float32(size + 1 - 1e-3)
    source_x = np.clip(turned_x * (inverse / half) + middle, 0, last)
    source_y = np.clip(turned_y * (inverse * half) + middle, 0, last)
    left, top = source_x.astype(np.int32), source_y.astype(np.int32)
    right_part, low_part = source_x - left, source_y - top
    width = size + 2
    flat = _blurred(ink).reshape(-1)
    corner = top * width + left + (np.arange(k, dtype=np.int32) * (width * width))[:, None, None]
    upper, lower = flat[corner], flat[corner + width]
    upper += right_part * (flat[corner + 1] - upper)
    lower += right_part * (flat[corner + (width + 1)] - lower)
    covered: Floats = upper + low_part * (lower - upper)
    return covered


def _blurred(ink: Pixels) -> Floats:
    """Ink in [0, 1] within a border of one pixel, blurred by [1 2 1] each way: antialiasing."""
    wide = np.pad(ink, ((0, 0), (2, 2), (2, 2))).astype(np.float32)
    tall = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    blurred: Floats = (tall[:, :, :-2] + 2 * tall[:, :, 1:-1] + tall[:, :, 2:]) / np.float32(4080)
    return blurred
