"""Texts ask, images are stored: the old pair, and updates of its image model."""

import numpy as np
import pytest
import torch
from support.toy_runs import toy_and_plan
from torch.nn import functional as F

from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.data.toy import Toy
from benchmark.harness.requests import make_request
from benchmark.models.module import load_module, save_module
from benchmark.models.texts import TextEncoder, embed_texts, subword_buckets
from benchmark.report import make_table
from benchmark.report.select import cases, cross_case, role
from benchmark.tasks.text_retrieval import TextRetrieval
from benchmark.training.data import TrainingData
from benchmark.training.device import Device
from benchmark.training.loop import Trainer
from benchmark.training.text_image import contrastive, train_pair

# Names of classes that were not trained on mean nothing here: other images of those that were.
SEEN = {
    "evaluation.part": "seen", "data.classes": 12, "recipe.epochs": 12, "fct.width": 32,
    "recipe.transform_steps": 100,
}  # fmt: skip
METHODS = ["bct", "l2", "fct", "d-simplex", "fct:simclr", "keep-old", "oracle-concat"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return toy_and_plan(METHODS, tmp_path_factory.mktemp("modality"), "modality", SEEN)


def test_a_text_finds_images_through_an_updated_image_model(done):
    records, _, _ = done
    chance = 1 / 12
    low, alone = records["independent"].bounds["lower"], records["independent"].scores
    assert low["map"] > 4 * chance, "the old pair answers texts"
    assert alone["old/new"]["map"] < 0.5 * low["map"], "an independent image model does not"
    for name in ("bct", "l2", "fct"):
        assert records[name].scores["old/new"]["map"] > 2 * alone["old/new"]["map"], name
        assert records[name].compatible["map"] == (
            records[name].scores["old/new"]["map"] > low["map"]
        )
        gains = records[name].update_gain
        assert set(gains.values()) == {None}, "the upper bound is of images that ask"
    assert set(records["bct"].scores) == {"old/old", "old/old images", "old/new", "new/new"}


def test_each_class_asks_once_and_images_ask_by_themselves(done):
    record = done[0]["bct"]
    assert record.counts["old/new"]["n_query"] == 12
    assert record.counts["new/new"]["n_query"] == record.counts["new/new"]["n_gallery"] == 96


def test_what_needs_images_of_the_old_model_is_refused_with_the_reason(done):
    records, _, _ = done
    assert "queries are texts" in records["d-simplex"].reason
    assert "side-information of images" in records["fct:simclr"].reason
    for name in ("keep-old", "oracle-concat"):
        assert records[name].reason == "runs the old model on images; here queries are texts"


def test_the_old_classifier_is_made_of_the_names(done):
    _, plan, store = done
    stage = next(s for s in plan.stages if s.title.startswith("train old text and image models"))
    folder = store.path(stage.name)
    head, texts = (load_module(folder / f"{n}.safetensors") for n in ("head", "model"))
    names = [f"pattern {i}" for i in range(12)]
    made = embed_texts(texts, names, torch.device("cpu"))
    assert torch.allclose(head.weight, made, atol=1e-5) and head.kind == "norm-softmax"


@pytest.mark.parametrize("captioned", [True, False])
def test_of_captions_a_row_is_the_mean_direction_of_those_of_its_class(captioned):
    """Of names an encoder knows nothing that was trained on captions."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 1, 8, 8), dtype=np.uint8)
    labels, names = torch.arange(12) % 3, [f"name {i}" for i in range(5)]
    captions = [f"seen as {'abcd'[i % 4]} of {i % 3}" for i in range(12)]
    data = TrainingData(
        images, labels, torch.tensor([4, 0, 2]), tuple(captions) if captioned else None
    )
    spec = ModelSpec(backbone="convnet-2", dim=6)
    trainer = Trainer(Recipe(epochs=2, batch_size=6, lr=0.05), 3, Device("cpu"))
    texts, _, head, _ = train_pair(spec, data, names, trainer)
    assert head.classes.tolist() == [4, 0, 2] and head.kind == "norm-softmax"
    made = embed_texts(texts, captions if captioned else names, torch.device("cpu")).double()
    for row, name in enumerate([4, 0, 2]):
        of_class = [e / e.norm() for e, label in zip(made, labels, strict=False) if label == row]
        mean = torch.stack(of_class).mean(0)
        want = mean / mean.norm() if captioned else made[name]
        assert torch.allclose(head.weight[row].double(), want, atol=1e-5)


def test_work_with_captions_has_a_name_of_its_own(tmp_path, monkeypatch):
    """A classifier of names, which earlier code stored, is not taken for one of captions."""
    found = []
    for captioned in (False, True):
        monkeypatch.setattr(Toy, "captioned", captioned)
        plan = make_request(["bct", "l2"], "modality", "toy").plan()
        pair = next(s for s in plan.stages if s.title.startswith("train old text and image models"))
        found.append((pair.name, {r.label: r.key for r in plan.results}))
    (names, of_names), (captions, of_captions) = found
    assert names != captions and of_names["bct"] != of_captions["bct"]
    assert of_names["l2"] == of_captions["l2"], "it reads no classifier"


def test_tables_call_the_text_case_the_cross_test(done):
    records = [r for r in done[0].values() if r.status == "done"]
    assert cross_case(records) == "old/new" and role("old/new", ["old", "new"]) == "cross-test"
    assert cases(records)[:2] == ["new/new", "old/new"]
    assert any("Gain: none" in note for note in make_table(records).notes)


# --- parts


def test_names_share_what_their_words_share(tmp_path):
    a, b = subword_buckets("GREEK SMALL LETTER ALPHA"), subword_buckets("GREEK SMALL LETTER BETA")
    other = subword_buckets("NUMERAL")
    assert len(set(a) & set(b)) > len(a) / 2 > 4 * len(set(a) & set(other))
    assert subword_buckets("") == (0,)
    torch.manual_seed(0)
    encoder = TextEncoder(8).eval()
    save_module(encoder, tmp_path / "t.safetensors")
    names = ["one", "two words", "one"]
    got = embed_texts(load_module(tmp_path / "t.safetensors"), names, torch.device("cpu"))
    assert torch.equal(got, embed_texts(encoder, names, torch.device("cpu")))
    assert torch.equal(got[0], got[2]) and got.shape == (3, 8)


@pytest.mark.parametrize("seed", range(3))
def test_contrastive_by_plain_loops(seed):
    rng = torch.Generator().manual_seed(seed)
    images = torch.randn(7, 4, generator=rng, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, 3, 1, 0])
    texts = torch.randn(4, 4, generator=rng, dtype=torch.float64)[labels]
    scale = torch.tensor(5.0)
    want = 0.0
    for a, b in ((images, texts), (texts, images)):
        for i in range(7):
            scores = [5.0 * F.cosine_similarity(a[i], b[j], dim=0).item() for j in range(7)]
            total = np.logaddexp.reduce(scores)
            right = [j for j in range(7) if labels[j] == labels[i]]
            want += sum(total - scores[j] for j in right) / len(right) / 7 / 2
    assert contrastive(images, texts, labels, scale).item() == pytest.approx(want)


def test_text_retrieval_leaves_no_image_out():
    """The item whose row stands for its class's text is an image like the others."""
    from benchmark.data.enrolment import single_item_templates

    labels = np.array([0, 0, 1, 1, 1])
    items = single_item_templates(np.zeros((5, 1, 1, 1), np.uint8), labels, seed=0)
    texts = np.eye(2, dtype=np.float32)[labels]
    images = np.float32([[1, 0], [0, 1], [0, 1], [0.1, 1], [1, 0.1]])
    got = TextRetrieval().evaluate(texts, images, items, {"distance": "cosine"})
    assert got.counts["n_query"] == 2
    assert got.per_query["cmc_at_1"].tolist() == [1.0, 0.0], "a tie with another class is no hit"
