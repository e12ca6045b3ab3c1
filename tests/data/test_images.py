"""Pictures of any format, mode and shape as arrays, at once or when they are needed."""

import numpy as np
import pytest
from PIL import Image
from support.pictures import png, write_noise

from benchmark.data.base import take
from benchmark.data.files import Files
from benchmark.data.images import _FACE, EncodedImages, View, _alignment, decode_view, images_of
from benchmark.data.recordio import Records
from benchmark.errors import BenchError


def decode(path, size, channels):
    return decode_view(path, View(size, size, channels), str(path))


FORMATS = [
    ("a.png", "RGB", {}),
    ("a.png", "L", {}),
    ("a.png", "1", {}),
    ("a.png", "P", {}),
    ("a.png", "RGBA", {}),
    ("a.png", "LA", {}),
    ("a.jpg", "CMYK", {"quality": 95}),
    ("a.JPEG", "L", {"quality": 95}),
    ("a.webp", "RGB", {"lossless": True}),
    ("a.bmp", "RGB", {}),
    ("a.gif", "P", {}),
    ("a.tif", "RGB", {"compression": "tiff_lzw"}),
    ("a.tiff", "CMYK", {}),
    ("a.ppm", "RGB", {}),
    ("a.pgm", "L", {}),
    ("a.pbm", "1", {}),
]


@pytest.mark.parametrize(("name", "mode", "options"), FORMATS)
def test_formats_and_modes(tmp_path, name, mode, options):
    path = write_noise(tmp_path / name, (210, 210, 210), (50, 70), mode, **options)
    image = decode(path, 24, 3)
    assert image.shape == (3, 24, 24) and image.dtype == np.uint8
    assert abs(image.mean() - 210) < (60 if mode == "1" else 12)
    assert decode(path, 24, 1).shape == (1, 24, 24)


def test_sixteen_bits(tmp_path):
    values = np.full((20, 30), 40000, np.uint16)
    for name in ("a.png", "a.tif"):
        Image.fromarray(values).save(tmp_path / name)
        assert np.abs(decode(tmp_path / name, 8, 3).astype(int) - 156).max() <= 1
    dark = Image.fromarray(np.full((20, 30), 200, np.uint16))
    dark.save(tmp_path / "dark.png")
    assert decode(tmp_path / "dark.png", 8, 1).max() <= 1
    Image.fromarray(np.full((20, 30), 0.5, np.float32)).save(tmp_path / "share.tif")
    assert np.abs(decode(tmp_path / "share.tif", 8, 1).astype(int) - 128).max() <= 1


def test_portable_images_of_other_depths(tmp_path):
    """Values are shares of the largest one that the header names, however dark the picture is."""
    for most, value, kind in ((65535, 200, ">u2"), (4095, 2048, ">u2"), (100, 50, "u1")):
        path = tmp_path / f"{most}.pgm"
        path.write_bytes(b"P5 # grey\n6 4\n%d\n" % most + np.full(24, value, kind).tobytes())
        got = decode(path, 8, 1).astype(int)
        assert np.abs(got - round(255 * value / most)).max() <= 1


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"P2 2 2 255 1 2 3 4", r"got a plain one \(P2\)"),
        (b"P5 4 4 255 " + b"x" * 15, "image cannot be decoded: image file is truncated"),
        (b"P5 #" + b"x" * 5000 + b"\n4 4 255 " + b"x" * 16, "image cannot be decoded: cannot id"),
        (b"Pf 4 4 -1.0 " + b"x" * 64, "image cannot be decoded: cannot identify"),
        (b"P5 3000 3000 100 ", "expected at most 4194304 pixels, got 3000 x 3000"),
        (b"P5 9000 9000 255 ", "expected at most 67108864 pixels"),
    ],
)
def test_portable_images_that_are_not_read(tmp_path, raw, words):
    (tmp_path / "a.pgm").write_bytes(raw)
    for encoded in (tmp_path / "a.pgm", raw):
        with pytest.raises(BenchError, match=words):
            decode_view(encoded, View(8, 8, 1), "a.pgm")


def test_transparency_is_white(tmp_path):
    clear = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    clear.save(tmp_path / "a.png")
    paletted = Image.new("P", (20, 20), 0)
    paletted.save(tmp_path / "b.png", transparency=0)
    paletted.save(tmp_path / "c.gif", transparency=0)
    for name in ("a.png", "b.png", "c.gif"):
        assert decode(tmp_path / name, 8, 3).min() == 255


def test_exif_orientation(tmp_path):
    image = Image.new("RGB", (40, 40), "black")
    image.paste("white", (0, 0, 40, 20))  # the upper half, as stored
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    image.save(tmp_path / "a.jpg", exif=exif)
    upright = decode(tmp_path / "a.jpg", 8, 1)[0]
    assert upright[0].max() < 20 and upright[-1].min() > 235


def test_middle_square_is_kept(tmp_path):
    for size in ((90, 30), (30, 90)):
        image = Image.new("RGB", size, "black")
        left, top = (size[0] - 30) // 2, (size[1] - 30) // 2
        image.paste("white", (left, top, left + 30, top + 30))
        image.save(tmp_path / "a.png")
        kept = decode(tmp_path / "a.png", 16, 3)
        assert kept[:, 1:-1, 1:-1].min() == 255 and kept.min() > 200  # the filter sees the rim
    Image.new("RGB", (1, 3000), "white").save(tmp_path / "thin.png")
    assert decode(tmp_path / "thin.png", 16, 3).min() == 255


