"""The sentence on plain baselines: which of them the best method of a board is not above."""

import pytest
from support.records import make_record
from support.sites import boards_of

from leaderboard.rank import answers
from leaderboard.rank.answers import plain_words
from leaderboard.read.methods import method_info

LOWERS = (0.5, 0.6, 0.4)


def board(**methods):
    """new/old of each method on three old models, as margins above old/old; new/new is 0.9."""
    records = [
        make_record(name.replace("_", "-"), low + margin, 0.9, seed, lower=low, high=0.9)
        for name, margins in methods.items()
        for seed, (low, margin) in enumerate(zip(LOWERS, margins, strict=False))
    ]
    return boards_of(records)[0]


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        # Of upgrades of 0.4, 0.3, 0.5 it is above by 0.25, 0.367, 0.18: 0.27 ± 4.30 * 0.094 / 3^0.5
        ({"linear_500": (0.10, 0.09, 0.11)}, ""),
        # By 0.05, -0.033, 0.02: 0.01 ± 0.10
        ({"linear_500": (0.18, 0.21, 0.19)}, "a linear map from 500 pairs"),
        ({"class_mean": (0.3, 0.3, 0.31)}, "relabelling the gallery by class means"),
        (
            {"linear_500": (0.18, 0.21, 0.19), "class_mean": (0.3, 0.3, 0.31)},
            "relabelling the gallery by class means and a linear map from 500 pairs",
        ),
        ({"linear_500": (0.2, 0.2)}, ""),  # two seeds have no interval
        ({}, ""),
    ],
)
def test_which_baselines_are_named(plain, said):
    made = board(independent=(-0.5, -0.6, -0.4), fct=(0.2, 0.2, 0.2), **plain)
    words = plain_words(made, "fct")
    whole = f"fct, the best method, is not above {said}, beyond the interval."
    assert words == (whole if said else "")
    lines = answers.board_answer(made)["lines"]
    assert (words in lines) == bool(said)


def test_keeping_the_old_model_needs_no_record():
    """It keeps nothing of an upgrade: shares of 0.05, -0.033, 0.06 do not tell a method from it."""
    made = board(independent=(-0.5, -0.6, -0.4), fct=(0.02, -0.01, 0.03))
    assert "not above keeping the old model, beyond" in plain_words(made, "fct")
    sure = board(independent=(-0.5, -0.6, -0.4), fct=(0.2, 0.19, 0.21))
    assert plain_words(sure, "fct") == "" == plain_words(sure, None)


def test_a_map_of_gallery_and_queries_is_a_conversion():
    """Only what leaves the stored index as it is may be called a map of the queries."""
    ways = {n: answers.way(method_info(n)) for n in ("relative", "linear", "linear:query")}
    assert ways == {"relative": "convert", "linear": "convert", "linear:query": "query"}
    assert answers.way(method_info("linear-500")) is None  # a control
