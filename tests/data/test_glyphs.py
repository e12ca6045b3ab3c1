import json
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmark.data import glyphs, rendering
from benchmark.data.base import read_options
from benchmark.errors import BenchError
from benchmark.tasks.reidentification import Reidentification
from benchmark.tasks.retrieval import Retrieval


@pytest.fixture(scope="module")
def dataset():
    return glyphs.Glyphs(draws=1).load(None)


def test_columns_and_counts_of_classes(dataset, check):
    check(dataset)
    assert 1850 <= len(dataset.class_names) <= 1950
    assert set(dataset.train.labels.tolist()) == set(range(1300))
    test, seen = dataset.evaluations["test"], dataset.evaluations["seen"]
    assert set(test.labels.tolist()) == set(range(1300, len(dataset.class_names)))
    assert len(test.query) >= 4000
    assert np.array_equal(test.query, test.gallery)
    assert set(seen.labels.tolist()) == set(range(0, 1300, 3))


def test_media_are_a_class_in_a_face(dataset):
    for e in dataset.evaluations.values():
        pairs = set(zip(e.media.tolist(), (e.labels * 12 + e.camera).tolist(), strict=True))
        assert len(pairs) == len(np.unique(e.media)) == len(e) // 2
        assert np.array_equal(np.sort(e.media[e.query]), np.unique(e.media))
        assert set(e.camera.tolist()) == set(range(12))


def test_templates_are_two_faces(dataset):
    e = dataset.evaluations["test"]
    assert (np.bincount(e.template) == 4).all()
    assert len(np.unique(np.stack([e.template, e.camera]), axis=1).T) == len(e) // 2
    assert len(e.probes) == 5 * sum(len(g) for g in e.galleries)


def test_seen_images_are_not_trained_on(dataset):
    train = {image.tobytes() for image in dataset.train.images}
    assert len(train) == len(dataset.train)
    for e in dataset.evaluations.values():
        assert not train & {image.tobytes() for image in e.images}


def test_across_asks_for_other_cameras_among_junk_and_distractors(dataset):
    e = dataset.evaluations["test"]
    a = glyphs.across(e)
    n, classes = len(e), len(np.unique(e.labels))
    stored = a.labels[a.gallery]
    junk, asked = stored == -1, np.unique(a.labels[a.query])
    idle = np.setdiff1d(stored[~junk], asked)
    assert len(a.gallery) == n == 24 * classes and junk.sum() % 24 == 0
    assert abs(junk.mean() - 1 / 6) < 0.01 and abs(len(idle) / classes - 1 / 6) < 0.01
    assert -1 not in asked and len(a.query) == 12 * len(asked)
    # Pictures that are told apart by character and camera alone: each query's other draw is as near
    # as can be, and plain retrieval finds nothing else.
    view = np.unique(e.labels * 12 + e.camera, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((view.max() + 1, 64)).astype(np.float32)[view]
    options = {"distance": "cosine", "resamples": 0}
    found = Reidentification().evaluate(vectors, vectors, a, options)
    assert found.scores["cmc_at_1"] < 0.02 and found.counts["n_junk"] == junk.sum()
    assert Retrieval().evaluate(vectors, vectors, a, options).scores["cmc_at_1"] == 1


def test_order_is_not_by_code_point(dataset):
    first = {name.split()[0] for name in dataset.class_names[:390]}
    assert {"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "BOX"} <= first


def test_images_are_visible(dataset):
    contrast = np.ptp(dataset.train.images.reshape(len(dataset.train), -1), axis=1)
    assert contrast.min() > 40
    assert 150 < dataset.train.images.mean() < 240, "dark ink on light paper"


@pytest.mark.slow
def test_same_bytes_in_another_process_with_one_thread(dataset):
    code = (
        "import os; os.cpu_count = lambda: 1\n"
        "from benchmark.data import glyphs\n"
        "import sys\n"
        "print(glyphs.Glyphs(draws=1).load(None).fingerprint(), 'torch' in sys.modules)"
    )
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    out = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == [dataset.fingerprint(), "False"]


def _render(letters, draws, **options):
    codes, ink = letters
    rows, chosen = np.arange(len(codes)), glyphs.Glyphs(**options)
    return glyphs._images(ink, codes, rows, part=0, draws=draws, options=chosen)


def test_more_draws_only_append(letters):
    one, three = _render(letters, 1), _render(letters, 3)
    assert np.array_equal(three[: len(one)], one)
    assert not np.array_equal(three[len(one) : 2 * len(one)], one)


def test_a_class_does_not_depend_on_the_others(letters):
    codes, ink = letters
    alone = glyphs._images(ink, codes, np.array([3]), part=0, draws=1, options=glyphs.Glyphs())
    assert np.array_equal(alone, _render(letters, 1)[36:48])


def test_strength_and_seed_matter(letters):
    base = _render(letters, 1)
    assert not np.array_equal(base, _render(letters, 1, seed=1))
    plain = _render(letters, 1, strength=0.0)
    mild = _render(letters, 1, strength=0.5)
    assert np.abs(mild - plain.astype(float)).mean() < np.abs(base - plain.astype(float)).mean()


def test_source_tells_what_changes_the_images():
    def source(**options):
        return read_options("glyphs", options).source(None)

    base = source()
    assert json.loads(json.dumps(base)) == base
    assert base["ink"] == rendering.ink_hash() and base["strength"] == 1.0
    assert source(strength=1) == base
    assert source(strength=2) != base
    assert source(draws=1) != base


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("glyphs", {"strenght": 1.0}, "unknown key 'strenght'; did you mean 'strength'"),
        ("glyphs", {"strength": "1"}, "strength: expected a number, got '1'"),
        ("glyphs", {"strength": -1.0}, "strength: expected at least 0.0, got -1"),
        ("glyphs", {"strength": float("nan")}, "strength: expected a finite number, got "),
        ("glyphs", {"draws": 0}, "draws: expected at least 1, got 0"),
        ("glyphs", {"draws": True}, "draws: expected a whole number, got True"),
        ("glyphs", {"version": 2}, "version: expected one of [1], got 2"),
        ("glyphs", {"seed": -1}, "seed: expected at least 0, got -1"),
        ("scenes", {"classes": 9}, "classes: expected at least 10, got 9"),
        ("scenes", {"clutter": 2}, "clutter: expected at most 1.0, got 2"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(BenchError, match=f"^dataset {name}: ") as error:
        read_options(name, options)
    assert message in str(error.value)
