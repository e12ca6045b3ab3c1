"""The characters of ``glyphs`` in colour over others: what stays, and what each option changes."""

import numpy as np
import pytest

from benchmark.data.glyphs import Glyphs
from benchmark.data.scenes import Scenes
from benchmark.data.splits import generator


@pytest.fixture
def ink(letters):
    return letters[1]


def render(ink, row=0, seed=0, **options):
    return Scenes(**options).render(ink, row, generator(seed))


def test_grey_without_clutter_is_glyphs_in_three_channels(ink):
    grey = render(ink, colour=False, clutter=0.0)
    expected = Glyphs().render(ink, 0, generator(0))
    assert grey.shape == (12, 3, 32, 32) and grey.dtype == np.uint8
    assert all(np.array_equal(grey[:, c], expected[:, 0]) for c in range(3))


def test_colour_is_in_ink_and_paper_alone(ink):
    grey, colour = render(ink, colour=False), render(ink)
    assert np.array_equal(grey[:, 0], grey[:, 1]) and np.array_equal(grey[:, 0], grey[:, 2])
    assert not np.array_equal(colour[:, 0], colour[:, 1])


def test_clutter_covers_paper_and_leaves_the_ink(ink):
    """Of a drawing that is all ink nothing behind it is seen; of an empty one, everything."""
    full, empty = np.full_like(ink, 255), np.zeros_like(ink)
    seen = {}
    for name, drawing in (("full", full), ("empty", empty)):
        both = np.concatenate([drawing[:1], ink[1:]])
        plain, over = (render(both, clutter=c, strength=0.0).astype(float) for c in (1e-6, 1.0))
        seen[name] = [p[:, 8:24, 8:24].std((1, 2)).mean() for p in (plain.mean(1), over.mean(1))]
    assert seen["full"][1] < 1 and seen["empty"][0] < 1 and seen["empty"][1] > 10


def test_ink_is_darker_or_lighter_than_paper(ink):
    images = render(ink, row=5, clutter=0.0).astype(float).mean(1)
    covered = Glyphs(strength=0.0).render(ink, 5, generator(0))[:, 0] < 100
    plain = render(ink, row=5, clutter=0.0, strength=0.0).astype(float).mean(1)
    apart = [p[c].mean() - p[~c].mean() for p, c in zip(plain, covered, strict=True)]
    assert min(map(abs, apart)) > 40 and min(apart) < 0 < max(apart)
    assert images.std((1, 2)).min() > 5


def test_its_own_stream_for_each_draw(ink):
    assert np.array_equal(render(ink), render(ink))
    assert not np.array_equal(render(ink), render(ink, seed=1))


@pytest.mark.parametrize(
    ("options", "classes", "images"),
    [
        ({}, 1300, 31_200), ({"classes": 130, "draws": 20}, 130, 31_200),
        ({"tuning": True}, 910, 21_840), ({"classes": 130, "tuning": True}, 130, 3120),
    ],
)  # fmt: skip
def test_sizes(options, classes, images):
    assert Scenes(**options).sizes() == {"train_classes": classes, "train_images": images}


@pytest.mark.slow
def test_fewer_classes_are_evaluated_on_the_same_ones():
    few, all_ = Scenes(classes=26, draws=1), Scenes(draws=1)
    a, b = few.load(None), all_.load(None)
    assert set(a.train.labels.tolist()) == set(range(26))
    assert len(a.train) == few.sizes()["train_images"]
    a_test, b_test = a.evaluations["test"], b.evaluations["test"]
    assert np.array_equal(a_test.labels, b_test.labels)
    assert np.array_equal(a_test.images, b_test.images)
    assert set(a.evaluations["seen"].labels.tolist()) == set(range(0, 26, 3))
