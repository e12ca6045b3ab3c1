"""Several devices, several processes, and Ray: the same plan carried out another way."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
import torch

from benchmark import BenchError, run
from benchmark.harness.execution import Compute
from benchmark.harness.planner import make_plan
from benchmark.harness.requests import make_request
from benchmark.training.device import Device, parse_device, require_here


def records(tmp_path, compute: Compute):
    return run(
        ["bct", "fct"], "open-class", "toy", store=tmp_path / "s", out=tmp_path / "o",
        compute=compute,
    )  # fmt: skip


@pytest.mark.slow
def test_two_devices_train_one_model(tmp_path) -> None:
    for record in records(tmp_path, Compute("cpu", devices=2)):
        assert record.scores["new/new"]["cmc_at_1"] > 0.5
    assert not list((tmp_path / "s").rglob("rank*"))


def test_more_gpus_than_there_are_begin_no_process(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    require_here(Device("cuda", 2))
    with pytest.raises(BenchError, match=r"^--device: expected cuda:9, this machine has 2 of it$"):
        require_here(Device("cuda", 9))


@pytest.mark.parametrize("text", ["auto:2", "cpu:5000", "cpu:0", "gpu"])
def test_more_devices_than_can_be_counted_are_refused(text) -> None:
    with pytest.raises(BenchError, match=r"^(--device: expected|unknown device)"):
        parse_device(text)
    assert parse_device("auto:1") == parse_device("auto") == Device()


def test_processes_give_the_same_records(tmp_path, heard, monkeypatch) -> None:
    """To the last bit with as many threads; a refused method keeps nothing back there either."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    options = {"settings": {"recipe.epochs": 1, "nccl.doubt": 0.0}, "seeds": [0, 1]}
    here, there = (
        run(
            ["procrustes", "nccl"], "open-class", "toy", store=tmp_path / f"s{n}",
            out=tmp_path / f"o{n}", compute=Compute("cpu", processes=n), reporter=heard, **options,
        )
        for n in (1, 2)
    )  # fmt: skip
    kept = [(r.scores, r.intervals, r.reason, r.environment) for r in here]
    assert [(r.scores, r.intervals, r.reason, r.environment) for r in there] == kept
    assert [r.status for r in there] == ["done", "done", "not-applicable"] * 2
    titles = heard.titles[len(heard.titles) // 2 :]
    assert not [t for t in titles if t.startswith("evaluate nccl")]
    assert titles.index("dataset toy") < titles.index("train old model (seed 1)")


def test_processes_evaluate_a_seed_last() -> None:
    from benchmark.harness import processes

    setup = make_request(["bct", "fct"], "open-class", "toy", seeds=[0, 1]).setup
    stages = make_plan(setup, ["bct", "fct"], [0, 1]).stages
    found = processes._evaluations_last(stages)
    assert sorted(map(id, found)) == sorted(map(id, stages))
    titles = [stage.title for stage in found]
    evaluations = [i for i, title in enumerate(titles) if title.startswith("evaluate")]
    half = len(evaluations) // 2
    assert evaluations[-half:] == list(range(len(titles) - half, len(titles)))
    assert titles[evaluations[half - 1]].endswith("(seed 0)")
    assert evaluations[:half] == list(range(evaluations[0], evaluations[0] + half))


def _killed(stage, *_) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_told_in_one_line(tmp_path) -> None:
    from benchmark.harness import processes

    with processes.Workers(2) as workers:
        future = workers.submit(_killed, None)
        told = r"^embed: its process was ended .* fewer than 2 processes"
        with pytest.raises(BenchError, match=told):
            processes._error(future, SimpleNamespace(title="embed"), 2)
        with pytest.raises(BenchError, match=told):  # so does what is begun afterwards
            processes._error(workers.submit(_killed, None), SimpleNamespace(title="embed"), 2)
    with pytest.raises(BenchError, match=r"^its process was ended"), processes.Workers(1) as alone:
        alone.submit(_killed, None).result()
    with pytest.raises(BenchError, match=r"^--processes: expected 1 on a cluster, got 2$"):
        records(tmp_path, Compute("cpu", processes=2, engine="ray"))


def _libraries() -> dict[str, int]:
    from threadpoolctl import threadpool_info

    return {each["internal_api"]: each["num_threads"] for each in threadpool_info()}


def test_each_process_has_its_share_of_the_cores(monkeypatch) -> None:
    """So have libraries that a process loads before it runs any code of ours."""
    from benchmark.harness import processes

    for name in processes.THREADS:
        monkeypatch.delenv(name, raising=False)
    with processes.Workers(os.cpu_count() or 1) as workers:
        found = workers.submit(_libraries).result()
    assert found["openblas"] == 1 or os.cpu_count() == 1
    assert not set(processes.THREADS) & os.environ.keys()


@pytest.mark.slow
def test_ray_gives_the_same_records(tmp_path) -> None:
    pytest.importorskip("ray")
    here = records(tmp_path / "local", Compute("cpu"))
    there = records(tmp_path / "ray", Compute("cpu", engine="ray"))
    for a, b in zip(here, there, strict=True):
        assert a.scores.keys() == b.scores.keys()
        assert a.scores["old/old"]["map"] == pytest.approx(b.scores["old/old"]["map"], abs=0.1)


@pytest.mark.slow
def test_ray_names_the_bound_that_was_refused(tmp_path) -> None:
    """Stages that wait for it fail with the same error, and are not named."""
    pytest.importorskip("ray")
    with pytest.raises(BenchError, match=r"^train old model \(seed 0\): .*diverged(?!.*like it)"):
        run(
            ["l2"], "open-class", "toy", settings={"recipe.lr": 1e4},
            store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu", engine="ray"),
        )  # fmt: skip
