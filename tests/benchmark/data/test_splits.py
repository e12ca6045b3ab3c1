import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.data.splits import boundary, select
from benchmark.errors import BenchError

LABELS = np.repeat(np.arange(40), 10)


@pytest.mark.parametrize(
    ("fraction", "n", "expected"),
    [
        (0.3, 93431, 28029),
        (0.5, 365, 182),
        (0.1, 8631, 863),
        (0.5, 1000, 500),
        (0.7, 10, 7),
        (0.35, 10, 4),
        (0.45, 10, 4),
        (0.0, 7, 0),
        (1.0, 7, 7),
    ],
)
def test_published_counts(fraction, n, expected):
    assert boundary(fraction, n) == expected


def test_ms1m_classes_part_exactly():
    labels = np.arange(93431)
    old, new = select(labels, classes=(0.0, 0.3)), select(labels, classes=(0.3, 1.0))
    assert (len(old), len(new)) == (28029, 65402)
    assert np.array_equal(np.sort(np.concatenate([old, new])), labels)


@given(
    st.integers(1, 60),
    st.floats(0.01, 0.99),
    st.sampled_from(["classes", "images"]),
    st.sampled_from(["seeded", "dataset"]),
    st.integers(0, 5),
)
def test_adjacent_intervals_part_exactly(n_classes, cut, axis, order, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, 150)
    found = []
    for interval in ((0.0, cut), (cut, 1.0)):
        options = {axis: interval, "order": order, "image_order": order, "seed": seed}
        try:
            found.append(select(labels, **options))
        except BenchError:
            continue
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(150))


def test_classes_stay_whole_and_images_are_shared():
    by_class = select(LABELS, classes=(0.0, 0.3))
    assert len(by_class) == 120 and (np.bincount(LABELS[by_class])[LABELS[by_class]] == 10).all()
    by_image = select(LABELS, images=(0.0, 0.3))
    assert (np.bincount(LABELS[by_image]) == 3).all()
    both = select(LABELS, classes=(0.0, 0.3), images=(0.0, 0.3))
    assert np.array_equal(both, np.intersect1d(by_class, by_image))


def test_larger_fractions_contain_smaller_ones():
    sets = [set(select(LABELS, classes=(0.0, f)).tolist()) for f in (0.25, 0.5, 0.9)]
    assert sets[0] < sets[1] < sets[2]


def test_dataset_order_takes_the_first():
    assert np.array_equal(select(LABELS, classes=(0.0, 0.5), order="dataset"), np.arange(200))
    first = select(LABELS, images=(0.0, 0.2), image_order="dataset")
    assert np.array_equal(first, np.flatnonzero(np.arange(400) % 10 < 2))


def test_seed_drives_the_order_and_rows_ascend():
    a, b = (select(LABELS, classes=(0.0, 0.5), seed=s) for s in (0, 1))
    assert not np.array_equal(a, b)
    assert np.array_equal(a, select(LABELS, classes=(0.0, 0.5), seed=0))
    assert (np.diff(a) > 0).all() and a.dtype == np.int64
    more = np.concatenate([LABELS, LABELS])
    classes = set(LABELS[a].tolist())
    assert set(more[select(more, classes=(0.0, 0.5), seed=0)].tolist()) == classes


def test_unused_class_indices_do_not_count():
    labels = np.repeat([3, 90, 7, 12], 2)
    rows = select(labels, classes=(0.0, 0.5), order="dataset")
    assert set(labels[rows].tolist()) == {3, 7}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": (0.3, 0.3)}, "classes: expected 0 <= from < to <= 1, got [0.3, 0.3]"),
        ({"classes": (0.7, 0.3)}, "got [0.7, 0.3]"),
        ({"images": (-0.1, 0.5)}, "images: expected 0 <= from < to <= 1, got [-0.1, 0.5]"),
        ({"images": (0.0, 1.5)}, "got [0, 1.5]"),
        ({"classes": (0.0, float("nan"))}, "got [0, nan]"),
        ({"classes": (0.0, 0.001)}, "expected at least one image, got none"),
        ({"order": "random"}, "order: expected seeded or dataset, got 'random'"),
        ({"image_order": ""}, "image_order: expected seeded or dataset, got ''"),
    ],
)
def test_wrong_intervals(options, message):
    with pytest.raises(BenchError) as error:
        select(LABELS, **options)
    assert message in str(error.value)
