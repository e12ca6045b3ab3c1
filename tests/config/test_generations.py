"""Generations that are apart: fractions and groups that share no image."""

import pytest
from support.protocol_files import write

from benchmark.config.generations import GenerationSpec, overlap, shared_classes
from benchmark.config.loading import load_protocol
from benchmark.errors import BenchError
from benchmark.harness.requests import make_request as request

GROUPS = {"letters": ("Latin", "Greek"), "scarce": ("Greek",), "signs": ("Arrows",)}


def members(roles):
    return [name for role in roles for name in GROUPS[role]]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({}, {}, True),
        ({"classes": (0, 0.3)}, {"classes": (0.3, 1)}, False),
        ({"classes": (0, 0.3)}, {"classes": (0.3, 1), "groups": ("letters",)}, True),
        ({"classes": (0, 0.3), "groups": ("letters",)}, {"classes": (0.3, 1)}, True),
        ({"groups": ("letters",)}, {"groups": ("signs",)}, False),
        ({"groups": ("letters",)}, {"groups": ("scarce",)}, True),
        ({"groups": ("letters",), "classes": (0.0, 0.5)},
         {"groups": ("scarce",), "classes": (0.5, 1.0)}, True),
        ({"groups": ("letters", "scarce"), "classes": (0.0, 0.5)},
         {"groups": ("letters",), "classes": (0.5, 1.0)}, False),
        ({"groups": ("letters",)}, {"groups": ("letters",), "classes": (0.5, 1.0)}, True),
    ],
)  # fmt: skip
def test_fractions_part_classes_of_the_same_groups_alone(one, other, shared):
    """Greek is a letter: fractions of letters and of Greek are of different wholes."""
    pair = GenerationSpec(name="one", **one), GenerationSpec(name="other", **other)
    words = shared_classes(*pair, members)
    assert words == shared_classes(*pair[::-1], members) and bool(words) == shared
    assert (overlap(pair, members) is not None) == shared
    ends = ((0.0, 0.5), (0.5, 1.0))
    halves = [g.model_copy(update={"images": half}) for g, half in zip(pair, ends, strict=True)]
    assert overlap(halves, members) is None, "images count within each class"


def test_apart_is_looked_at_in_the_file_and_again_on_the_track(tmp_path):
    def two(old, new):
        early = {"name": "old", "groups": old, "classes": [0, 0.5]}
        late = {"name": "new", "groups": new, "classes": [0.5, 1]}
        return {"apart": True, "generations": [early, late]}

    with pytest.raises(BenchError, match=r"mine.yaml: generations: .* share groups home, within"):
        load_protocol(write(tmp_path, **two(old=["home"], new=["home", "away"])))
    assert request(["bct"], write(tmp_path, **two(old=["home"], new=["away"])), "toy").setup
    assert request(["bct"], write(tmp_path, **two(old=["away"], new=["scarce"])), "toy").setup
    path = write(tmp_path, **two(old=["home"], new=["scarce"]))
    assert request(["bct"], path, "toy").setup, "home is even, scarce is odd"
    with pytest.raises(BenchError, match=r"mine.yaml: .* on track glyphs .* share groups Latin"):
        request(["bct"], path, "glyphs")
