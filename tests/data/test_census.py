"""``bench data check``: small data in the real formats, beside what is published."""

from functools import partial

import numpy as np
import pytest
from support.command import call
from support.hostile.archives import tarred
from support.small_sets import cifar100_files, imagenet, places365

from benchmark.config import registry
from benchmark.config.declarations import Origin, PublishedSplit
from benchmark.data.base import read_options
from benchmark.data.census import take_census
from benchmark.data.cifar100 import ARCHIVE, RECORD
from benchmark.data.imagenet import ImageNet
from benchmark.data.ms1mv3_ijbc import Ms1mv3Ijbc
from benchmark.data.splits import select

check = partial(call, "data", "check")


def cifar(root, n_train=500, n_test=100):
    """An archive of 100 classes with so many black images each, in an order of its own."""
    files = cifar100_files(100)
    files["coarse_label_names.txt"] = "".join(f"coarse{i}\n" for i in range(20)).encode()
    for part, n in (("train", n_train), ("test", n_test)):
        rows = np.zeros((100 * n, RECORD), np.uint8)
        rows[:, 1] = np.random.default_rng(0).permutation(len(rows)) % 100
        files[f"{part}.bin"] = rows.tobytes()
    (root / ARCHIVE).write_bytes(tarred(files))


@pytest.mark.slow
def test_cifar100_of_another_order_is_accepted(tmp_path):
    cifar(tmp_path)
    code, printed, error = check("cifar100", "--data-root", tmp_path)
    assert code == 0 and not error
    assert "other bytes than published" in printed and "50,000" in printed
    assert "no licence is stated on https://www.cs.toronto.edu/~kriz/cifar.html" in printed


def test_a_part_of_cifar100_is_one_line(tmp_path):
    cifar(tmp_path, 4, 1)
    code, printed, error = check("cifar100", "--data-root", tmp_path)
    assert code == 2 and len(error.splitlines()) == 1
    assert "training images 400, published 50,000" in error
    assert "bench data get cifar100 downloads 169 MB" in error
    assert "differs" in printed


def test_imagenet_in_part(tmp_path):
    imagenet(tmp_path)
    code, printed, error = check("imagenet", "--data-root", tmp_path)
    assert code == 2 and len(error.splitlines()) == 1
    assert "training images 80, published 1,281,167" in error and "register there" in error
    assert "training images decoded" in printed and "3 x 224 x 224" in printed


def test_whole_data(tmp_path, monkeypatch):
    imagenet(tmp_path)
    counts = {"training classes": 20, "training images": 80, "test images": 40}
    monkeypatch.setattr(ImageNet, "origin", Origin("p", counts=counts, source="s", how="ask"))
    code, printed, error = check("imagenet", "--data-root", tmp_path)
    assert (code, error) == (0, "") and "differs" not in printed


@pytest.mark.parametrize("harm", ["listed", "damaged", "gone"])
def test_what_is_missing_and_how_it_is_to_be_had(tmp_path, monkeypatch, harm):
    """Places' lists stand for its images, so one that is not there is found by looking."""
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    places365(tmp_path / "data")
    victim = tmp_path / "data" / "val_256" / "Places365_val_19_1.jpg"
    if harm == "listed":
        victim.unlink()
    elif harm == "damaged":
        victim.write_bytes(victim.read_bytes()[:100])
    root = tmp_path / ("no" if harm == "gone" else "data")
    code, _, error = check("places365", "--data-root", root)
    assert code == 2 and len(error.splitlines()) == 1 and "accept the terms there" in error
    expected = {
        "listed": f"{victim}: missing, one of 1 of 40 test images",
        "damaged": f"{victim}: image cannot be decoded",
        "gone": "data root does not exist",
    }
    assert expected[harm] in error


@pytest.mark.slow  # five million labels
def test_mixbct_table_1_exactly():
    """Its code leaves every class an image in each part, so twelve people's only one counts twice.

    The sizes of MS1MV3's classes are not published: others stand in that make the printed sums.
    """
    n_people, total = 93_431, 5_179_510
    printed = {split.title.partition(": ")[2]: split for split in Ms1mv3Ijbc.origin.splits}
    old, new = printed["first 30 % of images"], printed["other 70 % of images"]
    assert old.n_images + new.n_images == total + 12
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.ones(12, int), rng.integers(12, 99, n_people - 12)])
    sizes[-1] += 7 - sizes[-1]
    labels = np.repeat(np.arange(n_people), sizes)
    ours = {
        title: select(
            labels, classes=split.classes, images=split.images, order="dataset",
            image_order="dataset", every_class=True,
        )
        for title, split in printed.items()
    }  # fmt: skip
    for title, split in printed.items():
        assert len(np.unique(labels[ours[title]])) == split.n_classes
    thirty, seventy = ours["first 30 % of images"], ours["other 70 % of images"]
    # MixBCT's split_dataset_ms1mv3.py, written anew.
    theirs = sum(1 if n == 1 else max(1, round(n * 0.3)) for n in sizes.tolist())
    assert len(thirty) == theirs
    assert len(seventy) == sum(1 if n == 1 else n - max(1, round(n * 0.3)) for n in sizes.tolist())
    assert len(thirty) + len(seventy) == len(labels) + 12
    assert np.intersect1d(thirty, seventy).tolist() == list(range(12))


def test_every_class_changes_nothing_where_all_have_images_enough():
    labels = np.repeat(np.arange(30), 10)
    for images in ((0.0, 0.3), (0.3, 1.0), (0.5, 0.6)):
        plain = select(labels, images=images)
        assert np.array_equal(plain, select(labels, images=images, every_class=True))


def test_splits_are_counted_as_published():
    class Faces(type(read_options("toy"))):
        origin = Origin("p", source="s", splits=(
            PublishedSplit("t", (0.0, 0.5), (0.0, 0.5), 99, 2),
        ))  # fmt: skip

    found = {each.what: each for each in take_census(Faces(classes=12, images=4), None)}
    classes = found["training classes"].found
    assert found["t, classes"].found == round(classes / 2)
    assert found["t, images"].found == found["t, classes"].found * 2 and found["t, images"].differs


def test_every_dataset_from_files_says_where_it_comes_from():
    for name in registry.datasets():
        reader = read_options(name)
        origin = reader.origin
        if not reader.needs_root or name in ("folder", "domains"):
            assert origin is None
            continue
        assert origin.page.startswith("http") and origin.counts and origin.source
        assert bool(origin.how) != bool(origin.downloads)
        for each in origin.downloads:
            assert each.url.startswith("https://") and len(each.sha256) == 64


def test_list():
    _, printed, _ = call("data", "list")
    assert "bench data get cifar100 downloads 169 MB" in printed and "MIT License" in printed
