"""Pretrained weights: loaded into what they are for, refused with one line elsewhere."""

import json

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file

from benchmark.api import run
from benchmark.config.files import sha256_of
from benchmark.config.recipes import ModelSpec
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.models.backbones import Encoder, check_model, trunk
from benchmark.models.module import load_module, save_module
from benchmark.models.weights import load_weights, statistics_of, weights_file

RESNET, VIT = "timm:resnet10t", "timm:vit_tiny_patch16_224"


def stored(model, path, **changes):
    state = {k: v.clone() for k, v in model.state_dict().items()} | changes
    save_file({k: v for k, v in state.items() if v is not None}, path)
    return path


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A file as timm's hub has it: another initialisation, with the classifier of ImageNet."""
    torch.manual_seed(7)
    model = timm.create_model("resnet10t", num_classes=1000)
    return stored(model, tmp_path_factory.mktemp("w") / "resnet.safetensors")


def spec(path, backbone=RESNET, **changes):
    return ModelSpec(backbone=backbone, dim=8, weights=str(path), **changes)


def test_a_backbone_takes_its_tensors_and_leaves_the_classifier(pretrained):
    model, width = trunk(RESNET, 3, 32)
    load_weights(model, spec(pretrained), pretrained)
    source = timm.create_model("resnet10t", num_classes=1000)
    source.load_state_dict(load_file(pretrained))
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        expected = source.eval().forward_head(source.forward_features(images), pre_logits=True)
        assert torch.equal(model.eval()(images), expected) and expected.shape == (2, width)


def test_places_are_interpolated_as_timm_does(tmp_path):
    torch.manual_seed(1)
    source = timm.create_model("vit_tiny_patch16_224", num_classes=10)
    path = stored(source, tmp_path / "vit.safetensors")
    check_model(spec(path, VIT))
    model, _ = trunk(VIT, 3, 64)
    load_weights(model, spec(path, VIT), path)
    peer = timm.create_model(
        "vit_tiny_patch16_224", pretrained=True, num_classes=0, img_size=64,
        pretrained_cfg_overlay={"file": str(path), "num_classes": 10},
    )  # fmt: skip
    for key, value in peer.state_dict().items():
        assert torch.equal(model.state_dict()[key], value), key


def test_grey_images_get_the_sum_over_colours_as_in_timm(pretrained):
    model, _ = trunk(RESNET, 1, 32)
    load_weights(model, spec(pretrained), pretrained)
    colours = load_file(pretrained)["conv1.0.weight"]
    torch.testing.assert_close(model.state_dict()["conv1.0.weight"], colours.sum(1, keepdim=True))


def test_what_a_run_of_ours_stored_is_weights_too(tmp_path):
    torch.manual_seed(3)
    whole = Encoder("convnet-4", 12, 3, 32)
    save_module(whole, tmp_path / "model.safetensors")
    model, _ = trunk("convnet-4", 3, 32)
    chosen = spec(tmp_path / "model.safetensors", "convnet-4")
    check_model(chosen)
    load_weights(model, chosen, weights_file(chosen))
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(model.eval()(images), whole.trunk.eval()(images))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layer4.0.conv1.weight": None}, "'layer4.0.conv1.weight': expected .*no such tensor"),
        ({"layer5.weight": torch.zeros(2)}, "'layer5.weight': expected no such tensor, got"),
        (
            {"layer4.0.conv1.weight": torch.zeros(512, 3, 3, 3)},
            r"'layer4.0.conv1.weight': expected \(512, 256, 3, 3\), got \(512, 3, 3, 3\)",
        ),
    ],
    ids=["missing", "unexpected", "shape"],
)
def test_other_tensors_are_refused_before_anything_is_trained(pretrained, tmp_path, changes, words):
    state = {**load_file(pretrained), **changes}
    path = tmp_path / "w.safetensors"
    save_file({k: v for k, v in state.items() if v is not None}, path)
    with pytest.raises(BenchError, match=words) as caught:
        make_request(["bct"], "open-class", "toy", settings=of_new(path)).plan()
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def of_new(path, **changes):
    backbone = {"new.backbone": RESNET, "new.input_size": 32}
    return {"new.weights": str(path), **backbone, **changes}


