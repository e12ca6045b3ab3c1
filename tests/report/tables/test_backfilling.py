"""Tables of a gallery that is backfilled."""

from pathlib import Path

import pytest

from benchmark.records.files import read_records
from benchmark.report.tables import backfilling

COMMITTED = Path(__file__).parents[3] / "results" / "measured" / "backfill" / "grocery"


@pytest.fixture(scope="module")
def records():
    """All ten seeds of one method, two of another."""
    folders = (COMMITTED / name for name in ("bct", "fct"))
    found = [record for folder in folders for record in read_records(folder)][:12]
    assert {record.method for record in found} == {"bct", "fct"}
    return found


def test_the_seeds_of_the_best_are_told(records):
    for table in backfilling.make_tables(records):
        best = "an order that can be deployed, of those with seeds 0 to 9."
        assert any(note.endswith(best) for note in table.notes)
        assert any(note.startswith("fct: seeds ") for note in table.notes)


def test_the_best_of_a_setting_is_of_the_seeds_that_it_has(records):
    """A method without a seed in one setting is no rival there, though another setting has it."""
    few = [record for record in records if record.method == "bct" and record.seed < 2]
    fct = [record for record in records if record.method == "fct"]
    every = [*few, *fct]
    seeds = {record.seed for record in fct}
    assert seeds == {record.seed for record in few}
    made = [
        record.model_copy(update={"protocol": f"unseen:{name}"})
        for name, of in (("unseen", every), ("seen", [*few, *fct[:1]]))
        for record in of
    ]
    (table,) = backfilling.make_settings_tables(made, "map")
    best = {(row.labels[0].text, i) for row in table.rows
            for i, cell in enumerate(row.cells[0]) if cell.best}  # fmt: skip
    seen = table.blocks[0].columns[0].head
    assert best == {("bct", 0), ("fct", 1)}
    assert table.notes[0].endswith(f"deployed ({seen}, of those with seeds 0, 1).")
    assert any(note.startswith(f"{seen}: fct: seed ") for note in table.notes)


def test_the_offline_line_of_plots_is_the_independent_model_s(records):
    from benchmark.report.plots.backfilling import frame

    def ends(shown):
        data = frame(shown, "cmc_at_1")
        last = data[data["line"] == backfilling.OFFLINE].groupby("panel")["score"].last()
        return {panel: round(score, 2) for panel, score in last.items()}

    own = {
        method: round(100 * sum(afters) / len(afters), 2)
        for method in ("bct", "fct")
        if (afters := [r.backfilling.offline["cmc_at_1"].after for r in records
                       if r.method == method])
    }  # fmt: skip
    assert own["bct"] != own["fct"]
    assert ends(records) == own, "none where several methods stand in a panel"
    alone = [
        record.model_copy(update={"method": "independent"}) if record.method == "fct" else record
        for record in records
    ]
    assert ends(alone) == {"methods by random": own["fct"], "bct": own["fct"]}


def test_metrics_are_chosen(records):
    areas, worst = backfilling.make_tables(records, "map")
    assert areas.blocks[0].columns[0].head == "mAP"
    assert {line[8] for line in areas.values} == {
        "offline_area_map", "area_map", "kendall_tau", "map"
    }  # fmt: skip
    assert {line[8] for line in worst.values} == {"worst_map", "share_above_map"}
    assert backfilling.make_tables(records, "rank_1") == []


def test_csv_lines_say_what_diverged(records):
    marked = [
        record.model_copy(update={"diverged": {"fit fct (seed 0)": "its loss rises from 2 to 3"}})
        if (record.method, record.seed) == ("fct", 0) else record
        for record in records
    ]  # fmt: skip
    tables = backfilling.make_tables(marked)
    reasons = {(line[3], line[6]) for table in tables for line in table.values}
    assert reasons == {
        ("bct", ""), ("fct", "a training diverged: the scores say nothing of the method"),
    }  # fmt: skip
    for table in [*tables, *backfilling.part_tables(marked)]:
        assert {row.labels[0].text for row in table.rows if row.labels[1].text != "offline"} == {
            "bct", "fct (diverged)",
        }  # fmt: skip
