"""Hyper-parameters: what is out of range is refused when a method is made; all have a note."""

import dataclasses
import math
import re
from typing import ClassVar

import pytest

from benchmark.config import registry
from benchmark.config.checks import in_range
from benchmark.config.reading import build
from benchmark.config.recipes import ModelSpec
from benchmark.contract.method import Step
from benchmark.errors import BenchError
from benchmark.report.card import method_card
from methods.contrast import Contrast
from methods.l2 import L2

# Values next to those that are allowed, for every method that has a number of this name.
OUT: dict[str, tuple[float, ...]] = {
    **dict.fromkeys((
        "adversarial", "align", "backward", "border", "classify", "contrast", "doubt", "features",
        "forth", "influence", "kl", "logits", "match", "match_new", "match_old", "penalty", "share",
        "steepness", "threshold", "weight", "weight_decay",
    ), (-1e-9, math.nan)),
    **dict.fromkeys((
        "alpha", "every", "factor", "lam", "lr", "margin", "mu", "scale", "tau", "tau_gallery",
        "tau_query", "temperature",
    ), (0, -1.0, math.nan)),
    **dict.fromkeys(("drop", "warmup"), (-0.1, 1)),
    **dict.fromkeys(("freeze_norm", "ratio", "step"), (-0.1, 1.01)),
    **dict.fromkeys(("extra", "halvings", "hardest", "k", "refinements", "vertices"), (-1,)),
    **dict.fromkeys((
        "anchors", "attempts", "blocks", "bottleneck", "clusters", "hidden", "negatives", "rank",
        "restarts", "runs", "sample", "size", "top", "width", "window",
    ), (0,)),
    **dict.fromkeys(("fine_clusters", "neighbours", "pairs"), (1,)),
    "items": (2,), "most": (3,), "held_out": (0, 1), "prefix": (0, 1.1),
}  # fmt: skip
NARROWER = [
    ("bt2", "extra", 0), ("matryoshka-bt2", "extra", 0), ("bt2", "match_old", math.inf),
    ("mini-vec2vec", "clusters", 1), ("mini-vec2vec", "k", 0), ("unibct", "share", 1),
    ("slerp", "share", 1.1), ("d-simplex", "weight", 1.1), ("bct:distill", "weight", math.nan),
    ("fct:simclr", "lr", math.nan), ("rbt:chain", "warmup", -0.1), ("mixbct:plain", "ratio", 1.1),
]  # fmt: skip
NUMBERS = (int, float, int | None, float | None, "int", "float", "int | None", "float | None")
CASES = NARROWER + [
    (label, field.name, value)
    for label in registry.method_files()
    for field in dataclasses.fields(registry.method_class(label)) if field.type in NUMBERS
    for value in OUT[field.name]
]  # fmt: skip


