"""Shares that methods keep, worked by hand; ranks, recommendations, costs."""

from dataclasses import replace

import pytest
from support.records import make_record
from support.sites import backfilled, boards_of

from benchmark.metrics.cost_model import Assumptions
from benchmark.metrics.estimate import Estimate
from benchmark.report.colours import DARK, PALETTE
from benchmark.report.costs import effort
from benchmark.report.effects import criterion, effects, keeps
from benchmark.report.scenarios import scenario
from leaderboard.pages import changes, tables, templates
from leaderboard.pages.method import sentences
from leaderboard.rank import answers
from leaderboard.rank.boards import number_rows
from leaderboard.rank.heatmap import heatmap
from leaderboard.read.methods import method_info
from leaderboard.site import _HERE

SEEDS = range(3)


def three(method, cross, own=0.9, **fields):
    """A method on three old models of different quality, the share of the upgrade in each given."""
    lowers = (0.5, 0.6, 0.4)
    return [
        make_record(method, low + share * (0.9 - low), own, seed, lower=low, high=0.9, **fields)
        for seed, low, share in zip(SEEDS, lowers, cross, strict=True)
    ]


@pytest.fixture(scope="module")
def several():
    """One board of three old models: shares 0.5, 0.3, and one that hurts and keeps most."""
    cost = {"added_parameters": 10, "bytes_before": 256}
    records = [
        *three("independent", (-1.2, -1.5, -0.7)),
        *three("fct", (0.5, 0.4, 0.6), cost={**cost, "convert_multiply_adds": 720}),
        *three("bct", (0.3, 0.3, 0.3), cost=cost),
        *three("mixbct", (-0.1, -0.2, 0.1), cost=cost),
        *three("l2", (0.9, 0.9, 0.9), own=0.6, cost=cost),
        make_record("linear:query", 0.85, 0.9, 0),
    ]
    (board,) = boards_of(records)
    return board


def test_seeds_that_ranks_leave_out_are_told():
    """One of four methods has a fourth old model, which ranks leave out and scores have."""
    records = [r for m in ("bct", "fct", "l2", "bt2") for r in three(m, (0.3, 0.4, 0.5))]
    (board,) = boards_of(records)
    assert not tables.seeds_note(board.standing)
    (board,) = boards_of([*records, make_record("bct", 0.8, 0.9, 3, lower=0.5, high=0.9)])
    (note,) = tables.ranking_notes(board)[-1:]
    assert note.startswith("Ranks are by the old models that most methods have (seeds 0 to 2);")
    assert "which 1 of 4 have more of" in note
    # By score the fourth model would put bct above fct: rows go by rank.
    fct = three("fct", (0.32, 0.42, 0.52))
    others = [r for r in records if r.method != "fct"]
    (board,) = boards_of([*others, *fct, make_record("bct", 1.0, 0.9, 3, lower=0.5, high=0.9)])
    assert board.standing.in_order[0] == "fct" and board.standing.place("fct").rank == 1
    assert board.standing.effects["bct"].value.value > board.standing.effects["fct"].value.value


@pytest.fixture(scope="module")
def curves():
    """Backfilling where bt2 answers best on the first day, and independent has the larger area."""
    records = []
    for seed in SEEDS:
        for method, cross, area in (
            ("independent", 0.01, 0.75), ("bt2", 0.7, 0.72), ("fct", 0.55, 0.8), ("bct", 0.6, 0.74)
        ):  # fmt: skip
            task = backfilled(area={"cmc_at_1": area + 0.001 * seed})
            fields = {"protocol": "backfill", "backfilling": task}
            records.append(make_record(method, cross, 0.9, seed, **fields))
    (board,) = boards_of(records)
    return board


# --- what is kept


def test_a_share_is_taken_within_each_seed(several):
    effect = several.standing.effects["fct"]
    assert effect.share.value == pytest.approx(0.5)
    # Student's t of 0.4, 0.5, 0.6: 4.303 * 0.1 / sqrt(3).
    assert effect.share.high - 0.5 == pytest.approx(0.2484, abs=1e-3)
    assert keeps(effect) == "keeps 50 % ± 25 of the upgrade"
    assert not effect.hurts


