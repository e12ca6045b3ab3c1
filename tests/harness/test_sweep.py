"""Sweeps: what is asked, the table and the plots of score against value."""

from __future__ import annotations

import csv
import json

import pytest
from PIL import Image
from support.command import call
from support.objects import changed

from benchmark.config.reading import build
from benchmark.config.sweep import parse_axes
from benchmark.errors import BenchError
from benchmark.records.files import read_records
from benchmark.records.record import SCHEMA, Record
from benchmark.report.tables import sweep

RUN = ("run", "-m", "mixbct", "-p", "open-class", "-t", "toy", "--device", "cpu", "--set",
       "recipe.epochs=1")  # fmt: skip


@pytest.mark.slow
def test_a_track_is_swept_as_well(bench, tmp_path) -> None:
    other = tmp_path / "toy2.yaml"
    other.write_text("id: toy2\nversion: 1\ntitle: Toy 2\nextends: toy\nmodels: {old: {dim: 8}}\n")
    code, out, err = bench(
        "run", "-m", "independent", "-p", "open-class", "--device", "cpu",
        "--sweep", f"track=toy,{other}", "--out", tmp_path / "o", "--store", tmp_path / "s",
    )  # fmt: skip
    assert code == 0, err
    lines = [line.split() for line in out.splitlines()]
    assert any(line[:2] == ["independent", "toy"] for line in lines)
    assert any(line[:2] == ["independent", "toy2"] for line in lines)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished sweep of a parameter and of the old model's dimension."""
    folder = tmp_path_factory.mktemp("sweep")
    code, out, err = call(
        *RUN, "--sweep", "mixbct.ratio=0,0.5", "--sweep", "old.dim=16,32",
        "--out", folder / "o", "--store", folder / "s",
    )  # fmt: skip
    assert code == 0, err
    return folder / "o", out


def test_where_the_records_lie_is_told_of_all_of_them(swept) -> None:
    folder, _ = swept
    again = "--sweep", "mixbct.ratio=0,0.5", "--sweep", "old.dim=16,32", "--records-only"
    code, out, err = call(*RUN, *again, "--out", folder, "--store", folder.parent / "s")
    assert code == 0, err
    assert out.splitlines()[-1] == f"8 records below {folder}"


def test_table(swept) -> None:
    folder, out = swept
    records = read_records(folder / "changed")
    assert len(records) == 8
    with next(folder.rglob("table.csv")).open() as file:
        rows = list(csv.DictReader(file))
    got = {
        (r["method"], r["mixbct.ratio"], r["old.dim"], r["metric"], r["case"]): float(r["value"])
        for r in rows
    }
    for record in records:
        ratio = str(record.changed["mixbct.ratio"]) if record.method == "mixbct" else ""
        for case, scores in record.scores.items():
            if case == "new/new" and record.status == "done":
                key = (record.method, ratio, str(record.changed["old.dim"]), "map", case)
                assert got[key] == scores["map"]
    # With ratio 0 nothing is replaced.
    assert got["mixbct", "0", "16", "map", "new/new"] == got[
        "independent", "", "16", "map", "new/new"
    ]  # fmt: skip
    assert "n/a  mixbct: needs embeddings of one size, got 32 and 16" in out
    assert "any" in out


def test_plots(swept) -> None:
    folder, _ = swept
    made = sorted(p.name for p in folder.rglob("sweep-*.png"))
    assert "sweep-mixbct.ratio-map.png" in made
    for path in folder.rglob("sweep-*.png"):
        with Image.open(path) as image:
            colours = image.convert("RGB").getcolors(1 << 20)
        assert len(colours) > 20


def test_average_is_mixbcts(swept) -> None:
    folder, _ = swept
    record = next(r for r in read_records(folder / "changed") if r.method == "independent")
    scores = {
        "new/old": {"tar_at_far_1e-4": 0.9, "tpir_at_fpir_1e-2": 0.2},
        "old/new": {"tar_at_far_1e-4": 0.1},
        "new/new": {"tar_at_far_1e-4": 0.5, "tpir_at_fpir_1e-2": 0.8},
    }
    made = {**record.as_json(), "scores": scores, "changed": {"mixbct.ratio": 0.1}}
    other = {**made, "changed": {"mixbct.ratio": 0.2}, "method": "mixbct"}
    table = sweep.make_sweep(
        [build(Record, made, "record"), build(Record, other, "record")],
        parse_axes(["mixbct.ratio=0.1,0.2"]),
    )
    assert [line.cells[sweep.AVG, ""].value for line in table.lines] == [0.4, 0.4]
    assert [line.values for line in table.lines] == [(None,), (0.2,)]


