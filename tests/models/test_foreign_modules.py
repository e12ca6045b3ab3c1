"""Modules in files of others: nothing is imported by a name in them, nothing large is allocated."""

import importlib
import json
import resource
import sys

import pytest
from safetensors.torch import load_file, save_file

from benchmark.config import registry
from benchmark.errors import BenchError
from benchmark.models.basis import BasisTransformation
from benchmark.models.heads import Head, SimplexHead
from benchmark.models.module import Portable, load_module, save_module

HEAD = {"kind": "softmax", "dim": 4, "classes": [0, 1, 2]}


def head(**arguments):
    return {"class": "benchmark.models.heads:Head", "arguments": {**HEAD, **arguments}}


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "m.safetensors"
    save_module(Head("softmax", 4, [0, 1, 2]), path)
    return path


def rewritten(path, description, tensors=None):
    text = description if isinstance(description, str) else json.dumps(description)
    save_file(load_file(path) if tensors is None else tensors, path, metadata={"module": text})


def refused(path, words):
    with pytest.raises(BenchError, match=words) as caught:
        load_module(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A module in the current folder, which leaves a marker when it is imported."""
    marker = tmp_path / "it-ran"
    (tmp_path / "planted_here.py").write_text(
        "import pathlib\nfrom benchmark.models.module import Portable\n"
        f"pathlib.Path({str(marker)!r}).write_text('')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    yield marker
    sys.modules.pop("planted_here", None)


@pytest.mark.parametrize("name", ["planted_here:Portable", "planted_here:X", "planted_here:", ":"])
def test_a_module_in_the_current_folder_does_not_run(planted, stored, name):
    rewritten(stored, {"class": name, "arguments": {}})
    refused(stored, "unknown Portable class")
    assert not planted.exists()
    importlib.import_module("planted_here")  # the marker works
    assert planted.exists()


def test_a_class_of_a_method_is_found_without_being_imported_before(tmp_path):
    name = "methods.low_rank:Narrow"
    assert registry.modules_defining(name) == ("methods.low_rank",)
    assert registry.modules_defining("os:system") == ()
    assert registry.modules_defining("methods.missing:X") == ()


def test_a_class_of_an_installed_method(tmp_path, monkeypatch):
    """Another package's method may define its modules in another file of that package."""
    (tmp_path / "their").mkdir()
    (tmp_path / "their" / "__init__.py").write_text("")
    (tmp_path / "their" / "nets.py").write_text(
        "from torch import nn\nfrom benchmark.models.module import Portable\n"
        "class Net(Portable):\n    def __init__(self, dim):\n"
        "        super().__init__()\n        self.linear = nn.Linear(dim, dim)\n"
    )
    (tmp_path / "their" / "method.py").write_text("from their.nets import Net\n")
    monkeypatch.syspath_prepend(tmp_path)
    net = importlib.import_module("their.nets").Net(3)
    save_module(net, tmp_path / "n")
    for name in ("their", "their.nets"):
        sys.modules.pop(name)
    monkeypatch.delitem(Portable.known, "their.nets:Net")
    refused(tmp_path / "n", "unknown Portable class")
    method = registry.MethodFile("theirs", "their.method", tmp_path / "their" / "method.py")
    files = {**registry.method_files(), "theirs": method}
    monkeypatch.setattr(registry, "method_files", lambda: files)
    assert load_module(tmp_path / "n").linear.weight.shape == (3, 3)


@pytest.mark.parametrize(
    "description",
    [
        head(dim=10**9),
        head(dim=10**12),
        head(dim=10**30),
        head(dim=-1),
        head(dim="4"),
        head(dim=[4]),
        head(dim=None),
        head(classes=3),
        head(classes=None),
        head(kind=["softmax"]),
        {"class": "benchmark.models.heads:SimplexHead",
         "arguments": {"kind": "arcface", "count": 50_000}},
        {"class": "benchmark.models.heads:SimplexHead",
         "arguments": {"kind": "arcface", "count": 10**12}},
        {"class": "benchmark.models.parts:Affine",
         "arguments": {"dim_in": 10**6, "dim_out": 10**6}},
        {"class": "benchmark.models.transformation:Bottlenecks",
         "arguments": {"dim_old": 1, "dim_new": 1, "blocks": 10**9, "width": 1, "normalise": True}},
        {"class": "benchmark.models.basis:Rotation", "arguments": {"dim": 60_000}},
        {"class": "benchmark.models.backbones:Encoder",
         "arguments": {"backbone": "convnet-4x1000000000", "dim": 4, "channels": 1,
                       "image_size": 8}},
        {"class": "benchmark.models.backbones:Encoder",
         "arguments": {"backbone": "vit-16", "dim": 4, "channels": 1, "image_size": 10**9}},
        {"class": "benchmark.models.backbones:Encoder",
         "arguments": {"backbone": "timm:vit_giant_patch14_224", "dim": 4, "channels": 3,
                       "image_size": 224}},
        {"class": "benchmark.models.backbones:Encoder",
         "arguments": {"backbone": "timm:hf-hub:x/y", "dim": 4, "channels": 3, "image_size": 224}},
    ],
)  # fmt: skip
def test_large_modules_take_no_memory(stored, description):
    rewritten(stored, description)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(stored, "not a stored module")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000  # KiB; importing timm takes half of it


def test_the_measure_of_memory_sees_an_allocation():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Head("softmax", 100_000, range(2000))  # 800 MB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > 300_000


def nested(n, inner):
    for _ in range(n):
        arguments = {"map": {"portable": inner}}
        inner = {"class": "benchmark.models.parts:KeepSide", "arguments": arguments}
    return inner


def test_modules_inside_modules(stored):
    tensors = {f"{'map.' * 3}{key}": value for key, value in load_file(stored).items()}
    rewritten(stored, nested(3, head()), tensors)
    assert load_module(stored).map.map.map.dim == 4
    rewritten(stored, nested(40, head()))
    refused(stored, "at most 16 modules inside each other")


def test_the_allowance_of_large_ones_is_their_own_size(tmp_path):
    """Beyond the spare numbers, where only those of the file count."""
    made = BasisTransformation(1100, 1000, 10, 1.5)
    save_module(made, tmp_path / "m")
    assert load_module(tmp_path / "m").extra == 10
    save_module(SimplexHead("arcface", 2100), tmp_path / "h")
    assert load_module(tmp_path / "h").dim == 2099