def test_first_frame(tmp_path):
    frames = [Image.new("L", (20, 20), v) for v in (250, 10)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert decode(tmp_path / "a.gif", 8, 1).min() > 240


def test_middle_box_and_share_that_is_kept():
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[:, 20:60] = 100
    pixels[10:30, 30:50] = 200
    raw = png(pixels)
    assert (decode_view(raw, View(40, 40), "x") >= 100).all()
    assert (decode_view(raw, View(20, 20, keep=0.5), "x") == 200).all()
    box = np.array([30, 10, 20, 20], np.float32)
    assert (decode_view(raw, View(20, 20, fit="box"), "x", box) == 200).all()
    wide = decode_view(raw, View(40, 40, fit="box", keep=2.0), "x", box)
    assert wide.min() >= 95 and (wide[:, 12:28, 12:28] == 200).all()
    assert decode_view(raw, View(10, 12, 1, "whole"), "x").shape == (1, 10, 12)
    with pytest.raises(BenchError, match=r"^x: box 90,0,5,5 lies outside 80 x 40"):
        decode_view(raw, View(8, 8, fit="box"), "x", np.array([90, 0, 5, 5], np.float32))


def test_landmarks_come_to_where_arcface_has_them():
    """A face turned by a quarter, twice as large, somewhere in the picture."""
    turned = np.stack([-_FACE[:, 1], _FACE[:, 0]], axis=1) * 2 + [260, 30]
    pixels = np.zeros((300, 300), np.uint8)
    for x, y in turned:
        pixels[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4] = 255
    view = View(112, 112, 1, "align")
    face = decode_view(png(pixels), view, "x", turned.astype(np.float32).ravel())[0]
    for x, y in _FACE:
        assert face[round(y), round(x)] > 200
    assert face.mean() < 10


def insightface_map(landmarks):
    """From the picture to the crop ``[2, 3]``: least squares in the crop, by its four numbers."""
    x, y = landmarks.T
    one, zero = np.ones(5), np.zeros(5)
    rows = np.concatenate([np.stack([x, -y, one, zero], 1), np.stack([y, x, zero, one], 1)])
    a, b, c, d = np.linalg.lstsq(rows, np.concatenate(_FACE.T), rcond=None)[0]
    return np.array([[a, -b, c], [b, a, d]])


@pytest.mark.parametrize("narrowed", [1.0, 0.6, 0.3])
def test_crops_are_those_of_insightface(narrowed):
    """Turned, moved, narrowed faces with noise, some of them cut by the picture's edge."""
    rng = np.random.default_rng(1)
    corners = np.array([[0, 0], [111, 0], [0, 111], [111, 111]], float)
    worst = 0.0
    for _ in range(70):
        angle, size = rng.uniform(-np.pi, np.pi), rng.uniform(0.5, 4)
        turn = size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        face = (_FACE - 56) * [narrowed, 1.0] + rng.normal(0, 3, (5, 2))
        landmarks = face @ turn.T + rng.uniform(-30, 300, 2)
        # Pillow maps corners of pixels; theirs are middles.
        affine = _alignment(landmarks, View(112, 112, 1, "align"))
        ours = (corners + 0.5) @ affine[:, :2].T + affine[:, 2] - 0.5
        forward = insightface_map(landmarks)
        theirs = (corners - forward[:, 2]) @ np.linalg.inv(forward[:, :2]).T
        worst = max(worst, np.abs(ours - theirs).max())
    assert worst < 0.1


# --- on demand


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 256, (20, 30, 3), np.uint8) for _ in range(5)]
    for i, pixels in enumerate(made):
        (tmp_path / f"{i}.png").write_bytes(png(pixels))
    return made


def test_rows_in_any_order_subsets_and_prefetching(tmp_path, pictures):
    view = View(20, 30, fit="whole")
    images = EncodedImages(Files.checked(tmp_path, [f"{i}.png" for i in range(5)]), view)
    assert images.shape == (5, 3, 20, 30)
    want = np.stack(pictures).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(images[np.array([3, 0, 3])], want[[3, 0, 3]])
    part = take(images, np.array([4, 1]))
    np.testing.assert_array_equal(part[np.array([0, 1])], want[[4, 1]])
    images.prefetch(np.array([2, 1]))
    np.testing.assert_array_equal(images[np.array([2, 1])], want[[2, 1]])
    images.prefetch(np.array([2, 1]))
    np.testing.assert_array_equal(images[np.array([0])], want[[0]])
    small = images_of(images.source, view)
    assert isinstance(small, np.ndarray)
    np.testing.assert_array_equal(small, want)


@pytest.mark.parametrize("name", ["", "/etc/x", "a/../../x", "a\nb"])
def test_names_that_leave_the_folder(tmp_path, name):
    with pytest.raises(BenchError, match="unexpected file name"):
        Files.checked(tmp_path, [name])


def test_broken_images_are_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no image")
    images = EncodedImages(Files(tmp_path, ("a.jpg",)), View(8, 8))
    with pytest.raises(BenchError, match=r"a\.jpg: image cannot be decoded"):
        images[np.array([0])]
    (tmp_path / "all.rec").write_bytes(b"short")
    records = EncodedImages(Records(tmp_path / "all.rec", np.array([[2, 10]])), View(8, 8))
    with pytest.raises(BenchError, match="at byte 2: expected 10 bytes, got 3"):
        records[np.array([0])]
