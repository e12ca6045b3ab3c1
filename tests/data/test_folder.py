import hashlib
import json
import os

import numpy as np
import pytest
from PIL import Image

from benchmark.data import folder
from benchmark.data.decode import decode
from benchmark.errors import BenchError


def picture(path, color=(200, 40, 40), size=(40, 30), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(int(hashlib.sha256(str(path).encode()).hexdigest()[:8], 16))
    pixels = np.clip(np.array(color) + rng.integers(-20, 20, (size[1], size[0], 3)), 0, 255)
    Image.fromarray(pixels.astype(np.uint8)).convert(mode).save(path, **options)
    return path


@pytest.fixture
def flat(tmp_path):
    for c in "abcdef":
        for i in range(4):
            picture(tmp_path / c / f"{i}.png")
    return tmp_path


@pytest.fixture
def parted(tmp_path):
    for part, classes in (("train", "abcd"), ("gallery", "xyzw"), ("query", "xyz")):
        for c in classes:
            for i in range(2):
                picture(tmp_path / part / c / "deeper" / f"{i}.jpg")
    return tmp_path


def test_one_folder_a_class(flat, check):
    dataset = folder.load(flat)
    check(dataset)
    test = dataset.evaluations["test"]
    assert dataset.train.images.shape == (16, 3, 64, 64)
    assert len(test) == len(test.query) == len(test.gallery) == 8
    assert set(dataset.train.labels.tolist()) == set(range(4))
    assert set(test.labels.tolist()) == {4, 5}
    assert sorted(dataset.class_names) == list("abcdef")
    assert folder.load(flat).fingerprint() == dataset.fingerprint()
    splits = {folder.load(flat, seed=s).class_names for s in range(4)}
    assert len(splits) > 1


def test_train_gallery_query(parted, check):
    dataset = folder.load(parted, image_size=16, channels=1)
    check(dataset)
    test = dataset.evaluations["test"]
    assert dataset.train.images.shape == (8, 1, 16, 16)
    assert set(dataset.class_names[:4]) == set("abcd")
    assert (len(test), len(test.query), len(test.gallery)) == (14, 6, 8)
    assert not set(test.query.tolist()) & set(test.gallery.tolist())
    assert set(np.concatenate(test.galleries).tolist()) <= set(test.gallery.tolist())


def test_a_class_may_be_trained_on_and_evaluated(parted):
    for part in ("gallery", "query"):
        picture(parted / part / "a" / "1.png")
    dataset = folder.load(parted)
    assert sorted(dataset.class_names) == sorted("abcdxyzw")
    assert dataset.class_names.index("a") in dataset.evaluations["test"].labels


def test_a_file_in_gallery_and_query_is_one_item(parted, check):
    shared = parted / "gallery" / "x" / "deeper" / "0.jpg"
    (parted / "query" / "x" / "copy.jpg").write_bytes(shared.read_bytes())
    dataset = folder.load(parted)
    check(dataset)
    test = dataset.evaluations["test"]
    assert len(test) == 14 and len(test.query) == 7
    assert len(set(test.query.tolist()) & set(test.gallery.tolist())) == 1


def test_folders_named_like_parts_without_subfolders_are_classes(flat):
    for i in range(2):
        picture(flat / "train" / f"{i}.png")
    assert "train" in folder.load(flat).class_names


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
]


@pytest.mark.parametrize(("name", "mode", "options"), FORMATS)
def test_formats_and_modes(tmp_path, name, mode, options):
    path = picture(tmp_path / name, (210, 210, 210), (50, 70), mode, **options)
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


def test_source_follows_contents_not_times(flat):
    base = folder.source(flat)
    assert json.loads(json.dumps(base)) == base
    os.utime(flat / "a" / "0.png", (1, 1))
    assert folder.source(flat) == base
    assert folder.source(flat, image_size=32) != base
    picture(flat / "a" / "0.png", (10, 10, 10))
    assert folder.source(flat) != base


