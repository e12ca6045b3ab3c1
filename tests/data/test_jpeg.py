"""JPEGs by torchvision's decoder: beside Pillow's, and beside torchvision's own transforms."""

import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from benchmark.data import jpeg
from benchmark.data.files import Files
from benchmark.data.images import EncodedImages, View, decode_view
from benchmark.errors import BenchError


def picture(size=(90, 60), mode="RGB", seed=0, **options):
    """A JPEG of soft noise."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    file = io.BytesIO()
    small.resize(size, Image.Resampling.BICUBIC).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def pillow(raw):
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB")).transpose(2, 0, 1)


@pytest.mark.parametrize("options", [
    {}, {"quality": 30}, {"progressive": True}, {"subsampling": 0}, {"mode": "L"},
    {"size": (33, 17)}, {"optimize": True, "comment": b"x" * 3000},
])  # fmt: skip
def test_the_same_pixels_as_pillow(options):
    raw = picture(**options)
    width, height = options.get("size", (90, 60))
    assert jpeg.header(raw) == (width, height, False)
    np.testing.assert_array_equal(jpeg.decode([raw])[0].numpy(), pillow(raw))
    view = View(height, width, fit="whole")
    np.testing.assert_array_equal(decode_view(raw, view, "x", fast=True), pillow(raw))


def test_what_is_left_to_pillow():
    assert jpeg.header(picture(mode="CMYK")) is None
    for raw in (b"", b"\xff\xd8", b"\xff\xd8\xff", picture()[:10], b"\x89PNG" + picture()[4:]):
        assert jpeg.header(raw) is None
    huge = bytearray(picture())
    at = huge.index(b"\xff\xc0") + 5
    huge[at : at + 4] = b"\xff\xff\xff\xff"
    assert jpeg.header(bytes(huge)) == (65535, 65535, False)
    with pytest.raises(BenchError, match="x: image cannot be decoded: Image size"):
        decode_view(bytes(huge), View(8, 8), "x", fast=True)


def test_header_of_any_bytes():
    rng, raw = np.random.default_rng(0), picture(comment=b"abc")
    for _ in range(2000):
        damaged = bytearray(raw[: rng.integers(0, 700)])
        for place in rng.integers(0, max(1, len(damaged)), 4):
            damaged[place : place + 1] = rng.bytes(1)
        found = jpeg.header(bytes(damaged))
        assert found is None or (found.width > 0 and found.height > 0)


@pytest.mark.parametrize("turn", range(1, 9))
def test_pictures_are_turned_as_exif_says(turn):
    exif = Image.Exif()
    exif[0x0112] = turn
    raw = picture(exif=exif)
    assert jpeg.header(raw).has_exif
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(raw))).convert("RGB")
    view = View(upright.height, upright.width, fit="whole")
    made = decode_view(raw, view, "x", fast=True)
    np.testing.assert_array_equal(made, np.asarray(upright).transpose(2, 0, 1))


@pytest.mark.parametrize("size", [(90, 60), (60, 90), (300, 200), (64, 64)])
def test_the_middle_is_that_of_torchvision(size):
    from torchvision.transforms import v2

    raw = picture(size)
    resize = v2.Compose([v2.Resize(64, antialias=True), v2.CenterCrop(56)])
    theirs = resize(jpeg.decode([raw])[0]).numpy().astype(int)
    for fast in (True, False):
        ours = decode_view(raw, View(56, 56, keep=56 / 64), "x", fast=fast).astype(int)
        assert np.abs(ours - theirs).mean() < 2.5  # the box is another by half a pixel


def test_without_the_decoder_pillow_gives_the_same_pixels(images, monkeypatch):
    rows = np.arange(9)
    with_it = images[rows]
    monkeypatch.delattr("torchvision.io.decode_jpeg")
    np.testing.assert_array_equal(images[rows], with_it)
    np.testing.assert_array_equal(images.on_device(rows, "cpu"), with_it)
    with pytest.raises(BenchError, match="x: image cannot be decoded: "):
        decode_view(picture()[:700], View(8, 8), "x", fast=True)


def test_boxes_and_landmarks_are_those_of_pillow():
    raw = picture((90, 60))
    box = np.array([20.3, 10.1, 30.7, 30.2], np.float32)
    view = View(24, 24, fit="box", keep=1.3)
    fast = decode_view(raw, view, "x", box, fast=True).astype(int)
    assert np.abs(fast - decode_view(raw, view, "x", box).astype(int)).mean() < 4
    face = np.array([30, 25, 50, 25, 40, 35, 32, 45, 48, 45], np.float32)
    view = View(112, 112, fit="align")
    np.testing.assert_array_equal(
        decode_view(raw, view, "x", face, fast=True), decode_view(raw, view, "x", face)
    )


@pytest.fixture
def images(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    raws = [picture((90, 60), seed=i) for i in range(5)]
    raws += [picture(mode="CMYK"), picture(exif=exif), picture((300, 280), seed=9)]
    for i, raw in enumerate(raws):
        (tmp_path / f"{i}.jpg").write_bytes(raw)
    Image.open(io.BytesIO(raws[0])).save(tmp_path / "8.png")
    names = (*(f"{i}.jpg" for i in range(8)), "8.png")
    return EncodedImages(Files(tmp_path, names), View(48, 48, keep=0.9))


def test_batches_on_a_device_are_those_in_memory(images):
    """The code of GPUs, on the CPU: each picture in its place, whichever decoder has it."""
    rows = np.array([8, 0, 5, 3, 6, 7, 1, 1])
    made = images.on_device(rows, "cpu")
    assert made.dtype == torch.uint8 and tuple(made.shape) == (8, 3, 48, 48)
    np.testing.assert_array_equal(made.numpy(), images[rows])
    images.on_device(rows, "cpu")
    images.prefetch(rows[:3])
    np.testing.assert_array_equal(images.on_device(rows[:3], "cpu").numpy(), images[rows[:3]])


def test_a_batch_with_a_damaged_picture_names_it(images):
    path = images.source.root / "3.jpg"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BenchError, match=r"3\.jpg: image cannot be decoded"):
        images.on_device(np.arange(5), "cpu")


@pytest.mark.gpu
def test_a_gpu_decodes_nearly_the_same(images):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    made = images.on_device(np.arange(9), "cuda").cpu().numpy().astype(int)
    assert np.abs(made - images[np.arange(9)]).mean() < 2
