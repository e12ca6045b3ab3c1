"""Methods that cannot be applied, as the plan knows or as they find at work: others go on."""

import re
from pathlib import Path

import pytest
import torch

from benchmark import BenchError, run
from benchmark.errors import FailedError, RefusedError
from benchmark.harness import runs
from benchmark.harness.checking import method
from benchmark.harness.checking.method import check_method
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_requests
from benchmark.models.parts import Affine
from benchmark.records.files import read_records
from methods.l2 import L2
from methods.linear import Linear

# No old feature is that certain; fewer vertices than classes.
SETTINGS = {"nccl.doubt": 0.0, "d-simplex.vertices": 3, "recipe.epochs": 1}


def test_one_refusal_ends_no_other_method(tmp_path, heard):
    options = {
        "settings": SETTINGS, "store": tmp_path / "s", "out": tmp_path / "o",
        "compute": Compute("cpu"),
    }  # fmt: skip
    records = run(["nccl", "d-simplex", "l2"], "open-class", "toy", reporter=heard, **options)
    found = {r.method: r for r in records}
    assert found["independent"].status == found["l2"].status == "done"
    for name, said in (("nccl", "old feature"), ("d-simplex", "vertices")):
        record = found[name]
        assert record.status == "not-applicable" and said in record.reason
        assert not record.scores and record.bounds["lower"] == found["l2"].bounds["lower"]
    assert len(list(read_records(tmp_path / "o"))) == 4
    assert not [t for t in heard.titles if t.startswith(("evaluate nccl", "evaluate d-simplex"))]
    # The second time the records answer.
    again = run(["nccl", "d-simplex", "l2"], "open-class", "toy", **options)
    assert [r.reason for r in again] == [r.reason for r in records]


def test_without_the_bounds_there_are_no_records(tmp_path):
    with pytest.raises(BenchError, match=r"train old model \(seed 0\): .*diverged"):
        run(
            ["l2"], "open-class", "toy", settings={"recipe.lr": 1e4, "recipe.epochs": 2},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
        )  # fmt: skip


def _seeds(tmp_path, **options):
    return run(
        ["l2"], "open-class", "toy", seeds=[0, 1, 2],
        settings={"recipe.epochs": 1, "data.classes": 16},
        store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"), **options,
    )  # fmt: skip


@pytest.mark.parametrize("title", ["train old model (seed 1)", "evaluate independent (seed 1)"])
def test_a_seed_without_bounds_keeps_no_other_back(tmp_path, monkeypatch, title, heard):
    """Those before and after it have their records; what needs the refused stage never runs."""
    ran = runs.run_one

    def refusing(stage, *arguments):
        if stage.title == title:
            raise RefusedError("it diverged")
        ran(stage, *arguments)

    monkeypatch.setattr(runs, "run_one", refusing)
    with pytest.raises(BenchError, match=rf"{re.escape(title)}: it diverged; 4 others are"):
        _seeds(tmp_path, reporter=heard)
    written = [(r.method, r.seed) for r in read_records(tmp_path / "o")]
    assert sorted(written) == [(m, s) for m in ("independent", "l2") for s in (0, 2)]
    after = heard.titles[heard.titles.index(title) + 1 :]
    assert after and not [t for t in after if "(seed 1)" in t]
    monkeypatch.undo()
    assert [r.seed for r in _seeds(tmp_path)] == [0, 0, 1, 1, 2, 2]


def test_a_bug_in_one_adapter_keeps_no_other_back(tmp_path, monkeypatch, heard):
    """Its line is told in the end; the others have their records, later seeds as well."""

    def buggy(self, *arguments, **named):
        raise KeyError("missing")

    monkeypatch.setattr(L2, "prepare", buggy)
    told = r"train l2 \(seed 0\): KeyError: 'missing' .*; and 1 more like it; 4 others are below"
    with pytest.raises(FailedError, match=told):
        run(
            ["l2", "procrustes"], "open-class", "toy", seeds=[0, 1], settings={"recipe.epochs": 1},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"), reporter=heard,
        )  # fmt: skip
    written = sorted((r.method, r.seed) for r in read_records(tmp_path / "o"))
    assert written == [(m, s) for m in ("independent", "procrustes") for s in (0, 1)]
    assert not [t for t in heard.titles if t.startswith("evaluate l2")]


def _refuses(*arguments, **named):
    raise BenchError("it needs more pairs")


