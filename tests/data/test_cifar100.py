import numpy as np
import pytest
from support.hostile.archives import tarred
from support.small_sets import cifar100_files

from benchmark.data.cifar100 import ARCHIVE, FOLDER, Cifar100
from benchmark.errors import BenchError

FILES = cifar100_files(12)


@pytest.fixture(autouse=True)
def archive(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(tarred(FILES))
    return tmp_path / ARCHIVE


def test_cifar100(tmp_path):
    made = Cifar100().load(tmp_path)
    raw = np.frombuffer(FILES["train.bin"], np.uint8).reshape(48, -1)
    np.testing.assert_array_equal(made.train.images.reshape(48, -1), raw[:, 2:])
    assert made.train.images.shape == (48, 3, 32, 32)
    assert made.train.labels.tolist() == [i % 12 for i in range(48)]
    items = made.evaluations["test"]
    assert items.group_names == ("animals", "things") and items.group.tolist() == [0, 1] * 12
    assert len(items.probes) + sum(map(len, items.galleries)) == 24
    folder = tmp_path / "x" / FOLDER
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    assert Cifar100().load(tmp_path / "x").fingerprint() == made.fingerprint()
    assert Cifar100().source(tmp_path) == Cifar100().source(tmp_path / "x")
    (folder / "test.bin").write_bytes(FILES["train.bin"])
    assert Cifar100().source(tmp_path) != Cifar100().source(tmp_path / "x")


def test_tuning_evaluates_on_the_last_training_images_of_each_class(tmp_path):
    whole, made = Cifar100().load(tmp_path), Cifar100(tuning=True).load(tmp_path)
    # Four images of each of 12 classes, in turn: the last twelve are held out.
    np.testing.assert_array_equal(made.train.images, whole.train.images[:36])
    items = made.evaluations["test"]
    np.testing.assert_array_equal(items.images, whole.train.images[36:])
    assert items.labels.tolist() == list(range(12)) and items.group.tolist() == [0, 1] * 6


def test_classes_are_held_out(tmp_path):
    whole, made = Cifar100().load(tmp_path), Cifar100(held_out=0.25).load(tmp_path)
    assert sorted(made.class_names) == sorted(whole.class_names)
    assert list(made.class_names[:9]) == sorted(made.class_names[:9], key=whole.class_names.index)
    test, seen = made.evaluations["test"], made.evaluations["seen"]
    # Of each class four training and two test images.
    assert np.bincount(made.train.labels).tolist() == [4] * 9
    assert np.bincount(seen.labels).tolist() == [2] * 9
    assert np.bincount(test.labels).tolist() == [0] * 9 + [6] * 3
    of_whole = {
        image.tobytes(): whole.class_names[c]
        for part in (whole.train, whole.evaluations["test"])
        for image, c in zip(part.images, part.labels, strict=True)
    }
    for part in (made.train, test, seen):
        for image, c in zip(part.images, part.labels, strict=True):
            assert of_whole[image.tobytes()] == made.class_names[c]
    offers = [Cifar100(held_out=share).offers(None).evaluation_sets for share in (0.0, 0.25)]
    assert [o["test"].unseen for o in offers] == [False, True]
    assert not any(o["seen"].unseen for o in offers)


def test_tuning_looks_at_no_class_held_out(tmp_path):
    whole = Cifar100(held_out=0.25).load(tmp_path)
    made = Cifar100(held_out=0.25, tuning=True).load(tmp_path)
    assert len(made.class_names) == 9 and set(made.class_names) == set(whole.class_names[:9])
    n = 7  # 0.75 x 9
    assert np.bincount(made.train.labels).tolist() == [3] * n
    assert np.bincount(made.evaluations["seen"].labels).tolist() == [1] * n
    assert np.bincount(made.evaluations["test"].labels).tolist() == [0] * n + [4] * 2
    training = {image.tobytes() for image in whole.train.images}
    for part in (made.train, *made.evaluations.values()):
        assert {image.tobytes() for image in part.images} <= training


def test_cifar100_refused(archive):
    fewer = {name: raw for name, raw in FILES.items() if name != "test.bin"}
    for content, words in (
        (tarred(fewer), r"expected a member cifar-100-binary/test\.bin"),
        (b"no archive", "cannot be read"),
    ):
        archive.write_bytes(content)
        with pytest.raises(BenchError, match=words):
            Cifar100().load(archive.parent)
    archive.rename(archive.with_name("cifar-100-python.tar.gz"))
    with pytest.raises(BenchError, match="a pickle, which is never loaded"):
        Cifar100().load(archive.parent)
