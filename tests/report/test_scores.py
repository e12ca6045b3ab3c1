import io
import math

import pytest
from rich.console import Console

from benchmark.config.reading import build
from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import make_table, make_tables
from benchmark.report.renderers import render, terminal
from benchmark.report.tables.results import text_table

CMC = "cmc_at_1"


def row(table, method):
    return next(r for r in table.rows if r.method == method)


def printed(table, width=100, **console):
    out = io.StringIO()
    terminal.show([text_table(table)], Console(file=out, width=width, **console))
    return out.getvalue()


def test_rows_are_bounds_then_methods_in_order(records):
    table = make_table(records)
    assert [r.method for r in table.rows] == [
        "lower", "independent", "upper", "bct", "fct", "l2", "lwf",
    ]  # fmt: skip
    assert table.title == "Open-Class on Glyphs, seed 0"
    assert table.cases == ("new/old", "new/new", "old'/old'")


def test_bounds_stand_where_they_bound(records):
    table = make_table(records)
    lower, upper = row(table, "lower"), row(table, "upper")
    assert lower.cells[CMC, "new/old"].value == 0.5
    assert lower.detail == "old/old"
    assert upper.cells[CMC, "new/new"].value == 0.9
    assert upper.cells[CMC, "new/new"].low == pytest.approx(0.89)  # independent's own interval


def test_the_interval_of_a_bound_is_of_any_record_that_has_its_value(make):
    record = make("bct", 0.6, 0.8, intervals={})
    other = make("linear", 0.6, 0.9, intervals={"new/new": {CMC: [0.85, 0.95]}})
    assert row(make_table([record, other]), "upper").cells[CMC, "new/new"].low == 0.85


def test_verdicts(records):
    verdict = row(make_table(records), "bct").verdicts[CMC]
    assert verdict.compatible == (1, 1)
    assert verdict.gain == pytest.approx(0.25)  # (0.6 - 0.5) / (0.9 - 0.5)
    assert row(make_table(records), "fct").verdicts[CMC].gain is None


def test_best_is_among_methods_only_and_ties_share_it(records):
    table = make_table(records)
    best = {case: table.best(CMC, case) for case in (*table.cases, "gain")}
    assert best == {
        "new/old": {"bct", "l2"}, "new/new": {"fct"}, "old'/old'": {"fct"}, "gain": {"bct", "l2"},
    }  # fmt: skip


def test_nobody_is_the_best_where_all_are_alike_or_have_nothing(make):
    for records in (
        [make("a", 0.60001), make("b", 0.60002), make("lwf", reason="no old head")],
        [make("a", 0.0), make("b", 0.0)],
        [make("a", 0.0)],
    ):
        assert make_table(records).best(CMC, "new/old") == set()
    assert make_table([make("a", 0.6)]).best(CMC, "new/old") == {"a"}, "alone, but something"
    both = [make("a", 0.4, lower=0.4), make("b", 0.3, lower=0.4)]
    difference = "new/old - old/old"
    assert make_table(both, cases=difference).best(CMC, difference) == {"a"}, "0 beats what is less"


def test_the_best_is_one_of_those_with_the_same_seeds(make):
    """A mean over other seeds is no better: there others may have been as good."""
    short = [make("a", x, seed=k) for k, x in enumerate((0.5, 0.6, 0.7))]
    other = [make("b", x, seed=k) for k, x in enumerate((0.5, 0.6, 0.6))]
    long = [make("c", x, seed=k) for k, x in enumerate((0.5, 0.6, 0.7, 0.9))]
    table = make_table([*short, *other, *long], cases="all")
    assert table.best(CMC, "new/old") == {"a"}
    assert table.best(CMC, "old/old") == set(), "it is nobody's"
    (first, *_) = text_table(table).notes
    assert first == "* is the best method of a column, of those with seeds 0 to 2."
    (first, *_) = text_table(make_table([*short, *other])).notes
    assert first == "* is the best method of a column."


def test_a_difference_has_a_best_only_from_old_old(make):
    made = [make("a", 0.6, 0.9, lower=0.5), make("b", 0.55, 0.6, lower=0.5)]
    named = ("new/old - old/old", "old/old - new/old", "new/new - new/old")
    best = {case: make_table(made, cases=case).best(CMC, case) for case in named}
    assert best == {named[0]: {"a"}, named[1]: set(), named[2]: set()}, "a larger gap is no merit"


def test_lower_is_better_where_the_catalogue_says_so(make):
    table = make_table(
        [make("a", {"eer": 0.1}, {"eer": 0.1}), make("b", {"eer": 0.2}, {"eer": 0.2})]
    )
    assert table.best("eer", "new/old") == {"a"}


