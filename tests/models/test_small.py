"""The small trunks: shapes, depth, what each family is."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmark.errors import BenchError
from benchmark.models.backbones import ConvBlock, Encoder, check_backbone, trunk
from benchmark.models.module import load_module, save_module

NAMES = ["convnet-8", "convnet-8x2", "plain-8", "plain-8x3", "mobilenet-8", "vit-32", "vit-16x2"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("channels", "size"), [(1, 32), (3, 16), (1, 30)])
def test_shapes_and_gradients(name, channels, size) -> None:
    made, width = trunk(name, channels, size)
    out = made(torch.rand(3, channels, size, size))
    assert out.shape == (3, width) and out.dtype == torch.float32
    out.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in made.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_an_embedding_is_its_image_s_alone_and_comes_back_from_disk(name, tmp_path) -> None:
    torch.manual_seed(0)
    model = Encoder(name, 8, 1, 32).eval()
    images = torch.rand(5, 1, 32, 32)
    save_module(model, tmp_path / "m.safetensors")
    again = load_module(tmp_path / "m.safetensors").eval()
    with torch.inference_mode():
        together = model(images)
        alone = torch.cat([model(images[i : i + 1]) for i in range(5)])
        assert torch.equal(again(images), together) and together.shape == (5, 8)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def convolutions(name: str) -> list[nn.Conv2d]:
    return [m for m in trunk(name, 1, 32)[0].modules() if isinstance(m, nn.Conv2d)]


def test_depth_counts_blocks_a_stage() -> None:
    # A stem, two 3 x 3 a block, and a 1 x 1 shortcut where channels or size change.
    names = ("convnet-8", "convnet-8x2", "plain-8", "plain-8x2")
    large = [sum(c.kernel_size == (3, 3) for c in convolutions(name)) for name in names]
    assert large == [7, 13, 7, 13]
    assert all(c.kernel_size == (3, 3) for c in convolutions("plain-8x2"))
    assert [len(c) for c in (convolutions("convnet-8"), convolutions("convnet-8x2"))] == [10, 16]


def test_a_mobilenet_s_wide_convolutions_look_at_one_channel() -> None:
    _, *rest = convolutions("mobilenet-8")
    for conv in rest:
        assert conv.kernel_size == (1, 1) or conv.groups == conv.in_channels
    sizes = [sum(p.numel() for p in trunk(n, 1, 32)[0].parameters())
             for n in ("mobilenet-16", "convnet-16")]  # fmt: skip
    assert sizes[0] < sizes[1] / 4


def test_a_transformer_tells_places_apart() -> None:
    torch.manual_seed(0)
    made = trunk("vit-16x1", 1, 32)[0].eval()
    tokens = torch.rand(1, 16, 4, 4)
    inner = made[9:]
    with torch.inference_mode():
        assert not torch.allclose(inner(tokens), inner(tokens.flip(3)), atol=1e-4)


def test_a_width_that_heads_cannot_share() -> None:
    with pytest.raises(BenchError, match="vit-20': width: expected a multiple of 16"):
        trunk("vit-20", 1, 32)


@pytest.mark.parametrize("name", ["convnet-8x0", "convnet-8x", "vitt-16", "mobilenet", "plain-x2"])
def test_names_refused(name) -> None:
    with pytest.raises(BenchError, match=r"expected convnet-, plain-, mobilenet- or vit-<width>"):
        check_backbone(name)


def test_relu_ends_the_embedding() -> None:
    torch.manual_seed(0)
    images = torch.rand(4, 1, 16, 16)
    torch.manual_seed(0)
    plain = Encoder("convnet-4", 8, 1, 16).eval()
    torch.manual_seed(0)
    cut = Encoder("convnet-4", 8, 1, 16, relu=True).eval()
    assert (plain(images) < 0).any()
    assert torch.equal(cut(images), plain(images).relu())


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(3, 8, 2), (8, 8, 1), (8, 16, 2)])
def test_a_block_is_two_convolutions_and_a_strided_shortcut(inputs, outputs, stride) -> None:
    block = ConvBlock(inputs, outputs, stride).eval()
    x = torch.randn(2, inputs, 9, 9, generator=torch.Generator().manual_seed(0))
    y = block.norm1(F.conv2d(x, block.conv1.weight, stride=stride, padding=1)).relu()
    y = block.norm2(F.conv2d(y, block.conv2.weight, padding=1))
    passed = x
    if inputs != outputs:
        passed = block.shortcut[1](F.conv2d(x, block.shortcut[0].weight, stride=stride))
    torch.testing.assert_close(block(x), (y + passed).relu())