def test_another_hash_another_format_and_no_file(pretrained, tmp_path):
    with pytest.raises(BenchError, match=f"expected SHA-256 {'0' * 64}, got"):
        make_request(
            ["bct"], "open-class", "toy",
            settings=of_new(pretrained, **{"new.weights_sha256": "0" * 64}),
        )  # fmt: skip
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes(pretrained.read_bytes()[:1000])
    with pytest.raises(BenchError, match=r"torn.safetensors: not a safetensors file"):
        check_model(spec(torn))
    with pytest.raises(BenchError, match="which does not exist"):
        make_request(["bct"], "open-class", "toy", settings=of_new(tmp_path / "no.safetensors"))
    with pytest.raises(BenchError, match="a tag of the backbone's library, package:<"):
        make_request(["bct"], "open-class", "toy", settings=of_new("/etc/weights.bin"))


def test_an_unknown_tag_names_near_ones():
    with pytest.raises(BenchError, match=r"a tag of timm:resnet18, got 'tv_in1kk'.*tv_in1k"):
        check_model(spec("tv_in1kk", "timm:resnet18"))
    with pytest.raises(BenchError, match="a tag of convnet-4, got 'tv_in1k': there is none"):
        check_model(spec("tv_in1k", "convnet-4"))
    check_model(spec("tv_in1k", "timm:resnet18"))


HUB = """
import sys
from benchmark.config.recipes import ModelSpec
from benchmark.errors import BenchError
from benchmark.models.weights import weights_file
spec = ModelSpec(backbone="timm:resnet18", dim=8, weights="tv_in1k")
try:
    print(weights_file(spec))
except BenchError as error:
    print("refused:", error)
"""


@pytest.mark.slow  # a process that imports timm, twice
def test_a_tag_is_taken_from_the_hub_s_cache_or_refused_without_a_network(tmp_path, monkeypatch):
    """The hub's own layout of a cache, and its own switch for machines without a network."""
    import os
    import subprocess
    import sys

    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}

    def found():
        done = subprocess.run(
            [sys.executable, "-c", HUB], env=environment, text=True, capture_output=True, check=True
        )
        return done.stdout.strip()

    refused = found()
    assert refused.startswith("refused: weights: tv_in1k of timm:resnet18 cannot be downloaded")
    assert "give a local safetensors file" in refused and "\n" not in refused
    place = tmp_path / "models--timm--resnet18.tv_in1k"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc")
    file = place / "snapshots" / "abc" / "model.safetensors"
    file.parent.mkdir(parents=True)
    save_file({"x": torch.zeros(1)}, file)
    assert found() == str(file)


def test_images_are_scaled_to_what_the_weights_expect(pretrained):
    assert statistics_of(spec(pretrained)) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert statistics_of(ModelSpec(backbone=RESNET, dim=8)) is None
    encoder = Encoder(RESNET, 8, 3, 32, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    pixels = torch.rand(2, 3, 32, 32)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in statistics_of(spec(pretrained)))
    torch.testing.assert_close(encoder.prepared(2 * pixels - 1), (pixels - mean) / std)


def test_from_a_file_to_a_record(pretrained, tmp_path):
    """Both models start from the file, the record has its hash and no folder of this machine."""
    settings = of_new(
        pretrained, **{"recipe.epochs": 1, "recipe.lr": 0.0, "data.classes": 8, "data.images": 4}
    )
    records = run(
        ["bct"], "open-class", "toy", settings=settings, store=tmp_path / "s", out=tmp_path / "o",
        compute=Compute("cpu"),
    )  # fmt: skip
    assert [r.method for r in records] == ["independent", "bct"]
    for record in records:
        model = record.models["new"]
        assert model.weights == pretrained.name
        assert model.weights_sha256 == sha256_of(pretrained)
        assert str(pretrained.parent) not in json.dumps(record.as_json())
    trained = list((tmp_path / "s").rglob("model.safetensors"))
    colours = load_file(pretrained)["conv1.0.weight"].sum(1, keepdim=True)
    held = [load_file(path) for path in trained]
    same = [np.allclose(s["trunk.conv1.0.weight"], colours) for s in held if "trunk.bn1.bias" in s]
    assert len(same) == 2 and all(same), "the rate is 0: weights are as they were"
    loaded = [load_module(path) for path in trained]
    assert {tuple(m.arguments.get("mean", ())) for m in loaded} == {(), (0.485, 0.456, 0.406)}


