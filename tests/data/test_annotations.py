"""Orders of classes and captions, from files beside a dataset."""

import numpy as np
import pytest
from support.small_sets import N_CLASSES, N_TEST, cifar100, imagenet

from benchmark.data.cifar100 import Cifar100
from benchmark.data.imagenet import ImageNet
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.errors import BenchError

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n".join(SYNSETS[1:]), "expected all 20 classes, 'n00000001' is missing$"),
        ("\n".join(SYNSETS[2:]), "'n00000001' is missing and 1 more"),
        ("\n".join([*SYNSETS, SYNSETS[0]]), r"order.txt:21: class 'n00000001' comes twice"),
        ("n00000021", r"order.txt:1: unknown class 'n00000021'; did you mean"),
    ],
)
def test_lists_refused(root, text, words):
    (root / "order.txt").write_text(text)
    with pytest.raises(BenchError, match=words):
        ImageNet(class_order="order.txt").load(root)


def test_lists_lie_below_the_data_root(root, tmp_path):
    (tmp_path / "order.txt").write_text("")
    for name in ("../order.txt", str(tmp_path / "order.txt")):
        with pytest.raises(BenchError, match=r"data\.class_order: expected a path below the data"):
            ImageNet(class_order=name).load(root)
    with pytest.raises(BenchError, match=r"data\.captions: .*no.csv does not exist"):
        ImageNet(captions="no.csv").load(root)


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,caption\n", r"captions\.csv:1: expected the header file,caption"),
        ("file,caption\na.jpg\n", r"captions\.csv:2: expected a file and its caption, got 1 cells"),
        ("file,caption\na.jpg,\n", r"captions\.csv:2: expected a caption of printable letters"),
        ("file,caption\na.jpg,x\na.jpg,y\n", r"captions\.csv:3: 'a.jpg' has two captions"),
        ("file,caption\na.jpg,x\n", "expected a caption of every image, 'train/n0.*' has none"),
    ],
)
def test_captions_refused(root, text, words):
    (root / "bad").mkdir(exist_ok=True)
    (root / "bad" / "captions.csv").write_text(text)
    with pytest.raises(BenchError, match=words):
        ImageNet(image_size=8, captions="bad/captions.csv").load(root)


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
