"""The core board: what is wanted, what is wrong with a record, what is left to compute."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from support.made_stages import titled
from support.records import make_record

from benchmark import BenchError, get_method
from benchmark.config import registry
from benchmark.config.loading import load_track
from benchmark.errors import AbsentError
from benchmark.harness.board_runs import (
    Estimates,
    Job,
    TimeEstimate,
    carry_out_jobs,
    jobs,
    seconds_spent,
    stages_left,
)
from benchmark.harness.core_board import (
    EVERY,
    Unit,
    count_states,
    read_core_board,
    unit_request,
    unit_statuses,
)
from benchmark.harness.graph import data_source, record_key
from benchmark.harness.requests import make_request
from benchmark.records.files import write_record
from benchmark.records.record import Record


def on_toy(methods="few", *protocols, **more):
    """A board of the toy track, of one protocol by default."""
    chosen = [*(protocols or ["open-class"])]
    return {"track": "toy", "protocols": chosen, "methods": methods} | more


BOARD = {
    "precision": "32-true", "threads": 1, "device": "cpu", "seeds": [0, 1],
    "lists": {"few": ["bct", "independent"]},
    "boards": [
        on_toy(),
        {"track": "omniglot", "protocols": ["open-data"], "methods": "few"},
    ],
}  # fmt: skip


@pytest.fixture
def board_file(tmp_path):
    def write(**changes):
        path = tmp_path / "core.yaml"
        path.write_text(yaml.safe_dump(BOARD | changes))
        return path

    return write


@pytest.fixture
def put(tmp_path):
    """Write a record of toy's open-class as a run would have, with changes; gives nothing."""
    setup = make_request(["bct"], "open-class", "toy").setup
    source = data_source(setup, None)

    def write(method, seed=0, **changes):
        environment = {"precision": "32-true", "threads": "1"} | changes.pop("environment", {})
        code = {"commit": "abc", "dirty": False} | changes.pop("code", {})
        key = record_key(setup, source, method, seed, None)
        record = make_record(
            method, seed=seed, track="toy", environment=environment,
            **{"key": key, "run": {"code": code}, **changes},
        )  # fmt: skip
        write_record(record.path(tmp_path / "results"), record)

    return write


def states(board, results, **roots):
    return [dict(s.states) for s in unit_statuses(board, results, roots)]


def test_the_board_of_an_accelerator_has_tracks_of_its_own() -> None:
    large = read_core_board(Path(__file__).parents[2] / "results" / "core-cuda.yaml")
    assert large.device == "cuda"
    tracks = {unit.track for unit in large.units}
    assert not tracks & {unit.track for unit in read_core_board().units}
    small = {"cifar100-large": "cifar100-small", "cifar100-open-large": "cifar100-open",
             "glyphs-large": "glyphs"}  # fmt: skip
    assert tracks == small.keys()
    for track in tracks:
        large_track, small_track = load_track(track), load_track(small[track])
        assert (large_track.dataset, large_track.data) == (small_track.dataset, small_track.data)
        assert large_track.models["new"].backbone == "convnet-128x2"


def test_a_board_is_asked_for_by_its_track_and_protocol() -> None:
    board = read_core_board()
    chosen = board.only(["backfill", "sequential"], ["omniglot", "cifar100-open"]).units
    wanted = {("omniglot", "sequential"), ("cifar100-open", "backfill")}
    assert chosen == tuple(u for u in board.units if (u.track, u.protocol) in wanted)
    assert {(u.track, u.protocol) for u in chosen} == wanted
    assert board.only([], []).units == board.units
    assert {u.track for u in board.only([], ["glyphs"]).units} == {"glyphs"}
    for names, found in ((["backfil"], []), ([], ["omniglott"])):
        with pytest.raises(AbsentError, match=r"unknown (protocol|track) of the board '.*mean"):
            board.only(names, found)
    with pytest.raises(BenchError, match="no board of omniglot under backfill"):
        board.only(["backfill"], ["omniglot"])