def _lacks_a_file(*arguments, **named):
    Path("/nowhere/prior.npy").read_bytes()


@pytest.mark.parametrize(
    ("buggy", "told"),
    [
        (_refuses, r"fit linear \(seed 0\): it needs more pairs; 2 others"),
        (_lacks_a_file, r"fit linear \(seed 0\): FileNotFoundError: .*prior.npy"),
        (lambda *_: None, r"fit linear \(seed 0\): .*NoneType"),
        # What is stored is whole, and of another size than the vectors that it is applied to.
        (lambda *_: (Affine.of(torch.eye(3)), {}),
         r"evaluate linear \(seed 0\): .*RuntimeError: .*shapes cannot be multiplied .*; 2 others"),
    ],
    ids=["BenchError", "OSError", "nothing", "another size"],
)  # fmt: skip
def test_whatever_is_wrong_with_one_adapter_is_its_own(tmp_path, monkeypatch, buggy, told):
    """The line names the method and the stage, and the others have their records."""
    monkeypatch.setattr(Linear, "fit_vectors", buggy)
    with pytest.raises(FailedError, match=told):
        run(
            ["linear", "procrustes"], "open-class", "toy", settings={"recipe.epochs": 1},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
        )  # fmt: skip
    assert sorted(r.method for r in read_records(tmp_path / "o")) == ["independent", "procrustes"]


def test_failures_of_all_sweeps_are_counted(tmp_path, monkeypatch):
    """Each in its turn; records of the others are written."""

    def buggy(self, *arguments, **named):
        raise KeyError("missing")

    monkeypatch.setattr(L2, "prepare", buggy)
    requests = [
        request
        for weight in (0.5, 1.0, 2.0)
        for request in make_requests(
            ["l2"], "open-class", "toy", settings={"recipe.epochs": 1, "l2.weight": weight}
        )
    ]
    with pytest.raises(FailedError, match=r"KeyError: 'missing' .*; and 2 more like it; 3 others"):
        runs.carry_out(requests, out=tmp_path / "o", store=tmp_path / "s", compute=Compute("cpu"))


def test_all_refused_bounds_are_counted(tmp_path):
    with pytest.raises(BenchError, match=r"old model \(seed 0\): .*; and 1 more like it$"):
        run(
            ["l2"], "open-class", "toy", seeds=[0, 1], settings={"recipe.lr": 1e4},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
        )  # fmt: skip


def test_a_stopped_run_has_the_records_of_the_seeds_that_ended(tmp_path, monkeypatch):
    ran = runs.run_one

    def stopped(stage, *arguments):
        if stage.title == "train l2 (seed 1)":
            raise KeyboardInterrupt
        ran(stage, *arguments)

    monkeypatch.setattr(runs, "run_one", stopped)
    with pytest.raises(KeyboardInterrupt):
        _seeds(tmp_path)
    written = [(r.method, r.seed) for r in read_records(tmp_path / "o")]
    assert {("independent", 0), ("l2", 0)} <= set(written)
    assert ("l2", 1) not in written and ("l2", 2) not in written


def test_a_diverged_method_is_left_out(tmp_path):
    records = run(
        ["l2"], "open-class", "toy", settings={"l2.weight": 1e38, "recipe.epochs": 2},
        store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
    )  # fmt: skip
    assert records[0].status == "done"
    assert records[1].status == "not-applicable" and "diverged" in records[1].reason


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (torch.full((16, 16), float("nan")), "expected finite vectors of the gallery, got NaN"),
        (torch.eye(17)[:, :16], "one length after convert, got 16 and 17"),
    ],
)  # fmt: skip
def test_a_method_whose_vectors_cannot_be_compared_is_left_out(
    tmp_path, monkeypatch, weights, said
):  # fmt: skip
    """The others have their records."""
    nothing = Affine.of(weights), {}
    monkeypatch.setattr(Linear, "fit_vectors", lambda *_: nothing)
    independent, linear, procrustes = run(
        ["linear", "procrustes"], "open-class", "toy", settings={"recipe.epochs": 1},
        store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
    )  # fmt: skip
    assert independent.status == procrustes.status == "done"
    assert linear.status == "not-applicable"
    assert said in linear.reason


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seeds": [0.5]}, "seeds: expected whole numbers from 0 on"),
        ({"seeds": 3}, "seeds: expected whole numbers from 0 on, below 2\\^63, got 3"),
        ({"seeds": [2**63]}, "seeds: expected whole numbers"),
        ({"first_seed": -1}, "first seed: expected whole numbers"),
        ({"settings": ["l2.weight=2"]}, "settings: expected a mapping such as .* got \\["),
        ({"existing": "overwrit"}, "existing 'overwrit'; did you mean 'overwrite'"),
    ],
)  # fmt: skip
def test_what_no_record_can_hold_is_refused_before_anything_runs(options, said, tmp_path):
    with pytest.raises(BenchError, match=said):
        run(["l2"], "open-class", "toy", store=tmp_path / "s", out=tmp_path / "o", **options)
    assert not (tmp_path / "s").exists()


