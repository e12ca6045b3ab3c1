import numpy as np
import pytest
from support.hostile.archives import tarred
from support.small_sets import cifar100_files

from benchmark.data.cifar100 import ARCHIVE, FOLDER, Cifar100
from benchmark.errors import BenchError

FILES = cifar100_files(12)


def archive(path, files=FILES):
    path.write_bytes(tarred(files))


def test_cifar100(tmp_path):
    archive(tmp_path / ARCHIVE)
    made = Cifar100().load(tmp_path)
    raw = np.frombuffer(FILES["train.bin"], np.uint8).reshape(48, -1)
    np.testing.assert_array_equal(made.train.images[np.arange(48)].reshape(48, -1), raw[:, 2:])
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
    archive(tmp_path / ARCHIVE)
    whole, made = Cifar100().load(tmp_path), Cifar100(tuning=True).load(tmp_path)
    # Four images of each of 12 classes, in turn: the last twelve are held out.
    images = whole.train.images[np.arange(48)]
    np.testing.assert_array_equal(made.train.images[np.arange(36)], images[:36])
    items = made.evaluations["test"]
    np.testing.assert_array_equal(items.images[np.arange(12)], images[36:])
    assert items.labels.tolist() == list(range(12)) and items.group.tolist() == [0, 1] * 6


def test_classes_are_held_out(tmp_path):
    archive(tmp_path / ARCHIVE)
    whole, made = Cifar100().load(tmp_path), Cifar100(held_out=0.25).load(tmp_path)
    assert sorted(made.class_names) == sorted(whole.class_names)
    assert list(made.class_names[:9]) == sorted(made.class_names[:9], key=whole.class_names.index)
    test, seen = made.evaluations["test"], made.evaluations["seen"]
    # Of each class four training and two test images.
    assert np.bincount(made.train.labels).tolist() == [4] * 9
    assert np.bincount(seen.labels).tolist() == [2] * 9
    assert np.bincount(test.labels).tolist() == [0] * 9 + [6] * 3
    of_whole = {}
    for labels, images in (
        (whole.train.labels, whole.train.images),
        (whole.evaluations["test"].labels, whole.evaluations["test"].images),
    ):
        pixels = images[np.arange(len(labels))]
        of_whole |= {x.tobytes(): whole.class_names[c] for x, c in zip(pixels, labels, strict=True)}
    for part in (made.train, test, seen):
        pixels = part.images[np.arange(len(part.labels))]
        for x, c in zip(pixels, part.labels, strict=True):
            assert of_whole[x.tobytes()] == made.class_names[c]
    offers = [Cifar100(held_out=share).offers(None).evaluation_sets for share in (0.0, 0.25)]
    assert [o["test"].unseen for o in offers] == [False, True]
    assert not any(o["seen"].unseen for o in offers)


def test_tuning_looks_at_no_class_held_out(tmp_path):
    archive(tmp_path / ARCHIVE)
    whole = Cifar100(held_out=0.25).load(tmp_path)
    made = Cifar100(held_out=0.25, tuning=True).load(tmp_path)
    assert len(made.class_names) == 9 and set(made.class_names) == set(whole.class_names[:9])
    n = 7  # 0.75 x 9
    assert np.bincount(made.train.labels).tolist() == [3] * n
    assert np.bincount(made.evaluations["seen"].labels).tolist() == [1] * n
    assert np.bincount(made.evaluations["test"].labels).tolist() == [0] * n + [4] * 2
    training = {x.tobytes() for x in whole.train.images[np.arange(36)]}
    for part in (made.train, *made.evaluations.values()):
        assert {x.tobytes() for x in part.images[np.arange(len(part.labels))]} <= training


def test_cifar100_refused(tmp_path):
    (tmp_path / "cifar-100-python").mkdir()
    with pytest.raises(BenchError, match="a pickle, which is never loaded"):
        Cifar100().load(tmp_path)
    archive(tmp_path / ARCHIVE, {name: raw for name, raw in FILES.items() if name != "test.bin"})
    with pytest.raises(BenchError, match=r"expected a member cifar-100-binary/test\.bin"):
        Cifar100().load(tmp_path)
    (tmp_path / ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(BenchError, match="cannot be read"):
        Cifar100().load(tmp_path)