def test_a_board_may_have_seeds_of_its_own(board_file) -> None:
    board = read_core_board(board_file(boards=[on_toy(seeds=[3]), on_toy("few", "open-data")]))
    assert [(unit.protocol, unit.seed) for unit in board.units] == [
        ("open-class", 3), ("open-data", 0), ("open-data", 1)
    ]  # fmt: skip


def test_the_board_of_frozen_networks_has_ten_old_models_and_the_control() -> None:
    units = read_core_board(Path(__file__).parents[2] / "results" / "core-frozen.yaml").units
    assert {unit.seed for unit in units} == set(range(10))
    for track in {unit.track for unit in units}:
        assert all(model.frozen for model in load_track(track).models.values())
    for unit in units:
        assert "raw-features" in unit.methods
    for unit in {unit.protocol: unit for unit in units}.values():
        request = unit_request(unit, {})
        assert request.labels[0] == "independent"
        # Features as they are have no text encoder; lwf needs the old classifier.
        none = {"raw-features"} if unit.protocol == "modality" else set()
        refused = {r.label for r in request.plan().results if r.reason is not None}
        assert refused - {"lwf"} == none


def test_every_weight_is_tuned_by_the_same_factors() -> None:
    """Each at a third and at three times the default."""
    studies = Path(__file__).parents[2] / "results" / "studies"
    for name in ("board", "others", "rendered"):
        default, third, triple = read_core_board(studies / "tuning" / f"{name}.yaml").units
        assert default.changes == (("data.tuning", True),)
        assert default.methods == third.methods == triple.methods
        for unit, factor in ((third, 1 / 3), (triple, 3.0)):
            weights = dict(unit.changes[1:])
            owners = [key.partition(".")[0] for key in weights]
            assert unit.changes[0] == default.changes[0]
            assert owners == [*default.methods[1:]]
            for key, value in weights.items():
                method, _, field = key.partition(".")
                usual = asdict(get_method(method))[field]
                usual = 1 / 64 if usual is None else usual  # fastfill: of the embedding's size
                assert value == pytest.approx(factor * usual, rel=1e-3)


def test_photographs_come_first() -> None:
    tracks = list(dict.fromkeys(unit.track for unit in read_core_board().units))
    assert tracks[:2] == ["cifar100-small", "cifar100-open"]


def without_variants() -> set[str]:
    """Methods of which none is a variant of another that has a file of its own."""
    own = {"bt2-code", "lce-published", "mini-vec2vec-restarts", "mixed-adapter", "raw-features"}
    assert own == {name for name, file in registry.method_files().items() if file.variant_of}
    return set(registry.method_files()) - own


def test_every_method_without_variants(board_file) -> None:
    (first, *_) = read_core_board(board_file(boards=[on_toy(EVERY)])).units
    assert first.methods[0] == "independent"
    assert {"bct", "random", "bct-extra"} <= set(first.methods)


def test_every_method_within_a_list(board_file) -> None:
    lists = {"more": ["bct", EVERY, "fct:simclr"]}
    (first, *_) = read_core_board(board_file(lists=lists, boards=[on_toy("more")])).units
    assert first.methods[:2] == ("independent", "bct") and first.methods[-1] == "fct:simclr"
    assert set(first.methods) == {*without_variants(), "fct:simclr"}


def test_states(board_file, put, tmp_path) -> None:
    board, results = read_core_board(board_file()), tmp_path / "results"
    assert states(board, results)[0] == {"independent": "missing", "bct": "missing"}
    put("independent")
    put("bct", key="of other code")
    assert states(board, results)[0] == {"independent": "there", "bct": "stale"}
    for changes, state in (
        ({"environment": {"precision": "bf16-mixed"}}, "precision"),
        ({"environment": {"threads": "2"}}, "threads"),
        ({"code": {"dirty": True}}, "not clean"),
        ({"code": {"commit": None}}, "not clean"),
        ({}, "there"),
    ):
        put("bct", **changes)
        assert states(board, results)[0]["bct"] == state
    path = results / "measured/open-class/toy/bct/seed-0.json"
    path.write_text(path.read_text().replace("0.6", "0.7"))
    found = list(unit_statuses(board, results, {}))
    assert found[0].states["bct"] == "damaged"
    assert found[0].todo == ("bct",)
    assert count_states(found) == {"there": 1, "damaged": 1, "missing": 6}