def test_what_diverged_is_told_below_a_sweep(swept) -> None:
    record, *_ = read_records(swept[0] / "changed")
    made = [
        changed(record, method="l2", changed={"l2.weight": value}, config={"weight": value},
                status="done", diverged={"train l2 (seed 0)": "its loss rises"} if value else {})
        for value in (0, 1)
    ]  # fmt: skip
    table = sweep.text_table(sweep.make_sweep(made, parse_axes(["l2.weight=0,1"])))
    assert table.notes[0].startswith("Percent; ")
    assert table.notes[1].endswith(
        "diverged or ended too early, so no ranks: train l2 (seed 0): its loss rises."
    )


def line_up(record, swept_values, *points):
    """The lines of a sweep of one field or several at once, from (method, config, value)."""
    axes = parse_axes([swept_values])
    keys = axes[0].key.split("+")
    records = [
        changed(
            record, method=method, config=config, changed=dict.fromkeys(keys, value),
            status="done", reason=None,
        )
        for method, config, value in points
    ]  # fmt: skip
    table = sweep.make_sweep(records, axes)
    return [(line.method, line.values[0]) for line in table.lines]


def test_fields_of_several_methods_move_together(swept) -> None:
    """Each method has its own values of a joint field, whichever of its keys stands first."""
    record = read_records(swept[0] / "changed")[0]
    points = [
        (method, {} if method == "independent" else {"weight": value}, value)
        for value in (1, 5)
        for method in ("independent", "bct", "l2")
    ]
    for keys in ("bct.weight+l2.weight", "l2.weight+bct.weight"):
        assert line_up(record, f"{keys}=1,5", *points) == [
            ("independent", None), ("bct", 1), ("bct", 5), ("l2", 1), ("l2", 5),
        ]  # fmt: skip


def test_a_variant_keeps_its_own_value(swept) -> None:
    """``l2:denoised`` drops 0.1 whatever is said of ``l2``: one line, also at its own value."""
    record = read_records(swept[0] / "changed")[0]
    for values in ((0.2, 0.3), (0.1, 0.2)):
        points = [
            (method, {"drop": value if method == "l2" else 0.1}, value)
            for value in values
            for method in ("l2", "l2:denoised")
        ]
        assert line_up(record, f"l2.drop={values[0]},{values[1]}", *points) == [
            ("l2", values[0]), ("l2", values[1]), ("l2:denoised", None),
        ]  # fmt: skip
    points = [("l2:denoised", {"drop": value}, value) for value in (0.2, 0.3)]
    assert line_up(record, "l2:denoised.drop=0.2,0.3", *points) == [
        ("l2:denoised", 0.2), ("l2:denoised", 0.3),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_sweep_of_a_variant_beside_its_method(bench, tmp_path) -> None:
    code, out, err = bench(
        "run", "-m", "l2,l2:denoised,bct", "-p", "open-class", "-t", "toy", "--device", "cpu",
        "--set", "recipe.epochs=1", "--sweep", "bct.weight+l2.drop=0.2,0.3",
        "--out", tmp_path / "o", "--store", tmp_path / "s",
    )  # fmt: skip
    assert code == 0, err
    lines = (line for line in out.splitlines() if not line.startswith("Percent"))
    rows = {tuple(line.split()[:2]) for line in lines if "±" in line}
    assert rows == {
        ("independent", "any"), ("bct", "0.2"), ("bct", "0.3"), ("l2", "0.2"), ("l2", "0.3"),
        ("l2:denoised", "any"),
    }  # fmt: skip
    drops = {
        (r.method, r.changed["l2.drop"], r.config["drop"])
        for r in read_records(tmp_path / "o")
        if r.method.startswith("l2")
    }
    assert drops == {
        ("l2", 0.2, 0.2), ("l2", 0.3, 0.3), ("l2:denoised", 0.2, 0.1), ("l2:denoised", 0.3, 0.1)
    }  # fmt: skip


def test_a_record_without_the_value_is_refused(swept) -> None:
    folder, _ = swept
    with pytest.raises(BenchError, match=r"no value of l2\.weight"):
        sweep.make_sweep(read_records(folder / "changed"), parse_axes(["l2.weight=1,2"]))


@pytest.mark.slow
def test_the_second_time_is_answered_from_records(swept) -> None:
    folder, out = swept
    again = call(
        *RUN, "--sweep", "mixbct.ratio=0,0.5", "--sweep", "old.dim=16,32",
        "--out", folder, "--store", folder.parent / "none",
    )  # fmt: skip
    assert again[1] == out
    assert not (folder.parent / "none").exists()
    assert json.loads(next(folder.rglob("seed-0.json")).read_text())["schema"] == SCHEMA
