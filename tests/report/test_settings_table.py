"""Tables of settings and of groups, from records made by hand."""

import pytest

from benchmark.errors import BenchError
from benchmark.report import groups, settings

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
    assert (table.protocol, table.metric) == ("loss-change", "cmc_at_1")
    assert table.cases == ("old/old", "new/old", "old'/old'", "new/new")
    assert [(r.setting, r.method) for r in table.rows] == [
        ("softmax to cosface", "independent"), ("softmax to cosface", "bct"),
        ("softmax to cosface", "fct"), ("softmax to cosface", "lwf"),
        ("cosface to cosface with ReLU", "independent"), ("cosface to cosface with ReLU", "bct"),
    ]  # fmt: skip
    fct, lwf, bct = table.rows[2], table.rows[3], table.rows[5]
    assert fct.cells["new/old"].best and fct.cells["old/old"].value == 0.5
    assert fct.verdict.compatible == (1, 1) and fct.verdict.gain == pytest.approx(0.25)
    assert lwf.verdict is None and lwf.reason == "no old head"
    assert bct.cells["new/old"].best, "best of its own setting"


def test_plain_text_fits_and_says_what_was_compared(paired) -> None:
    text = settings.render(settings.make_tables(paired), "terminal")
    assert max(map(len, text.splitlines())) <= 100 and text.count("softmax to cosface ") == 1
    assert "cosface to cosface with ReLU: old convnet-32, 64 dimensions, softmax; new" in text
    assert "cosface, ReLU." in text and "lwf not applicable: no old head" in text
    rows = [line for line in text.splitlines() if " fct " in line]
    assert rows[0].split() == ["fct", "50.0", "60.0*", "55.0*", "80.0", "yes", "25.0"]


def test_markdown_and_latex(paired) -> None:
    tables = settings.make_tables(paired)
    assert "| softmax to cosface | fct | 50.0 | **60.0 ±2.0** |" in settings.render(
        tables, "markdown"
    )
    latex = settings.render(tables, "latex")
    assert latex.count("\\cmidrule") == 1 and "\\label{tab:loss-change-glyphs-cmc-at-1}" in latex
    assert settings.render(tables, "csv") == ""


def test_records_without_settings_stay_with_the_others(paired) -> None:
    assert [r.protocol for r in settings.alone(paired)] == ["open-class"]
    assert settings.make_tables(settings.alone(paired)) == []
    with pytest.raises(BenchError, match="unknown metric 'mpa'"):
        settings.make_tables(paired, "mpa")


def test_one_line_where_all_settings_have_the_same_models(make) -> None:
    same = {"old": OLD, "new": NEW}
    records = [make("bct", 0.6, 0.8, protocol=f"unseen:{s}", models=same) for s in ("seen", "half")]
    text = settings.render(settings.make_tables(records), "terminal")
    assert text.count("convnet-32, 64 dimensions, softmax") == 1 and "Models: old" in text


# --- groups


def grouped(make, method, scarce, others, **fields):
    values = {"cmc_at_1": 0.7, "group_scarce__cmc_at_1": scarce, "group_others__cmc_at_1": others,
              "group_gap": others - scarce}  # fmt: skip
    return make(method, values, values, **fields)


def test_a_column_for_each_group_and_the_gap(make) -> None:
    records = [grouped(make, "fct", 0.6, 0.7), grouped(make, "independent", 0.0, 0.01)]
    (table,) = groups.make_tables(records)
    assert table.heads == ("all", "scarce", "others", "gap")
    assert [(r.case, r.method) for r in table.rows] == [
        ("old/old", ""), ("new/old", "independent"), ("new/old", "fct"),
        ("new/new", "independent"), ("new/new", "fct"),
    ]  # fmt: skip
    text = groups.render([table], "terminal")
    assert ["new/old", "fct", "70.0", "60.0", "70.0", "10.0"] in [
        x.split() for x in text.splitlines()
    ]
    assert groups.render([table], "csv") == "" and "| fct |" in groups.render([table], "markdown")
    assert groups.make_tables([make("fct", 0.6, 0.8)]) == []


def test_ranges_stand_in_their_order_and_below_one_another_where_they_do_not_fit(make) -> None:
    values = {f"group_{10 * i}-{10 * i + 10}_%__cmc_at_1": i / 10 for i in range(10)}
    values |= {"group_not_trained_on__cmc_at_1": 0.0, "cmc_at_1": 0.4, "group_gap": 0.9}
    (table,) = groups.make_tables([make("independent", values, values)])
    assert table.heads[1:4] == ("0-10 %", "10-20 %", "20-30 %")
    assert table.heads[-2:] == ("not trained on", "gap")
    text = groups.render([table], "terminal")
    assert max(map(len, text.splitlines())) <= 100 and text.count("query/gallery") == 2


def test_the_gap_while_refilled(make) -> None:
    curve = [0.4 - 0.015 * i for i in range(21)]
    refilled = {
        "old": "old",
        "new": "new",
        "orders": {"random": {"groups": {"gap": curve}}, "priority": {"groups": {}}},
    }
    records = [grouped(make, "fct", 0.6, 0.7, backfilling=refilled)]
    (table,) = groups.make_gap_tables(records)
    assert [(r.case, r.method) for r in table.rows] == [("fct", "random")]
    line = groups.render([table], "terminal").splitlines()[3]
    assert line.split() == ["fct", "random", "40.0", "32.5", "25.0", "17.5", "10.0"]
    assert groups.make_gap_tables([make("fct", 0.6, 0.8, backfilling=refilled)]) == []