def test_a_track_whose_data_is_not_here(board_file, put, tmp_path) -> None:
    """Its records are compared by version and code, and it cannot be run."""
    board = read_core_board(board_file())
    status = next(s for s in unit_statuses(board, tmp_path, {}) if s.unit.track == "omniglot")
    assert status.unknown == "needs --data-root omniglot=DIR"
    assert jobs([status], [None], board, {}, []) == []


@pytest.mark.parametrize(
    ("method", "part", "change", "told"),
    [
        ("bct", "recipe", {}, ""),
        ("bct", "recipe", {"clip": 5}, "recipe.clip 5.0, here "),
        ("bct", "recipe", {"precision": "bf16-mixed"}, ""),  # chosen by run
        ("bct", "recipe", {"transform_steps": 7}, ""),  # of maps, which it does not train
        ("fct", "recipe", {"transform_steps": 7}, "recipe.transform_steps 7, here "),
        ("bct", "models", {"dim": 7}, "model old "),
    ],
)
def test_without_data_another_recipe_is_seen(method, part, change, told) -> None:
    request = make_request([method], "open-data", "omniglot", without_data=True)
    names = [generation.name for generation in request.setup.protocol.generations]
    models = dict(zip(names, request.setup.models, strict=True))
    recipe = request.setup.track.recipe
    if part == "recipe":
        recipe = recipe.model_copy(update=change)
    else:
        models["old"] = models["old"].model_copy(update=change)
    record = make_record(
        method, protocol="open-data", track="omniglot", recipe=recipe.model_dump(),
        models={name: model.model_dump() for name, model in models.items()},
    )  # fmt: skip
    found = [w for w in request.other_versions(record) if w.startswith(("recipe", "model"))]
    assert len(found) == bool(told)
    assert all(told in words for words in found)


def test_a_study_has_records_of_its_own(board_file, tmp_path) -> None:
    """Changes stand in the command, in the table and in the folder of the records."""
    changed = [on_toy(set={"recipe.length": 2, "bct.weight": 0.5}) for _ in range(2)]
    board = read_core_board(board_file(seeds=[0], boards=[on_toy(), *changed]))
    usual, longer = statuses = list(unit_statuses(board, tmp_path, {}))
    assert [s.unit.title for s in statuses] == [
        "open-class", "open-class, bct.weight=0.5, recipe.length=2",
    ]  # fmt: skip
    (job,) = jobs([longer], [None], board, {}, [])
    assert [w for w in job.words if "--set" in w] == [
        "--set=bct.weight=0.5", "--set=recipe.length=2",
    ]  # fmt: skip
    request = make_request(["bct"], "open-class", "toy", settings=dict(longer.unit.changes))
    key = record_key(request.setup, data_source(request.setup, None), "bct", 0, None)
    environment = {"precision": "32-true", "threads": "1"}
    record = make_record(
        "bct", track="toy", key=key, changed=dict(longer.unit.changes), environment=environment,
        run={"code": {"commit": "abc", "dirty": False}},
    )  # fmt: skip
    write_record(record.path(request.folder(tmp_path)), record)
    usual, longer = unit_statuses(board, tmp_path, {})
    assert (usual.states["bct"], longer.states["bct"]) == ("missing", "there")
    # A run refuses settings of methods that it is not asked for.
    assert longer.todo == ("independent",)
    (job,) = jobs([longer], [None], board, {}, [])
    assert job.words[6] == "independent,bct"


def test_what_is_set_is_checked(board_file, tmp_path) -> None:
    one = on_toy(set={"recipe.lnegth": 2})
    (status, *_) = unit_statuses(read_core_board(board_file(boards=[one])), tmp_path, {})
    assert "did you mean 'length'" in status.unknown
    assert list(stages_left([status], {}, "32-true")) == [None]


