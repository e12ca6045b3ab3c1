"""A smaller copy of a data root: read by the same reader, kept apart by its hash."""

from functools import partial

import numpy as np
import pytest
from PIL import Image
from support.command import call

from benchmark.data.imagenet import ImageNet
from benchmark.data.vggface2 import VggFace2
from benchmark.errors import BenchError

resize = partial(call, "data", "resize")


@pytest.fixture
def root(tmp_path):
    rng = np.random.default_rng(0)
    for part in ("train", "val"):
        for synset, size in (("n01440764", (400, 300)), ("n01443537", (60, 90))):
            folder = tmp_path / "large" / part / synset
            folder.mkdir(parents=True)
            for i in range(2):
                small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
                exif = Image.Exif()
                exif[0x0112] = 6 if i else 1
                path = folder / f"{synset}_{i}.JPEG"
                small.resize(size, Image.Resampling.BICUBIC).save(path, "JPEG", exif=exif)
    mapping = "n01440764 tench, Tinca tinca\nn01443537 goldfish\n"
    (tmp_path / "large" / "LOC_synset_mapping.txt").write_text(mapping)
    return tmp_path / "large"


def test_a_copy_reads_as_the_originals_do(root, tmp_path):
    out = tmp_path / "small"
    arguments = ("imagenet", "--data-root", root, "--out", out, "--side", "96")
    code, printed, error = resize(*arguments)
    assert (code, error) == (0, "") and "8 images, 8 of them written now" in printed
    reader = ImageNet(image_size=64)
    large, small = reader.load(root), reader.load(out)
    assert large.class_names == small.class_names == ("tench", "goldfish")
    assert large.train.labels.tolist() == small.train.labels.tolist()
    rows = np.arange(4)
    apart = large.train.images[rows].astype(int) - small.train.images[rows].astype(int)
    assert np.abs(apart).mean() < 3
    assert Image.open(out / "train/n01440764/n01440764_0.JPEG").size == (128, 96)
    assert Image.open(out / "train/n01440764/n01440764_1.JPEG").size == (96, 128), "turned upright"
    same = "val/n01443537/n01443537_1.JPEG"
    assert (out / same).read_bytes() == (root / same).read_bytes(), "small ones stay"
    said = small.facts["resized"]
    assert said["side"] == 96 and said["of"] == large.facts["files"]
    assert "resized" not in large.facts
    assert "0 of them written now" in resize(*arguments)[1]
    code, _, error = resize(*arguments[:-1], "48")
    assert code == 2 and "another size" in error


def test_what_cannot_be_resized_is_one_line(root, tmp_path):
    code, _, error = resize("vggface2", "--data-root", root, "--out", tmp_path / "x")
    assert code == 2 and "boxes and landmarks" in error and len(error.splitlines()) == 1
    code, _, error = resize("imagenet", "--data-root", root, "--out", root / "x")
    assert code == 2 and "outside of" in error
    victim = root / "train/n01440764/n01440764_0.JPEG"
    victim.write_bytes(victim.read_bytes()[:300])
    code, _, error = resize("imagenet", "--data-root", root, "--out", tmp_path / "x")
    assert code == 2 and victim.name in error and len(error.splitlines()) == 1
    assert not list((tmp_path / "x").rglob("*.part")) and not (tmp_path / "x/resized.json").exists()


@pytest.mark.parametrize("text", ["{}", "[", '{"side": 1, "quality": "x", "of": "y"}'])
def test_a_damaged_note_is_refused(root, text):
    (root / "resized.json").write_text(text)
    with pytest.raises(BenchError, match=r"resized\.json"):
        ImageNet().source(root)
    with pytest.raises(BenchError):
        VggFace2().source(root)


def test_lists_of_others_are_left_alone(root, tmp_path):
    out = tmp_path / "small"
    out.mkdir()
    mapping = out / "LOC_synset_mapping.txt"
    mapping.write_text("mine")
    arguments = ("imagenet", "--data-root", root, "--out", out)
    code, _, error = resize(*arguments)
    assert code == 2 and "is there, and not a copy of" in error
    assert mapping.read_text() == "mine"
    mapping.unlink()
    mapping.symlink_to(root / mapping.name)
    assert resize(*arguments)[0] == 2 and mapping.is_symlink()
