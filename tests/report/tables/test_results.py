import io
import re

import pandas as pd
from support.objects import changed

from benchmark.report import make_table, make_tables
from benchmark.report.renderers import render
from benchmark.report.tables.results import text_table


def read_csv(*tables, **options):
    """Some tables as CSV, read back."""
    return pd.read_csv(io.StringIO(render([*map(text_table, tables)], "csv")), **options)


def test_csv_read_back_equals_the_records(records):
    table = read_csv(make_table(records, "all", "all"))
    for record in records:
        mine = table[table.method == record.method]
        if record.status != "done":
            assert list(mine.reason) == [record.reason]
            continue
        found = {(r.case, r.metric): (r.value, r.low, r.high) for r in mine.itertuples()}
        assert found == {
            (case, metric): (value, *record.intervals[case][metric])
            for case, scores in record.scores.items()
            for metric, value in scores.items()
        }
        cross = mine[mine.case == "new/old"].iloc[0]
        assert bool(cross.compatible) == record.compatible["cmc_at_1"]
        gain = record.update_gain["cmc_at_1"]
        assert pd.isna(cross.gain) if gain is None else cross.gain == gain


def test_csv_says_what_was_changed(records):
    """Lines of a changed run look like those of the run itself but for that."""
    made = [changed(record, changed={"bct.weight": 2}) for record in records]
    table = read_csv(*make_tables([*records, *made]), keep_default_na=False)
    assert table.changed.value_counts().to_dict() == dict.fromkeys(
        ("", "bct.weight=2"), len(table) / 2
    )


def test_csv_has_verdicts_on_the_case_that_they_are_of(make):
    """Of a chain that is the newest model on the oldest gallery, whatever is shown first."""
    models = {name: {"backbone": "convnet-4", "dim": 8, "head": "softmax"} for name in "abc"}
    scores = {"c/a": {"map": 0.6}, "c/b": {"map": 0.7}, "c/c": {"map": 0.8}}
    made = changed(make(), models=models, scores=scores, intervals={}, compatible={"map": True})
    for cases, expected in (("c/b", {"c/b": ""}), ("c/b,c/a", {"c/b": "", "c/a": "1.0"})):
        rows = read_csv(make_table([made], "map", cases), keep_default_na=False, dtype=str)
        rows = rows[rows.kind == "method"]
        assert dict(zip(rows.case, rows.compatible, strict=True)) == expected


def test_csv_says_what_diverged(make):
    made = [make("bct"), make("l2", diverged={"train l2 (seed 0)": "its loss rises from 2 to 3"})]
    table = read_csv(make_table(made), keep_default_na=False)
    told = table[table.kind == "method"].groupby("method").reason.unique()
    assert list(told.bct) == [""] and ["diverged" in words for words in told.l2] == [True]


def test_csv_has_the_bounds_under_their_own_case(records):
    table = read_csv(make_table(records))
    lower = table[table.method == "lower"]
    assert list(lower.case) == ["old/old"]
    assert list(lower.value) == [0.5]


def test_markdown(records):
    text = render(text_table(make_table(records)), "markdown")
    assert "### Open-Class on Glyphs, seed 0" in text
    head = "| CMC@1 | new/old cross-test | new/new self-test | old'/old' converted | compatible |"
    assert head in text
    assert "| bct | **60.0** ±2.0 | 80.0 ±2.0 | - | yes | **25.0** |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows}) == 1
    assert r"\<discarded\> \& gone\_50%" in text


def test_latex(records):
    text = render(text_table(make_table(records)), "latex")
    for part in (r"\toprule", r"\bottomrule", r"\caption{", r"\label{tab:open-class-glyphs}"):
        assert part in text
    assert r"bct & \textbf{60.0} {\scriptsize $\pm$2.0}" in text
    assert r"needs the old head, \textless{}discarded\textgreater{} \& gone\_50\%" in text
    lines = (line for line in text.splitlines() if line.endswith(r"\\"))
    bodies = [line for line in lines if "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in bodies} == {5}
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
