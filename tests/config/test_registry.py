"""Fingerprints of adapters: of their code, not of their words or their layout."""

import re
import sys

import pytest

from benchmark.config import registry
from benchmark.config.declarations import FIDELITIES
from benchmark.config.fingerprints import fingerprint, names_map_training
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.contract import LearnedMap, TrainedVectorMap
from benchmark.errors import BenchError, PassedOverWarning
from benchmark.harness.graph import record_key

CODE = b'''"""A method."""

from dataclasses import dataclass


@dataclass(frozen=True)
class A:
    """What it does."""

    weight: float = 1.0  # lambda, eq. 3
    share: float | None = None
    """The share."""

    def loss(self, x, *, y=None):
        """The loss."""
        if x > 0:
            return f"{x!r:>{self.weight}}", {"a": [1, 2], **y}  # both
        return None
'''
SAME = [
    (b"A method.", b"Another word for it."),
    (b"  # lambda, eq. 3", b""),
    (b"What it does.", b"What it does.\n\n    And why.\n    "),
    (b'    """The share."""\n', b""),
    (b'        """The loss."""\n', b""),
    (b'"a": [1, 2], **y', b"\n            'a': [\n    1, 2,\n            ],\n            **y"),
    (b"if x > 0:", b"if (x > 0):"),
    (b"1.0", b"1.00"),
]
OTHER = [
    (b"1.0", b"2.0"),
    (b"1.0", b"1"),
    (b"x > 0", b"x >= 0"),
    (b"[1, 2]", b"[2, 1]"),
    (b"*, y=None", b"y=None"),
    (b"return None", b"return"),
    (b'"a"', b'b"a"'),
    (b"!r", b"!s"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_words_and_layout_do_not_count(old, new):
    assert CODE.count(old) == 1
    assert fingerprint(CODE.replace(old, new)) == fingerprint(CODE)


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_what_is_computed_counts(old, new):
    assert CODE.count(old) == 1
    assert fingerprint(CODE.replace(old, new)) != fingerprint(CODE)


def test_it_is_the_same_on_every_python():
    """Found by 3.11: newer ones give a tree more fields, all of them empty."""
    assert fingerprint(CODE) == "ad3bfda8a622beaa8d222c0be5411a39780d35ff153014a4011c063032c77c4e"


SAYS = b"    weight: float = 1.0"


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (b'    fidelity = "paper"\n', False),
        (b'    fidelity = {"": "paper", "hoc": "second-hand"}\n', False),
        (b"    baseline = 'hardly any work'\n", False),
        (b'    fidelity: str = "paper"\n', True),  # a parameter
        (b"    fidelity = 3\n", True),
        (b"    fidelity = chosen()\n", True),
        (b'    fidelity = paper = "paper"\n', True),
        (b'    paper = "paper"\n', True),
    ],
)
def test_what_a_method_was_built_from_is_no_part_of_its_code(line, counts):
    assert (fingerprint(CODE.replace(SAYS, line + SAYS)) != fingerprint(CODE)) == counts


def test_a_name_that_is_used_counts_whatever_it_is():
    local = b'        fidelity = "paper"\n'
    within = CODE.replace(b"        return None", local + b"        return None")
    assert fingerprint(within) != fingerprint(CODE)
    assert fingerprint(b'fidelity = "paper"\n' + CODE) != fingerprint(CODE)


@pytest.mark.parametrize("name", registry.method_files())
def test_every_method_says_what_it_was_built_from(name):
    file = registry.method_file(name)
    said = [file.fidelity(variant) for variant in ("", *file.variants)]
    assert set(said) <= FIDELITIES.keys()
    text = file.path.read_bytes()
    without = re.sub(rb"\n    fidelity = [^\n]+", b"", text)
    assert len(without) < len(text) and fingerprint(without) == fingerprint(text)


def test_a_variant_with_a_file_of_its_own_names_its_method():
    for name, file in registry.method_files().items():
        assert file.variant_of == registry.method(name).variant_of
        assert not file.variant_of or file.variant_of in registry.method_files()
    assert registry.method_file("bt2-code").variant_of == "bt2"


def test_second_hand_sources_are_told_apart(tmp_path, monkeypatch):
    second = {n for n, f in registry.method_files().items() if f.fidelity() == "second-hand"}
    assert second > {"rank-merge", "csd", "matryoshka-bct", "matryoshka-bt2"}
    assert "lambda-orthogonal-full" in second and not second & {"bct", "fct", "mixbct", "keep-old"}
    merge = registry.method_file("score-merge")
    assert (merge.fidelity(), merge.fidelity("z-score")) == ("paper", "second-hand")
    wrong = registry.MethodFile("mine", "mine", tmp_path / "mine.py")
    wrong.path.write_text('class A:\n    fidelity = "papr"\n')
    with pytest.raises(BenchError, match=r"mine.py: fidelity 'papr'; did you mean 'paper'"):
        wrong.fidelity()