def test_fewer_models_than_three_have_no_interval():
    records = [make_record("bct", 0.6, seed=seed) for seed in (0, 1)]
    effect = effects(records, criterion(records, "cmc_at_1"))["bct"]
    assert effect.share == Estimate(pytest.approx(0.25)) and not effect.enough
    assert keeps(effect) == "keeps 25 % of the upgrade (2 models)"


def test_without_an_upgrade_there_is_no_share():
    for high in (0.51, 0.515, 0.4):
        records = [make_record("bct", 0.6, high=high)]
        effect = effects(records, criterion(records, "cmc_at_1"))["bct"]
        assert effect.share.value is None
        assert "cannot be told" in keeps(effect)


def test_what_is_better_than_nothing_is_named_where_no_share_is_known():
    hardly = [make_record("bct", 0.6, 0.9, high=0.505), make_record("l2", 0.4, 0.9, high=0.505)]
    (board,) = boards_of(hardly)
    assert answers.board_answer(board)["lines"] == [
        "No share of the upgrade can be told: by CMC@1 the new model alone (50.5) is hardly better "
        "than the old one (50.0).",
        "Better than doing without any: bct 60.0; the old model 50.0.",
    ]
    (board,) = boards_of([make_record("l2", 0.6, 0.2), make_record("bct", 0.4, 0.9)])
    assert answers.board_answer(board)["lines"] == [
        "No method that was measured here is better than doing without any, unless it hurts "
        "new/new.", "Hurts new/new: l2.",
    ]  # fmt: skip


def test_errors_count_upside_down():
    record = make_record("bct", {"eer": 0.15}, {"eer": 0.1}, lower=0.2, high=0.1)
    assert criterion([record], "eer").share(record) == pytest.approx(0.5)


def test_hurting_is_beyond_the_interval():
    """Of one model the record's own, 0.02 above; of three that of the differences."""
    of = criterion([make_record()], "cmc_at_1")
    for own, hurts in ((0.87, True), (0.885, False), (0.9, False)):
        assert effects([make_record("bct", 0.6, own)], of)["bct"].hurts is hurts
    shaky = [make_record("bct", 0.6, own, s) for s, own in enumerate((0.7, 0.95, 0.9))]
    assert not effects(shaky, of)["bct"].hurts
    steady = [make_record("bct", 0.6, own, s) for s, own in enumerate((0.85, 0.86, 0.84))]
    assert effects(steady, of)["bct"].hurts


def test_a_chain_is_ranked_by_the_last_model_on_the_first_gallery():
    names = ["v1", "v2", "v3"]
    scores = {f"{a}/{b}": {"cmc_at_1": 0.5 + 0.1 * i - 0.02 * j}
              for i, a in enumerate(names) for j, b in enumerate(names[: i + 1])}  # fmt: skip
    models = {name: {"dim": 64} for name in names}
    record = make_record("bct", scores=scores, intervals={}, models=models, protocol="sequential")
    of = criterion([record], "cmc_at_1")
    assert (of.kind, of.case, of.value(record)) == ("chain", "v3/v1", pytest.approx(0.7))
    # v2/v1 0.6 > 0.5, v3/v1 0.7 > 0.5, v3/v2 0.68 > 0.58: all of three.
    assert effects([record], of)["bct"].average.value == 1.0


# --- who is first


def test_nobody_below_independents_area_is_first_on_a_backfilling_board(curves):
    assert {m: p.rank for m, p in curves.standing.places.items()} == {
        "fct": 1, "bt2": None, "bct": None,
    }  # fmt: skip
    assert curves.standing.criterion.kind == "area"
    table = tables.ranking(curves, "cmc_at_1")
    names = [row.labels[1].text for row in table.rows if row.kind != "bound"]
    assert names == ["fct", "no method, random order", "bct", "bt2"]
    assert answers.candidates(curves) == ["fct"]
    heat = heatmap([curves])
    looks = {method: cells[0].look for method, cells in heat.rows.items()}
    assert looks["bt2"] == "m1" and looks["fct"].startswith("p")
    assert heat.without[0].text == "63"  # (0.751 - 0.5) / 0.4


