"""Characters drawn from fonts: sizes, places, equal drawings, groups and the distortion."""

import numpy as np
import pytest

from benchmark.data import rendering
from benchmark.data.rendering import OUT, PARAMETERS, Amounts, distort


@pytest.fixture(scope="module")
def small():
    codes = [ord(c) for c in "aoO,'0xΩ"]
    return codes, rendering.draw(codes)[0]


def test_strength_zero_only_downscales():
    ink = np.zeros((1, 64, 64), np.uint8)
    ink[:, 16:48, 16:48] = 255
    uniform = np.ones((1, PARAMETERS), np.float32)
    noise = np.ones((1, OUT, OUT), np.float32)
    image = distort(ink, uniform, noise, 0.0, Amounts())[0]
    assert np.array_equal(image, image[::-1]) and np.array_equal(image, image.T)
    assert (image[9:23, 9:23] == image[16, 16]).all() and image[16, 16] < 20
    assert (image[:7] == image[0, 0]).all() and image[0, 0] > 235


@pytest.mark.parametrize(
    ("parameter", "amounts"), [(4, Amounts(shift=3.0)), (5, Amounts(shift=3.0))]
)
def test_shift_moves_whole_pixels(parameter, amounts):
    ink = np.zeros((1, 64, 64), np.uint8)
    ink[:, 20:40, 24:44] = 255
    noise = np.zeros((1, OUT, OUT), np.float32)
    still = np.zeros((1, PARAMETERS), np.float32)
    moved = still.copy()
    moved[0, parameter] = 1
    a, b = (distort(ink, u, noise, 1.0, amounts)[0] for u in (still, moved))
    assert np.array_equal(np.roll(a, 3, axis=1 if parameter == 4 else 0), b)


def test_relative_size_and_place_are_kept(small):
    codes, ink = small
    o, big, comma, quote = (ink[codes.index(ord(c)), 0] for c in "oO,'")
    rows = [np.flatnonzero(g.any(1)) for g in (o, big, comma, quote)]
    assert len(rows[0]) < 0.85 * len(rows[1])
    assert rows[2].min() > rows[3].max()


def test_equal_drawings_are_one_class():
    codes = [0x41, 0x391, 0x410, 0x42, 0x6F, 0x43E, 0x41]  # A in three scripts, B, o in two, A
    ink, whole = rendering.draw(codes)
    assert whole.all()
    assert [chr(codes[i]) for i in rendering.distinct(ink)] == ["A", "B", "o"]


def test_blank_and_oversized_drawings_are_left_out():
    assert rendering.draw([0x20, 0x2031, ord("a")])[1].tolist() == [False, False, True]


def test_scripts():
    assert [rendering.script(ord(c)) for c in "aΩЖ→½∑.■┼ªʰ₤"] == [
        "Latin",
        "Greek",
        "Cyrillic",
        "Arrows",
        "Numbers",
        "Mathematical symbols",
        "Punctuation",
        "Geometric shapes",
        "Box drawing",
        "Modifier letters",
        "Modifier letters",
        "Other",
    ]