def test_it_names_the_work():
    bct, variant = (registry.method_file(name) for name in ("bct", "bct:distill"))
    assert bct.fingerprint == variant.fingerprint
    names = {registry.method_file(name).fingerprint for name in registry.method_files()}
    assert len(names) == len(registry.method_files())


@pytest.mark.parametrize("name", registry.method_files())
def test_its_file_shows_whether_a_method_trains_a_map(name):
    method = registry.method(name)
    trains = isinstance(method, LearnedMap | TrainedVectorMap)
    trains |= "fit_map" in vars(sys.modules[type(method).__module__])
    trains |= any(registry.method_file(other).trains_map for other in method.builds_on)
    assert registry.method_file(name).builds_on == method.builds_on
    assert registry.method_file(name).trains_map == trains


@pytest.mark.parametrize(("name", "counts"), [("bct", False), ("linear", False), ("fct", True)])
def test_steps_of_maps_count_where_a_map_is_trained(name, counts):
    def key(**recipe):
        track = load_track("glyphs")
        track = track.model_copy(update={"recipe": track.recipe.model_copy(update=recipe)})
        return record_key(set_up(load_protocol("open-class"), track, {}, []), {}, name, 0, None)

    assert (key(transform_steps=7) != key(transform_steps=8)) == counts
    assert (key(transform_batch=64) != key(transform_batch=128)) == counts
    assert key(epochs=2) != key(epochs=3)


def test_what_a_method_builds_on_is_a_part_of_its_code(monkeypatch):
    file = registry.method_file("drift-adapter")
    assert file.builds_on == ("procrustes", "low-rank", "residual-mlp") and file.trains_map
    before, plain = file.fingerprint, registry.MethodFile.source
    changed = registry.method_file("low-rank").path
    monkeypatch.setattr(
        registry.MethodFile, "source",
        property(lambda self: plain.fget(self) + b"\nMORE = 1" * (self.path == changed)),
    )  # fmt: skip
    assert registry.method_file("drift-adapter").fingerprint != before
    assert registry.method_file("procrustes").builds_on == ()


def test_what_a_method_imports_is_a_part_of_its_code(tmp_path, monkeypatch):
    """Modules of its package, directly or by way of others, and files of yours; nothing else."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "ourplug"
    package.mkdir()
    files = {
        "__init__": "", "helper": "from ourplug import deep\n", "deep": "RATE = 1\n",
        "alone": "X = 1\n",
        "adapter": "import json\nimport numpy as np\nimport loosefile\n"
                   "from benchmark import contract\nfrom .helper import fit\n"
                   "from methods.linear import Linear\n",
    }  # fmt: skip
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    (tmp_path / "loosefile.py").write_text("Y = 1\n")
    file = registry.MethodFile("adapter", "ourplug.adapter", package / "adapter.py")
    known = {each.module for each in file.imported}
    assert {"ourplug.helper", "ourplug.deep", "loosefile", "methods.linear"} <= known
    assert not known & {"json", "numpy", "ourplug.alone", "ourplug.adapter", "benchmark"}
    before = file.fingerprint
    (package / "alone.py").write_text("X = 2\n")
    (package / "deep.py").write_text("RATE = 1  # as it was\n")
    assert file.fingerprint == before
    (package / "deep.py").write_text("RATE = 2\n")
    assert file.fingerprint != before
    assert registry.method_file("bct").imported == ()


@pytest.mark.parametrize(("code", "counts"), [
    ("def fit(trainer):\n    return trainer.recipe.transform_steps\n", True),
    ("from benchmark import contract\nF = contract.fit_map\n", True),
    ("STEPS = 'transform_batch'\n", True), ("from benchmark.contract import VectorMap\n", False),
])  # fmt: skip
def test_a_file_that_names_steps_of_maps_trains_one(code, counts):
    assert names_map_training(code.encode()) == counts


def test_only_what_is_declared_is_built_on():
    drift = registry.method("drift-adapter")
    assert drift.other("low-rank", rank=3).direction == drift.direction == "query"
    with pytest.raises(TypeError, match="linear: expected one of builds_on"):
        drift.other("linear")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a_b.py", "method 'a-b' is in a-b.py"),
        ("new.py", "expected another name than those of generations and of what --set changes"),
        ("recipe.py", "expected another name than those of generations and of what --set changes"),
        ("My Map.py", "expected lower-case letters and digits, with hyphens between"),
    ],
)
def test_files_that_are_passed_over(tmp_path, monkeypatch, name, reason) -> None:
    for file in ("a-b.py", name, "zz.py"):
        (tmp_path / file).write_bytes(CODE)
    monkeypatch.setattr(registry, "_folder", lambda _: tmp_path)
    try:
        registry._methods.cache_clear()
        with pytest.warns(PassedOverWarning, match=f"{re.escape(name)}: {reason}") as told:
            files = registry.method_files()
    finally:
        registry._methods.cache_clear()
    assert len(told) == 1 and files["a-b"].path.name == "a-b.py" and files.keys() == {"a-b", "zz"}