def test_where_nothing_beats_doing_without_that_row_is_first():
    records = [make_record("independent", 0.01, 0.9, protocol="backfill", backfilling=backfilled())]
    worse = backfilled(area={"cmc_at_1": 0.6})
    records.append(make_record("bct", 0.6, 0.9, protocol="backfill", backfilling=worse))
    (board,) = boards_of(records)
    rows = [row for row in tables.ranking(board, "cmc_at_1").rows if row.kind != "bound"]
    assert [row.labels[1].text for row in rows] == ["no method, random order", "bct"]
    assert answers.board_answer(board)["method"] is None


def test_worst_points_of_older_records_come_from_their_curves(curves):
    effect = curves.standing.effects["fct"]
    assert effect.worst.value == pytest.approx(0.5)  # the curve rises from 0.5 by 0.004 a point
    assert effect.above.value == pytest.approx(0.01)  # the first point is not above old/old
    half = answers.half_words(curves)
    assert (
        half
        == "Half of the gallery backfilled: fct has CMC@1 70.0; no method in random order 70.0."
    )


@pytest.mark.parametrize(("own", "expected"), [(0.5, 0.3), (0.6, 0.01)])
def test_above_is_above_the_old_model_that_all_share(own, expected):
    """A method with an old model of its own noted the share from which it is above that one."""
    task = backfilled(share_above={"cmc_at_1": 0.3})
    fields = {"protocol": "backfill", "backfilling": task, "bounds": {
        "lower": {"cmc_at_1": 0.5}, "upper": {"cmc_at_1": 0.9},
    }}  # fmt: skip
    record = make_record("d-simplex", 0.6, 0.9, lower=own, **fields)
    effect = effects([record], criterion([record], "cmc_at_1"))["d-simplex"]
    assert effect.above.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ends", "said"), [((0.9, 0.9), "1 %"), ((0.9, 0.3), "1 of 2"), ((0.3, 0.3), "never")]
)
def test_a_curve_that_stays_above_on_some_models_is_not_one_that_never_does(ends, said):
    records = []
    for seed, end in enumerate(ends):
        curve = [0.5 + (end - 0.5) * i / 100 for i in range(101)]
        task = backfilled(curves={"cmc_at_1": curve})
        fields = {"protocol": "backfill", "backfilling": task}
        records.append(make_record("independent", 0.5, 0.9, seed, **fields))
        records.append(make_record("bct", 0.5, 0.9, seed, **fields))
    (board,) = boards_of(records)
    row = next(r for r in tables.ranking(board, "cmc_at_1").rows if r.labels[1].text == "bct")
    (heads,) = [b.columns for b in tables.ranking(board, "cmc_at_1").blocks]
    place = [head.head for head in heads].index("above old/old")
    assert row.cells[0][place].text == said


def test_without_a_curve_nothing_is_said_of_it(curves):
    record = make_record("bct", 0.6, 0.9, protocol="backfill")
    effect = effects([record], criterion(curves.records, "cmc_at_1"))["bct"]
    assert tables._own_cell(effect, "share", "above").text == "-"


def test_an_answer_that_asks_for_more_names_the_best_that_does_not():
    records = [
        make_record(method, cross, 0.9, seed)
        for seed in SEEDS
        for method, cross in (("independent", 0.01), ("cascade", 0.85 + seed / 1000), ("l2", 0.7))
    ]
    answer = answers.board_answer(boards_of(records)[0])
    assert answer["method"] == "cascade"
    needs, without = answer["lines"][1:3]
    assert needs.startswith("It needs time to run the old model, too, on every query")
    assert without == "With pictures and vectors alone, l2 keeps 50 % ± 0 of the upgrade."


def test_of_the_method_that_needs_nothing_it_is_told_where_it_is_not_above_no_method():
    records = [
        make_record(method, cross, 0.9, seed)
        for seed in SEEDS
        for method, cross in (
            ("independent", 0.01), ("cascade", 0.85), ("l2", (0.48, 0.56, 0.52)[seed]),
        )
    ]  # fmt: skip
    without = answers.board_answer(boards_of(records)[0])["lines"][2]
    assert without == (
        "With pictures and vectors alone, l2 keeps 5 % ± 25 of the upgrade, which cannot be told "
        "from doing without any method."
    )


