"""A dataset that was written is read as it was."""

import dataclasses

import numpy as np
import pytest
from support.pictures import png

from benchmark.data.base import Dataset, ImageSet
from benchmark.data.files import Files
from benchmark.data.images import View, decode_view, images_of
from benchmark.data.recordio import Records
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.data.toy import Toy
from benchmark.errors import BenchError


def test_every_column_comes_back(tmp_path):
    dataset = Toy(classes=4, size=8).load(None)
    pairs, weight = np.array([[0, 1], [4, 9]]), np.ones(32, np.float32)
    items = dataclasses.replace(dataset.evaluations["test"], pairs=pairs, weight=weight)
    dataset = dataclasses.replace(
        dataset, evaluations={**dataset.evaluations, "test": items}, facts={"draws": 2}
    )
    write_dataset(dataset, tmp_path)
    again = read_dataset(tmp_path)
    assert again.fingerprint() == dataset.fingerprint()
    assert (again.name, again.class_names) == ("toy", dataset.class_names)
    assert again.facts == {"draws": 2}
    assert again.evaluations["seen"].pairs is None
    assert isinstance(again.train.images, np.memmap)


@pytest.mark.parametrize("name", ["dataset.json", "train.npz", "seen.images.npy"])
def test_damaged_folders(tmp_path, name):
    write_dataset(Toy(classes=4, size=8).load(None), tmp_path)
    content = (tmp_path / name).read_bytes()
    for damaged in (b"", content[: len(content) // 2]):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(BenchError, match="damaged dataset"):
            read_dataset(tmp_path)


def test_a_dataset_of_files_comes_back_without_its_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    pictures = np.random.default_rng(0).integers(0, 256, (5, 20, 30, 3), np.uint8)
    for i, pixels in enumerate(pictures):
        (tmp_path / f"{i}.png").write_bytes(png(pixels))
    raw = b"".join(png(p) for p in pictures)
    (tmp_path / "all.rec").write_bytes(raw)
    sizes = [len(png(p)) for p in pictures]
    places = np.stack([np.cumsum([0, *sizes[:-1]]), sizes], axis=1)
    view, labels = View(8, 8), np.arange(5)
    want = np.stack([decode_view(png(p), view, "x", fast=True) for p in pictures])
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
