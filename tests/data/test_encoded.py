"""Images that stay in their files: the same pixels as decoded at once."""

import numpy as np
import pytest
from support.pictures import png

from benchmark.data import images
from benchmark.data.base import Dataset, ImageSet, take
from benchmark.data.files import Files
from benchmark.data.images import EncodedImages, View, decode_view, images_of
from benchmark.data.recordio import Records
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.errors import BenchError


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


def test_a_dataset_of_files_comes_back_without_its_pixels(tmp_path, pictures, monkeypatch):
    monkeypatch.setattr(images, "HELD_BYTES", 0)
    raw = b"".join(png(p) for p in pictures)
    (tmp_path / "all.rec").write_bytes(raw)
    sizes = [len(png(p)) for p in pictures]
    places = np.stack([np.cumsum([0, *sizes[:-1]]), sizes], axis=1)
    view, labels = View(8, 8), np.arange(5)
    want = np.stack([decode_view(png(p), view, "x") for p in pictures])
    for name, source in (
        ("files", Files(tmp_path, tuple(f"{i}.png" for i in range(5)))),
        ("records", Records(tmp_path / "all.rec", places)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        made = Dataset("folder", ImageSet(images_of(source, view), labels), {}, tuple("abcde"))
        write_dataset(made, folder)
        assert not (folder / "train.images.npy").exists()
        again = read_dataset(folder)
        np.testing.assert_array_equal(again.train.images[np.arange(5)], want)
        assert again.fingerprint() == made.fingerprint()
        other = Dataset("folder", ImageSet(images_of(source, View(8, 9)), labels), {}, ("a",) * 5)
        assert other.fingerprint() != made.fingerprint()


def test_broken_images_are_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no image")
    images = EncodedImages(Files(tmp_path, ("a.jpg",)), View(8, 8))
    with pytest.raises(BenchError, match=r"a\.jpg: image cannot be decoded"):
        images[np.array([0])]
    (tmp_path / "all.rec").write_bytes(b"short")
    records = EncodedImages(Records(tmp_path / "all.rec", np.array([[2, 10]])), View(8, 8))
    with pytest.raises(BenchError, match="at byte 2: expected 10 bytes, got 3"):
        records[np.array([0])]
