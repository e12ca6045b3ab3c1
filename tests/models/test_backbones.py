"""The encoders: shapes, names, and what an embedding may not depend on."""

import pytest
import timm
import torch
from torch import nn

from benchmark.errors import BenchError
from benchmark.models.backbones import Encoder, check_backbone, to_unit, trunk
from benchmark.models.frozen import folded


def test_a_transformer_takes_the_image_size():
    out = Encoder("timm:vit_tiny_patch16_224", 6, 1, 32)(torch.rand(2, 1, 32, 32))
    assert out.shape == (2, 6)


def test_alexnet_up_to_its_last_layer_but_one():
    """61,100,840 parameters with the classifier of ImageNet, of which that has 4,097,000."""
    model, width = trunk("torchvision:alexnet", 3, 224)
    assert (width, sum(p.numel() for p in model.parameters())) == (4096, 61100840 - 4097000)
    for channels, size in ((3, 63), (1, 64)):
        model, _ = trunk("torchvision:alexnet", channels, size)
        assert model.eval()(torch.rand(2, channels, size, size)).shape == (2, 4096)
    with pytest.raises(BenchError, match="expected images of 63 pixels or more a side, got 32"):
        Encoder("torchvision:alexnet", 8, 3, 32)
    check_backbone("torchvision:alexnet")
    with pytest.raises(BenchError, match="unknown backbone 'torchvision:vgg11'"):
        check_backbone("torchvision:vgg11")


@pytest.mark.parametrize(("depth", "count"), [(18, 24_025_600), (34, 34_139_328), (50, 43_590_848)])
def test_iresnet_has_the_parameters_of_its_source(depth, count):
    """As arcface_torch/backbones/iresnet.py counts them with 512 numbers; 100 has 65,156,160."""
    model = Encoder(f"iresnet-{depth}", 512, 3, 112)
    assert sum(p.numel() for p in model.parameters()) == count


def test_iresnet_flattens_and_keeps_the_factors_of_its_output_at_one():
    model, width = trunk("iresnet-18", 3, 112)
    assert width == 512 * 7 * 7
    assert model.eval()(torch.rand(1, 3, 112, 112)).shape == (1, width)
    encoder = Encoder("iresnet-18", 8, 1, 40)
    assert encoder(torch.rand(2, 1, 40, 40)).shape == (2, 8)
    fixed = {name for name, p in encoder.named_parameters() if not p.requires_grad}
    assert fixed == {"project.1.weight"} and (encoder.project[1].weight == 1).all()


@pytest.mark.parametrize(
    "name", ["convnet-0", "convnet", "resnet50", "convnet--4", "convnet-4x", "iresnet-51", ""]
)
def test_unknown_names(name):
    with pytest.raises(BenchError, match="unknown backbone"):
        check_backbone(name)


def test_unknown_timm_name_shows_near_ones():
    with pytest.raises(BenchError, match="timm:resnet"):
        check_backbone("timm:resnet9000")


def test_to_unit():
    images = torch.tensor([0, 255, 51], dtype=torch.uint8)
    torch.testing.assert_close(to_unit(images), torch.tensor([-1.0, 1.0, -0.6]))
    assert images.tolist() == [0, 255, 51]


class _NormFirst(nn.Module):
    """A normalisation that is defined after the convolution, and called before it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)

    def forward(self, images):
        return self.conv(self.norm(images)).mean((2, 3))


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet18", "norm first"])
def test_norms_are_folded_where_that_changes_rounding_alone(name):
    generator = torch.Generator().manual_seed(0)
    network = _NormFirst() if name == "norm first" else timm.create_model(name, num_classes=0)
    for norm in (each for each in network.modules() if isinstance(each, nn.BatchNorm2d)):
        for values, low in ((norm.running_var, 0.5), (norm.weight.data, 0.5), (norm.bias.data, 0)):
            values.copy_(low + torch.rand(values.shape, generator=generator))
    network.eval().requires_grad_(False)
    images = torch.rand(2, 3, 64, 64, generator=generator) * 2 - 1
    with torch.inference_mode():
        found = folded(network, images)
        left = [each for each in found.modules() if isinstance(each, nn.BatchNorm2d)]
        assert len(left) == (1 if name == "norm first" else 0)
        torch.testing.assert_close(found(images), network(images), rtol=1e-3, atol=1e-3)
