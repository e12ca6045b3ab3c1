"""Characters drawn from fonts: sizes, places, equal drawings, groups and the distortion."""

import numpy as np
import PIL
import pytest

from benchmark.data import rendering
from benchmark.data.glyphs import Glyphs
from benchmark.data.rendering import OUT, PARAMETERS, Amounts, distort


def test_strength_zero_only_downscales():
    ink = np.zeros((1, 64, 64), np.uint8)
    ink[:, 16:48, 16:48] = 255
    uniform = np.ones((1, PARAMETERS), np.float32)
    noise = np.ones((1, OUT, OUT), np.float32)
    image = distort(ink, uniform, noise, 0.0, Amounts())[0]
    assert np.array_equal(image, image[::-1]) and np.array_equal(image, image.T)
    assert (image[9:23, 9:23] == image[16, 16]).all() and image[16, 16] < 20
    assert (image[:7] == image[0, 0]).all() and image[0, 0] > 235


@pytest.mark.parametrize("parameter", [4, 5])
def test_shift_moves_whole_pixels(parameter):
    ink = np.zeros((1, 64, 64), np.uint8)
    ink[:, 20:40, 24:44] = 255
    noise = np.zeros((1, OUT, OUT), np.float32)
    still = np.zeros((1, PARAMETERS), np.float32)
    moved = still.copy()
    moved[0, parameter] = 1
    a, b = (distort(ink, u, noise, 1.0, Amounts(shift=3.0))[0] for u in (still, moved))
    assert np.array_equal(np.roll(a, 3, axis=1 if parameter == 4 else 0), b)


def test_relative_size_and_place_are_kept(letters):
    codes, ink = letters
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
    """Beside those that stand with the function."""
    wanted = {
        "Ω": "Greek", ".": "Punctuation", "■": "Geometric shapes", "┼": "Box drawing",
        "ª": "Modifier letters", "ʰ": "Modifier letters", "₤": "Other",
    }  # fmt: skip
    assert {c: rendering.script(ord(c)) for c in wanted} == wanted


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Three characters in place of all, an empty cache, and how often they were drawn."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rendering, "code_points", lambda: [ord(c) for c in "aoΩ"])
    really, times = rendering.draw, []
    monkeypatch.setattr(rendering, "draw", lambda codes: times.append(len(codes)) or really(codes))
    rendering.ink_hash.cache_clear()
    yield times
    rendering.ink_hash.cache_clear()


def source():
    """Of the data, as another process sees it."""
    rendering.ink_hash.cache_clear()
    return Glyphs().source(None)


def test_the_data_are_the_pixels_whatever_draws_them(drawn, monkeypatch):
    """Another release of FreeType or Pillow that draws the same renames nothing."""
    first = source()
    monkeypatch.setattr(rendering.features, "version", lambda name: "99.9")
    monkeypatch.setattr(PIL, "__version__", "99.9")
    assert source() == first and len(drawn) == 2, "drawn anew, and the same"
    monkeypatch.setattr(rendering, "EM", 45)
    monkeypatch.setattr(PIL, "__version__", "99.10")
    assert source() != first


def test_a_renderer_draws_once(drawn, tmp_path):
    first = source()
    assert source() == first and drawn == [3]
    (kept,) = tmp_path.rglob("*.json")
    for content in ("{", "{}", kept.read_text().replace(first["ink"][:6], "f" * 6)):
        kept.write_text(content)
        assert source() == first
    assert drawn == [3] * 4, "a damaged file is drawn anew"


def test_a_cache_that_cannot_be_written_only_costs_time(drawn, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert source() == source() and drawn == [3, 3]