def test_where_a_file_lies_names_no_stage(pretrained, tmp_path):
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(pretrained.read_bytes())
    plans = [
        make_request(["bct"], "open-class", "toy", settings=of_new(path)).plan()
        for path in (pretrained, copy)
    ]
    names = [[stage.name for stage in plan.stages] for plan in plans]
    assert names[0] == names[1] and plans[0].results[0].key == plans[1].results[0].key
    other = stored(timm.create_model("resnet10t"), tmp_path / "other.safetensors")
    third = make_request(["bct"], "open-class", "toy", settings=of_new(other)).plan()
    assert {*names[0]} - {stage.name for stage in third.stages}


@pytest.mark.parametrize(
    "prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."]
)
def test_names_behind_a_wrapper_are_the_model_s(pretrained, tmp_path, prefix):
    path = tmp_path / "wrapped.safetensors"
    save_file({f"{prefix}{k}": v for k, v in load_file(pretrained).items()}, path)
    check_model(spec(path))
    (wrapped, _), (plain, _) = trunk(RESNET, 3, 32), trunk(RESNET, 3, 32)
    load_weights(wrapped, spec(path), path)
    load_weights(plain, spec(pretrained), pretrained)
    assert all(torch.equal(a, b) for a, b in zip(
        wrapped.state_dict().values(), plain.state_dict().values(), strict=True
    ))  # fmt: skip
    some = {
        f"{prefix if i else ''}{k}": v for i, (k, v) in enumerate(load_file(pretrained).items())
    }
    save_file(some, path)
    with pytest.raises(BenchError, match="no such tensor"):
        check_model(spec(path))


@pytest.mark.parametrize(
    ("key", "number", "said"),
    [
        ("bn1.running_mean", float("nan"), "'bn1.running_mean': expected finite numbers"),
        ("layer1.0.conv1.weight", float("inf"), "'layer1.0.conv1.weight': expected finite"),
        ("bn1.running_var", -1.0, "'bn1.running_var': expected variances, got one below 0"),
    ],
)
def test_numbers_that_end_in_nan_are_told_before_anything_is_trained(
    pretrained, tmp_path, key, number, said
):
    changed = load_file(pretrained)
    changed[key].view(-1)[0] = number
    path = tmp_path / "bad.safetensors"
    save_file(changed, path)
    with pytest.raises(BenchError, match=said):
        make_request(["bct"], "open-class", "toy", settings=of_new(path)).plan()
    model, _ = trunk(RESNET, 3, 32)
    with pytest.raises(BenchError, match=said):
        load_weights(model, spec(path), path)


def test_a_name_with_a_tag_is_the_tag_s_weights():
    tagged = ModelSpec(backbone="timm:resnet18.tv_in1k", dim=8)
    assert tagged == ModelSpec(backbone="timm:resnet18", dim=8, weights="tv_in1k")
    assert tagged == ModelSpec(backbone="timm:resnet18.tv_in1k", dim=8, weights="tv_in1k")
    settings = {"new.backbone": "timm:resnet18.tv_in1k"}
    request = make_request(["bct"], "open-class", "toy", settings=settings)
    (model,) = [each for each in request.setup.models if each.weights]
    assert (model.backbone, model.weights) == ("timm:resnet18", "tv_in1k")
    with pytest.raises(BenchError, match="expected 'tv_in1k' or none beside the backbone"):
        make_request(["bct"], "open-class", "toy", settings=settings | {"new.weights": "a1_in1k"})
    with pytest.raises(BenchError, match=r"got 'tv_in1kk'.*tv_in1k"):
        make_request(
            ["bct"], "open-class", "toy", settings={"new.backbone": "timm:resnet18.tv_in1kk"}
        ).plan()
