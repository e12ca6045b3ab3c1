"""The table of side-information, from records made by hand."""

import csv as csv_module
import io

import pytest

from benchmark.report.renderers import render
from benchmark.report.tables import side_information
from benchmark.report.tables.results import COLUMNS


def stored(kind, cka, size, own):
    scores = {"cmc_at_1": own, "cmc_at_5": own, "map": own}
    return {
        "kind": kind,
        "generations": {"old": {"cka": cka, "bytes": size, "dim": 8, "scores": scores}},
    }


def scores(value):
    return {"cmc_at_1": value, "cmc_at_5": value + 0.1, "map": value - 0.1}


def heads(table):
    return [column.head for column in (*table.labels, *table.blocks[0].columns)]


def printed(table, row):
    """Heading -> a row's cell."""
    cells = (*row.labels, *row.cells[0])
    return {head: cell.text for head, cell in zip(heads(table), cells, strict=True)}


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
    (table,) = side_information.make_tables(records)
    shown = [printed(table, row) for row in table.rows]
    assert [(line["method"], line["side-information"], line["bytes"]) for line in shown] == [
        ("fct", "none", "0"),
        ("fct:mixup", "another old model, mixup", "256"),
        ("fct:simclr", "SimCLR", "256"),
        ("fct:simclr-binary", "SimCLR, 128 bits", "16"),
    ]
    assert heads(table)[2:5] == ["CMC@1", "CMC@5", "mAP"]
    assert [row.cells[0][0].best for row in table.rows] == [False, False, True, True]
    assert (shown[0]["CKA"], shown[2]["CKA"]) == ("-", "0.270")


def test_nothing_is_shown_where_nothing_is_stored(records):
    assert side_information.make_tables(records[:3]) == []
    assert render([]) == ""


def test_faces_that_are_not_ranked_show_what_they_are_judged_by(make):
    faces = {"tar_at_far_1e-4": 0.8, "tpir_at_fpir_1e-2": 0.6}
    beside = stored("simclr", 0.27, 256.0, 0.35)
    del beside["generations"]["old"]["scores"]
    (table,) = side_information.make_tables(
        [make("fct", faces), make("fct:simclr", faces, side=beside)]
    )
    assert heads(table)[2:4] == ["TAR@FAR 1e-4", "TPIR@FPIR 1e-2"]
    shown = printed(table, table.rows[1])
    assert (shown["TPIR@FPIR 1e-2"], shown["by itself"]) == ("60.0", "-")
    assert "TPIR@FPIR 1e-2" in render(table)


def test_terminal(records):
    shown = render(side_information.make_tables(records), "terminal").splitlines()
    assert all(len(line) <= 100 for line in shown)
    row = next(line for line in shown if "fct:simclr " in line)
    assert row.split() == ["SimCLR", "fct:simclr", *row.split()[2:]]
    assert "70.0" in row and "0.270" in row and "256" in row and row.endswith("35.0")
    none = next(line for line in shown if line.startswith("none"))
    assert none.split()[-3:] == ["-", "0", "-"]


def test_several_seeds_are_averaged(records, make):
    more = [make("fct:simclr", scores(0.8), seed=1, side=stored("simclr", 0.29, 256.0, 0.45))]
    (table,) = side_information.make_tables([*records, *more])
    rows = [printed(table, row) for row in table.rows]
    row = next(row for row in rows if row["method"] == "fct:simclr")
    assert (row["CMC@1"], row["CKA"], row["by itself"]) == ("75.0", "0.280", "40.0")
    assert {line[4] for line in table.values if line[3] == "fct:simclr"} == {"0 1"}
    best = {
        row["method"]: shown.cells[0][0].best for row, shown in zip(rows, table.rows, strict=True)
    }
    assert best["fct:simclr-binary"] and not best["fct:simclr"]
    assert table.notes[0].endswith("* is the best of a column, of those with seed 0.")
    assert table.notes[-1] == "fct, fct:mixup, fct:simclr-binary: seed 0 only."


def test_metrics_are_chosen(records):
    (table,) = side_information.make_tables(records, "map")
    assert heads(table)[2:4] == ["mAP", "CKA"]
    assert side_information.make_tables(records, "avg") == []


def test_csv_lines_fit_the_columns(records):
    lines = render(side_information.make_tables(records), "csv")
    head, *rows = csv_module.reader(io.StringIO(lines))
    assert head == list(COLUMNS)
    assert all(len(row) == len(COLUMNS) for row in rows)
    found = {(r[3], r[8]): float(r[9]) for r in rows}
    assert found["fct:simclr", "cka"] == 0.27 and found["fct:simclr-binary", "bytes"] == 16
