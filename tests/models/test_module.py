"""Modules that go to disk and come back, and files that must be refused."""

import copy

import pytest
import torch

from benchmark.errors import BenchError
from benchmark.models.backbones import Encoder
from benchmark.models.basis import BasisTransformation
from benchmark.models.heads import Head, SimplexHead
from benchmark.models.module import load_module, save_module
from benchmark.models.transformation import Transformation
from benchmark.training.side_simclr import SideEncoder


def encoder():
    return Encoder("convnet-4", 8, 1, 16).to(memory_format=torch.channels_last)


IMAGES = torch.rand(3, 3, 32, 32)
MAKE = {
    "encoder": (encoder, (torch.rand(5, 1, 16, 16),)),
    "timm": (lambda: Encoder("timm:resnet10t", 8, 3, 32), (torch.rand(3, 3, 32, 32),)),
    "softmax": (lambda: Head("softmax", 8, [3, 9, 4], smoothing=0.1), None),
    "arcface": (lambda: Head("arcface", 8, [3, 9, 4], scale=16.0, margin=0.2), None),
    "map": (
        lambda: Transformation(8, 4, 6, 16, True, branch=8),
        (torch.rand(5, 8), torch.rand(5, 4)),
    ),
    "basis": (lambda: BasisTransformation(6, 5, 2, 1.5), (torch.rand(5, 11),)),
    "simplex": (lambda: SimplexHead("arcface", 9), None),
    "large simplex": (lambda: SimplexHead("arcface", 700), (torch.rand(4, 699), torch.arange(4))),
    "vit": (lambda: Encoder("vit-32x2", 8, 1, 32), (torch.rand(3, 1, 32, 32),)),
    "face vit": (lambda: Encoder("vit-t", 4, 3, 36), (torch.rand(3, 3, 36, 36),)),
    "mobilenet": (lambda: Encoder("mobilenet-4x9", 8, 3, 32, neck=True), (IMAGES,)),
    "side": (lambda: SideEncoder("convnet-4", 1, 16, dim=6), (torch.rand(5, 1, 16, 16),)),
}


@pytest.mark.parametrize("name", MAKE)
def test_round_trip(name, tmp_path):
    make, given = MAKE[name]
    module = make()
    if given is not None:
        module(*given)  # moves the statistics of batch norms
    module.eval()
    path = tmp_path / "m.safetensors"
    save_module(module, path)
    back = load_module(path).eval()
    assert type(back) is type(module)
    assert back.arguments == module.arguments
    assert back.state_dict().keys() == module.state_dict().keys()
    for key, value in module.state_dict().items():
        assert torch.equal(back.state_dict()[key], value), key
    given = given or (torch.rand(4, 8), torch.tensor([0, 2, 1, 1]))
    with torch.inference_mode():
        out, wanted = back(*given), module(*given)
    for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (out, wanted)], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_same_module_same_bytes(tmp_path):
    torch.manual_seed(0)
    module = encoder()
    save_module(module, tmp_path / "a")
    save_module(module, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_missing_file(tmp_path):
    with pytest.raises(BenchError, match="cannot be read: No such file"):
        load_module(tmp_path / "none.safetensors")


def test_a_pickle_is_not_read(tmp_path):
    torch.save({"weight": torch.zeros(3, 4)}, tmp_path / "m")
    with pytest.raises(BenchError, match="not a stored module"):
        load_module(tmp_path / "m")


def test_a_copy_is_a_module_of_its_own():
    made = Head("arcface", 4, [3, 1], scale=2.0)
    other = copy.deepcopy(made)
    assert other.arguments == made.arguments and other.scale == 2.0
    assert torch.equal(other.weight, made.weight) and other.weight is not made.weight
