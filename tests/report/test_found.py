"""The sentence that leads the table of a run."""

from support.records import make_record

from benchmark.report import outcome
from benchmark.report.found import found


def test_three_seeds_say_what_each_method_keeps():
    """From 0.5 to 0.9 is the upgrade; l2 is below the old model, a control is not told of."""
    scores = {"bct": (0.6, 0.62, 0.58), "l2": (0.48, 0.48, 0.48), "independent": (0.1, 0.1, 0.1),
              "random": (0.7, 0.7, 0.7)}  # fmt: skip
    made = [make_record(m, v, seed=s) for m, values in scores.items() for s, v in enumerate(values)]
    (words,) = found(made)
    assert words == (
        "By CMC@1, bct keeps 25 % ± 12 of the upgrade; l2 is 5 % ± 0 of the upgrade below the old "
        "model."
    )


def test_what_cannot_be_told_from_the_old_model_is_said_so():
    made = [make_record("bct", v, seed=s) for s, v in enumerate((0.3, 0.5, 0.6))]
    assert next(found(made)).startswith(
        "By CMC@1, bct cannot be told from the old model (-8 % ± 95 of the upgrade)."
    )


def test_a_single_seed_has_no_interval_and_settings_have_names():
    made = [
        make_record("fct", 0.7, protocol=f"loss-change:{s}") for s in ("relu", "softmax-softmax")
    ]
    first, second = found(made)
    assert first == (
        "loss-change:relu: by CMC@1, fct keeps 50 % of the upgrade (1 model). A share has "
        "no interval below three seeds (--seeds 0-2)."
    )
    assert second.startswith("loss-change:softmax-softmax: by CMC@1, fct keeps 50 %")


def test_nothing_is_told_of_no_upgrade_or_of_many_methods_more_than_four():
    assert not [*found([make_record("bct", 0.6, high=0.501)])]
    assert [*found([make_record("bct", 0.6, high=0.4)])] == [
        "By CMC@1, no share can be told: the new model alone is below the old one."
    ]
    made = [make_record(f"other-{i}", 0.5 + i / 50) for i in range(7)]
    assert "; 3 others keep less." in next(found(made))


def test_no_share_is_told_of_an_upgrade_that_may_be_chance():
    """Three upgrades of 1, 5 and 30 points have a mean of 12 with ±39.0 by Student's t."""
    highs = (0.51, 0.55, 0.8)
    made = [
        make_record(method, 0.6, own=high, high=high, seed=seed)
        for seed, high in enumerate(highs)
        for method in ("bct", "independent")
    ]
    (words,) = found(made)
    assert words == (
        "By CMC@1, no share can be told: the new model alone is 12.0 ±39.0 above the old one, "
        "which may be chance. More queries or seeds tell."
    )
    assert next(outcome.warnings({"": made}, ["cmc_at_1"])).endswith(
        "by CMC@1 the upper bound is not surely above the lower one, so shares of the upgrade say "
        "little."
    )


def test_of_a_single_seed_the_intervals_of_its_queries_tell():
    """Intervals are from 1 point below to 2 above: together 2.2 (the root of 1 and 4)."""
    for high, sure in ((0.521, False), (0.523, True)):
        alone = make_record("independent", 0.1, own=high, high=high)
        words = next(found([make_record("bct", 0.6, high=high), alone]))
        assert words.startswith("By CMC@1, bct keeps" if sure else "By CMC@1, no share")
    assert next(found([make_record("bct", 0.6, high=0.521)])).startswith("By CMC@1, bct keeps")


def test_where_raw_features_are_no_worse_training_does_not_pay():
    raw = [make_record("raw-features", 0.1, own=0.81, seed=s) for s in range(3)]
    alone = [make_record("independent", 0.1, own=0.8, seed=s) for s in range(3)]
    bct = [make_record("bct", 0.6, seed=s) for s in range(3)]
    (words,) = found([*raw, *alone, *bct])
    assert words == (
        "By CMC@1, training does not pay: the new model alone has 80.0, the raw features of its "
        "backbone 81.0."
    )
    lower = [make_record("raw-features", 0.1, own=0.79, seed=s) for s in range(3)]
    assert next(found([*lower, *alone, *bct])).startswith("By CMC@1, bct keeps 25 %")


def test_what_diverged_is_not_told_of():
    why = {"train bct (seed 0)": "its loss rises from 1 to 2"}
    made = [make_record("bct", 0.6, diverged=why), make_record("l2", 0.58)]
    assert "bct" not in next(found([*made, make_record("independent", 0.1)]))
    bound = make_record("independent", 0.1, diverged={"train old model (seed 0)": "it rises"})
    assert [*found([*made, bound])] == [
        "Nothing was found: trainings diverged or ended too early (train old model (seed 0): it "
        "rises); lower recipe.lr."
    ]
    short = {"train old model (seed 0)": "its loss is 4, a guess's 2, and falls: too few epochs"}
    bound = make_record("independent", 0.1, diverged=short)
    assert next(found([*made, bound])).endswith("too few epochs); raise recipe.epochs.")
