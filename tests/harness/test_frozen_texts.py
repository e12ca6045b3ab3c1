"""Frozen backbones of texts: an embedder made by hand, from its files to a method's record."""

import numpy as np
import pytest
import yaml
from support.tiny_embedders import DIM, WORDS, tiny_embedders

from benchmark.api import run
from benchmark.config.recipes import ModelSpec
from benchmark.data.serialization import read_dataset
from benchmark.data.texts import from_bytes
from benchmark.errors import BenchError, UnsuitedError
from benchmark.harness.execution import Compute
from benchmark.harness.features import ARRAY, ROWS
from benchmark.harness.requests import make_request
from benchmark.harness.store import Store

CLASSES = ("card", "pin", "fee")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Two embedders of a table of vectors each."""
    return tiny_embedders(tmp_path, monkeypatch)


@pytest.fixture
def bank(tmp_path):
    """Questions of three intents, each with its word and some others."""
    rng = np.random.default_rng(0)
    root = tmp_path / "bank"
    root.mkdir()
    for part, n in (("train", 12), ("test", 5)):
        rows = [
            f'"{" ".join([name, *rng.permutation(WORDS[4:])[:3]])}",{name}'
            for name in CLASSES
            for _ in range(n)
        ]
        (root / f"{part}.csv").write_text("\n".join(["text,category", *rows]))
    return root


def options(root, **more):
    settings = {
        f"{name}.{key}": value
        for name in ("old", "new")
        for key, value in (("backbone", f"text:tiny-{name}"), ("dim", 4))
    }
    small = {"recipe.epochs": 2, "recipe.batch_size": 8, "recipe.transform_steps": 4}
    return {
        "protocol": "extended-data", "track": "banking77", "data_root": root,
        "settings": settings | small | more,
    }  # fmt: skip


def test_methods_train_behind_features_of_texts(tiny, bank, tmp_path):
    store = tmp_path / "store"
    records = run(
        ["bct", "linear", "fct:simclr"], **options(bank), store=store, out=tmp_path / "out",
        compute=Compute("cpu"),
    )  # fmt: skip
    found = {record.method: record for record in records}
    assert found["fct:simclr"].status == "not-applicable"
    assert all(found[name].status == "done" for name in ("bct", "linear", "raw-features"))
    stages = make_request(["bct"], **options(bank)).plan().stages
    features = {s.title: s for s in stages if s.kind == "features"}
    assert sorted(features) == ["features by text:tiny-new", "features by text:tiny-old"]
    for name, table in tiny.items():
        stage = features[f"features by text:{name}"]
        folder = Store(store).path(stage.name)
        data = read_dataset(Store(store).path(stage.inputs["data"].name))
        with np.load(folder / ROWS) as rows:
            stored = np.load(folder / ARRAY)[rows["of-train"]]
        for text, vector in zip(from_bytes(data.train.images[:9]), stored, strict=False):
            ids = [WORDS.index(word) for word in text.split()]
            assert vector == pytest.approx(table[ids].mean(0), abs=2e-3)
    facts = Store(store).meta(features["features by text:tiny-new"].name)["facts"]
    # 200 weights, of which the table has 16 times 6; each text has four words.
    assert facts["backbone_multiply_adds"] == (200 - len(WORDS) * DIM) * 4
    assert found["bct"].cost.multiply_adds == facts["backbone_multiply_adds"] + DIM * 4


def test_another_tokenizer_is_another_stage(tiny, bank, tmp_path):
    def name():
        stages = make_request(["bct"], **options(bank)).plan().stages
        return {s.title: s.name for s in stages}["features by text:tiny-new"]

    before = name()
    path = tmp_path / "tiny-new.yaml"
    facts = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(facts | {"title": "other"}))
    assert name() == before
    path.write_text(yaml.safe_dump(facts | {"longest": 3}))
    assert name() != before


def test_texts_and_images_need_their_own_backbones(bank):
    with pytest.raises(UnsuitedError, match=r"expected text:<embedder>, as dataset banking77 has"):
        make_request(["bct"], **options(bank, **{
            "new.backbone": "timm:resnet18", "new.weights": "a1_in1k", "new.frozen": True,
        }))  # fmt: skip
    changes = {f"{g}.backbone": "text:minilm-l3" for g in ("old", "new")}
    frozen = {f"{g}.frozen": True for g in ("old", "new")}
    with pytest.raises(UnsuitedError, match="expected one of images, as dataset toy has images"):
        make_request(["bct"], "open-class", "toy", settings=changes | frozen)
    with pytest.raises(UnsuitedError, match="stored_views: expected 1, as dataset banking77 has"):
        make_request(["bct"], **options(bank, **{
            "old.backbone": "text:minilm-l3", "new.backbone": "text:minilm-l6",
            "recipe.stored_views": 2,
        }))  # fmt: skip
    spec = ModelSpec(backbone="text:minilm-l3", dim=4)
    assert spec.frozen and spec.weights == "package:minilm-l3"
    real = {"old.backbone": "text:minilm-l3", "new.backbone": "text:minilm-l66"}
    with pytest.raises(BenchError, match="did you mean 'minilm-l6'"):
        make_request(["bct"], **options(bank, **real))
    real["new.backbone"] = "text:efficientnet-lite0"
    with pytest.raises(BenchError, match="expected an embedder of texts"):
        run(["bct"], **options(bank, **real), compute=Compute("cpu"))
