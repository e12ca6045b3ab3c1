"""The card of a method: words, notes beside the parameters, costs by records."""

import re

import pytest
from support.objects import changed

from benchmark.records.files import read_record, write_record
from benchmark.report.card import MEASURED, field_notes, method_card
from benchmark.report.costs import added_parameters


def test_notes():
    source = "    a: int = 3  # eq. 1\n    b: float = 0.5  # section 2; 0: none\n    c: int = 1\n"
    assert field_notes(source) == {"a": "eq. 1", "b": "section 2; 0: none"}
    below = (
        "    d: int = 1  # this and what follows as fct\n    e: int = 1\n    f: int = 2  # own\n"
    )
    assert field_notes(source + below)["e"] == "as fct" and field_notes(below)["f"] == "own"


def test_words(tmp_path):
    card = method_card("bct:distill", tmp_path)
    assert card["needs"] == ["the old classifier", "stored old features"]
    assert card["cost"] == "not measured yet"
    assert card["parameters"]["weight"] == "1.0  # lambda, BCT eq. 7"
    assert card["parameters"]["unknown"].startswith("'distill'")
    assert method_card("fct:simclr", tmp_path)["needs"][1] == "side-information simclr"
    assert method_card("l2", tmp_path)["needs"] == ["stored old features"]
    assert method_card("bct", tmp_path)["needs"][1] == "the old classifier where it is kept"
    assert "the old model" in method_card("d-simplex:hoc", tmp_path)["needs"][0]
    assert method_card("bt2", tmp_path)["needs"][-1] == "32 extra dimensions"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("fastfill", ["the new classifier", "labels"]),
        ("fastfill:disc", ["the new classifier", "labels"]),
        ("fastfill:l2", []),
        ("lce", ["the new classifier", "labels"]),
        ("fct", []),
        ("fct:kl", ["the new classifier"]),
        ("fct:reversed-kl", ["the new classifier"]),
        ("rbt", []),
        ("rbt:kl", ["the new classifier"]),
    ],
)
def test_who_asks_the_new_classifier(tmp_path, name, asked):
    plain = ["the independent new model", "old and new features of the same images"]
    assert method_card(name, tmp_path)["needs"] == [*plain, *asked]


@pytest.mark.parametrize(
    ("name", "needs", "changes", "trains"),
    [
        ("keep-old", ["the old model"], [], "nothing: "),
        ("random", ["nothing but new data"], [], "nothing: "),
        ("oracle-concat", ["the independent new model"], ["dimension"], "nothing: "),
        ("independent", ["the independent new model"], [], "the new model alone"),
        ("bct", ["stored old features"], ["training"], "a new model"),
        ("fct", ["the independent new model"], ["gallery"], "no model: "),
    ],
)
def test_controls_train_nothing(tmp_path, name, needs, changes, trains):
    card = method_card(name, tmp_path)
    assert card["needs"][: len(needs)] == needs and card["changes"] == changes
    assert card["trains"].startswith(trains)


def test_a_smaller_model_adds_no_negative_parameters(tmp_path):
    kept = method_card("keep-old")["added parameters"]
    assert re.fullmatch(r"[\d,]+ fewer( to [\d,]+ more)? than the independent model", kept)
    added = method_card("oracle-concat")["added parameters"]  # a range over networks of tracks
    assert re.fullmatch(r"[\d,]+( to [\d,]+)?", added)


def test_a_model_of_another_backbone_is_not_compared():
    """Records of an earlier version of a track stand beside newer ones."""
    record = read_record(next(MEASURED.glob("open-class/*/oracle-concat/seed-0.json")))
    of = record.models
    alone = changed(record, cost={"parameters": 10, "added_parameters": 0})
    assert added_parameters(record, alone) == record.cost.parameters - 10
    other = {name: model.model_copy(update={"backbone": "other"}) for name, model in of.items()}
    assert added_parameters(record, alone.model_copy(update={"models": other})) is None


def test_parameters_of_a_larger_model_count_as_added(tmp_path):
    alone, own = (
        read_record(next(MEASURED.glob(f"open-class/*/{m}/seed-0.json")))
        for m in ("independent", "bct")
    )
    larger = {"parameters": alone.cost.parameters + 1000, "added_parameters": 234}
    for record in (alone, changed(own, cost=larger)):
        write_record(record.path(tmp_path), record)
    assert method_card("bct", tmp_path / "measured")["added parameters"] == "1,234"


@pytest.mark.parametrize("name", ["bct", "fct", "l2"])
def test_costs_by_the_committed_records(name):
    assert (method_card(name)["added parameters"] == "0") == (name != "fct")


def test_training_cost_is_the_median_of_the_records(tmp_path):
    made = read_record(next(MEASURED.glob("*/*/bct/seed-0.json")))
    for seed, cost in enumerate((1.5, None, 1.0, 1.25)):
        record = changed(made, seed=seed, run={**made.as_json()["run"], "training_cost": cost})
        write_record(record.path(tmp_path), record)
    card = method_card("bct", tmp_path / "measured")
    assert card["training cost"].startswith("1.25 of the independent model's (median of 3 records")