def test_the_row_of_keeping_the_old_model_stands_where_it_belongs(several):
    rows = [r for r in tables.ranking(several, "cmc_at_1").rows if r.kind != "bound"]
    names = [row.labels[1].text for row in rows]
    assert names == ["l2", "fct", "bct", "keep the old model", "mixbct", "linear:query"]
    assert [row.labels[0].text for row in rows] == ["1", "2", "3", "", "-", "-"]
    assert rows[1].labels[0].small == "2 to 3"  # fct and bct; l2 is far above


def test_nothing_is_green_under_three_models(several):
    cells = {
        row.labels[1].text: row.cells[0]
        for row in tables.ranking(several, "cmc_at_1").rows
        if row.kind != "bound"
    }
    looks = {name: {cell.look for cell in row} for name, row in cells.items()}
    assert "yes" in looks["fct"]
    assert not looks["linear:query"] & {"yes", "no"}
    assert cells["linear:query"][-1].text == "1"
    assert not any(cell.spread for cell in cells["linear:query"])


# --- who is recommended


def test_nothing_that_hurts_is_recommended(several):
    assert several.standing.effects["l2"].hurts
    assert answers.candidates(several) == ["fct", "bct", "linear:query"]
    found = answers.advice(several, ("convert", "query"), "vendor")
    assert (found["method"], found["keeps"]) == ("fct", "keeps 50 % ± 25 of the upgrade")
    assert found["worst"].startswith("70.7 right after the update")
    assert "linear:query keeps 87 % of the upgrade (1 model)" in found["runner_up"]
    (data,) = answers.chooser_data([several])
    fits = {row["method"]: row["fits"] for row in data["rows"]}
    assert fits == {
        "fct": True, "bct": True, "linear:query": True, "l2": False, "mixbct": False,
    }  # fmt: skip


def test_what_keeps_more_and_needs_more_is_said():
    (board,) = boards_of([
        *three("independent", (-0.7, -0.7, -0.7)), *three("bct", (0.3, 0.3, 0.3)),
        *three("bt2", (0.6, 0.6, 0.6)),
    ])  # fmt: skip
    found = answers.advice(board, ("train",), "own")
    assert found["method"] == "bct"
    assert (
        found["more"] == "bt2 keeps 60 % ± 0 of the upgrade, but needs room for a longer embedding"
    )


def test_settings_of_several_versions_are_one_family():
    """A setting may have a version of its own; its page has every setting, each under its name."""
    records = [
        make_record(method, score, 0.9, 0, protocol=f"arch-change:{setting}", protocol_version=v)
        for setting, v in (("deeper", 1), ("deeper", 2), ("longer", 1))
        for method, score in (("independent", 0.1), ("bct", 0.5 + v / 10))
    ]
    (family,) = tables.make_families(boards_of(records))
    newest = {name: board.first.protocol_version for name, board in family.boards.items()}
    assert newest == {"deeper": 2, "twice as long": 1}
    (table,) = [t for t in family.tables if t.title == "CMC@1"]
    assert [r.cells[0][1].text for r in table.rows if r.labels[1].text == "bct"] == ["70.0", "60.0"]
    why = {"train bct (seed 0)": "its loss rises from 1 to 2"}
    marked = [r.model_copy(update={"diverged": why if r.method == "bct" else {}}) for r in records]
    (again,) = tables.make_families(boards_of(marked))
    cells = [row.labels[1] for row in again.tables[0].rows if row.labels[1].text == "bct"]
    assert [(cell.small, cell.href) for cell in cells] == [
        ("diverged", tables.method_cell("bct", "../").href)
    ] * 2
    heads = {board.slug: name for name, board in family.boards.items()}
    heat = heatmap([*family.boards.values()], heads=heads)
    assert [(c.head, c.below) for c in heat.columns] == [("deeper", ""), ("twice as long", "")]


def test_a_board_says_what_hurts(several):
    lines = answers.board_answer(several)["lines"]
    assert "Hurts new/new: l2." in lines


def test_what_a_method_needs_is_asked_for():
    old = "the old model on all queries"
    wanted = {
        "fct": ("convert", []), "fct:simclr": ("convert", ["side-information"]),
        "bt2": ("train", ["longer"]), "linear:query": ("query", []), "slerp": ("query", [old]),
        "rank-merge": ("lists", [old]), "cascade": ("lists", [old, "new embeddings"]),
        "random": (None, []),
    }  # fmt: skip
    for method, (way, needs) in wanted.items():
        info = method_info(method)
        assert (answers.way(info), answers.held(info)) == (way, needs), method


