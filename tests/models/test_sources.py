"""Backbones have the parameters and outputs of their sources."""

import backbones as documented
import pytest
import torch
from torch import nn
from torchvision import models as torchvision_models

from benchmark.models.backbones import Encoder, trunk
from benchmark.models.faces import face_vit_trunk

NAMES = {b.name: b for b in documented.BACKBONES}
TORCHVISION = {
    "timm:resnet18": "resnet18", "timm:resnet50": "resnet50", "timm:resnet101": "resnet101",
    "timm:resnet152": "resnet152", "timm:vgg11_bn": "vgg11_bn", "timm:vgg13_bn": "vgg13_bn",
    "torchvision:alexnet": "alexnet", "timm:vit_base_patch16_224": "vit_b_16",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n, b in NAMES.items() if b.parameters is not None])
def test_parameters_are_the_source_s(name):
    assert documented.parameters(NAMES[name]) == NAMES[name].parameters


@pytest.mark.parametrize("name", TORCHVISION)
def test_the_source_s_number_is_torchvision_s_own(name):
    for weights in torchvision_models.get_model_weights(TORCHVISION[name]):
        if "SWAG" not in weights.name or "LINEAR" in weights.name:
            assert weights.meta["num_params"] == NAMES[name].parameters


@pytest.mark.parametrize("name", ["timm:vgg11_bn", "timm:mobilenetv1_100", "timm:resnet18"])
def test_the_output_is_as_wide_as_it_says(name):
    with torch.device("meta"):
        model, width = trunk(name, 3, 64)
        assert model.eval()(torch.rand(2, 3, 64, 64)).shape == (2, width)


def test_vit_s_flattens_all_tokens_and_standardises_the_embedding():
    model, width = face_vit_trunk("t", 3, 112)
    assert width == 256 and model.place.shape == (1, 144, 256)
    assert model.feature[0].in_features == 144 * 256
    encoder = Encoder("vit-t", 8, 3, 36)
    with torch.no_grad():
        out = encoder(torch.randn(64, 3, 36, 36))
    torch.testing.assert_close(out.mean(0), torch.zeros(8), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std(0, correction=0), torch.ones(8), atol=1e-2, rtol=0)


def test_vit_s_is_deterministic_in_evaluation_and_masks_a_tenth_in_training():
    torch.manual_seed(0)
    model, _ = face_vit_trunk("t", 3, 90)  # 100 tokens
    seen = []
    model.layers.register_forward_hook(lambda module, args, out: seen.append(args[0].shape[1]))
    images = torch.randn(4, 3, 90, 90)
    with torch.no_grad():
        assert torch.equal(model.eval()(images), model(images))
        assert not torch.equal(model.train()(images), model(images))
    assert seen == [100, 100, 90, 90]


def test_masked_tokens_come_back_where_they_were():
    """Without layers between, every token that is kept is at its place and the others are one."""
    torch.manual_seed(1)
    model, _ = face_vit_trunk("t", 3, 90)
    model.layers, model.norm = nn.Sequential(), nn.Identity()
    caught = []
    model.feature = nn.Sequential(nn.Identity())
    model.feature.register_forward_hook(lambda module, args, out: caught.append(args[0]))
    images = torch.randn(2, 3, 90, 90)
    with torch.no_grad():
        nn.init.normal_(model.mask)
        model.train()(images)
        plain = model.patches(images).flatten(2).transpose(1, 2) + model.place
    tokens = caught[0].view(2, 100, 256)
    same = (tokens == plain).all(2)
    assert same.sum(1).tolist() == [90, 90]
    assert (tokens[~same] == model.mask[0, 0]).all()


def test_the_last_stride_doubles_the_last_maps():
    wide = Encoder("timm:resnet18", 8, 3, 64, last_stride=1)
    with torch.no_grad():
        shapes = [
            model.trunk.forward_features(torch.rand(1, 3, 64, 64)).shape[2:]
            for model in (Encoder("timm:resnet18", 8, 3, 64), wide)
        ]
    assert shapes == [(2, 2), (4, 4)]


def test_images_are_scaled_to_the_backbone_s_size():
    encoder = Encoder("convnet-4", 8, 3, 32, input_size=64)
    assert encoder.prepared(torch.rand(2, 3, 32, 32)).shape == (2, 3, 64, 64)
    peer = torch.nn.functional.interpolate(torch.ones(1, 3, 32, 32), size=(64, 64))
    torch.testing.assert_close(encoder.prepared(torch.ones(1, 3, 32, 32)), peer)
