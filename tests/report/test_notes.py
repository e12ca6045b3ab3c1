"""Words of tables, plots and pages on the units of intervals."""

import pytest
from support.records import make_record
from support.sites import backfilled

from benchmark.config.loading import load_track
from benchmark.report import make_table, make_tables, notes
from benchmark.report.plots import frames
from benchmark.report.tables import backfilling

SCORES = {"cmc_at_1": 0.6, "tar_at_far_1e-3": 0.5, "tpir_at_fpir_1e-2": 0.4}
PEOPLE = "identities, impostors among them"
OVER = {"cmc_at_1": "classes", "tar_at_far_1e-3": PEOPLE, "tpir_at_fpir_1e-2": PEOPLE}


@pytest.mark.parametrize(
    ("over", "metrics", "words"),
    [
        (OVER, ["cmc_at_1"], "over classes"),
        (OVER, ["tar_at_far_1e-3"], f"over {PEOPLE}"),
        (OVER, [], f"over classes for CMC; over {PEOPLE} for TAR, TPIR"),
        (None, ["cmc_at_1"], "over single queries"),
        (None, ["tar_at_far_1e-3"], "over identities, thresholds kept"),
    ],
)
def test_words_of_one_seed(over, metrics, words) -> None:
    assert notes.over_words([make_record("bct", SCORES, over=over)], metrics) == words


def test_where_nothing_has_an_interval_nothing_is_said() -> None:
    record = make_record("bct", SCORES, intervals={}, over=OVER)
    assert notes.over_words([record]) == ""
    assert notes.interval_words([record]) == "± is the wider side of the 95 % interval"


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ({}, "no intervals, as there are fewer than 5 classes"),
        ({"cmc_at_1": [0.5, 0.7]}, "no intervals: none is made, or fewer than 30 impostors "),
    ],
)
def test_the_reason_why_a_score_has_no_interval(spans, words) -> None:
    record = make_record("bct", SCORES, intervals={"new/old": spans}, counts={"new/old": {"n": 9}})
    assert notes.interval_words([record], ["tpir_at_fpir_1e-2"]).startswith(words)


def test_several_seeds_are_over_seeds() -> None:
    records = [make_record("bct", SCORES, seed=seed, over=OVER) for seed in (0, 1)]
    assert notes.interval_words(records).endswith("(Student's t over the seeds)")
    assert "Student's t over seeds" in frames.subtitle(records)
    one = make_record("l2", SCORES, over=OVER)
    assert notes.interval_words([*records, one], ["cmc_at_1"]).endswith(
        "(Student's t over the seeds; of one seed over classes)"
    )


def test_tables_and_plots_say_it() -> None:
    record = make_record("bct", {"cmc_at_1": 0.6}, over=OVER)
    assert "over classes" in frames.subtitle([record])
    assert any("over classes" in note for note in make_table([record]).notes)
    older = make_record("bct", {"cmc_at_1": 0.6})
    assert "over single queries" in frames.subtitle([older])


def test_worst_points_have_a_table_of_their_own() -> None:
    scores = backfilled()
    order = scores["orders"]["random"]
    order |= {"worst": {"cmc_at_1": 0.45}, "share_above": {"cmc_at_1": 0.3}}
    order["intervals"] |= {"worst_cmc_at_1": [0.4, 0.5], "share_above_cmc_at_1": [0.1, 1.0]}
    record = make_record("bct", protocol="backfill", backfilling=scores, over=OVER)
    areas, worst = backfilling.make_tables([record])
    assert worst.slug == f"{areas.slug}-worst"
    lines = {line[8]: line for line in worst.values}
    assert [*lines["worst_cmc_at_1"][9:12]] == [0.45, 0.4, 0.5]
    assert [*lines["share_above_cmc_at_1"][9:12]] == [0.3, 0.1, 1.0]
    assert any("over classes" in note for note in worst.notes)
    older = make_record("bct", protocol="backfill", backfilling=backfilled())
    assert len(backfilling.make_tables([older])) == 1


def test_records_of_another_version_than_todays_say_so() -> None:
    """Tables of two versions look alike but for this line."""
    version = load_track("glyphs").version
    made = [make_record("bct", track_version=v) for v in (version, version + 6)]
    told = [[n for n in table.notes if "Of version" in n] for table in make_tables(made)]
    assert told == [[], [
        f"Of version {version + 6} of track glyphs, which is at version {version} here: scores of "
        "the two are not compared."
    ]]  # fmt: skip


def test_a_method_that_some_seeds_refuse_says_which() -> None:
    made = [make_record("bct", seed=0), make_record("bct", seed=1, reason="no old head")]
    assert "bct: not applicable with seed 1: no old head" in make_table(made).notes
    assert "bct: not applicable: no old head" in make_table(made[1:]).notes


def test_what_compatible_means_where_lower_is_better() -> None:
    for key, words in (("eer", "(BCT eq. 2), < where lower is better."), ("map", "(BCT eq. 2).")):
        table = make_table([make_record("bct", {key: 0.1}, {key: 0.1})])
        assert [words in note for note in table.notes if "Compatible: " in note] == [True]


def test_a_plot_says_what_diverged() -> None:
    made = [make_record(m, diverged={"x": "y"} if m != "a" else {}) for m in ("a", "b", "c", "d")]
    assert "diverged" not in frames.subtitle(made[:1])
    assert frames.subtitle(made[:2]).endswith("; diverged: b")
    assert frames.subtitle(made).endswith("; diverged: 3 methods")
