"""Two datasets as one, from small files of their formats."""

import numpy as np
import pytest
from support.command import call
from support.small_sets import N_CLASSES, N_TEST, N_TRAIN, imagenet, places365

from benchmark.config.data_roots import parse_root
from benchmark.data.domains import Domains, JoinedImages, joined
from benchmark.data.imagenet import ImageNet
from benchmark.data.images import EncodedImages, View
from benchmark.data.places365 import Places365
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.errors import BenchError
from benchmark.harness.requests import make_request

SMALL = {"image_size": 8}


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    imagenet(folder / "imagenet")
    places365(folder / "places365")
    return {name: folder / name for name in ("imagenet", "places365")}


def test_both_follow_each_other_as_groups(roots, check):
    made = Domains(options=SMALL).load(roots)
    check(made)
    one, other = (
        reader(image_size=8).load(roots[name])
        for reader, name in ((ImageNet, "imagenet"), (Places365, "places365"))
    )
    n = N_CLASSES * N_TRAIN
    rows = np.arange(n)
    np.testing.assert_array_equal(made.train.images[rows], one.train.images[rows])
    np.testing.assert_array_equal(made.train.images[rows + n], other.train.images[rows])
    assert made.train.labels[n:].tolist() == (other.train.labels + N_CLASSES).tolist()
    assert made.class_groups == ("imagenet",) * N_CLASSES + ("places365",) * N_CLASSES
    items = made.evaluations["test"]
    assert items.group_names == ("imagenet", "places365")
    assert items.group.tolist() == [0] * N_CLASSES * N_TEST + [1] * N_CLASSES * N_TEST
    assert [len(g) for g in items.galleries] == [N_CLASSES, N_CLASSES]


def test_images_in_files_stay_there_and_come_in_any_order(roots, tmp_path, monkeypatch):
    whole = Domains(options=SMALL).load(roots)
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    made = Domains(options=SMALL).load(roots)
    images = made.train.images
    assert isinstance(images, JoinedImages)
    assert all(isinstance(part, EncodedImages) for part in images.parts)
    rows = np.random.default_rng(0).permutation(len(images))
    np.testing.assert_array_equal(images[rows], whole.train.images[rows])
    images.prefetch(rows[:7])
    np.testing.assert_array_equal(images[rows[:7]], whole.train.images[rows[:7]])
    write_dataset(made, tmp_path)
    again = read_dataset(tmp_path)
    some = again.train.images.take_rows(rows[:50])
    np.testing.assert_array_equal(some[np.arange(50)], whole.train.images[rows[:50]])
    assert again.fingerprint() == made.fingerprint() != whole.fingerprint()


def test_one_in_memory_beside_one_in_files(roots):
    part = Places365(image_size=8).load(roots["places365"]).train.images
    (train, _), _, _ = ImageNet().parts(roots["imagenet"])
    files = EncodedImages(train, View(8, 8))
    both = joined([files, part])
    assert isinstance(both, JoinedImages) and both.shape[0] == len(files) + len(part)
    np.testing.assert_array_equal(both[np.array([len(files)])], part[:1])
    assert len(both.fingerprint()) == 64


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("imagenet={imagenet}", "expected places365=DIR, got folders of imagenet alone"),
        ("{imagenet}", "expected imagenet=DIR,places365=DIR, got one folder"),
        ("imagenet={imagenet},places365={places365}/no", "no does not exist"),
        (
            "imagenet={imagenet},places365={places365},place=.",
            "'place' is not used here; did you mean 'places365'",
        ),
        ("imagenet={imagenet},imagenet={imagenet}", "'imagenet' is given twice"),
        ("imagenet={imagenet},{places365}", "expected DATASET=DIR, got"),
    ],
)
def test_a_missing_or_odd_root_is_one_line(roots, given, words):
    with pytest.raises(BenchError, match=words) as caught:
        make_request(["fct"], "disjoint", "imagenet-places365", data_root=given.format(**roots))
    assert str(caught.value).startswith("--data-root: ") and "\n" not in str(caught.value)


def test_side_information_from_another_domain_needs_its_root(roots):
    ask = {"methods": ["fct:simclr-other"], "protocol": "extended-class", "track": "places365"}
    request = make_request(**ask, data_root=roots["places365"])
    with pytest.raises(BenchError, match="expected --data-root places365=DIR,imagenet=DIR"):
        request.plan()
    plan = make_request(**ask, data_root=roots).plan()
    folders = [s.work.data_root for s in plan.stages if s.kind == "data"]
    assert sorted(folders) == sorted(roots.values())
    assert make_request(**ask, without_data=True).plan().stages


@pytest.mark.parametrize("verb", ["check", "get", "resize"])
def test_each_of_two_datasets_is_looked_at_by_itself(verb, tmp_path):
    out = [] if verb == "check" else ["--out", tmp_path]
    code, _, error = call("data", verb, "imagenet-places365", *out)
    said = "imagenet-places365 joins imagenet and places365: name one of them, with its own folder"
    assert (code, error) == (2, f"bench: data: {said}\n")


def test_a_folder_whose_name_looks_like_two(tmp_path):
    odd = tmp_path / "a=b,c=d"
    odd.mkdir()
    assert parse_root(str(odd)) == odd


def test_images_of_two_sizes_are_refused(roots, monkeypatch):
    with pytest.raises(BenchError, match="expected two datasets, got imagenet twice"):
        Domains(away="imagenet").load(roots)
    with pytest.raises(BenchError, match="unknown dataset 'place365'"):
        Domains(away="place365").load(roots)
    with pytest.raises(BenchError, match="unknown key 'side'"):
        Domains(options={"side": 3}).load(roots)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_joined_images_keep_their_kind(kind):
    parts = tuple(np.full((2, 1, 2, 2), value, kind) for value in (3, 5))
    images = JoinedImages(parts, np.array([3, 0, 2]))
    found = images[np.array([0, 1, 2])]
    assert found.dtype == kind and found[:, 0, 0, 0].tolist() == [5, 3, 5]
    assert images[np.array([], np.int64)].shape == (0, 1, 2, 2)
