"""Texts find pictures on frozen backbones: a pair of encoders behind stored features."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.frozen import Through, settings, stored_toy
from support.tiny_embedders import WORDS, tiny_embedders
from support.toy_runs import toy_and_plan

from benchmark.api import run
from benchmark.config.embedders import load_embedder
from benchmark.config.recipes import Recipe
from benchmark.errors import UnsuitedError
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.models.frozen import FrozenTexts
from benchmark.models.module import load_module
from benchmark.training import text_image
from benchmark.training.device import Device
from benchmark.training.embedding import frozen_backbone, new_model
from benchmark.training.loop import Trainer
from benchmark.training.text_image import train_pair

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("texts", ["", "tiny-new"])
def test_a_pair_on_stored_features_is_one_through_the_frozen_trunk(texts, tmp_path, monkeypatch):
    table = tiny_embedders(tmp_path, monkeypatch)["tiny-new"].copy()
    spec, dataset, data = stored_toy(tmp_path)
    spec = spec.model_copy(update={"texts": texts})
    names = [" ".join(words) for words in itertools.product(WORDS[1:9], WORDS[9:13])]
    trainer = Trainer(Recipe(epochs=3, batch_size=16, lr=0.05), 3, Device("cpu"))
    of_texts, of_images, head, curve = train_pair(spec, data, names, trainer)
    start, unused = new_model(spec, data, trainer)
    assert not torch.equal(start.project.weight, of_images.project.weight)
    through = Through(frozen_backbone(spec, 1, 32), start)
    monkeypatch.setattr(text_image, "new_model", lambda *_: (through, unused))
    pixels = replace(data, images=dataset.train.images)
    other_texts, _, other_head, other_curve = train_pair(spec, pixels, names, trainer)
    assert curve.loss == pytest.approx(other_curve.loss, abs=1e-5)
    pairs = (of_texts, other_texts), (of_images, start), (head, other_head)
    for one, other in pairs:
        for name, value in one.state_dict().items():
            torch.testing.assert_close(other.state_dict()[name], value, rtol=1e-5, atol=1e-5)
    assert all(p.grad is None for p in through.backbone.parameters())
    if texts:  # the embedder is no part of what is trained or stored
        assert [*of_texts.state_dict()] == ["project.weight", "project.bias"]
        ids = [WORDS.index(word) for word in names[0].split()]
        assert of_texts.stored[names[0]] == pytest.approx(table[ids].mean(0), abs=1e-6)


def test_texts_find_pictures_by_a_frozen_pair(tmp_path, monkeypatch):
    tiny_embedders(tmp_path, monkeypatch)
    changes = settings(tmp_path, **{"old.texts": "tiny-new"})
    labels = ["bct", "fct", "keep-old"]
    records, plan, store = toy_and_plan(labels, tmp_path, "modality", changes | {"fct.width": 16})
    cases = {"old/old", "old/old images", "old/new", "new/new"}
    assert all(set(records[name].scores) == cases for name in ("bct", "fct"))
    assert "queries are texts" in records["raw-features"].reason
    trained = next(s for s in plan.stages if s.title == "train old text and image models (seed 0)")
    made = load_module(store.path(trained.name) / "model.safetensors")
    assert isinstance(made, FrozenTexts) and made.embedder == "tiny-new"
    names = {trained.name}
    for more in ({"old.texts": "tiny-old"}, {"old.texts": ""}):
        other = make_request(labels, "modality", "toy", settings=changes | more).plan()
        names |= {s.name for s in other.stages if s.title == trained.title}
    assert len(names) == 3
    monkeypatch.undo()
    words = "expected an embedder of texts where queries are texts"
    for more in ({"new.texts": "minilm-l6", "old.texts": ""}, {"old.texts": "efficientnet-lite0"}):
        with pytest.raises(UnsuitedError, match=words):
            make_request(labels, "modality", "toy", settings=changes | more)


@pytest.mark.slow
@pytest.mark.skipif(
    any(load_embedder(f"efficientnet-lite{n}").missing for n in (0, 2)),
    reason="weights of EfficientNet-Lite are not here",
)
def test_product_texts_find_small_photographs(tmp_path):
    few = {"data.image_size": 32, "recipe.epochs": 10, "fct.width": 32}
    records = run(
        ["bct", "fct"], "modality", "grocery-short", store=tmp_path / "s", out=tmp_path / "o",
        data_root=ROOT / "protocols" / "grocery-small", compute=Compute("cpu"), settings=few,
    )  # fmt: skip
    found = {record.method: record for record in records}
    chance = 1 / 81
    for name in ("independent", "bct", "fct"):
        assert found[name].bounds["lower"]["cmc_at_1"] > 5 * chance
    assert found["bct"].scores["old/new"]["map"] > 2 * found["independent"].scores["old/new"]["map"]
