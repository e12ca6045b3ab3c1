"""The table of side-information, from records made by hand."""

import csv as csv_module
import io

import pytest

from benchmark.report import sides, text


def stored(kind, cka, size, own):
    scores = {"cmc_at_1": own, "cmc_at_5": own, "map": own}
    return {
        "kind": kind,
        "generations": {"old": {"cka": cka, "bytes": size, "dim": 8, "scores": scores}},
    }


def scores(value):
    return {"cmc_at_1": value, "cmc_at_5": value + 0.1, "map": value - 0.1}


@pytest.fixture
def records(make):
    return [
        make("independent", scores(0.1)),
        make("bct", scores(0.55)),
        make("fct", scores(0.6)),
        make("fct:simclr", scores(0.7), side=stored("simclr", 0.27, 256.0, 0.35)),
        make("fct:simclr-binary", scores(0.7), side=stored("simclr-binary", 0.2, 16.0, 0.3)),
        make("fct:mixup", scores(0.65), side=stored("mixup", 0.66, 256.0, 0.46)),
    ]


def test_rows_are_kinds_in_the_order_of_the_paper(records):
    (table,) = sides.make_tables(records)
    shown = [(r.method, r.title, r.bytes) for r in table.rows]
    assert shown == [
        ("fct", "none", 0),
        ("fct:mixup", "another old model, mixup", 256),
        ("fct:simclr", "SimCLR", 256),
        ("fct:simclr-binary", "SimCLR, 128 bits", 16),
    ]
    assert table.metrics == ("cmc_at_1", "cmc_at_5", "map")
    assert [r.scores["cmc_at_1"].best for r in table.rows] == [False, False, True, True]
    assert table.rows[0].cka.value is None and table.rows[2].cka.value == 0.27


def test_nothing_is_shown_where_nothing_is_stored(records):
    assert sides.make_tables(records[:3]) == []
    assert sides.render([], "terminal") == ""


def test_faces_that_are_not_ranked_show_what_they_are_judged_by(make):
    faces = {"tar_at_far_1e-4": 0.8, "tpir_at_fpir_1e-2": 0.6}
    beside = stored("simclr", 0.27, 256.0, 0.35)
    del beside["generations"]["old"]["scores"]
    (table,) = sides.make_tables([make("fct", faces), make("fct:simclr", faces, side=beside)])
    assert table.metrics == ("tar_at_far_1e-4", "tpir_at_fpir_1e-2")
    assert table.rows[1].scores["tpir_at_fpir_1e-2"].value == 0.6
    assert table.rows[1].own.value is None
    assert "TPIR@FPIR 1e-2" in sides.render([table], "terminal")


def test_terminal(records):
    shown = sides.render(sides.make_tables(records), "terminal").splitlines()
    assert all(len(line) <= 100 for line in shown)
    row = next(line for line in shown if "fct:simclr " in line)
    assert row.split() == ["SimCLR", "fct:simclr", *row.split()[2:]]
    assert "70.0" in row and "0.270" in row and "256" in row and row.endswith("35.0")
    none = next(line for line in shown if line.startswith("none"))
    assert none.split()[-3:] == ["-", "0", "-"]


def test_several_seeds_are_averaged(records, make):
    more = [make("fct:simclr", scores(0.8), seed=1, side=stored("simclr", 0.29, 256.0, 0.45))]
    (table,) = sides.make_tables([*records, *more])
    row = next(r for r in table.rows if r.method == "fct:simclr")
    assert row.seeds == (0, 1)
    assert row.scores["cmc_at_1"].value == pytest.approx(0.75)
    assert (row.cka.value, row.own.value) == (pytest.approx(0.28), pytest.approx(0.4))


def test_csv_lines_fit_the_columns(records):
    lines = sides.render(sides.make_tables(records), "csv")
    rows = list(csv_module.reader(io.StringIO(lines)))
    assert all(len(row) == len(text.COLUMNS) for row in rows)
    found = {(r[3], r[8]): float(r[9]) for r in rows}
    assert found["fct:simclr", "cka"] == 0.27 and found["fct:simclr-binary", "bytes"] == 16


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_other_forms(records, form):
    shown = sides.render(sides.make_tables(records), form)
    assert "SimCLR, 128 bits" in shown and "0.270" in shown
    assert ("**70.0" if form == "markdown" else "\\textbf{70.0") in shown