@pytest.mark.parametrize(("label", "name", "value"), CASES)
def test_a_value_out_of_range_is_refused_in_one_line(label, name, value):
    with pytest.raises(BenchError, match=f"^method {label}: {name}: expected .*got ") as refused:
        registry.method(label, {name: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("label", "params", "said"),
    [
        ("procrustes", {"rank": 3}, "unknown key 'rank'"),
        ("linear", {"share": -1.0}, "share: expected 0 <="),
        ("low-rank", {"share": -1.0}, "share: expected 0 <="),
        *((label, {"side": "simclrr"}, "side: unknown side-information 'simclrr'; did you mean")
          for label in ("fct", "fastfill")),
    ],
)  # fmt: skip
def test_other_parameters_are_refused_in_one_line(label, params, said):
    with pytest.raises(BenchError, match=said) as caught:
        registry.method(label, params)
    assert "\n" not in str(caught.value)


# What papers and published code say, and what a method asks for.
MADE = {
    "bct": ({"weight": 1.0}, ()), "bct:old": ({}, ("old_head",)),
    "bct:distill": ({}, ("old_head",)), "bct-extra": ({"extra": 32}, ()),
    "lwf": ({"weight": 1.0, "temperature": 1.0}, ("old_head",)), "l2": ({"weight": 10.0}, ()),
    "l2:denoised": ({"drop": 0.1}, ()), "mixbct": ({"ratio": 0.3, "drop": 0.1}, ()),
    "contrast:fastfill": ({"tau": Contrast().tau, "hardest": Contrast().hardest}, ()),
    "contrast:top10": ({"tau": 0.01, "hardest": 10, "weight": 1.0}, ()),
    "nccl": ({"features": 1.0, "logits": 0.01, "tau": 1.0, "size": 8192}, ()),
    "unibct": (
        {"share": 0.9, "tau": 0.05, "weight": 1.0, "drop": 0.1, "warmup": 10 / 35,
         "every": 10 / 35}, (),
    ),
    "bt2": (
        {"extra": 32, "factor": 2.0, "match_new": 1.0, "influence": 10.0, "match_old": 5.0},
        ("independent",),
    ),
    "bt2:transformer": ({"classify": "phi_new"}, ("independent",)),
    "fct": (
        {"width": 2048, "lr": 5e-4, "weight_decay": 3.0517578125e-05, "warmup": 5 / 80,
         "freeze_norm": 40 / 80}, ("independent",),
    ),
    "fct:simclr": ({}, ("independent", "side:simclr")),
    "fastfill": (
        {"losses": "both", "uncertainty": True, "diagonal": False, "side": "none", "lr": 5e-4,
         "warmup": 5 / 80}, ("independent",),
    ),
    "fastfill:simclr": ({}, ("independent", "side:simclr")),
    "lce": ({"align": 100, "weight": 1, "border": "cosine"}, ("independent",)),
}  # fmt: skip


@pytest.mark.parametrize("label", MADE)
def test_defaults_and_needs(label):
    made, (values, needs) = registry.method(label), MADE[label]
    assert {name: getattr(made, name) for name in values} == pytest.approx(values)
    assert made.needs == needs


def test_methods_that_change_the_size_say_so():
    for label in ("bct-extra", "bt2", "d-simplex"):
        assert registry.method(label).changes == ("training", "dimension")
    assert registry.method("d-simplex").own_first and not registry.method("fct").own_model


KNOWS_NONE = "the old classifier knows no class of the new data"
STEPS = [  # an update from 8 numbers to others, and how deployments compare
    ("bct", {}, 8, {"shared_classes": False}, None),
    ("bct:old", {}, 8, {"shared_classes": False}, KNOWS_NONE),
    # Distillation asks K for its answers, not for the row of a class.
    ("bct:distill", {}, 8, {"shared_classes": False}, None),
    *((label, {}, dim, {}, said) for label in ("bct", "bct:old", "bct:distill")
      for dim, said in ((8, None), (9, None), (7, "no shorter"))),  # section 3.6
    ("bct-extra", {}, 40, {}, None), ("bct-extra", {}, 7, {}, "no shorter"),
    ("bct-extra", {}, 8, {"shared_classes": False}, None),
    ("bct-extra:distill", {}, 8, {"shared_classes": False}, None),
    ("bct-extra:old", {}, 8, {"shared_classes": False}, "no class"),
    ("lwf", {}, 8, {"shared_classes": False}, None),  # all images are then new
    ("mixbct", {"ratio": 0.9, "drop": 0.1}, 8, {}, None), ("mixbct", {}, 9, {}, "one size"),
    ("mixbct", {"ratio": 0.5, "drop": 0.6}, 8, {},
     "ratio 0.5 of a batch is more than drop 0.6 leaves credible"),
    ("bt2", {}, 5, {}, None), ("bt2", {}, 8, {"distance": "l2"}, "l2"),
    ("d-simplex", {}, 5, {}, None), ("qdc", {}, 8, {}, None),
    ("qdc", {}, 20, {}, "needs embeddings of one size, got 8 and 20"),
    ("slerp", {}, 8, {"distance": "l2"}, "cosine"), ("mini-vec2vec", {}, 8, {}, None),
    ("mini-vec2vec", {}, 12, {}, "one size, got 8 and 12"),
]  # fmt: skip


@pytest.mark.parametrize(("label", "params", "dim", "step", "said"), STEPS)
def test_updates_that_are_refused_beforehand(label, params, dim, step, said):
    old, new = (
        ModelSpec(backbone="convnet-2", dim=d, head="arcface", scale=8.0, margin=0.2)
        for d in (8, dim)
    )
    found = registry.method(label, params).refuses(Step(old, new, **step))
    assert found is None if said is None else said in found


def test_what_the_refusal_says():
    @dataclasses.dataclass
    class Made:
        a: float = 0.0

    for value, interval, said in (
        (-1, "[0, inf)", "a: expected 0 <= a, got -1"),
        (0, "(0, inf)", "a: expected 0 < a, got 0"),
        (math.inf, "[0, inf)", "a: expected 0 <= a < inf, got inf"),
        (1.0, "[0, 1)", "a: expected 0 <= a < 1, got 1.0"),
        (1.5, "[0, 1]", "a: expected 0 <= a <= 1, got 1.5"),
    ):
        with pytest.raises(ValueError) as refused:
            in_range(Made(value), a=interval)
        assert str(refused.value) == said
    in_range(Made(0), a="[0, 1)")
    in_range(Made(1), a="(0, 1]")
    for interval in ("0..1", "[0, 1, 2]", "[low, 1]"):
        with pytest.raises(ValueError, match=r"ranges: a: expected an interval such as \[0, inf\)"):
            in_range(Made(0), a=interval)


def test_an_interval_of_no_field_is_refused_with_the_nearest():
    @dataclasses.dataclass(frozen=True)
    class Slip(L2):
        ranges: ClassVar = {"wieght": "[0, inf)"}

    with pytest.raises(BenchError, match="Slip: ranges: unknown field 'wieght'; did you mean 'wei"):
        build(Slip, {}, "Slip")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"needs": ("old_heed",)}, "needs: unknown word 'old_heed'; did you mean 'old_head'"),
        ({"needs": "old_head"}, "needs: expected a tuple of words, got 'old_head'"),
        ({"changes": ("gallerie",)}, "changes: unknown word 'gallerie'; did you mean 'gallery'"),
    ],
)
def test_a_declaration_that_nobody_reads_is_refused(declared, said):
    slip = dataclasses.dataclass(frozen=True)(type("Slip", (L2,), declared))
    with pytest.raises(BenchError, match=f"method slip: {said}"):
        build(slip, {}, "method slip")


def test_variants_are_names_with_fields():
    with pytest.raises(TypeError, match=r"variants: expected name -> fields, got \['x'\]"):
        type("Slip", (L2,), {"variants": ["x"]})


# Where a default can come from: a place in a paper, published code, or a choice of ours.
SOURCE = re.compile(
    r"\b(section|appendix) [A-Z0-9]|\bTable \d|\beq\. \d|\bFigure \d"
    r"|\bpublished (code|configuration)\b|\bours\b"
)


@pytest.mark.parametrize("name", registry.method_files())
def test_every_field_has_a_note(name, tmp_path):
    for field, words in method_card(name, tmp_path)["parameters"].items():
        note = words.partition("  # ")[2]
        assert SOURCE.search(note), f"{name}: {field}: where does its default come from? '{note}'"


def test_a_bare_note_is_no_source():
    for note in ("", "lambda", "how often", "temperature of the neighbourhood", "as fct", "hours"):
        assert not SOURCE.search(note)
