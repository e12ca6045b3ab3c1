"""Trainings that diverged, and raw features that are not beaten, in tables and standings."""

from support.records import make_record
from support.toy_runs import run_toy, run_toy_seeds

from benchmark.report import record_tables, render
from benchmark.report.effects import standing


def test_a_row_that_diverged_is_marked_and_never_the_best():
    why = {"train bct (seed 0)": "its loss rises from 1 to 2"}
    made = [
        make_record("independent", 0.1), make_record("bct", 0.9, diverged=why),
        make_record("l2", 0.6),
    ]  # fmt: skip
    (table, *_) = record_tables(made)
    lines = render(table, "terminal").splitlines()
    (bct,) = [line for line in lines if line.strip().startswith("bct")]
    assert "diverged" in bct and "*" not in bct
    assert any("*" in line for line in lines if line.strip().startswith("l2"))
    told = " ".join(" ".join(lines).split())
    assert "Warning: trainings that diverged" in told
    assert "train bct (seed 0): its loss rises from 1 to 2" in told


def test_no_method_has_a_rank_or_a_share_where_raw_features_are_no_worse():
    def places(raw):
        made = [
            record
            for seed in range(3)
            for record in (
                make_record("independent", 0.1, own=0.8, seed=seed),
                make_record("raw-features", 0.1, own=raw, seed=seed),
                make_record("bct", 0.6 + seed / 100, seed=seed),
                make_record("l2", 0.55 + seed / 100, seed=seed),
            )
        ]
        found = standing(made, "cmc_at_1", ["bct", "l2"])
        return found.place("bct").rank, found.effects["bct"].share.value is not None

    assert places(0.7) == (1, True)
    assert places(0.8) == (None, False)


def test_too_high_a_rate_marks_every_training_and_the_usual_one_none(tmp_path):
    usual = run_toy(["bct"], tmp_path, "extended-class")
    # These classifiers are late: above a guess, far below random labels.
    late = run_toy_seeds(["bct"], tmp_path / "late", tmp_path / "store", [1], "open-class")
    assert not any(record.diverged for record in (*usual.values(), *late))
    wild = run_toy(["bct", "l2"], tmp_path, "extended-class", **{"recipe.lr": 3})
    assert wild["independent"].diverged.keys() == {
        "train old model (seed 0)", "train independent new model (seed 0)"
    }  # fmt: skip
    assert "train bct (seed 0)" in wild["bct"].diverged
    assert wild["l2"].diverged["train l2 (seed 0)"].startswith("its classifier's loss on training")
