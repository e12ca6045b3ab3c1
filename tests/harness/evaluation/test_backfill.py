"""Backfilling through the harness on the toy track, with a method that has a priority."""

from __future__ import annotations

import importlib.metadata
import textwrap

import numpy as np
import pytest
from support.objects import changed
from support.toy_runs import toy

from benchmark import load
from benchmark.config import entry_points, registry
from benchmark.config.entry_points import METHODS
from benchmark.records.files import read_record
from benchmark.report import render
from benchmark.report.plots.records import plot
from benchmark.report.tables import backfilling as tables

METHOD = '''
    """A shift of the mean, and a priority by length."""

    from dataclasses import dataclass

    import torch

    from benchmark.contract import FeatureTransformation, Fitted
    from benchmark.models.module import Portable
    from benchmark.models.parts import Affine, KeepSide


    class Length(Portable):
        def forward(self, vectors, side):
            return vectors.norm(dim=1)


    @dataclass(frozen=True)
    class Shift(FeatureTransformation):
        def learn(self, pairs, trainer):
            shift = pairs.new.mean(0) - pairs.old.mean(0)
            return Fitted(KeepSide(Affine.of(torch.eye(len(shift)), shift)), priority=Length())
'''


@pytest.fixture(scope="module")
def registered(tmp_path_factory):
    """The method ``shift``, found as a third party's."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "shift_of_mean.py").write_text(textwrap.dedent(METHOD).lstrip())
    entry = importlib.metadata.EntryPoint("shift", "shift_of_mean:Shift", METHODS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setattr(entry_points, "entry_points", lambda group: [entry] * (group == METHODS))
        registry._methods.cache_clear()
        yield
    registry._methods.cache_clear()


@pytest.fixture(scope="module")
def done(registered, tmp_path_factory):
    """Folder and records of one run."""
    folder = tmp_path_factory.mktemp("run")
    orders = {"protocol.orders": ["random", "priority", "entropy", "entropy:old", "true-l2"]}
    store, out = folder / "store", folder / "runs"
    found = toy(["bct", "shift"], store, out, "backfill", settings=orders)
    return folder, {r.method: r for r in found}


def test_the_ends_are_the_cases(done):
    for record in done[1].values():
        for each in record.as_json()["backfilling"]["orders"].values():
            assert set(each["curves"]) == {"cmc_at_1", "cmc_at_5", "map", "tpir_at_fpir_1e-1"}
            for metric, curve in each["curves"].items():
                assert len(curve) == 101
                assert curve[0] == round(record.scores["new/old"][metric], 4)
                assert curve[-1] == round(record.scores["new/new"][metric], 4)
                assert each["area"][metric] == pytest.approx(np.mean(curve), abs=1e-4)
        offline = record.as_json()["backfilling"]["offline"]["map"]
        assert offline["before"] == record.scores["old/old"]["map"]
        assert offline["after"] == record.scores["new/new"]["map"]


def test_a_method_has_the_orders_that_it_can_have(done):
    shift, bct = (done[1][name].as_json()["backfilling"] for name in ("shift", "bct"))
    assert set(shift["orders"]) == {"random", "priority", "entropy", "entropy:old", "true-l2"}
    assert shift["omitted"] == {}
    assert set(bct["orders"]) == {"random", "entropy", "entropy:old", "true-l2"}
    assert bct["omitted"] == {"priority": "the method gives no priority"}
    assert shift["orders"]["priority"]["curves"] != shift["orders"]["random"]["curves"]
    for each in shift["orders"].values():
        assert set(each["tau"]) <= {"true-l2"}


def test_random_is_one_order_for_all_methods(done):
    shift = done[1]["shift"].as_json()["backfilling"]["orders"]
    bct = done[1]["bct"].as_json()["backfilling"]["orders"]
    assert shift["random"]["groups"]["share"] == bct["random"]["groups"]["share"]


def test_the_record_is_read_back_and_small(done):
    folder, records = done
    (path,) = (folder / "runs").rglob("shift/seed-0.json")
    assert path.stat().st_size < 64 * 1024
    assert read_record(path).backfilling == records["shift"].backfilling
    frame = load(folder / "runs", method="shift", case="new/old by priority")
    scores = ("cmc_at_1", "cmc_at_5", "map", "tpir_at_fpir_1e-1")
    parts = ("area", "worst", "share_above")
    assert set(frame["metric"]) == {f"{part}_{score}" for part in parts for score in scores}


def test_worst_points_are_of_the_curves(done):
    """Each with an interval over classes that holds it; none of scores of templates."""
    for record in done[1].values():
        about = record.backfilling
        for each in record.orders.values():
            for name, curve in each.curves.items():
                before = about.offline[name].before
                assert each.worst[name] == pytest.approx(min(curve), abs=1e-4)
                share = each.share_above[name]
                if share is not None:  # curves are rounded, scores are not
                    place = round(100 * share)
                    assert min(curve[place:]) > before - 1e-4
                    assert not place or curve[place - 1] < before + 1e-4
                for prefix, value in (("worst_", each.worst[name]), ("share_above_", share)):
                    span = each.intervals.get(prefix + name)
                    assert span is None or span[0] - 1e-9 <= value <= span[1] + 1e-9
                    assert name != "map" or value is None or span is not None


def by_order(table):
    """Cells of each method and order by heading."""
    heads = [column.head for column in table.blocks[0].columns]
    return {
        tuple(label.text for label in row.labels): dict(zip(heads, row.cells[0], strict=True))
        for row in table.rows
    }


def test_tables_and_plots(done, tmp_path):
    records = list(done[1].values())
    table, worst = tables.make_tables(records)
    assert set(by_order(worst)) == set(by_order(table)) - {("independent", "offline")}
    assert [column.head for column in worst.blocks[0].columns] == [
        "worst CMC@1", "worst mAP", "CMC@1 > old/old from", "mAP > old/old from"
    ]  # fmt: skip
    assert max(map(len, render([worst], "terminal").splitlines())) <= 100
    rows = by_order(table)
    assert list(rows)[:2] == [("independent", "offline"), ("independent", "random")]
    best = {key for key, cells in rows.items() for cell in cells.values() if cell.best}
    assert best
    assert not {key for key in best if key[0] == "independent" or key[1].startswith("true-")}
    text = render([table], "terminal")
    assert max(map(len, text.splitlines())) <= 100
    left_out = "Left out: priority for bct, independent: the method gives no priority."
    assert left_out in " ".join(text.split())
    assert render([table], "markdown").count("\n|") == len(table.rows) + 2
    lines = render([table], "csv").splitlines()
    assert any("new/old by priority,area_map," in line for line in lines)
    assert any("new/old by priority against true-l2,kendall_tau," in line for line in lines)
    curve = done[1]["shift"].as_json()["backfilling"]["orders"]["priority"]["curves"]["map"]
    (at_budget,) = [x for x in lines if ",shift," in x and "new/old by priority at 25 %,map," in x]
    assert f",{curve[25]}," in at_budget
    paths = plot(records, tmp_path, kinds="backfilling", formats="png", metrics="map")
    assert [p.stem for p in paths] == ["backfill-toy-changed-backfilling-map"]


def test_settings_are_columns_of_one_table_a_metric(done):
    """As FastFill's Table 7; one setting alone keeps its own table, and CSV those of all."""
    every = list(done[1].values())
    of = {
        name: [changed(r, protocol=f"unseen:{name}") for r in every] for name in ("unseen", "seen")
    }
    of["seen"] = [r for r in of["seen"] if r.method != "shift"]
    both = [*of["unseen"], *of["seen"]]
    cmc, mean = tables.make_settings_tables([*every, *both])
    heads = ["classes of training", "classes never seen"]
    assert [column.head for column in cmc.blocks[0].columns] == heads
    assert cmc.title.endswith("areas under the backfilling curves of CMC@1")
    assert mean.title.endswith("of mAP") and cmc.slug != mean.slug
    alone, _ = tables.make_tables(of["unseen"])
    rows, expected = by_order(mean), by_order(alone)
    assert rows and set(rows) == set(expected)
    for key, cells in expected.items():
        assert rows[key]["classes never seen"].whole == cells["mAP"].whole
        assert bool(rows[key]["classes of training"].text) == (key[0] != "shift")
    text = " ".join(render([mean], "terminal").split())
    assert text.count("Left out: priority for bct, independent: the method gives no priority.") == 1
    assert [t.title for t in tables.make_settings_tables(of["seen"])] == [
        t.title for t in tables.make_tables(of["seen"])
    ]
    assert tables.make_settings_tables(both, "map")[0].title == mean.title
    assert tables.make_settings_tables(every) == []


@pytest.mark.parametrize("kept", [None, {"old": "old", "new": "new", "reason": "of other sizes"}])
def test_no_curve_without_comparable_vectors_nor_without_being_asked(done, tmp_path, kept):
    bare = changed(done[1]["bct"], backfilling=kept)
    assert tables.make_tables([bare]) == []
    assert plot([bare], tmp_path, kinds="backfilling") == []
    table, _ = tables.make_tables([done[1]["shift"], bare])
    assert ("No curve for bct: of other sizes." in table.notes) == bool(kept)
