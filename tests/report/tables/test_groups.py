"""Tables of groups, from records made by hand."""

from benchmark.report.renderers import render
from benchmark.report.tables import groups


def heads(table):
    return [column.head for column in table.blocks[0].columns]


def labels(table):
    return [tuple(label.text for label in row.labels) for row in table.rows]


def grouped(make, method, scarce, others, **fields):
    values = {"cmc_at_1": 0.7, "group_scarce__cmc_at_1": scarce, "group_others__cmc_at_1": others,
              "group_gap": others - scarce}  # fmt: skip
    return make(method, values, values, **fields)


def test_a_column_for_each_group_and_the_gap(make) -> None:
    records = [grouped(make, "fct", 0.6, 0.7), grouped(make, "independent", 0.0, 0.01)]
    (table,) = groups.make_tables(records)
    assert heads(table) == ["all", "scarce", "others", "gap"]
    assert labels(table) == [
        ("old/old", ""), ("new/old", "independent"), ("new/old", "fct"),
        ("new/new", "independent"), ("new/new", "fct"),
    ]  # fmt: skip
    lines = [line.split() for line in render([table], "terminal").splitlines()]
    assert ["new/old", "fct", "70.0", "60.0", "70.0", "10.0"] in lines
    assert render([table], "csv") == "" and "| fct |" in render([table], "markdown")
    assert groups.make_tables([make("fct", 0.6, 0.8)]) == []
    records[0] = records[0].model_copy(update={"diverged": {"fit fct (seed 0)": "its loss rises"}})
    (table,) = groups.make_tables(records, "new/new")
    assert labels(table) == [("new/new", "independent"), ("new/new", "fct (diverged)")]


def test_ranges_stand_in_their_order_and_below_one_another_where_they_do_not_fit(make) -> None:
    values = {f"group_{10 * i}-{10 * i + 10}_%__cmc_at_1": i / 10 for i in range(10)}
    values |= {"group_not_trained_on__cmc_at_1": 0.0, "cmc_at_1": 0.4, "group_gap": 0.9}
    (table,) = groups.make_tables([make("independent", values, values)])
    assert heads(table)[1:4] == ["0-10 %", "10-20 %", "20-30 %"]
    assert heads(table)[-2:] == ["not trained on", "gap"]
    text = render([table], "terminal")
    assert max(map(len, text.splitlines())) <= 100 and text.count("query/gallery") == 2


def test_the_gap_while_backfilled(make) -> None:
    curve = [0.4 - 0.015 * i for i in range(21)]
    orders = {"random": {"groups": {"gap": curve}}, "priority": {"groups": {}}}
    backfilled = {"old": "old", "new": "new", "orders": orders}
    records = [grouped(make, "fct", 0.6, 0.7, backfilling=backfilled)]
    (table,) = groups.make_gap_tables(records)
    assert labels(table) == [("fct", "random")]
    line = next(x for x in render([table]).splitlines() if x.startswith("fct"))
    assert line.split() == ["fct", "random", "40.0", "32.5", "25.0", "17.5", "10.0"]
    assert groups.make_gap_tables([make("fct", 0.6, 0.8, backfilling=backfilled)]) == []
