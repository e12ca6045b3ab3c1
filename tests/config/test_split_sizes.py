"""Sight of each generation, from declared numbers alone: as the split of the data has it."""

import numpy as np
import pytest

from benchmark.config.generations import GenerationSpec
from benchmark.config.loading import load_track
from benchmark.config.split_sizes import FEW_CLASSES, Size, declared_sizes, lack, size
from benchmark.data.base import read_options
from benchmark.data.splits import rows_of
from benchmark.errors import BenchError


@pytest.mark.parametrize("seed", range(200))
def test_sizes_are_those_of_the_split_and_what_is_refused_has_none(seed):
    """Classes of one size: the plan counts what the split takes; with groups it knows less."""
    rng = np.random.default_rng(seed)
    n, each = rng.integers(1, 40), rng.integers(1, 30)
    ends = np.sort(rng.random((2, 2)).round(rng.integers(1, 4)), axis=1)
    ends[rng.random((2, 2)) < 0.3] = 0
    ends[:, 1][ends[:, 1] <= ends[:, 0]] = 1
    group = np.flatnonzero(rng.random(n) < 0.5)
    share = float(rng.choice([0.01, 0.1, 1.0]))
    roles = {"groups": ("some",), "thinned": {"some": share}} if seed % 2 else {}
    asked = GenerationSpec(
        name="old", classes=tuple(ends[0].tolist()), images=tuple(ends[1].tolist()), **roles
    )
    split = {"classes": asked.classes, "images": asked.images, "order": "seeded", "seed": seed}
    if roles:
        split |= {"groups": ["some"], "thinned": [[["some"], share]]}
    every = seed % 3 == 0
    if every:
        split["every_class"] = True
    facts = {"train_classes": int(n), "train_images": int(n * each)}
    try:
        rows = len(rows_of(np.repeat(np.arange(n), each), split, lambda _: group))
        few = False
    except BenchError as error:
        rows, few = 0, FEW_CLASSES in str(error)
    found, why = size(asked, facts, every), lack(asked, facts, list, every)
    if few:
        assert roles or found.classes == 1
    else:
        assert found is None if roles else (found.images, found.exact) == (rows, True)
    assert not (rows and why) and (roles or bool(why) == (not rows)), (asked, rows, why)


def test_unequal_classes_are_about_counted():
    """Nothing is sure but what lies before the first image of the largest class there can be."""
    facts = {"train_classes": 3, "train_images": 100}
    few = GenerationSpec(name="old", images=(0.5, 0.51))
    assert size(few, facts) == Size(3, 1, exact=False) and lack(few, facts, list) is None
    assert "of 100: expected" in lack(GenerationSpec(name="old", images=(0.0, 0.004)), facts, list)
    assert lack(GenerationSpec(name="old", images=(0.0, 0.006)), facts, list) is None
    assert lack(GenerationSpec(name="old", images=(0.0, 0.004)), {}, list) is None


@pytest.mark.slow
def test_declared_numbers_are_those_of_the_data():
    for name, options in (("toy", {"classes": 8, "images": 4}), ("glyphs", {"draws": 1}),
                          ("glyphs", {"draws": 1, "tuning": True})):  # fmt: skip
        reader = read_options(name, options)
        made = reader.load(None)
        trained = {*made.train.labels.tolist()}
        sizes = {"train_classes": len(trained), "train_images": len(made.train)}
        assert reader.sizes() == sizes
        for part, items in made.evaluations.items():
            unseen = trained.isdisjoint(items.labels.tolist())
            assert unseen == reader.evaluation_sets[part].unseen, part
    assert declared_sizes(load_track("glyphs"))["train_images"] == 31200
    assert declared_sizes(load_track("places365"))["train_classes"] == 365
    assert declared_sizes(load_track("omniglot")) == {}
