import shutil
from functools import partial
from pathlib import Path

import pytest
from support.refused import refused_data
from support.small_sets import drawing, members, write_zip

from benchmark.data.omniglot import Omniglot

CHECKOUT = Path(__file__).parents[2]
REAL = CHECKOUT.parent / "shared" / "data" / "omniglot-small"


def write_folder(root, entries):
    for name, raw in entries:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


@pytest.fixture
def archive(tmp_path):
    write_zip(tmp_path / "images_background.zip", members())
    return tmp_path


def test_reads_an_archive_without_extracting(archive, check):
    before = sorted(archive.rglob("*"))
    dataset = Omniglot().load(archive)
    assert sorted(archive.rglob("*")) == before
    check(dataset)
    assert len(dataset.class_names) == 6
    test, seen = dataset.evaluations["test"], dataset.evaluations["seen"]
    assert dataset.train.images.shape == (4 * 4, 1, 32, 32)
    assert len(test) == len(test.query) == 2 * 8 and len(seen) == 4 * 4
    assert not set(test.labels.tolist()) & set(dataset.train.labels.tolist())
    assert set(seen.labels.tolist()) == set(dataset.train.labels.tolist())
    assert test.group_names == tuple(sorted(set(test.group_names))) and test.group.max() <= 1
    assert dataset.train.images.mean() > 200, "dark ink on light paper"


def test_seen_writers_are_not_trained_on(archive):
    dataset = Omniglot().load(archive)
    train = {image.tobytes() for image in dataset.train.images}
    assert not train & {image.tobytes() for image in dataset.evaluations["seen"].images}
    held = dataset.facts["seen_writers"]
    assert len(held) == 4
    assert {w + 1 for w in dataset.evaluations["seen"].camera.tolist()} == set(held)


def test_archive_folder_and_alphabets_are_the_same_data(archive, tmp_path_factory):
    expected = Omniglot().load(archive).fingerprint()
    extracted, bare = tmp_path_factory.mktemp("extracted"), tmp_path_factory.mktemp("bare")
    write_folder(extracted / "images_background", members())
    write_folder(bare, members())
    (bare / "LICENSE").write_text("MIT")
    for root in (extracted, bare):
        assert Omniglot().load(root).fingerprint() == expected
    both = tmp_path_factory.mktemp("both")
    shutil.copy(archive / "images_background.zip", both)
    write_folder(both / "images_background", members())
    assert Omniglot().load(both).facts["archives"] == ["images_background.zip"]


def test_a_character_in_two_archives_is_one_class(tmp_path):
    write_zip(tmp_path / "images_background_small1.zip", members(("Greek", "Latin")))
    write_zip(tmp_path / "images_background_small2.zip", members(("Greek", "Tagalog")))
    dataset = Omniglot().load(tmp_path)
    assert len(dataset.class_names) == 9
    assert len(dataset.train) + len(dataset.evaluations["seen"]) == 6 * 8


def test_seed_drives_the_split(archive):
    a, b = (Omniglot(seed=s).load(archive) for s in (0, 1))
    assert sorted(a.class_names) == sorted(b.class_names)
    assert a.fingerprint() == Omniglot().load(archive).fingerprint() != b.fingerprint()


def test_stray_files_are_passed_over(tmp_path):
    entries = [*members(), ("Greek/.DS_Store", b"x"), ("Greek/character01/._0001_01.png", b"x")]
    write_zip(tmp_path / "images_background.zip", entries)
    assert len(Omniglot().load(tmp_path).class_names) == 6


def test_source_follows_the_archives_alone(archive):
    base = Omniglot().source(archive)
    (archive / "notes.txt").write_text("not read")
    assert Omniglot().source(archive) == base
    write_zip(archive / "images_background.zip", members(writers=9))
    assert Omniglot().source(archive) != base


expect = partial(refused_data, "omniglot")


def test_broken_archives(tmp_path):
    path = tmp_path / "images_background.zip"
    write_zip(path, members())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    expect(tmp_path, "images_background.zip: cannot be read")
    torn = bytearray(whole)
    torn[300:700] = bytes(400)
    path.write_bytes(torn)
    expect(tmp_path, "images_background.zip")


def test_two_different_drawings_of_one_writer(tmp_path):
    entries = dict(members())
    write_zip(tmp_path / "images_background_small1.zip", entries.items())
    entries["Greek/character01/0001_01.png"] = drawing("another")
    write_zip(tmp_path / "images_background_small2.zip", entries.items())
    expect(tmp_path, "small2.zip", "differs from the same writer's drawing read earlier")


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_original_small_archives(check):
    dataset = Omniglot().load(REAL)
    check(dataset)
    assert len(dataset.class_names) == 242
    assert len(dataset.train) == 161 * 16
    assert len(dataset.evaluations["test"]) == 81 * 20
    assert len(dataset.evaluations["seen"]) == 161 * 4
    assert len(dataset.evaluations["test"].group_names) == 8
