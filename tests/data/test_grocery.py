"""Grocery Store: the authors' folder, the small copy of the repository, splits by hand."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.small_sets import PHOTOGRAPHS, PRODUCTS, grocery

from benchmark.data.grocery import ARCHIVE, Grocery, listed
from benchmark.data.grocery_copy import pack
from benchmark.errors import BenchError

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "protocols" / "grocery-small"
WHOLE = ROOT.parent / "shared" / "data" / "grocery"


def seen(items, rows):
    """Product and photograph of some items, by their pixels."""
    pixels = items.images[rows][:, :2, 5, 5].astype(int)
    return [(red // 40, level) for red, level in pixels.tolist()]


def test_queries_are_of_other_days_than_the_gallery(tmp_path):
    made = Grocery(image_size=16).load(grocery(tmp_path))
    assert made.class_names == tuple(name for name, _ in PRODUCTS)
    assert made.class_groups == tuple(kind for _, kind in PRODUCTS)
    assert seen(made.train, np.arange(18)) == [(i, k) for i in range(6) for k in range(3)]
    assert made.train.labels.tolist() == [i for i in range(6) for _ in range(3)]
    items = made.evaluations["test"]
    assert seen(items, items.query) == [(i, 20 + k) for i in range(6) for k in range(2)]
    wanted = [(i, k) for i in range(6) for k in range(3)] + [(i, 10) for i in range(6)]
    assert seen(items, items.gallery) == wanted
    assert items.labels.tolist() == [red for red, _ in seen(items, np.arange(len(items)))]
    assert items.group_names == ("Apple", "Beet", "Lemon", "Lime", "Pear")
    assert [items.group_names[g] for g in items.group] == [PRODUCTS[c][1] for c in items.labels]
    assert items.texts[0] == "About Gala in two lines."
    # Each class is enrolled once, in one of two galleries, by a photograph of the gallery.
    enrolled = np.concatenate(items.galleries)
    assert sorted(items.labels[enrolled]) == list(range(6))
    assert set(enrolled) <= set(items.gallery.tolist())


def test_classes_held_out_are_evaluated_alone(tmp_path):
    made = Grocery(image_size=16, held_out=0.34).load(grocery(tmp_path))
    kept = {red for red, _ in seen(made.train, np.arange(len(made.train)))}
    test, others = made.evaluations["test"], made.evaluations["seen"]
    held = {red for red, _ in seen(test, np.arange(len(test)))}
    assert (len(kept), len(held)) == (4, 2) and kept.isdisjoint(held)
    assert {red for red, _ in seen(others, np.arange(len(others)))} == kept
    for items in (made.train, test, others):
        found = [PRODUCTS[red][0] for red, _ in seen(items, np.arange(len(items)))]
        assert found == [made.class_names[label] for label in items.labels]
    # What is held out while settings are chosen is none of these.
    tuned = Grocery(image_size=16, held_out=0.34, tuning=True).load(tmp_path)
    items = tuned.evaluations["test"]
    chosen = {red for red, _ in seen(items, np.arange(len(items)))}
    assert chosen and chosen < kept
    trained = {red for red, _ in seen(tuned.train, np.arange(len(tuned.train)))}
    assert trained | chosen == kept and trained.isdisjoint(chosen)


@pytest.mark.parametrize("tuning", [False, True])
def test_queries_and_gallery_change_places(tuning, tmp_path):
    grocery(tmp_path)
    made, other = (
        Grocery(image_size=16, tuning=tuning, exchanged=exchanged).load(tmp_path)
        for exchanged in (False, True)
    )
    items, turned = made.evaluations["test"], other.evaluations["test"]
    assert np.array_equal(items.query, turned.gallery)
    assert np.array_equal(items.gallery, turned.query)
    assert np.array_equal(made.train.images, other.train.images)
    assert set(np.concatenate(turned.galleries)) <= set(turned.gallery.tolist())
    named = [{*Grocery(exchanged=each).source(tmp_path)} for each in (False, True)]
    assert named[1] - named[0] == {"exchanged"}  # older work keeps its name


def test_tuning_looks_at_no_query(tmp_path):
    items = Grocery(image_size=16, tuning=True).load(grocery(tmp_path)).evaluations["test"]
    assert seen(items, items.query) == [(i, 10) for i in range(6)]
    assert {level for _, level in seen(items, items.gallery)} == {0, 1, 2}


def test_an_archive_is_read_as_its_folder(tmp_path):
    root = grocery(tmp_path / "whole")
    made = Grocery(image_size=16).load(root)
    pack(root, tmp_path / "small")
    again = pack(root, tmp_path / "again")
    assert again.read_bytes() == (tmp_path / "small" / ARCHIVE).read_bytes()
    assert (tmp_path / "small" / "LICENSE").read_text() == "MIT"
    copied = Grocery(image_size=16).load(tmp_path / "small")
    assert copied.train.labels.tolist() == made.train.labels.tolist()
    assert copied.evaluations["test"].texts == made.evaluations["test"].texts
    rows = np.arange(len(made.train))
    near = copied.train.images[rows].astype(int) - made.train.images[rows]
    assert abs(near).max() <= 6
    assert Grocery().source(root)["files"] != Grocery().source(tmp_path / "small")["files"]


def test_an_archive_of_the_repository_has_the_source_of_its_folder(tmp_path):
    root = grocery(tmp_path / "whole")
    (tmp_path / "packed").mkdir()
    with zipfile.ZipFile(tmp_path / "packed" / ARCHIVE, "w") as archive:
        archive.writestr("Store-0a1b/README.md", "Photographs.")
        for path in sorted(root.rglob("*")):
            archive.write(path, f"Store-0a1b/dataset/{path.relative_to(root)}")
    assert Grocery().source(tmp_path / "packed") == Grocery().source(root)
    of = [Grocery(image_size=16).load(each) for each in (root, tmp_path / "packed")]
    images = [made.train.images[np.arange(len(made.train))] for made in of]
    assert np.array_equal(*images)
    assert of[0].evaluations["test"].texts == of[1].evaluations["test"].texts


def test_an_archive_without_a_photograph_is_refused(tmp_path):
    root = grocery(tmp_path / "whole")
    pack(root, tmp_path / "small")
    with zipfile.ZipFile(tmp_path / "small" / ARCHIVE) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members["val/Lime_0.png"]
    with zipfile.ZipFile(tmp_path / "small" / ARCHIVE, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    with pytest.raises(BenchError, match=r"expected val/Lime_0.png, found none"):
        Grocery(image_size=16).load(tmp_path / "small")
    (tmp_path / "small" / ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(BenchError, match="cannot be read"):
        Grocery(image_size=16).load(tmp_path / "small")


def test_the_small_copy_is_of_the_published_size():
    sizes = [len(listed(SMALL, part)) for part in PHOTOGRAPHS]
    assert sizes == [2640, 296, 2485]
    assert (SMALL / ARCHIVE).stat().st_size <= 12_000_000
    assert (SMALL / "LICENSE").read_text().startswith("MIT License")
    if WHOLE.is_dir():
        assert [listed(WHOLE, part) for part in PHOTOGRAPHS] == [
            listed(SMALL, part) for part in PHOTOGRAPHS
        ]
        assert (WHOLE / "LICENSE").read_bytes() == (SMALL / "LICENSE").read_bytes()