def test_seeds_give_mean_and_students_interval(make):
    values = [0.60, 0.62, 0.67]
    table = make_table([make("bct", v, seed=i) for i, v in enumerate(values)])
    cell = row(table, "bct").cells[CMC, "new/old"]
    assert table.title.endswith("seeds 0 to 2")
    assert cell.value == pytest.approx(0.63)
    half = 4.302653 * math.sqrt(0.0013) / math.sqrt(3)  # t(0.975, 2); variance 0.0013
    assert (cell.low, cell.high) == (pytest.approx(0.63 - half), pytest.approx(0.63 + half))
    assert row(table, "bct").verdicts[CMC].gain == pytest.approx(0.13 / 0.4)


def test_seeds_that_disagree_have_no_gain(make):
    table = make_table([make("bct", 0.6, seed=0), make("bct", 0.4, seed=1)])
    assert row(table, "bct").verdicts[CMC].compatible == (1, 2)
    assert row(table, "bct").verdicts[CMC].gain is None
    assert "1 of 2" in render(text_table(table))


def test_a_seed_that_is_missing_is_said(make):
    table = make_table([make("bct", seed=0), make("bct", seed=1), make("l2", seed=1)])
    assert "l2: seed 1 only." in table.notes


def test_records_of_another_old_model_are_said_in_one_line(make):
    scores = {"independent": 0.1, "bct": 0.65, "l2": 0.6, "fct": 0.55}
    own = [make(m, v, seed=s) for m, v in scores.items() for s in range(3)]
    other = [make(m, 0.7, seed=s, lower=0.4) for m in ("bt2", "csd") for s in range(3)]
    table = make_table([*own, *other, make("qdc", seed=1, lower=0.3)])
    lines = [line for line in table.notes if "another old model" in line]
    assert len(lines) == 1
    assert "best: bt2, csd: seeds 0 to 2; qdc: seed 1. Run" in lines[0]
    assert table.best(CMC, "new/old") == {"bct"}  # though others are above it
    assert not any("another old model" in line for line in make_table(own).notes)


def test_not_applicable_gives_a_row_with_the_reason(records):
    table = make_table(records)
    assert row(table, "lwf").cells == {}
    assert "lwf: not applicable: needs the old head, <discarded> & gone_50%" in table.notes
    assert "n/a" in render(text_table(table))


def test_undefined_is_a_dash_and_never_best(make):
    table = make_table([make("a", {CMC: None, "map": 0.5}), make("b", {CMC: 0.1, "map": None})])
    assert row(table, "a").cells[CMC, "new/old"].value is None
    assert table.best(CMC, "new/old") == {"b"}


def test_notes_say_track_and_upper_bound(records, make):
    notes = " ".join(make_table(records).notes)
    assert "rendered, not collected" in notes
    assert "independently on the new data (BCT)" in notes
    bounds = {"lower": {CMC: 0.5}, "upper": {CMC: 0.9}, "upper-all": {CMC: 0.95}}
    table = make_table([make("mixbct", bounds=bounds, upper="upper-all")])
    assert [r.label for r in table.rows][:2] == ["lower bound", "upper bound"]
    assert "old and new data together (MixBCT)" in " ".join(table.notes)
    assert row(table, "upper-all").cells[CMC, "new/new"].value == 0.95


def test_main_metrics_take_the_strictest_sound_rate(make):
    keys = ["cmc_at_1", "cmc_at_5", "map", "tar_at_far_1e-2", "tar_at_far_1e-3", "tar_at_far_1e-4"]
    keys += ["tpir_at_fpir_1e-1", "tpir_at_fpir_1e-2"]
    counts = {"new/old": {"n_impostor": 10_000, "n_probe": 1500, "n_mated_g1": 500}}
    record = make("bct", dict.fromkeys(keys, 0.6), dict.fromkeys(keys, 0.8), counts=counts)
    assert make_table([record]).metrics == (
        "cmc_at_1", "map", "tar_at_far_1e-3", "tpir_at_fpir_1e-2",
    )  # fmt: skip
    assert set(make_table([record], metrics="all").metrics) == set(keys)
    assert make_table([record], metrics="map,cmc_at_5").metrics == ("map", "cmc_at_5")
    assert make_table([record], metrics=["map"], cases=["new/new"]).cases == ("new/new",)


