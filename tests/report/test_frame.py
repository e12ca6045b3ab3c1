"""Records as a pandas frame."""

import pandas as pd
import pytest
from support.objects import changed

from benchmark.report.frame import COLUMNS, frame


def test_frame(records):
    table = frame(records)
    assert list(table.columns) == list(COLUMNS)
    cross = table[(table.method == "bct") & (table.case == "new/old")].iloc[0]
    assert (cross.value, cross.low, cross.gain) == (0.6, 0.59, pytest.approx(0.25))
    assert cross.compatible is True or bool(cross.compatible)
    other = table[(table.method == "bct") & (table.case == "new/new")].iloc[0]
    assert pd.isna(other.gain)
    assert pd.isna(other.compatible)
    left_out = table[table.method == "lwf"].iloc[0]
    assert left_out.status == "not-applicable"
    assert pd.isna(left_out["value"])
    assert list(frame([]).columns) == list(COLUMNS)


def test_frame_where_texts_ask(make):
    record = make()
    scores = {"old/new" if case == "new/old" else case: v for case, v in record.scores.items()}
    table = frame([changed(record, scores=scores)])
    assert table[table.case == "old/new"].compatible.tolist() == [True]
    assert table[table.case != "old/new"].compatible.isna().all()


def test_what_was_changed_and_what_diverged_is_told_apart(make):
    """Rows of one method and seed look alike but for these two columns."""
    made = [make(), make(changed={"bct.weight": 2}), make(seed=1, diverged={"train bct": "rises"})]
    table = frame(made).drop_duplicates(["seed", "changed", "diverged"])
    found = table[["seed", "changed", "diverged"]].values.tolist()
    assert found == [[0, "", False], [0, "bct.weight=2", False], [1, "", True]]
