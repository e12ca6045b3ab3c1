"""The card of a method: words, notes beside the parameters, costs by records."""

from functools import partial

import pytest

from benchmark.card import field_notes, method_card
from benchmark.record import training_cost


def stages(**seconds):
    return {title.replace("_", " ") + " (seed 3)": {"seconds": s} for title, s in seconds.items()}


def test_training_cost():
    both = {"train_old_model": 9.0, "train_independent_new_model": 4.0, "fit_independent": 0.0}
    cost = partial(training_cost, charged=False)
    assert cost(stages(train_bct=5.0, **both), "bct") == 1.25
    assert cost(stages(train_bct=5.0, train_bcts=7.0, **both), "bct") == 1.25
    # A map is charged with the model that it leads to.
    assert training_cost(stages(fit_fct=2.0, **both), "fct", charged=True) == 1.5
    assert cost(stages(**both), "bct") is None
    assert cost(stages(train_bct=5.0), "bct") is None


def test_notes():
    source = "    a: int = 3  # eq. 1\n    b: float = 0.5  # section 2; 0: none\n    c: int = 1\n"
    assert field_notes(source) == {"a": "eq. 1", "b": "section 2; 0: none"}


def test_words(tmp_path):
    card = method_card("bct:distill", tmp_path)
    assert card["needs"] == ["the old classifier"] and card["cost"] == "not measured yet"
    assert card["parameters"]["weight"] == "1.0  # lambda, eq. 7"
    assert card["parameters"]["unknown"].startswith("'distill'")
    assert method_card("fct:simclr", tmp_path)["needs"][1] == "side-information simclr"
    assert method_card("l2", tmp_path)["needs"] == ["nothing but the old model"]


@pytest.mark.parametrize("name", ["bct", "fct", "l2"])
def test_costs_by_the_committed_records(name):
    card = method_card(name)
    assert (card["added parameters"] == "0") == (name != "fct")
    assert "of the independent model's (median of" in card["training cost"]
