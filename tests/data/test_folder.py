import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import small_sets
from support.command import call
from support.pictures import write_noise
from support.refused import refused_data

from benchmark.data.files import content_hash
from benchmark.data.folder import Folder
from benchmark.errors import BenchError, PassedOverWarning


@pytest.fixture
def flat(tmp_path):
    return small_sets.flat(tmp_path)


@pytest.fixture
def parted(tmp_path):
    return small_sets.parted(tmp_path)


def test_one_folder_a_class(flat, check):
    dataset = Folder().load(flat)
    check(dataset)
    test = dataset.evaluations["test"]
    assert dataset.train.images.shape == (16, 3, 64, 64)
    assert len(test) == len(test.query) == len(test.gallery) == 8
    assert set(dataset.train.labels.tolist()) == set(range(4))
    assert set(test.labels.tolist()) == {4, 5}
    assert sorted(dataset.class_names) == list("abcdef")
    assert Folder().load(flat).fingerprint() == dataset.fingerprint()
    splits = {Folder(seed=s).load(flat).class_names for s in range(4)}
    assert len(splits) > 1


def test_train_gallery_query(parted, check):
    dataset = Folder(image_size=16, channels=1).load(parted)
    check(dataset)
    test = dataset.evaluations["test"]
    assert dataset.train.images.shape == (8, 1, 16, 16)
    assert set(dataset.class_names[:4]) == set("abcd")
    assert (len(test), len(test.query), len(test.gallery)) == (14, 6, 8)
    assert not set(test.query.tolist()) & set(test.gallery.tolist())
    assert set(np.concatenate(test.galleries).tolist()) <= set(test.gallery.tolist())


def test_many_photographs_stay_in_their_files(flat, monkeypatch):
    held = Folder().load(flat)
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    images = Folder().load(flat).train.images
    assert not isinstance(images, np.ndarray)
    np.testing.assert_array_equal(images[np.arange(images.shape[0])], held.train.images)


def test_a_class_may_be_trained_on_and_evaluated(parted):
    for part in ("gallery", "query"):
        write_noise(parted / part / "a" / "1.png")
    dataset = Folder().load(parted)
    assert sorted(dataset.class_names) == sorted("abcdxyzw")
    assert dataset.class_names.index("a") in dataset.evaluations["test"].labels


def test_a_file_in_gallery_and_query_is_one_item(parted, check):
    shared = parted / "gallery" / "x" / "deeper" / "0.jpg"
    (parted / "query" / "x" / "copy.jpg").write_bytes(shared.read_bytes())
    dataset = Folder().load(parted)
    check(dataset)
    test = dataset.evaluations["test"]
    assert len(test) == 14 and len(test.query) == 7
    assert len(set(test.query.tolist()) & set(test.gallery.tolist())) == 1


def test_a_query_that_is_trained_on_is_refused(parted):
    """In the gallery such a file may lie."""
    trained = parted / "train" / "a" / "deeper" / "0.jpg"
    (parted / "gallery" / "x" / "copy.jpg").write_bytes(trained.read_bytes())
    Folder().load(parted)
    (parted / "query" / "x" / "copy.jpg").write_bytes(trained.read_bytes())
    with pytest.raises(BenchError, match=rf"query/x/copy.jpg: query: trained on, as {trained} is"):
        Folder().load(parted)
    (parted / "query" / "x" / "more.jpg").write_bytes(trained.read_bytes())
    with pytest.raises(BenchError, match=r"is the same file; 2 such files$"):
        Folder().load(parted)


def test_a_photograph_in_two_classes_is_told(parted):
    one, two = (min((parted / "gallery" / name).rglob("*.jpg")) for name in ("x", "y"))
    copy = parted / "gallery" / "y" / "copy.jpg"
    copy.write_bytes(one.read_bytes())
    said = f"^a photograph is in two classes: {copy} is the same file as {one}$"
    with pytest.warns(PassedOverWarning, match=said):
        Folder().load(parted)
    (parted / "gallery" / "x" / "copy.jpg").write_bytes(two.read_bytes())
    with pytest.warns(PassedOverWarning, match="^2 photographs are in two classes, for one: "):
        Folder().load(parted)


def test_a_class_that_is_spelt_in_two_ways_is_refused(parted):
    for part, name in (("train", "caf\u00e9"), ("query", "cafe\u0301"), ("gallery", "cafe\u0301")):
        for i in range(2):
            write_noise(parted / part / name / f"{i}.png")
    with pytest.raises(BenchError, match="spelt in two ways"):
        Folder().load(parted)


def test_folders_named_like_parts_without_subfolders_are_classes(flat):
    for i in range(2):
        write_noise(flat / "train" / f"{i}.png")
    assert "train" in Folder().load(flat).class_names