def test_embedding_within_a_query_is_not_had_for_nothing(several, monkeypatch):
    """The share that rescored lists keep is told, with its needs; it is no recommendation."""
    best = answers.advice(several, ("convert", "query", "lists"), "somebody")["method"]
    costly = replace(several.info[best], card={"new embeddings": 9})
    monkeypatch.setitem(several.info, best, costly)
    found = answers.advice(several, ("convert", "query", "lists"), "somebody")
    assert found is None or (found["method"] != best and best in found["more"])
    assert answers.costly(several, ("convert",)).startswith(best)
    assert "embed stored pictures anew within every query" in str(answers.board_answer(several))


def test_hours_by_hand():
    assumed = Assumptions(items=3.6e6, throughput=100, training_hours=10, pairs=36e4, map_rate=1e6)
    costs = {"training_cost": 1.25, "fit_multiply_adds": 9e9, "convert_multiply_adds": 1e3}
    # 2.5 of fitting, 1 of embedding pairs, 1 of converting.
    assert assumed.updating(costs, trains=False) == 4.5
    assert assumed.updating(costs, trains=True) == 3.5  # 2.5 of training longer, 1 of converting
    assert assumed.updating({}, trains=False, fitted=False) == 0.0
    assert assumed.embedding(assumed.items) == 10.0
    assert assumed.updating({"training_cost": 0.9}, trains=True) == 0.0
    assert assumed.updating({"training_cost": 1.04}, trains=True) == 0.0  # repeats differ by that
    few = Assumptions(items=100, throughput=1, pairs=1000)
    assert few.updating({}, trains=False) == pytest.approx(100 / 3600)


def test_hours_do_not_follow_the_clock_of_one_board():
    """A neighbour's load on one of three boards; a map's steps are counted, never timed."""
    sizes = {"generations": {"new": {"images": 100, "classes": 10}}}
    made = [
        make_record(m, protocol=p, run={"training_cost": c}, cost={"query_multiply_adds": 50},
                    dataset={"name": "x", **sizes},
                    recipe={"epochs": 1, "transform_steps": "8 epochs"})
        for m in ("bct", "linear:query")
        for p, c in (("open-class", 1.0), ("extended-class", 8.56), ("open-data", 1.02))
    ]  # fmt: skip
    for board in boards_of(made):
        assert board.update_costs("bct")["training_cost"] == 1.02
        assert answers.update_words(board, "bct") == "no extra machine time"
        # 3 passes, 50 multiply-adds, 8 epochs of one step of 100 pairs
        assert board.update_costs("linear:query")["fit_multiply_adds"] == 3 * 50 * 8 * 100


def test_a_cascade_fits_nothing_and_pays_by_the_query():
    made = [make_record(m) for m in ("cascade", "cascade:top-1000", "score-merge")]
    (board,) = boards_of(made)
    words = answers.update_words(board, "cascade")
    # 200 million embeddings, 500 a second: 111 hours.
    assert words == (
        "no extra machine time and $222 a million queries, 200 items embedded anew for each"
    )
    cells = {row.labels[1].text: row.cells[0] for row in tables.ranking(board, "cmc_at_1").rows}
    (cost,) = (cell for cell in cells["cascade"] if cell.text == "nothing")
    assert cost.small == "$222 a million queries"
    deeper = next(cell for cell in cells["cascade:top-1000"] if cell.text == "nothing")
    assert deeper.small == "$1,111 a million queries"
    assert answers.update_words(board, "score-merge") == "33 min of one machine, $1.11"


def test_costs_that_one_method_lacks_are_not_shared():
    costs = {"bct": {}, "cascade": {"model_runs": 2}, "rank-merge": {"model_runs": 2}}
    (board,) = boards_of(make_record(m, cost={"bytes_before": 64, **c}) for m, c in costs.items())
    assert set(board.shared_costs) == {"bytes_before"}


