"""CLIP's towers, on a tiny model that open_clip builds as it builds the large ones."""

import json
import logging

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.small_sets import N_CLASSES, N_TEST, imagenet

from benchmark.api import run
from benchmark.config.recipes import ModelSpec
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.harness.store import Store
from benchmark.models.backbones import Encoder, check_model
from benchmark.models.clip import MEAN, STD, ClipTexts
from benchmark.models.module import load_module, save_module
from benchmark.models.texts import embed_texts

TINY = {
    "embed_dim": 16, "quick_gelu": True,
    "vision_cfg": {
        "image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8,
    },
    "text_cfg": {
        "context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2,
    },
}  # fmt: skip
TEXTS = ["a photograph of a cat", "two dogs", ""]


@pytest.fixture(scope="module", autouse=True)
def tiny(tmp_path_factory):
    """A pretrained pair: the library's own model, and the file of its weights."""
    open_clip = pytest.importorskip("open_clip")  # here: all processes gather all tests
    folder = tmp_path_factory.mktemp("clip")
    (folder / "tiny-clip.json").write_text(json.dumps(TINY))
    open_clip.add_model_config(folder / "tiny-clip.json")
    logging.disable(logging.WARNING)
    torch.manual_seed(0)
    model = open_clip.create_model("tiny-clip")
    logging.disable(logging.NOTSET)
    with torch.no_grad():
        model.logit_scale.fill_(np.log(25.0))
    path = folder / "tiny.safetensors"
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, path)
    return model.eval(), path


def spec(path, **changes):
    values = {"backbone": "open_clip:tiny-clip", "dim": 16, "weights": str(path), "project": False}
    return ModelSpec(**values | changes)


def test_a_pair_is_the_library_s(tiny, tmp_path):
    model, path = tiny
    check_model(spec(path))
    from benchmark.models.weights import load_weights

    texts = ClipTexts("tiny-clip")
    load_weights(texts.text, spec(path), path, "text")
    got = embed_texts(texts, TEXTS, torch.device("cpu"))
    with torch.no_grad():
        want = model.encode_text(pytest.importorskip("open_clip").get_tokenizer("tiny-clip")(TEXTS))
    torch.testing.assert_close(got, want)
    save_module(texts, tmp_path / "t.safetensors")
    again = embed_texts(load_module(tmp_path / "t.safetensors"), TEXTS, torch.device("cpu"))
    assert torch.equal(again, got)
    encoder = Encoder(
        "open_clip:tiny-clip", 16, 3, 32, project=False, mean=list(MEAN), std=list(STD)
    )
    load_weights(encoder.trunk, spec(path), path, "visual")
    pixels = torch.rand(2, 3, 32, 32)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    with torch.no_grad():
        torch.testing.assert_close(
            encoder.eval()(2 * pixels - 1), model.encode_image((pixels - mean) / std)
        )


def test_wrong_weights_and_names_are_one_line(tiny, tmp_path):
    state = load_file(tiny[1])
    del state["visual.proj"]
    save_file(state, tmp_path / "w.safetensors")
    with pytest.raises(BenchError, match=r"w\.safetensors: 'proj': expected \(32, 16\), got no"):
        check_model(spec(tmp_path / "w.safetensors"))
    with pytest.raises(BenchError, match=r"unknown model of open_clip 'tiny-clap'.*tiny-clip"):
        check_model(ModelSpec(backbone="open_clip:tiny-clap", dim=16))
    with pytest.raises(BenchError, match=r"a tag of open_clip:ViT-B-32, got 'opnai'.*openai"):
        check_model(ModelSpec(backbone="open_clip:ViT-B-32", dim=512, weights="opnai"))
    with pytest.raises(BenchError, match="dim: expected 16, the width of open_clip:tiny-clip"):
        Encoder("open_clip:tiny-clip", 8, 3, 32, project=False)


def test_from_captions_to_a_record_without_training_the_pair(tiny, tmp_path):
    model, path = tiny
    imagenet(tmp_path / "data")
    settings = {
        "old.backbone": "open_clip:tiny-clip", "old.weights": str(path), "old.project": False,
        "old.dim": 16, "new.backbone": "convnet-4", "new.dim": 16, "new.recipe": {"epochs": 1},
        "data.captions": "captions.csv", "data.image_size": 32, "recipe.batch_size": 16,
        "recipe.precision": "32-true", "recipe.warmup": 0.0, "recipe.lr": 0.01,
    }  # fmt: skip
    options = {
        "methods": ["bct"], "protocol": "modality", "track": "imagenet-bt2",
        "data_root": tmp_path / "data", "settings": settings,
    }  # fmt: skip
    records = run(**options, store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"))
    record = records[-1]
    assert record.status == "done" and record.models["old"].weights == path.name
    assert record.counts["old/new"]["n_query"] == N_CLASSES * N_TEST, "every caption asks"
    store, plan = Store(tmp_path / "s"), make_request(**options).plan()
    (trained,) = (s for s in plan.stages if s.title.startswith("train old text and image"))
    scale = load_module(store.path(trained.name) / "head.safetensors").scale
    assert scale == pytest.approx(25.0) and store.meta(trained.name)["facts"]["weights_sha256"]
    made = next(s for s in plan.stages if s.title.startswith("embed test images: independent, old"))
    vectors = np.load(store.path(made.name) / "vectors.npy")
    captions = [f"a picture of thing {i}, seen {k} times" for i in range(20) for k in range(2)]
    with torch.no_grad():
        want = model.encode_text(
            pytest.importorskip("open_clip").get_tokenizer("tiny-clip")(captions)
        )
    np.testing.assert_allclose(vectors, want.numpy(), rtol=1e-4, atol=1e-5)


def test_only_a_pretrained_pair_goes_without_training(tiny):
    with pytest.raises(
        BenchError, match=r"generations\[1\] 'new': recipe\.epochs: expected at least 1"
    ):
        make_request(["bct"], "modality", "toy", settings={"new.recipe": {"epochs": 0}})