def test_source_follows_contents_not_times(flat):
    base = Folder().source(flat)
    assert json.loads(json.dumps(base)) == base
    os.utime(flat / "a" / "0.png", (1, 1))
    assert Folder().source(flat) == base
    assert Folder(image_size=32).source(flat) != base
    write_noise(flat / "a" / "0.png", (10, 10, 10))
    assert Folder().source(flat) != base


def test_large_folders_count_times(flat, monkeypatch):
    monkeypatch.setattr("benchmark.data.files.SMALL_BYTES", 100)
    base = Folder().source(flat)
    assert Folder().source(flat) == base
    os.utime(flat / "a" / "0.png", (1, 1))
    assert Folder().source(flat) != base


def test_notes_and_hidden_files_are_passed_over(flat):
    expected = Folder().load(flat).fingerprint()
    for name in ("labels.csv", ".DS_Store", "Thumbs.db", "._0.png"):
        (flat / "a" / name).write_text("x")
    (flat / ".cache").mkdir()
    (flat / "README").write_text("x")
    assert Folder().load(flat).fingerprint() == expected


expect = partial(refused_data, "folder")


def test_wrong_roots(tmp_path):
    expect(None, "dataset folder: data root: expected one (--data-root DIR), got none")
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


@pytest.mark.parametrize("name", ["@eaDir", "__MACOSX", "Thumbnails", "#recycle", "@EADIR"])
def test_copies_that_systems_make_are_no_photographs(flat, name):
    expected = Folder().load(flat).fingerprint()
    for place in (flat, flat / "a", flat / "a" / "deeper"):
        write_noise(place / name / "SYNOPHOTO_THUMB_S.jpg")
        write_noise(place / name / "0.png" / "SYNOPHOTO_THUMB_M.jpg")
    assert Folder().load(flat).fingerprint() == expected
    write_noise(flat / "a" / "deeper" / "9.png")
    assert Folder().load(flat).fingerprint() != expected


@pytest.mark.parametrize(("ending", "form"), [("jfif", "JPEG"), ("avif", "AVIF"), ("JFIF", "JPEG")])
def test_other_endings_of_photographs(flat, ending, form):
    before = Folder().load(flat)
    write_noise(flat / "a" / f"9.{ending}", format=form)
    after = Folder().load(flat)
    counts = [len(d.train.labels) + len(d.evaluations["test"].labels) for d in (before, after)]
    assert counts[1] == counts[0] + 1


def test_a_plan_tells_what_a_run_would_find(tmp_path):
    """Before anything is decoded: a class of one photograph, and too few classes."""
    for c in "abcd":
        for i in range(2):
            write_noise(tmp_path / c / f"{i}.png")
    Folder().source(tmp_path)
    (tmp_path / "d" / "1.png").unlink()
    with pytest.raises(BenchError, match="class d: expected at least 2 images, got 1"):
        Folder().source(tmp_path)
    (tmp_path / "d" / "0.png").unlink()
    (tmp_path / "d").rmdir()
    with pytest.raises(BenchError, match="expected at least 4 classes to split, got 3"):
        Folder().source(tmp_path)
    words = ("run", "-m", "bct", "-p", "open-class", "-t", "folder", "--dry-run")
    code, _, err = call(*words, "--data-root", tmp_path)
    assert code == 2 and "at least 4 classes" in err and err.count("\n") == 1


def photographs(root: bytes | str, names):
    for number, name in enumerate(names):
        folder = os.fsencode(root) + b"/" + name
        os.mkdir(folder)  # noqa: PTH102 - a Path of bytes there is none
        for i in range(2):
            with Path(os.fsdecode(folder), f"{i}.png").open("wb") as file:
                shade = 20 * number + i
                Image.new("RGB", (16, 16), (shade, shade, shade)).save(file, "PNG")


GOOD = [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("name", [b"caf\xe9", b"x\x1b[2J", b"a\nb", b"\xe2\x80\xae", b"\x7f"])
def test_folders_whose_names_cannot_be_shown(tmp_path, name):
    photographs(tmp_path, [*GOOD, name])
    with pytest.raises(BenchError, match="expected a name of") as caught:
        Folder().load(tmp_path)
    assert str(caught.value).replace("\n", "").isprintable()


def test_folders_of_other_scripts_are_read(tmp_path):
    photographs(tmp_path, [*GOOD, "é 中".encode()])
    assert "é 中" in Folder().load(tmp_path).class_names


def test_pictures_in_folders_that_are_no_files(tmp_path):
    photographs(tmp_path, GOOD)
    for name in ("pipe.png", "endless.png"):
        path = tmp_path / "a" / name
        os.mkfifo(path) if name == "pipe.png" else path.symlink_to("/dev/zero")
    Folder().source(tmp_path)  # passed over, not waited for
    with pytest.raises(BenchError, match="expected a regular file"):
        content_hash(tmp_path, [tmp_path / "a" / "pipe.png"])
