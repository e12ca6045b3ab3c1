"""Texts as items: their bytes, the two datasets of texts, splits by hand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_sets import ASKED, write_lines, write_tables, write_wordnet

from benchmark.data.banking77 import Banking77
from benchmark.data.splits import divided_classes, in_folds
from benchmark.data.texts import as_bytes, from_bytes
from benchmark.data.wordnet import Synset, Wordnet, synsets
from benchmark.errors import BenchError

WHOLE = Path(__file__).parents[3] / "shared" / "data" / "text" / "banking"
WORDNET = Path("/usr/share/wordnet")


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)))
def test_texts_come_back_from_their_bytes(texts):
    pixels = as_bytes(texts)
    assert pixels.dtype == np.uint8 and pixels.shape[:3] == (len(texts), 1, 1)
    assert from_bytes(pixels) == texts


@pytest.mark.parametrize("text", ["a\0b", "x" * 4097])
def test_a_text_that_cannot_stand_as_bytes_is_refused(text):
    with pytest.raises(BenchError, match="text: expected at most 4096 bytes, none of them 0, got"):
        as_bytes(["fine", text])


def test_classes_are_divided_and_items_folded():
    names = [f"c{i}" for i in range(20)]
    kept, held = divided_classes(names, 3, 0.25, tuning=False)
    assert sorted([*kept, *held]) == list(range(20)) and len(held) == 5
    assert kept.tolist() == sorted(kept) and held.tolist() == sorted(held)
    tuned, apart = divided_classes(names, 3, 0.25, tuning=True)
    assert {*tuned, *apart} == {*kept} and len(apart) == 4
    labels = np.repeat(np.arange(4), [5, 6, 2, 9])
    folds = in_folds(labels, 4, 0)
    assert [np.bincount(folds[labels == c], minlength=4).tolist() for c in range(4)] == [
        [2, 1, 1, 1], [2, 2, 1, 1], [1, 1, 0, 0], [3, 2, 2, 2],
    ]  # fmt: skip


def told(items, rows, names):
    found = zip(from_bytes(items.images[rows]), items.labels[rows], strict=True)
    return [(text, names[label]) for text, label in found]


@pytest.mark.parametrize("write", [write_tables, write_lines])
def test_banking_s_two_layouts_are_one_dataset(tmp_path, write):
    made = Banking77().load(write(tmp_path))
    assert made.class_names == ("card", "fee", "pin")
    assert told(made.train, np.arange(6), made.class_names) == ASKED["train"]
    items = made.evaluations["test"]
    assert told(items, items.query, made.class_names) == ASKED["test"]
    assert told(items, items.gallery, made.class_names) == ASKED["train"]
    assert made.evaluations["seen"].labels.tolist() == items.labels.tolist()


def test_banking_s_classes_are_held_out(tmp_path):
    made = Banking77(held_out=0.34).load(write_tables(tmp_path))
    kept = {name for _, name in told(made.train, np.arange(len(made.train)), made.class_names)}
    test, seen = made.evaluations["test"], made.evaluations["seen"]
    held = {name for _, name in told(test, np.arange(len(test)), made.class_names)}
    assert len(kept) == 2 and len(held) == 1 and kept.isdisjoint(held)
    assert {name for _, name in told(seen, seen.query, made.class_names)} == kept


@pytest.mark.skipif(not WHOLE.is_dir(), reason="Banking77 is not here")
def test_all_of_banking77():
    made = Banking77().load(WHOLE)
    assert len(made.class_names) == 77 and len(made.train) == 10001
    assert len(made.evaluations["test"].query) == 3080


def test_a_synset_s_texts_are_gloss_examples_and_words(tmp_path):
    found = list(synsets(write_wordnet(tmp_path) / "data.noun"))
    assert found[0] == Synset(
        "dog n00000001", "noun.animal",
        ("a tame animal", "keeps watch", "the dog barked", "walk the dog", "dog", "domestic dog"),
    )  # fmt: skip
    assert found[1].texts == ("a living thing", "keeps watch", "Anon", "animals eat", "animal")
    assert found[2].texts == ("not usual", "an odd sock", "how strange", "odd", "strange", "queer")
    assert found[2].topic == "noun.Tops"


def test_texts_of_two_meanings_are_of_neither(tmp_path):
    made = Wordnet(least=3, most=5).load(write_wordnet(tmp_path))
    assert made.class_names == ("dog n00000001", "animal n00000002", "odd n00000003")
    assert made.class_groups == ("noun.animal", "noun.animal", "noun.Tops")
    seen = made.evaluations["seen"]
    texts = from_bytes(seen.images[np.arange(len(seen))])
    assert "keeps watch" not in texts and np.bincount(seen.labels).tolist() == [5, 4, 5]
    # A third of a class, rounded up, is asked for, and the rest trains.
    assert np.bincount(seen.labels[seen.query]).tolist() == [2, 2, 2]
    assert sorted(from_bytes(made.train.images)) == sorted(
        from_bytes(seen.images[seen.gallery]))  # fmt: skip
    assert not {*seen.query} & {*seen.gallery}
    assert seen.group_names == ("noun.Tops", "noun.animal")


def test_meanings_held_out_are_searched_for_among_themselves(tmp_path):
    made = Wordnet(least=3, held_out=0.34).load(write_wordnet(tmp_path))
    test = made.evaluations["test"]
    assert set(test.labels) == {2} and {*made.train.labels} == {0, 1}
    assert test.query.tolist() == test.gallery.tolist() == list(range(len(test)))
    assert len(Wordnet(least=3, classes=2).load(tmp_path).class_names) == 2


@pytest.mark.slow
@pytest.mark.skipif(not WORDNET.is_dir(), reason="WordNet is not installed (wordnet-base)")
def test_all_of_wordnet():
    made = Wordnet(held_out=0.25).load(WORDNET)
    assert len(made.class_names) == 7589 and len(made.train) == 24372
    texts = [from_bytes(made.evaluations[name].images) for name in ("seen", "test")]
    assert len({*texts[0]} | {*texts[1]}) == len(texts[0]) + len(texts[1])