def test_protocols_tracks_and_changes_stand_apart(make):
    found = [make(), make(track="omniglot"), make(changed={"old.head": "arcface"}), make(seed=1)]
    tables = make_tables(found)
    assert sorted(t.slug for t in tables) == [
        "open-class-glyphs", "open-class-glyphs-changed", "open-class-omniglot",
    ]  # fmt: skip
    assert "changed: old.head=arcface" in render([*map(text_table, tables)])
    with pytest.raises(BenchError, match="expected one protocol, track"):
        make_table(found)
    assert make_tables([]) == []


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_terminal_keeps_within_the_width(make, width):
    keys = ["cmc_at_1", "map", "tar_at_far_1e-4", "tpir_at_fpir_1e-2", "mrr"]
    found = [make(m, dict.fromkeys(keys, 0.6), dict.fromkeys(keys, 0.8)) for m in ("bct", "l2")]
    text = printed(make_table(found, metrics="all", cases="all"), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("60.0 ±2.0") >= 2 * len(keys)


def test_terminal_without_colour_marks_the_best_with_a_star(records):
    text = printed(make_table(records))
    assert "\x1b" not in text
    line = next(x for x in text.splitlines() if x.startswith("bct"))
    assert "*60.0 ±2.0" in line
    assert "yes" in line
    assert "*25.0" in line


def test_terminal_with_colour_uses_bold(records):
    text = printed(make_table(records), force_terminal=True, color_system="standard")
    assert "\x1b[1m60.0\x1b[0m" in text
    assert "*60.0" not in text


def test_ascii_terminals_get_ascii(records):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.show([text_table(make_table(records))], Console(file=out, width=100))
    out.flush()
    assert b"60.0 ~2.0" in out.buffer.getvalue()


def test_a_difference_is_taken_within_each_seed(make):
    made = [
        make("bct", cross, 0.8, seed, lower=low)
        for seed, (cross, low) in enumerate([(0.6, 0.5), (0.5, 0.3)])
    ]
    table = make_table(made, cases="new/old, new/old - old/old")
    cell = row(table, "bct").cells[CMC, "new/old - old/old"]
    assert cell.value == pytest.approx(0.15)
    # Of 0.1 and 0.2: Student's t with one degree of freedom, 12.706, times 0.05.
    assert cell.high - cell.value == pytest.approx(12.706 * 0.05, rel=1e-3)
    text = render(text_table(table), "markdown")
    assert "new/old - old/old difference" in text
    assert "+15.0" in text
    with pytest.raises(BenchError, match="unknown case 'old/odl'; did you mean 'old/old'"):
        make_table(made, cases="new/old - old/odl")


def test_what_one_protocol_lacks_is_shown_of_another(make):
    """Protocols differ in tasks and in the names of their generations."""
    tar = "tar_at_far_1e-2"
    made = [
        make("bct", {CMC: 0.6, tar: 0.3}, {CMC: 0.8, tar: 0.5}), make("bct", protocol="backfill"),
    ]  # fmt: skip
    assert [t.protocol for t in make_tables(made, tar)] == ["open-class"]
    assert [t.metrics for t in make_tables(made, f"{CMC},{tar}")] == [(CMC,), (CMC, tar)]
    assert [t.protocol for t in make_tables(made, cases="new/old - old/old")] == [
        "backfill", "open-class",
    ]  # fmt: skip
    with pytest.raises(
        BenchError, match=r"metric 'tar_at_far_1e-3': these records have none; did you mean 'tar_"
    ):
        make_tables(made, f"{CMC},tar_at_far_1e-3")
    with pytest.raises(BenchError, match="unknown case 'new/odl'; did you mean 'new/old'"):
        make_tables(made, cases="new/old,new/odl")


def test_avg_is_mixbcts(make):
    scores = {"tar_at_far_1e-4": 0.2, "tpir_at_fpir_1e-2": 0.1}
    own = {"tar_at_far_1e-4": 0.6, "tpir_at_fpir_1e-2": 0.3}
    made = make("bct", scores, own)
    # Of 1:1 the old model comes first, 0.4 and not 0.2; of 1:N the gallery is the old one.
    swapped = {**made.scores, "old/new": {"tar_at_far_1e-4": 0.4}}
    made = build(Record, {**made.as_json(), "scores": swapped}, "record")
    table = make_table([made], metrics="avg,tar_at_far_1e-4")
    cell = row(table, "bct").cells["avg", "new/old + new/new"]
    assert cell.value == pytest.approx((0.4 + 0.1 + 0.6 + 0.3) / 4)
    heads = [[column.head for column in block.columns] for block in text_table(table).blocks]
    assert heads[0] == ["new/old + new/new"]
    assert heads[1][:2] == ["new/old", "new/new"]
    with pytest.raises(BenchError, match="metric 'avg': these records have none"):
        make_table([make("bct")], metrics="avg")
