import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.config.split_sizes import boundary
from benchmark.data.base import Evaluation
from benchmark.data.splits import narrow, rows_of, select
from benchmark.errors import BenchError

LABELS = np.repeat(np.arange(40), 10)


@pytest.mark.parametrize(
    ("fraction", "n", "expected"),
    [(0.7, 10, 7), (0.35, 10, 4), (0.45, 10, 4), (0.0, 7, 0), (1.0, 7, 7)],
)
def test_boundaries(fraction, n, expected):
    """Published counts stand beside the function."""
    assert boundary(fraction, n) == expected


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


def test_dataset_order_takes_the_first():
    """By number: as text class 10 comes before 2."""
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


# --- groups

EVEN, ODD = np.arange(0, 40, 2), np.arange(1, 40, 2)


def test_fractions_count_within_the_groups():
    rows = select(LABELS, classes=(0.0, 0.5), only=EVEN)
    taken = set(LABELS[rows].tolist())
    assert len(taken) == 10 and taken <= set(EVEN.tolist())
    first = select(LABELS, classes=(0.0, 0.5), only=EVEN, order="dataset")
    assert set(LABELS[first].tolist()) == set(EVEN[:10].tolist())


def test_a_thinned_group_keeps_the_first_of_its_classes():
    whole = select(LABELS, classes=(0.0, 0.5), order="dataset")
    thin = select(LABELS, classes=(0.0, 0.5), order="dataset", thinned=[(ODD, 0.1)])
    assert set(LABELS[whole].tolist()) - set(LABELS[thin].tolist()) == set(ODD[1:10].tolist())
    with pytest.raises(BenchError, match="at least one image"):
        select(LABELS, only=ODD, classes=(0.0, 0.1), thinned=[(ODD, 0.1)])


def test_rows_of_a_split_as_stages_name_it():
    groups = {"even": EVEN, "odd": ODD}
    split = {"classes": [0.0, 0.5], "images": [0.0, 1.0], "order": "dataset", "seed": 0}

    def ids(names):
        return np.concatenate([groups[name] for name in names])

    assert np.array_equal(rows_of(LABELS, split, ids), np.arange(200))
    rows = rows_of(LABELS, {**split, "groups": ["odd"], "thinned": [[["odd"], 0.5]]}, ids)
    assert set(LABELS[rows].tolist()) == set(ODD[:5].tolist())
    rows = rows_of(LABELS, {**split, "images": [0.0, 0.2], "image_order": "dataset"}, ids)
    assert np.array_equal(rows, np.flatnonzero((np.arange(400) % 10 < 2) & (np.arange(400) < 200)))


# --- who judges


def evaluation():
    """Classes 0 to 7, two items each, even and odd, one template an item; 8 is not trained on."""
    labels = np.repeat(np.arange(9), 2)
    rows = np.arange(18)
    return Evaluation(
        images=np.zeros((18, 1, 2, 2), np.uint8), labels=labels, ids=rows, query=rows[::2],
        gallery=rows, camera=rows, media=rows, group=labels % 2, template=rows, probes=rows[1::2],
        galleries=(rows[:8:2], rows[8::2]), group_names=("even", "odd"),
    )  # fmt: skip


TRAINED = np.repeat(np.arange(8), 3)


def test_narrowed_to_classes_and_groups():
    made = narrow(evaluation(), TRAINED, classes=(0.0, 0.5), order="dataset")
    assert set(made.labels[made.query].tolist()) == {0, 1, 2, 3}
    assert set(made.labels[made.gallery].tolist()) == {0, 1, 2, 3}
    assert made.probes.tolist() == [1, 3, 5, 7] and [len(g) for g in made.galleries] == [4]
    assert (made.template[8:] == -1).all() and len(made.labels) == 18
    made = narrow(evaluation(), TRAINED, groups=["odd"])
    assert set(made.labels[made.gallery].tolist()) == {1, 3, 5, 7}


def test_grouped_by_range_and_against_one():
    made = narrow(evaluation(), TRAINED, ranges=2, order="dataset")
    assert made.group_names == ("0-50 %", "50-100 %", "not trained on")
    assert made.group.tolist() == [0] * 8 + [1] * 8 + [2] * 2
    assert len(made.query) == 9
    made = narrow(evaluation(), TRAINED, against=("scarce", ["odd"]))
    assert made.group_names == ("scarce", "others")
    assert (made.group == (evaluation().group == 0)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": ["eevn"]}, "did you mean 'even'"),
        ({"against": ("scarce", ["od"])}, "did you mean 'odd'"),
        ({"classes": (0.0, 0.01)}, r"classes \[0, 0.01\] of those trained on: .*got none"),
    ],
)
def test_nobody_to_judge(options, words):
    with pytest.raises(BenchError, match=words):
        narrow(evaluation(), TRAINED, **options)