def test_records_of_another_old_model_are_not_there(board_file, put, tmp_path) -> None:
    """Another processor trains another one; what is compared must start from the same."""
    board = read_core_board(board_file(lists={"few": ["independent", "bct", "l2", "bt2"]}))

    def put_at(hour: int, *methods: str, lower: float) -> None:
        for method in methods:
            run = {"code": {"commit": "abc", "dirty": False}}
            put(method, lower=lower, run=run | {"finished": f"2026-01-01T{hour:02}:00:00Z"})

    put_at(2, "independent", "bct", "l2", lower=0.3)
    put_at(1, "bt2", lower=0.4)
    first, *_ = states(board, tmp_path / "results")
    there = dict.fromkeys(("independent", "bct", "l2"), "there")
    assert first == there | {"bt2": "of another old model"}
    # Computed again elsewhere it has that one again: the others are what is left.
    put_at(3, "bt2", lower=0.4)
    status, *_ = unit_statuses(board, tmp_path / "results", {})
    assert status.todo == ("independent", "bct", "l2")
    found = jobs([status], [1.0], board, {}, ())
    assert [job.words[6] for job in found] == ["independent,bct,l2"]
    assert "overwrite" in found[0].words
    put_at(4, *status.todo, lower=0.4)
    assert {*states(board, tmp_path / "results")[0].values()} == {"there"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lists": {"few": ["fctt"]}}, "lists: unknown method 'fctt'; did you mean 'fct'?"),
        ({"boards": [on_toy("few", "opn-class")]},
         "boards: unknown protocol 'opn-class'; did you mean 'open-class'?"),
        ({"boards": [on_toy("fwe")]}, "expected every, few, got 'fwe'"),
        ({"precision": "bf16"}, "precision: expected 'recipe' or '32-true', got 'bf16'"),
        ({"seeds": []}, "seeds: expected a list of at least 1, got []"),
        ({"sedes": [0]}, "unknown key 'sedes'; did you mean 'seeds'?"),
    ],
)  # fmt: skip
def test_refused(board_file, changes, message) -> None:
    with pytest.raises(BenchError) as error:
        read_core_board(board_file(**changes))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_boards_of_one_place_are_one_unit(board_file) -> None:
    """Methods that a second board adds are not lost."""
    lists = {"few": ["bct", "independent"], "more": ["bct", "l2"]}
    boards = [on_toy(name) for name in lists]
    units = read_core_board(board_file(lists=lists, boards=boards)).units
    assert [(u.seed, u.methods) for u in units] == [
        (seed, ("independent", "bct", "l2")) for seed in (0, 1)
    ]


def timed(method, protocol="open-class", track="glyphs", seed=0, precision="32-true",
          finished=None, **seconds):  # fmt: skip
    stages = {
        f"{title.replace('_', ' ')} (seed {seed})": {"seconds": s} for title, s in seconds.items()
    }
    return make_record(
        method, protocol=protocol, track=track, seed=seed, environment={"precision": precision},
        run={"stages": stages, "finished": finished},
    )  # fmt: skip


def test_shared_stages_are_counted_once() -> None:
    independent = timed("independent", train_old=10.0, train_new=20.0)
    bct = timed("bct", train_old=10.0, train_new=20.0, train_bct=30.0)
    assert seconds_spent([independent, bct]) == 60.0
    assert seconds_spent([independent, timed("independent", seed=1, train_old=11.0)]) == 41.0


def test_features_that_seeds_share_are_counted_once() -> None:
    def of(seed: int, seconds: float) -> Record:
        features = {"features by lite0": {"seconds": 60.0, "cpu_seconds": 59.5}}
        own = {"train old model": {"seconds": seconds}}
        return make_record("bct", seed=seed, run={"stages": features | own})

    assert seconds_spent([of(0, 10.0), of(1, 11.0)]) == 81.0
    again = of(0, 12.0).model_copy(update={"method": "l2"})
    assert seconds_spent([of(0, 10.0), of(1, 11.0), again]) == 83.0, "trained twice, counted once"


