"""Parts of a gallery, read by one process or by the workers of a Ray cluster: the same bits."""

import json

import numpy as np
import pytest
import torch
from support.command import call
from support.upgrades import planted, studied
from support.vector_files import write

import benchmark
from benchmark import BenchError
from benchmark.upgrade.formats import joining
from benchmark.upgrade.read import gallery

MAPS = "procrustes,procrustes:query,linear"


class InParts:
    """Stands for a cluster: every part in turn, in this process."""

    def __init__(self, ends):
        self.ends = ends

    def parts(self, rows):
        return [(a, min(b, rows)) for a, b in self.ends]

    def map(self, work, parts):
        return [work(part) for part in parts]


def given(made, rows, folder):
    """Files of a folder for the gallery, and the arguments of ``benchmark.upgrade``."""
    (folder / "old").mkdir(exist_ok=True)
    names = np.array([f"item-{k}" for k in range(len(made.old))])
    for k, part in enumerate(np.split(np.arange(len(names)), [300, 301, 900])):
        write(folder / f"old/part-{k}.parquet", made.old[part], names[part])
    write(folder / "new.npy", made.new[rows], names[rows])
    qrels = {q: {str(names[row]): 1.0} for q, row in enumerate(made.relevant)}
    return {
        "old_gallery": folder / "old", "new_gallery": folder / "new.npy",
        "queries": made.queries, "old_queries": made.old_queries, "qrels": qrels, "maps": MAPS,
    }  # fmt: skip


def outcomes(found):
    return {
        name: {key: values.tolist() for key, values in outcome.scores.items()}
        for name, outcome in found.outcomes.items()
    }


@pytest.mark.parametrize("complete", [False, True])
def test_no_result_depends_on_the_parts(tmp_path, complete, monkeypatch):
    """Neither on parts, nor on whether new vectors are held in memory, read along or copied."""
    made = planted(n=1000, q=15, dim=12)
    rows = np.arange(1000) if complete else made.sample(400)
    arguments = given(made, rows, tmp_path)
    whole = studied(arguments)
    for ends, in_memory, sort in [
        ([(0, 1), (1, 700), (700, 1000)], 2**29, False),
        ([(0, 601), (601, 1000)], 0, True),  # read along
    ]:
        monkeypatch.setattr(joining, "IN_MEMORY", in_memory)
        if sort:
            arguments = given(made, np.sort(rows), tmp_path)
        parts = studied(arguments, InParts(ends))
        assert outcomes(parts) == outcomes(whole)
        assert {n: r.tolist() for n, r in parts.ranks.items()} == {
            n: r.tolist() for n, r in whole.ranks.items()
        }
    shuffled = np.random.default_rng(0).permutation(rows)
    arguments = given(made, shuffled, tmp_path)
    assert outcomes(studied(arguments)) == outcomes(whole)  # from a copy
    with pytest.raises(BenchError, match=r"new\.npy: expected the gallery's order for the engine"):
        studied(arguments, InParts([(0, 1000)]))


def test_parts_of_a_gallery():
    found = gallery.Cluster.__new__(gallery.Cluster)
    found.workers = 3
    assert found.parts(10) == [(0, 10)]
    assert found.parts(30_000) == [(0, 10_000), (10_000, 20_000), (20_000, 30_000)]


def test_without_ray(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    code, _, err = call("upgrade", "--demo", "--engine", "ray")
    assert code == 2 and err.count("\n") == 1
    assert "engine ray: Ray is not installed; pip install 'compatbench[ray]'" in err


@pytest.mark.slow
def test_two_workers_of_ray(tmp_path, monkeypatch):
    """The whole report but for its times, and what is damaged in one line."""
    ray = pytest.importorskip("ray")
    ray.shutdown()  # what another test of this process has started
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        monkeypatch.setattr(gallery, "_LEAST", 100)
        assert len(gallery.Cluster().parts(1200)) == 2
        made = planted(n=1200, q=40, dim=12)
        for rows in (made.sample(500), np.arange(1200)):
            arguments = given(made, rows, tmp_path)
            threads = torch.get_num_threads()
            torch.set_num_threads(2)  # workers have one
            local, spread = (
                benchmark.upgrade(**arguments, engine=engine).document
                for engine in ("local", "ray")
            )
            torch.set_num_threads(threads)
            assert untimed(spread) == untimed(local)
        made.old[1100, 3] = np.nan
        arguments = given(made, rows, tmp_path)
        with pytest.raises(BenchError, match=r"NaN or infinity in row 1100"):
            benchmark.upgrade(**arguments, engine="ray")
    finally:
        ray.shutdown()


def untimed(document):
    """A report without what depends on how busy the machine was."""
    out = json.loads(json.dumps(document))
    for each in out["strategies"]:
        del each["fit_s"], each["rows_per_s"], each["cost"]["hours"], each["cost"]["money"]
    return out