def test_large_folders_count_times(flat, monkeypatch):
    monkeypatch.setattr("benchmark.data.files.SMALL_BYTES", 100)
    base = folder.source(flat)
    assert folder.source(flat) == base
    os.utime(flat / "a" / "0.png", (1, 1))
    assert folder.source(flat) != base


def test_notes_and_hidden_files_are_passed_over(flat):
    expected = folder.load(flat).fingerprint()
    for name in ("labels.csv", ".DS_Store", "Thumbs.db", "._0.png"):
        (flat / "a" / name).write_text("x")
    (flat / ".cache").mkdir()
    (flat / "README").write_text("x")
    assert folder.load(flat).fingerprint() == expected


def expect(root, *parts, **options):
    with pytest.raises(BenchError) as error:
        folder.load(root, **options)
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_wrong_roots(tmp_path):
    expect(None, "dataset folder: needs a data root (--data-root DIR), got none")
    expect(tmp_path / "none", "data root does not exist", "none")
    (tmp_path / "file.png").write_text("")
    expect(tmp_path / "file.png", "expected a folder, got a file")
    expect(tmp_path, "file.png: expected inside a folder named after its class")
    (tmp_path / "file.png").unlink()
    expect(tmp_path, "no class folder found: expected train/CLASS/")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(flat):
    (flat / "b").chmod(0)
    expect(flat, "cannot be read", str(flat / "b"))
    flat.chmod(0)
    expect(flat, "data root cannot be read")
    flat.chmod(0o755)
    (flat / "b").chmod(0o755)


def test_missing_part(parted):
    for path in sorted((parted / "query").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    expect(parted, "query: no class folder found: expected query/CLASS/... beside train and gall")


@pytest.mark.parametrize("raw", [b"", b"no image", b"\x89PNG\r\n\x1a\nshort"])
def test_images_that_cannot_be_decoded(flat, raw):
    (flat / "c" / "2.png").write_bytes(raw)
    (flat / "c" / "3.png").write_bytes(raw + b"more")
    expect(flat, str(flat / "c" / "2.png"), "image cannot be decoded")


def test_truncated_image(flat):
    path = picture(flat / "c" / "9.jpg", size=(200, 200))
    path.write_bytes(path.read_bytes()[:-2000])
    expect(flat, "9.jpg: image cannot be decoded")


def test_a_class_with_one_image(tmp_path):
    for c in "abcdef":
        for i in range(2):
            picture(tmp_path / c / f"{i}.png")
    (tmp_path / "d" / "1.png").unlink()
    expect(tmp_path, "class d: expected at least 2 images, got 1")
    (tmp_path / "d" / "0.png").unlink()
    expect(tmp_path, f"{tmp_path / 'd'}: class without an image")


def test_a_class_with_one_image_in_parts(parted):
    (parted / "train" / "b" / "deeper" / "1.jpg").unlink()
    expect(parted, "class b: expected at least 2 images to train on, got 1")
    picture(parted / "train" / "b" / "1.jpg")
    (parted / "gallery" / "w" / "deeper" / "1.jpg").unlink()
    expect(parted, "class w: expected at least 2 images to evaluate (equal files count once)")


def test_nothing_in_common(parted):
    (parted / "query").rename(parted / "old")
    picture(parted / "query" / "q" / "0.png")
    picture(parted / "query" / "q" / "1.png")
    expect(parted, "gallery and query have no class in common: gallery has w, x, y, ..., query")


def test_too_few_classes(tmp_path):
    for c in "abc":
        for i in range(2):
            picture(tmp_path / c / f"{i}.png")
    expect(tmp_path, "expected at least 4 classes to split, got 3: a, b, c")


def test_unexpected_file(flat):
    (flat / "a" / "clip.mp4").write_bytes(b"x")
    expect(flat, "clip.mp4: unexpected file: expected an image (.bmp .gif")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 2}, "channels: expected 1 or 3, got 2"),
        ({"image_size": 4}, "image_size: expected 8 to 1024, got 4"),
        ({"size": 4}, "unknown key 'size'"),
    ],
)
def test_wrong_options(flat, options, message):
    expect(flat, message, **options)