def test_estimates_are_of_the_nearest_setting() -> None:
    records = [
        timed("independent", train_old=10.0, train_new=20.0),
        timed("bct", train_old=10.0, train_new=20.0, train_bct=30.0),
        timed("bct", train_bct=90.0, precision="bf16-mixed"),
        timed("bct", protocol="open-data", train_bct=50.0),
    ]
    estimates = Estimates(records, "32-true")

    def of(protocol, track, *titles, **changes) -> TimeEstimate:
        stages = [titled(f"{title} (seed 1)") for title in titles]
        unit = Unit(protocol, track, 1, ("bct",), tuple(changes.items()))
        return estimates.of(unit, stages)

    assert of("open-class", "glyphs") == TimeEstimate(0.0, rough=False)
    assert of("open-class", "glyphs", "train bct") == TimeEstimate(30.0, rough=False)
    assert of("open-class", "glyphs", "train old", "train bct") == TimeEstimate(40.0, rough=False)
    assert of("extended-data", "glyphs", "train bct") == TimeEstimate(40.0, rough=False)
    # The median of 10, 20, 30, 10, 20 and 50, the last five.
    of_any = TimeEstimate(20.0, rough=False)
    assert of("open-class", "glyphs", "train l2") == of_any
    assert of("open-class", "omniglot", "train bct") == TimeEstimate(40.0, rough=True)
    assert of("open-class", "omniglot", "train l2") == TimeEstimate(20.0, rough=True)
    assert of("open-class", "glyphs", "embed test images") == TimeEstimate(None, rough=True)
    longer = {"recipe.length": 4}
    assert of("open-class", "glyphs", "train bct", **longer) == TimeEstimate(120.0, rough=False)
    assert estimates.of(Unit("open-class", "glyphs", 1, ()), None) == TimeEstimate(None, rough=True)


def test_the_last_times_count() -> None:
    """A track whose networks became smaller is as quick as its newest records."""
    days = range(1, 9)
    records = [timed("bct", finished=f"2026-01-0{d}", seed=d, train_bct=float(9 - d)) for d in days]
    stage = titled("train bct (seed 9)")
    unit = Unit("open-class", "glyphs", 9, ("bct",))
    assert Estimates(reversed(records), "32-true").of(unit, [stage]).seconds == 3.0


def test_what_units_share_is_left_once(board_file, tmp_path) -> None:
    """Protocols share trainings; what the store has is not left at all."""
    boards = [on_toy("few", "extended-class", "backfill")]
    board = read_core_board(board_file(boards=boards, seeds=[0]))
    statuses = list(unit_statuses(board, tmp_path, {}))
    first, second = stages_left(statuses, {}, board.precision)
    titles = [stage.title for stage in first]
    assert "train old model (seed 0)" in titles and "train bct (seed 0)" in titles
    assert not {stage.name for stage in first} & {stage.name for stage in second}
    assert {stage.kind for stage in second} == {"update", "embed", "evaluate"}
    again, _ = stages_left(statuses, {}, board.precision, {s.name for s in first}.__contains__)
    assert again == []


def test_commands(board_file, put, tmp_path) -> None:
    """Records that ``skip`` would take for the same work are computed anew."""
    board = read_core_board(board_file())
    put("independent")
    put("bct", environment={"threads": "4"})
    statuses = list(unit_statuses(board, tmp_path / "results", {}))
    found = jobs(statuses, [1.0] * 4, board, {}, ["--out", "results"])
    texts = [" ".join(job.words) for job in found]
    rest, end = "--device cpu --precision 32-true --existing", "--records-only --out results"
    assert texts == [
        f"run -p open-class -t toy -m bct --seeds 0 {rest} overwrite {end}",
        f"run -p open-class -t toy -m independent,bct --seeds 1 {rest} skip {end}",
    ]


def test_jobs_run_in_order_until_the_time_is_up(board_file) -> None:
    board = read_core_board(board_file())
    todo = [Job(("a",), 1.0), Job(("b",), 1.0), Job(("c",), 5.0), Job(("d",), None)]
    now, ran = [0.0], []

    def runner(words, environment) -> int:
        ran.append((words[0], environment["OMP_NUM_THREADS"]))
        now[0] += 1.0
        return int(words[0] == "b")

    failed, left = carry_out_jobs(todo, board, 1, 6.0, runner=runner, clock=lambda: now[0])
    assert ran == [("a", "1"), ("b", "1"), ("d", "1")]  # c would end after the limit
    assert (failed, left) == ([todo[1]], [todo[2]])
