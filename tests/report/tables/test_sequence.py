"""The table of a sequence: FCT's rows, all pairs, what is direct, averages over the matrix."""

import pytest

from benchmark.report import make_table
from benchmark.report.renderers import render
from benchmark.report.tables import sequence

PAIRS = {
    "v1/v1": 0.30, "v2/v2": 0.50, "v3/v3": 0.70, "v2/v1": 0.40, "v3/v2": 0.60, "v3/v1": 0.20,
}  # fmt: skip
CONVERTED = {"v1'/v1'": 0.35, "v1''/v1''": 0.36, "v2'/v2'": 0.37, "v3/v1 direct": 0.65}


@pytest.fixture
def made(make):
    """Two methods over three generations: one that stays behind what it replaces, and one not."""

    def of(method, scores, **fields):
        cases = {case: {"cmc_at_1": value} for case, value in scores.items()}
        return make(
            method, protocol="sequential", models={"v1": {}, "v2": {}, "v3": {}}, scores=cases,
            intervals={}, bounds={"lower": cases["v1/v1"], "upper": cases["v3/v3"]}, **fields,
        )  # fmt: skip

    own = {case: 0.01 if case[1] != case[4] else value for case, value in PAIRS.items()}
    return [
        of("independent", own),
        of("fct", PAIRS | CONVERTED),
        of("fct:simclr", {**PAIRS, **CONVERTED, "v3/v1": 0.45}),
        make("lwf", reason="no head", protocol="sequential", models={"v1": {}, "v2": {}, "v3": {}}),
    ]


def printed(table, method):
    """Label -> a method's cell."""
    place = [column.head for column in table.blocks[0].columns].index(method)
    return {row.labels[0].text: row.cells[0][place].text for row in table.rows}


def test_rows_of_tables_5_and_8(made):
    (table,) = sequence.make_tables(made)
    assert [c.head for c in table.blocks[0].columns] == ["independent", "fct", "fct:simclr"]
    found = printed(table, "fct")
    assert list(found) == [
        "v1/v1, self-test", "v2/v2, self-test", "v3/v3, self-test", "v2/v1, 1 update",
        "v3/v2, 1 update", "v3/v1, 2 updates", "v3/v1, direct", "average compatibility",
        "average accuracy",
    ]  # fmt: skip
    assert (found["v3/v1, 2 updates"], found["v3/v1, direct"]) == ("20.0", "65.0")
    assert printed(table, "independent")["v3/v1, direct"] == "-"


def test_averages_over_the_matrix(made):
    """0.2 < 0.3 is one pair of three that is not compatible; the direct way counts nowhere."""
    (table,) = sequence.make_tables(made)
    found = [printed(table, column.head) for column in table.blocks[0].columns]
    assert [f["average compatibility"] for f in found] == ["0.0", "66.7", "100.0"]
    mean = (0.3 + 0.5 + 0.7 + 0.4 + 0.6 + 0.2) / 6
    assert found[1]["average accuracy"] == f"{100 * mean:.1f}"


def test_no_average_without_every_pair(made):
    made[1].scores.pop("v2/v1")
    (table,) = sequence.make_tables(made)
    assert printed(table, "fct")["average compatibility"] == "-"
    assert printed(table, "fct")["average accuracy"] == "-"


def test_the_best_of_a_row_is_marked(made):
    (table,) = sequence.make_tables(made)
    text = render(table)
    chained = next(x for x in text.splitlines() if x.startswith("v3/v1, 2 updates"))
    assert chained.split()[-3:] == ["1.0", "20.0", "*45.0"]
    both = next(x for x in text.splitlines() if x.startswith("v3/v1, direct"))
    assert both.split()[-3:] == ["-", "65.0", "65.0"], "all methods alike"
    assert "*" not in next(x for x in text.splitlines() if x.startswith("v3/v3"))
    assert "Percent; " in text and "* is the best method of a row." in text
    assert "step by step" in render([table], "markdown")
    assert "of a row" in render([table], "latex")


def test_the_seeds_of_the_best_are_told(make, made):
    other = made[1].model_copy(update={"seed": 1})
    (table,) = sequence.make_tables([*made, other])
    assert table.notes[0].endswith("* is the best method of a row, of those with seeds 0, 1.")
    assert table.notes[-1] == "fct:simclr, independent: seed 0 only."


def test_no_method_is_the_best_where_none_is_compatible(make, made):
    for record in made[1:3]:
        record.scores.update({case: {"cmc_at_1": 0.1} for case in ("v2/v1", "v3/v2", "v3/v1")})
        record.scores["v3/v3"] = {"cmc_at_1": 0.6 if record.method == "fct" else 0.7}
    text = render(sequence.make_tables(made)).splitlines()
    shares, means = (next(x for x in text if x.startswith(f"average {w}")) for w in ("com", "acc"))
    assert shares.split()[-3:] == ["0.0", "0.0", "0.0"] and "*" in means


def test_chosen_cases_are_the_rows_and_a_diverged_training_is_told(made):
    made[1] = made[1].model_copy(update={"diverged": {"fit fct (seed 0)": "its loss rises"}})
    (table,) = sequence.make_tables(made, cases="v3/v1,v3/v1 direct,v9/v9")
    assert [column.head for column in table.blocks[0].columns][1] == "fct (diverged)"
    found = printed(table, "fct (diverged)")
    assert found == {"v3/v1, 2 updates": "20.0", "v3/v1, direct": "65.0"}
    assert sequence.make_tables(made, cases="v9/v9") == []


def test_two_generations_have_no_sequence(make):
    assert sequence.make_tables([make("bct")]) == []


def test_the_table_of_methods_shows_the_newest_queries(made):
    """And each gallery once, as the last update leaves it; compatible is the chain's."""
    table = make_table(made)
    assert table.cases == (
        "v3/v1", "v3/v1 direct", "v3/v2", "v3/v3", "v1''/v1''", "v2'/v2'"
    )  # fmt: skip
    assert "v1'/v1'" in make_table(made, cases="all").cases
