"""Hyper-parameters: what is out of range is refused when a method is made; all have a note."""

import dataclasses
import math
import re

import pytest

from benchmark.config import registry
from benchmark.config.checks import in_range
from benchmark.errors import BenchError
from benchmark.report.card import method_card

# For each method, the values next to those that are allowed.
OUT = {
    "bct": {"weight": -0.1, "temperature": 0},
    "bct:distill": {"weight": math.nan, "temperature": -1.0},
    "bct-extra": {"weight": -1, "temperature": 0.0, "extra": -1},
    "lwf": {"weight": -0.1, "temperature": 0},
    "l2": {"weight": -0.1, "drop": 1},
    "mixbct": {"ratio": -0.1, "drop": 1.0},
    "mixbct:plain": {"ratio": 1.1, "drop": -0.1},
    "contrast": {"weight": -1, "tau": 0, "hardest": -1},
    "unibct": {
        "weight": -1, "share": 1, "tau": 0.0, "drop": 1, "warmup": 1, "every": 0,
        "refinements": -1,
    },
    "nccl": {"features": -1, "logits": -0.1, "tau": 0, "size": 0, "doubt": -0.1},
    "advbct": {"adversarial": -1, "border": -1, "width": 0, "steepness": -1, "threshold": -1},
    "bt2": {"extra": 0, "factor": 0, "match_new": -1, "influence": -1, "match_old": math.inf},
    "d-simplex": {"weight": 1.1, "mu": 0, "vertices": -1},
    "oca": {"extra": -1, "classify": -1, "influence": -0.1, "match": -1},
    "asymmetric": {"margin": 0, "negatives": 0},
    "csd": {"neighbours": 1, "tau_query": 0, "tau_gallery": 0.0},
    "matryoshka-bct": {"extra": -1, "weight": -1, "halvings": -1},
    "matryoshka-bt2": {
        "extra": 0, "factor": 0, "match_new": -1, "influence": -1, "match_old": -1, "halvings": -1,
    },
    "bct-linear": {"weight": -1, "temperature": 0},
    "relative": {"anchors": 0},
    "linear-500": {"pairs": 1},
    "mini-vec2vec": {
        "clusters": 1, "runs": 0, "restarts": 0, "k": 0, "refinements": -1, "sample": 0,
        "step": 1.1, "fine_clusters": 1, "most": 3,
    },
    "lambda-orthogonal-full": {
        "forth": -1, "backward": -1, "contrast": -1, "tau": 0, "threshold": -1, "penalty": -1,
        "alpha": 0, "lr": 0, "weight_decay": -1, "warmup": 1.0,
    },
}  # fmt: skip
CASES = [(label, name, value) for label, values in OUT.items() for name, value in values.items()]


@pytest.mark.parametrize(("label", "name", "value"), CASES)
def test_a_value_out_of_range_is_refused_in_one_line(label, name, value):
    with pytest.raises(BenchError, match=f"^method {label}: {name}: expected .*got ") as refused:
        registry.method(label, {name: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("label", [name for name in OUT if ":" not in name])
def test_every_number_has_a_range(label):
    numbers = {
        f.name
        for f in dataclasses.fields(registry.method_class(label))
        if f.type in (int, float, "int", "float")
    }
    assert numbers == set(OUT[label])


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
