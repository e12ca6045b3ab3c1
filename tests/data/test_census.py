"""``bench data check``: small data in the real formats, beside what is published."""

import gzip
import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from benchmark.cli.app import main
from benchmark.config import registry
from benchmark.config.declarations import Origin, PublishedSplit
from benchmark.data.base import read_options
from benchmark.data.census import take_census
from benchmark.data.imagenet import ImageNet
from benchmark.data.ms1mv3_ijbc import Ms1mv3Ijbc
from benchmark.data.splits import select


def check(*arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(["data", "check", *map(str, arguments)])
    return end.value.code, *capsys.readouterr()


def cifar(root, n_train=50_000, n_test=10_000):
    """An archive with CIFAR-100's counts, of random pixels, in an order of its own."""
    rng = np.random.default_rng(0)
    names = {
        "fine_label_names.txt": "".join(f"fine{i}\n" for i in range(100)).encode(),
        "coarse_label_names.txt": "".join(f"coarse{i}\n" for i in range(20)).encode(),
    }
    for part, n in (("train", n_train), ("test", n_test)):
        rows = np.zeros((n, 3074), np.uint8)
        rows[:, 1] = rng.permutation(np.arange(n) % 100)
        rows[:, 0] = rows[:, 1] // 5
        names[f"{part}.bin"] = rows.tobytes()
    with (
        gzip.open(root / "cifar-100-binary.tar.gz", "wb", compresslevel=1) as file,
        tarfile.open(fileobj=file, mode="w") as archive,
    ):
        for name, content in names.items():
            member = tarfile.TarInfo(f"cifar-100-binary/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.slow
def test_cifar100_of_another_order_is_accepted(tmp_path, capsys):
    cifar(tmp_path)
    code, printed, error = check("cifar100", "--data-root", tmp_path, capsys=capsys)
    assert code == 0 and not error
    assert "other bytes than published" in printed and "50,000" in printed
    assert "no licence is stated on https://www.cs.toronto.edu/~kriz/cifar.html" in printed


def test_a_part_of_cifar100_is_one_line(tmp_path, capsys):
    cifar(tmp_path, 400, 100)
    code, printed, error = check("cifar100", "--data-root", tmp_path, capsys=capsys)
    assert code == 2 and len(error.splitlines()) == 1
    assert "training images 400, published 50,000" in error
    assert "bench data get cifar100 downloads 169 MB" in error
    assert "differs" in printed


def imagenet(root, n=(3, 2)):
    for part, each in zip(("train", "val"), n, strict=True):
        for synset in ("n01440764", "n01443537"):
            folder = root / part / synset
            folder.mkdir(parents=True)
            for i in range(each):
                Image.new("RGB", (40, 30), (i, 0, 0)).save(folder / f"{synset}_{i}.JPEG")


def test_imagenet_in_part(tmp_path, capsys):
    imagenet(tmp_path)
    code, printed, error = check("imagenet", "--data-root", tmp_path, capsys=capsys)
    assert code == 2 and len(error.splitlines()) == 1
    assert "training images 6, published 1,281,167" in error and "register there" in error
    assert "training images decoded" in printed and "3 x 224 x 224" in printed


def test_whole_data(tmp_path, capsys, monkeypatch):
    imagenet(tmp_path)
    counts = {"training classes": 2, "training images": 6, "test images": 4}
    monkeypatch.setattr(ImageNet, "origin", Origin("p", counts=counts, source="s", how="ask"))
    code, printed, error = check("imagenet", "--data-root", tmp_path, capsys=capsys)
    assert (code, error) == (0, "") and "differs" not in printed


@pytest.mark.parametrize("harm", ["listed", "damaged", "gone"])
def test_what_is_missing_and_how_it_is_to_be_had(tmp_path, capsys, monkeypatch, harm):
    """Places' lists stand for its images, so one that is not there is found by looking."""
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    (tmp_path / "categories_places365.txt").write_text("/a/airfield 0\n/b/bar 1\n")
    names = [f"/{place[0]}/{place}/{i}.jpg" for place in ("airfield", "bar") for i in range(3)]
    for part, folder in (("train_standard", "data_256_standard"), ("val", "val_256")):
        lines = [f"{name} {i // 3}" for i, name in enumerate(names)]
        (tmp_path / f"places365_{part}.txt").write_text("\n".join(lines))
        for name in names:
            path = tmp_path / folder / name[1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (30, 30)).save(path)
    victim = tmp_path / "val_256" / "b" / "bar" / "2.jpg"
    if harm == "listed":
        victim.unlink()
    elif harm == "damaged":
        victim.write_bytes(victim.read_bytes()[:100])
    root = tmp_path / ("no" if harm == "gone" else ".")
    code, _, error = check("places365", "--data-root", root, capsys=capsys)
    assert code == 2 and len(error.splitlines()) == 1 and "accept the terms there" in error
    expected = {
        "listed": f"{victim}: missing, one of 1 of 6 test images",
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


def test_list(capsys):
    with pytest.raises(SystemExit):
        main(["data", "list"])
    printed = capsys.readouterr().out
    assert "bench data get cifar100 downloads 169 MB" in printed and "MIT License" in printed