def test_methods_and_seeds_may_come_as_a_text_and_an_iterator(tmp_path):
    """Of several settings, too: an iterator is read once."""
    made = make_requests("bct, l2", "arch-change", "toy", seeds=iter([0, 1]))
    assert len(made) > 1
    assert {(r.labels, r.seeds) for r in made} == {(("independent", "bct", "l2"), (0, 1))}


NO_HEAD = "old classifier"


def test_what_the_plan_leaves_out_is_said_before_anything_runs(tmp_path, heard):
    """A classifier that is discarded, and a batch of which too few old features are kept."""
    settings = {"mixbct.ratio": 0.95, "recipe.epochs": 1}
    options = {"settings": settings, "out": tmp_path / "o", "compute": Compute("cpu")}
    asked = (["lwf", "mixbct", "l2"], "open-class", "toy")
    records = run(*asked, store=tmp_path / "s", reporter=heard, seeds=[0, 1], **options)
    (_, no_head, _), (_, few, _) = heard.left
    assert [(label, before) for label, _, before in heard.left] == [("lwf", 0), ("mixbct", 0)]
    assert NO_HEAD in no_head and "0.95" in few and "0.1" in few
    assert heard.titles and not [t for t in heard.titles if "lwf" in t or "mixbct" in t]
    reasons = {(r.method, r.seed): (r.status, r.reason) for r in records}
    for seed in (0, 1):
        assert reasons["lwf", seed] == ("not-applicable", no_head)
        assert reasons["mixbct", seed] == ("not-applicable", few)
        for name in ("independent", "l2"):
            assert reasons[name, seed] == ("done", None)
    heard.left.clear()
    run(*asked, store=tmp_path / "none", reporter=heard, seeds=[0, 1], **options)
    assert not heard.left, "answered from records, nothing is left out anew"


def test_all_requests_of_a_run_are_looked_at_first(tmp_path, heard):
    """The second of two settings leaves a method out: the first has not begun."""
    protocol = tmp_path / "two.yaml"
    protocol.write_text(
        "{id: two, version: 1, title: Two, source: s, question: q, tasks: [retrieval],"
        " generations: [{name: old}, {name: new}], settings: ["
        "{name: same, set: {recipe.epochs: 1}},"
        " {name: longer, set: {recipe.epochs: 1, new.dim: x2}}]}"
    )
    records = run(
        ["l2"], str(protocol), "toy", store=tmp_path / "s", out=tmp_path / "o",
        compute=Compute("cpu"), reporter=heard,
    )  # fmt: skip
    assert [r.status for r in records] == ["done", "done", "done", "not-applicable"]
    assert [(label, before) for label, _, before in heard.left] == [("l2", 0)]


@pytest.mark.slow
def test_the_command_says_it_first_and_in_the_table(bench, tmp_path):
    code, out, err = bench(
        "run", "-m", "lwf,l2", "-p", "open-class", "-t", "toy", "--device", "cpu",
        "--set", "recipe.epochs=1", "--out", tmp_path / "o", "--store", tmp_path / "s",
    )  # fmt: skip
    assert code == 0, err
    assert "lwf" in err.splitlines()[0] and NO_HEAD in err.splitlines()[0]
    assert err.count("left out") == 1 and "train l2 (seed 0)" in err
    row = next(line for line in out.splitlines() if line.startswith("lwf"))
    assert row.split()[:2] == ["lwf", "n/a"] and NO_HEAD in " ".join(out.split())


def test_check_refuses_before_it_runs_anything(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a stage ran")

    monkeypatch.setattr(method, "run_one", forbidden)
    with pytest.raises(BenchError, match=f"lwf.*{NO_HEAD}.*--protocol"):
        next(check_method("lwf", "open-class"))
