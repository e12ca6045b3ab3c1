"""Orders of classes and captions, from files beside a dataset."""

import numpy as np
import pytest
from support.small_sets import N_CLASSES, N_TEST, cifar100, imagenet

from benchmark.data.cifar100 import Cifar100
from benchmark.data.imagenet import ImageNet
from benchmark.data.serialization import read_dataset, write_dataset

SYNSETS = [f"n{i + 1:08d}" for i in range(N_CLASSES)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagenet") / "data"
    imagenet(folder)
    return folder


def test_classes_count_in_the_order_of_a_list(root, check):
    (root / "order.txt").write_text("\n".join(reversed(SYNSETS)) + "\n")
    plain = ImageNet(image_size=8).load(root)
    made = ImageNet(image_size=8, class_order="order.txt").load(root)
    check(made)
    assert made.train.labels.tolist() == (N_CLASSES - 1 - plain.train.labels).tolist()
    assert made.class_names == plain.class_names[::-1]
    items, before = made.evaluations["test"], plain.evaluations["test"]
    assert items.labels.tolist() == (N_CLASSES - 1 - before.labels).tolist()
    sources = [ImageNet(class_order=o).source(root) for o in ("", "order.txt")]
    assert "class_order" not in sources[0] and sources[1]["class_order"].startswith("sha256:")


def test_as_text_is_how_the_published_code_sorts_folders(tmp_path):
    cifar100(tmp_path)
    made = Cifar100(class_order="as-text").load(tmp_path)
    expected = ["fine0", "fine1", *(f"fine{i}" for i in range(10, 20)), "fine2", "fine3"]
    assert list(made.class_names[:14]) == expected
    assert "class_order" not in Cifar100().source(tmp_path)
    assert "captions" not in Cifar100().source(tmp_path)
    assert Cifar100(class_order="as-text").source(tmp_path)["class_order"] == "as-text"


def test_captions_are_the_texts_of_images(root, tmp_path):
    made = ImageNet(image_size=8, captions="captions.csv").load(root)
    assert made.train.texts[5] == "a picture of thing 1, seen 1 times"
    items = made.evaluations["test"]
    assert len(set(items.texts)) == N_CLASSES * N_TEST
    write_dataset(made, tmp_path)
    again = read_dataset(tmp_path)
    assert again.train.texts == made.train.texts and again.fingerprint() == made.fingerprint()
    assert made.fingerprint() != ImageNet(image_size=8).load(root).fingerprint()
    assert "captions" in ImageNet(captions="captions.csv").source(root)


def test_every_caption_asks():
    from benchmark.data.enrolment import single_item_templates
    from benchmark.tasks.text_retrieval import TextRetrieval

    labels = np.array([0, 0, 1, 1])
    texts = ("a", "b", "c", "d")
    items = single_item_templates(np.zeros((4, 1, 1, 1), np.uint8), labels, seed=0, texts=texts)
    vectors = np.float32([[1, 0], [0, 1], [0, 1], [0, 1]])
    images = np.float32([[1, 0.1], [1, 0], [0, 1], [0.1, 1]])
    got = TextRetrieval().evaluate(vectors, images, items, {"distance": "cosine"})
    assert got.counts["n_query"] == 4
    assert got.per_query["cmc_at_1"].tolist() == [1.0, 0.0, 1.0, 1.0]