def test_what_a_submission_takes():
    """Half an hour and two hours of one seed: three seeds of the middle are 3.75 hours."""
    hours = {"bct": 0.5, "fct": 2.0}
    records = [
        make_record(m, run={"stages": {"a": {"seconds": 1800 * h}, "b": {"seconds": 1800 * h}}})
        for m, h in hours.items()
    ]
    found = effort(board.records for board in boards_of(records))
    assert (found.protocols, found.hours, found.most) == (1, 3.75, 6.0)
    assert (found.words, found.money) == ("3.8 h, of the slowest 6.0 h", "$7.50")


def test_three_sentences(several):
    found = dict(sentences(method_info("fct"), [several]))
    assert found["Good for"] == [
        "50 % ± 25 of the upgrade: The new model learns other classes, on rendered characters "
        "(smoke test)."
    ]
    assert found["Bad for"][0].startswith("nothing that was measured here")
    assert found["Costs"][0].endswith("256 bytes an item.")
    shaky = boards_of([*three("independent", (-1.2, -1.5, -0.7)), *three("fct", (0.1, 0.9, -0.4))])
    none = dict(sentences(method_info("fct"), shaky))["Good for"]
    assert none[0].startswith("nothing that was measured here")  # 20 % on average, and nothing sure
    worse = boards_of([*three("independent", (0.1, 0.1, 0.1)), *three("fct", (-0.9, 0.4, -0.1))])
    bad = dict(sentences(method_info("fct"), worse))["Bad for"]
    assert bad[0] == "nothing that was measured here beyond its interval; least good:"
    once = [
        make_record(method, cross, 0.9, lower=0.5, high=0.9, track="omniglot")
        for method, cross in (("independent", 0.5), ("fct", 0.1))
    ]
    sure = [*three("independent", (0.1, 0.1, 0.1)), *three("fct", (-0.7, -0.6, -0.7))]
    first, second = dict(sentences(method_info("fct"), boards_of([*once, *sure])))["Bad for"]
    assert "(1 model)" not in first and "(1 model)" in second
    assert "below the old model" in bad[1]
    bad = dict(sentences(method_info("l2"), [several]))["Bad for"]
    assert bad == ["new/new, which it lowers on 1 of 1 boards."]


# --- words


def test_scenarios_are_plain_words_with_the_id_beside():
    about = scenario(make_record(protocol="ijbc-1v1"))
    assert about.title == (
        "Templates of several pictures compared one to one, by IJB-C's rules, "
        "on rendered characters (smoke test)"
    )
    assert (about.id, about.kind) == ("ijbc-1v1 · glyphs", "rendered")
    assert about.group == "templates and cameras"
    assert scenario(make_record(track="omniglot")).kind == "drawings"


def test_photographs_come_first_whatever_rendered_pictures_say():
    rendered, photographs = ("glyphs", SEEDS), ("cifar100-small", SEEDS[:1])
    records = [
        make_record(method, value, 0.9, seed, lower=0.5, track=track)
        for track, seeds in (rendered, photographs)
        for method, value in (("independent", 0.1), ("fct", 0.7))
        for seed in seeds
    ]
    made = boards_of(records)
    assert [board.first.track for board in made] == ["cifar100-small", "glyphs"]
    best = answers.commonest(made)
    assert best is made[0] and best.models == 1


def test_seen_and_unseen_classes_are_apart():
    facts = {"name": "glyphs", "n_classes": 1898, "facts": {"train_classes": 1300}}
    found = {
        "unseen": make_record(dataset=facts),
        "seen": make_record(protocol="backfill", track="glyphs-seen", dataset=facts),
        "both": make_record(protocol="unseen:half", dataset=facts),
        "": make_record(),
    }
    assert {key: scenario(record).classes for key, record in found.items()} == {k: k for k in found}
    assert scenario(make_record(protocol="unseen:unseen", dataset=facts)).classes == "unseen"
    assert scenario(make_record(protocol="unseen:seen", dataset=facts)).classes == "seen"
    closed = {"name": "x", "n_classes": 100, "facts": {"train_classes": 100}}
    assert scenario(make_record(dataset=closed)).classes == "seen"
    seen = make_record("bct", protocol="extended-class", track="glyphs-seen")
    both = boards_of([make_record("bct", dataset=facts), seen])
    assert {name for name, _ in heatmap(both).groups} == {"one update", "classes seen in training"}


