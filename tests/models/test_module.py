"""Modules that go to disk and come back, and files that must be refused."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmark.errors import BenchError
from benchmark.models.backbones import Encoder
from benchmark.models.heads import Head
from benchmark.models.module import load_module, save_module
from benchmark.models.transformation import Transformation
from benchmark.training.side_simclr import SideEncoder


def encoder():
    return Encoder("convnet-4", 8, 1, 16).to(memory_format=torch.channels_last)


MAKE = {
    "encoder": (encoder, (torch.rand(5, 1, 16, 16),)),
    "timm": (lambda: Encoder("timm:resnet10t", 8, 3, 32), (torch.rand(3, 3, 32, 32),)),
    "softmax": (lambda: Head("softmax", 8, [3, 9, 4], smoothing=0.1), None),
    "arcface": (lambda: Head("arcface", 8, [3, 9, 4], scale=16.0, margin=0.2), None),
    "map": (
        lambda: Transformation(8, 4, 6, 16, True, branch=8),
        (torch.rand(5, 8), torch.rand(5, 4)),
    ),
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


def test_a_head_keeps_what_is_not_a_weight(tmp_path):
    save_module(
        Head("arcface", 8, [3, 9, 4], scale=16.0, margin=0.2, smoothing=0.1), tmp_path / "h"
    )
    back = load_module(tmp_path / "h")
    assert (back.kind, back.scale, back.margin, back.smoothing) == ("arcface", 16.0, 0.2, 0.1)
    assert back.classes.tolist() == [3, 9, 4]


def test_same_module_same_bytes(tmp_path):
    torch.manual_seed(0)
    module = encoder()
    save_module(module, tmp_path / "a")
    save_module(module, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "m.safetensors"
    save_module(Head("softmax", 4, [0, 1, 2]), path)
    return path


def rewrite(path, metadata, tensors=None):
    state = load_file(path) if tensors is None else tensors
    save_file(state, path, metadata=metadata)


@pytest.mark.parametrize("cut", [0, 5, 100, -4])
def test_a_truncated_file(stored, cut):
    stored.write_bytes(stored.read_bytes()[:cut])
    with pytest.raises(BenchError, match="not a stored module"):
        load_module(stored)


def test_a_missing_file(tmp_path):
    with pytest.raises(BenchError, match="cannot be read: No such file"):
        load_module(tmp_path / "none.safetensors")


def test_a_pickle_is_not_read(stored):
    torch.save({"weight": torch.zeros(3, 4)}, stored)
    with pytest.raises(BenchError, match="not a stored module"):
        load_module(stored)


HEAD = "benchmark.models.heads:Head"
ARGUMENTS = {"kind": "softmax", "dim": 4, "classes": [0, 1, 2]}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (None, "not a stored module"),
        ({"module": "{"}, "not a stored module"),
        ({"module": "[]"}, "not a stored module"),
        ({"module": json.dumps({"class": HEAD})}, "not a stored module"),
        ({"module": json.dumps({"class": HEAD, "arguments": {"no": 1}})}, "not a stored module"),
        ({"module": json.dumps({"class": HEAD, "arguments": {**ARGUMENTS, "dim": 5}})}, "size"),
        (
            {"module": json.dumps({"class": "os:system", "arguments": {}})},
            "no.? a? ?Portable|not a",
        ),
        ({"module": json.dumps({"class": "torch.nn:Linear", "arguments": {}})}, "Portable"),
        ({"module": json.dumps({"class": "no_such_module:X", "arguments": {}})}, "no_such_module"),
        ({"module": json.dumps({"class": "methods.fct:Nope", "arguments": {}})}, "Portable"),
        ({"module": json.dumps({"class": "", "arguments": {}})}, "not a stored module"),
    ],
)
def test_what_is_not_a_portable_module(stored, metadata, words):
    rewrite(stored, metadata)
    with pytest.raises(BenchError, match=words) as caught:
        load_module(stored)
    assert str(stored) in str(caught.value) and "\n" not in str(caught.value)


def test_other_tensors_than_the_class_has(stored):
    metadata = {"module": json.dumps({"class": HEAD, "arguments": ARGUMENTS})}
    rewrite(stored, metadata, {"weight": torch.zeros(3, 4)})
    with pytest.raises(BenchError, match="not a stored module"):
        load_module(stored)


def test_a_copy_is_a_module_of_its_own():
    made = Head("arcface", 4, [3, 1], scale=2.0)
    other = copy.deepcopy(made)
    assert other.arguments == made.arguments and other.scale == 2.0
    assert torch.equal(other.weight, made.weight) and other.weight is not made.weight
