"""Warnings of an update that helps nobody: on terminals, below tables and on pages."""

import pytest
from support.command import call
from support.records import make_record
from support.sites import write

from benchmark.config import registry
from benchmark.report import make_table, outcome
from benchmark.report.tables import record_tables

NOBODY = "none of these methods beats keeping the old model: no cross-test exceeds the lower bound"
LOWER = "the upper bound lies below the lower one, so no update can gain"


def lines(*records, metrics=("cmc_at_1",)):
    return list(outcome.warnings({"": records}, metrics))


def test_a_method_that_beats_the_old_model_says_nothing():
    assert lines(make_record("bct", 0.6), make_record("l2", 0.4)) == []
    assert lines(make_record("independent", 0.01)) == [], "there is no method"


def test_no_method_beats_the_old_model():
    records = [make_record("bct", 0.5), make_record("l2", 0.4), make_record("independent", 0.01)]
    assert lines(*records) == [f"Warning: by CMC@1 {NOBODY}."]
    controls = [make_record("oracle-concat", 0.9), make_record("keep-old", 0.5)]
    assert lines(*records, *controls) == [f"Warning: by CMC@1 {NOBODY}."]
    assert lines(*controls) == []


def test_the_mean_over_the_seeds_counts():
    above = [make_record("bct", c, seed=s, lower=0.5) for s, c in ((0, 0.7), (1, 0.4))]
    below = [make_record("bct", c, seed=s, lower=0.5) for s, c in ((0, 0.55), (1, 0.4))]
    assert lines(*above) == [] and len(lines(*below)) == 1
    ends = [make_record("bct", seed=s, high=h, lower=0.5) for s, h in ((0, 0.9), (1, 0.4))]
    assert lines(*ends) == []
    assert lines(*ends[1:]) == [f"Warning: by CMC@1 {LOWER}."]


def test_only_metrics_that_are_shown_are_named():
    record = make_record("bct", {"cmc_at_1": 0.4, "map": 0.6}, {"cmc_at_1": 0.8, "map": 0.8})
    assert lines(record, metrics=["map"]) == []
    assert lines(record, metrics=["cmc_at_1", "map"]) == [f"Warning: by CMC@1 {NOBODY}."]


def test_tables_say_it(tmp_path):
    record = make_record("bct", 0.4, high=0.45)
    assert [n for n in make_table([record]).notes if n.startswith("Warning")] == [
        f"Warning: by CMC@1 {LOWER}.", f"Warning: by CMC@1 {NOBODY}.",
    ]  # fmt: skip
    code, out, _ = call("table", write([record], tmp_path))
    assert code == 0 and NOBODY in " ".join(out.split())


def test_tables_of_settings_name_the_setting():
    records = [
        make_record("bct", cross, protocol=f"loss-change:{name}")
        for name, cross in (("relu", 0.4), ("softmax-softmax", 0.6))
    ]
    (table,) = record_tables(records)
    warned = [note for note in table.notes if note.startswith("Warning")]
    assert len(warned) == 1 and "ReLU" in warned[0] and warned[0].endswith(f"by CMC@1 {NOBODY}.")


@pytest.mark.parametrize(
    "name", ["bct", "fct", "independent", "keep-old", "oracle-concat", "random"]
)
def test_controls_are_known_without_importing_them(name):
    assert registry.method_file(name).control == registry.method(name).control