def test_parts_of_the_heatmap_are_of_one_group():
    """A narrow screen has six columns; a wide one shows all parts of a group."""
    places = [(p, t) for p in ("open-class", "extended-class", "open-data", "extended-data")
              for t in ("glyphs", "omniglot")]  # fmt: skip
    records = [
        make_record(method, value, 0.9, protocol=protocol, track=track, lower=0.5)
        for protocol, track in places
        for method, value in (("independent", 0.1), ("bct", 0.7))
    ]
    heat = heatmap(boards_of(records))
    assert [*heat.parts] == [
        ("one update, 1 of 2", "one update"), ("one update, 2 of 2", "one update"),
    ]  # fmt: skip
    assert [column.part for column in heat.columns] == [0] * 4 + [1] * 4


def test_colours_of_the_site_are_those_of_plots():
    style = (_HERE / "assets" / "style.css").read_text()
    for i, light in enumerate(PALETTE):
        value = f"light-dark({light}, {DARK[light]})" if light in DARK else light
        assert f"--hue-{i}: {value};" in style


# --- downloads and releases


def test_downloads_say_what_is_kept(several):
    rows = {r["method"]: r for r in number_rows(several) if r["kind"] == "method"}
    assert rows["fct"]["upgrade kept"] == 0.5 and rows["fct"]["rank"] == 2
    assert (rows["fct"]["hurts"], rows["l2"]["hurts"]) == ("no", "yes")
    assert rows["linear:query"]["rank"] is rows["linear:query"]["tied with"] is None


def test_releases_are_frozen_and_compared(several, curves, tmp_path):
    first = changes.freeze("0.1.0", [several])
    changes.write_release(first, tmp_path)
    with pytest.raises(Exception, match="frozen already"):
        changes.write_release(first, tmp_path)
    changes.write_release(changes.freeze("0.10.0", [several, curves]), tmp_path)
    changes.write_release(changes.freeze("0.9", [several]), tmp_path)
    found = changes.read_releases(tmp_path)
    assert [release.release for release in found] == ["0.10.0", "0.9", "0.1.0"]
    assert not changes.moves(found[1], found[2])
    (new,) = changes.moves(first, changes.freeze("1", [several, curves]))
    assert (new.slug, new.words) == (curves.slug, "new board")
    names = [name for name, _ in first.boards[several.slug].in_order]
    assert names[:3] == ["l2", "fct", "bct"] and names[3] == "linear:query"
    method = first.boards[several.slug].methods["fct"]
    assert (method.rank, method.share, method.models) == (2, 0.5, 3)
    before = first.model_copy(deep=True)
    rows = dict(before.boards[several.slug].methods)
    rows["fct"] = method.model_copy(update={"rank": 1, "share": 0.7})
    board = before.boards[several.slug].model_copy(update={"methods": rows})
    moved = changes.moves(before.model_copy(update={"boards": {several.slug: board}}), first)
    assert [(m.method, m.words) for m in moved] == [("fct", "rank 1 to 2, keeps 70 % to 50 %")]


@pytest.mark.parametrize(("text", "words"), [
    ("{", "no JSON"), ("[]", "expected"), ('{"release": "2"}', "missing"),
    ('{"release": "2", "newest": "", "records": -1, "boards": {}}', "records"),
    ('{"release": "1", "newest": "", "records": 1, "boards": {}}', "expected '2', got '1'"),
])  # fmt: skip
def test_releases_of_others_are_checked(tmp_path, text, words):
    (tmp_path / "2.json").write_text(text)
    with pytest.raises(Exception, match=words) as caught:
        changes.read_releases(tmp_path)
    assert "2.json" in str(caught.value)


def test_a_feed_is_xml_with_relative_links(several):
    import xml.etree.ElementTree as ElementTree

    values = changes.feed([several], [changes.freeze("0.1", [several])])
    text = templates.render("feed.xml", **values)
    root = ElementTree.fromstring(text.replace("http://www.w3.org/2005/Atom", "atom"))
    links = [link.get("href") for link in root.iter("{atom}link")]
    assert links == ["changes.html", "releases/0.1.html", f"boards/{several.slug}.html"]
    assert root.find("{atom}updated").text == "2025-01-03T00:00:00+00:00"
