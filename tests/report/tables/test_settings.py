"""Tables of settings, from records made by hand."""

import pytest

from benchmark.errors import BenchError
from benchmark.report.renderers import render
from benchmark.report.tables import record_tables, settings

OLD = {"backbone": "convnet-32", "dim": 64, "head": "softmax", "relu": False}
NEW = {**OLD, "head": "cosface"}


@pytest.fixture
def paired(make):
    """Two settings of loss-change, and a record without settings."""

    def one(setting, method, cross, **fields):
        models = {"old": OLD, "new": {**NEW, "relu": setting == "relu"}}
        return make(method, cross, 0.8, protocol=f"loss-change:{setting}", models=models, **fields)

    return [
        one("relu", "bct", 0.2), one("relu", "independent", 0.01),
        one("softmax-cosface", "fct", 0.6, converted=0.55),
        one("softmax-cosface", "bct", 0.4), one("softmax-cosface", "independent", 0.01),
        one("softmax-cosface", "lwf", 0.0, reason="no old head"),
        make("bct", 0.6, 0.8),
    ]  # fmt: skip


def test_settings_in_the_protocol_s_order_bounds_and_best(paired) -> None:
    (table,) = settings.make_tables(paired)
    assert table.slug == "loss-change-glyphs-cmc_at_1"
    assert [column.head for column in table.blocks[0].columns] == [
        "old/old", "new/old", "old'/old'", "new/new", "compatible", "gain",
    ]  # fmt: skip
    assert [tuple(label.text for label in row.labels) for row in table.rows] == [
        ("softmax to cosface", "independent"), ("softmax to cosface", "bct"),
        ("softmax to cosface", "fct"), ("softmax to cosface", "lwf"),
        ("cosface to cosface with ReLU", "independent"), ("cosface to cosface with ReLU", "bct"),
    ]  # fmt: skip
    fct, lwf, bct = (table.rows[i].cells[0] for i in (2, 3, 5))
    assert [cell.text for cell in fct] == ["50.0", "60.0", "55.0", "80.0", "yes", "25.0"]
    assert [cell.text for cell in lwf] == ["n/a"]
    assert fct[1].best and bct[1].best, "each is the best of its own setting"


def test_plain_text_fits_and_says_what_was_compared(paired) -> None:
    text = render(settings.make_tables(paired), "terminal")
    assert max(map(len, text.splitlines())) <= 100 and text.count("softmax to cosface ") == 1
    assert "cosface to cosface with ReLU: old convnet-32, 64 dimensions, softmax; new" in text
    assert "cosface, ReLU." in text and "lwf: not applicable: no old head" in text
    rows = [line for line in text.splitlines() if " fct " in line]
    assert rows[0].split() == ["fct", "50.0", "*60.0", "*55.0", "80.0", "yes", "25.0"]


def test_markdown_and_latex(paired) -> None:
    tables = settings.make_tables(paired)
    assert "| softmax to cosface | fct | 50.0 | **60.0** ±2.0 |" in render(tables, "markdown")
    latex = render(tables, "latex")
    assert latex.count("\\cmidrule") == 1 and "\\label{tab:loss-change-glyphs-cmc-at-1}" in latex
    assert render(tables, "csv") == ""


def test_records_without_settings_stay_with_the_others(paired) -> None:
    alone, _ = settings.split_settings(paired)
    assert [r.protocol for r in alone] == ["open-class"]
    assert settings.make_tables(alone) == []
    with pytest.raises(BenchError, match="unknown metric 'mpa'"):
        record_tables(paired, "mpa")


def test_a_reason_stands_once_whatever_the_number_of_seeds(paired, make) -> None:
    refused = [
        make("lwf", reason="too few items", seed=seed, protocol="loss-change:relu")
        for seed in (0, 1)
    ]
    table = settings.make_tables([*paired, *refused])[-1]
    assert [note for note in table.notes if "too few items" in note] == [
        f"{next(iter(settings.by_setting(refused)))}: lwf: not applicable: too few items"
    ]


def test_one_line_where_all_settings_have_the_same_models(make) -> None:
    same = {"old": OLD, "new": NEW}
    records = [make("bct", 0.6, 0.8, protocol=f"unseen:{s}", models=same) for s in ("seen", "half")]
    text = render(settings.make_tables(records), "terminal")
    assert text.count("convnet-32, 64 dimensions, softmax") == 1 and "Models: old" in text


def test_warnings_stand_behind_their_setting_and_once_where_all_have_them(make) -> None:
    why = {"train bct (seed 0)": "its loss rises from 1 to 2"}
    models = {"old": OLD, "new": NEW}
    records = [
        make(method, score, protocol=f"unseen:{setting}", models=models, seed=seed, **fields)
        for setting, fields in (("seen", {"diverged": why}), ("half", {}))
        for method, score, seeds in (("bct", 0.9, (0, 1)), ("fct", 0.7, (0, 1)), ("l2", 0.8, (0,)))
        for seed in seeds
        for fields in ([fields] if (method, seed) == ("bct", 0) else [{}])
    ]
    (table,) = settings.make_tables(records)
    shown = {(row.labels[0].text, row.labels[1].text): row.cells[0][1].best for row in table.rows}
    seen, half = settings.by_setting(records)
    assert shown == {
        (seen, "bct (diverged)"): False, (seen, "fct"): True, (seen, "l2"): False,
        (half, "bct"): True, (half, "fct"): False, (half, "l2"): False,
    }  # fmt: skip
    assert table.notes[0].endswith("a setting's column, of those with seeds 0, 1.")
    assert (
        f"Warning: {seen}: trainings that diverged or ended too early, so no ranks: "
        "train bct (seed 0): its loss rises from 1 to 2."
    ) in table.notes
    assert table.notes.count("l2: seed 0 only.") == 1
    (alone,) = settings.make_tables([r for r in records if (r.protocol, r.method) != (
        "unseen:half", "l2"
    )])  # fmt: skip
    assert alone.notes[0].endswith(f"a setting's column ({seen}, of those with seeds 0, 1).")
    assert f"{seen}: l2: seed 0 only." in alone.notes


def test_cases_and_avg_are_chosen_as_in_the_table_of_methods(make) -> None:
    tests = {"tar_at_far_1e-4": 0.6, "tpir_at_fpir_1e-2": 0.5}
    own = {"tar_at_far_1e-4": 0.8, "tpir_at_fpir_1e-2": 0.7}
    made = [make("bct", tests, own, protocol=f"unseen:{name}") for name in ("seen", "half")]
    for record in made:
        record.scores["old/new"] = record.scores["new/old"]

    def heads(metrics, cases=None):
        return [
            [column.head for column in table.blocks[0].columns[:-2]]
            for table in settings.make_tables(made, metrics, cases)
        ]

    assert heads("avg") == [["new/old + new/new"]]
    assert settings.make_tables(made, "avg")[0].rows[0].cells[0][0].text == "65.0"
    chosen = "new/old - old/old,new/new"
    assert heads("tar_at_far_1e-4,avg", chosen) == [chosen.split(","), ["new/old + new/new"]]
    (table,) = settings.make_tables(made, "tar_at_far_1e-4", chosen)
    assert [cell.text for cell in table.rows[0].cells[0]][:2] == ["+10.0", "80.0"]
    assert settings.make_tables(made, None, "old'/old'") == []
