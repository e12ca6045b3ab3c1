"""The benchmarks run and give rows; what they measure is nobody's assertion."""

import json
import re

import numpy as np
import pytest
from support.command import call

from benchmark import perf
from benchmark.cli import app
from benchmark.config.memory import keep_freed_memory
from benchmark.errors import BenchError
from benchmark.perf import measure, readme

KEYS = {"name", "seconds", "against", "ratio", "memory_mib", "size"}


SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in ("ranking", "verification", "backfill")]


@pytest.mark.parametrize("name", ["identification", *SLOW])
def test_rows(name, monkeypatch):
    from benchmark.perf import ranking

    monkeypatch.setattr(
        ranking, "PEERS", {k: v for k, v in ranking.PEERS.items() if v[0] == "sklearn"}
    )
    rows = perf.run(name, queries=60, gallery=40, dim=8, classes=5)
    assert rows
    for row in rows:
        assert set(row) == KEYS
        assert row["seconds"] >= 0
        assert (row["against"] is None) == (row["ratio"] is None)
    json.dumps(rows)


@pytest.mark.slow
def test_training_costs_are_beside_the_model_alone(monkeypatch):
    """Every method that trains under a constraint has a row; the harness is beside a bare loop."""
    from benchmark.perf import training

    monkeypatch.setattr(training, "ROUNDS", 1)
    rows = {row["name"]: row for row in perf.run("training", queries=48, dim=8, classes=6)}
    alone = "harness, the model alone"
    assert rows.pop("bare loop")["against"] is None
    assert rows.pop(alone)["against"] == "bare loop"
    assert {"bct", "l2", "mixbct", "bt2", "lwf", "nccl"} <= set(rows)
    assert not {"fct", "independent", "keep-old"} & set(rows)
    for row in rows.values():
        assert set(row) == KEYS and row["against"] == alone and row["ratio"] > 0


@pytest.mark.slow
def test_fits_of_maps(monkeypatch):
    """Every track of the core board, in its own precision and in the board's, by its own budget."""
    from benchmark.perf import maps

    known = maps._budgets(4096)
    assert {"cifar100-small", "cifar100-open", "glyphs", "omniglot"} == set().union(*known.values())
    assert {(budget.steps, budget.batch) for budget in known} == {(500, 128)}
    assert "32-true" in {budget.precision for budget in known}
    short = {budget._replace(steps=2): tracks for budget, tracks in known.items()}
    monkeypatch.setattr(maps, "_budgets", lambda items: short)
    rows = perf.run("maps", items=300, classes=7)
    assert [(row["name"], row["against"]) for row in rows] == len(short) * [
        ("bare loop", None), ("fct", "bare loop"), ("fastfill", "bare loop"),
    ]  # fmt: skip
    for row in rows:
        assert set(row) == KEYS and re.match(
            "2 x 128 pairs, (32|bf16)-.*, all core tracks", row["size"]
        )


@pytest.mark.slow
def test_data(monkeypatch):
    """Folders and a .rec that the benchmark writes, beside torchvision's loaders."""
    from benchmark.perf import data

    monkeypatch.setattr(data, "ROUNDS", 1)
    rows = {row["name"]: row for row in perf.run("data", queries=6, items=20, samples=1)}
    loader, alone = (
        "torchvision: ImageFolder, decode_image, v2 transforms",
        "torchvision: decode_jpeg alone, from memory",
    )
    assert {row["against"] for row in rows.values()} == {None, loader, alone}
    assert {"folder, one thread", ".rec, one thread"} <= set(rows)
    for row in rows.values():
        assert set(row) == KEYS and "images/s a core" in row["size"]


@pytest.mark.slow
def test_gpu_on_a_cpu_says_so(monkeypatch):
    from benchmark.perf import gpu

    monkeypatch.setattr(gpu, "ROUNDS", 1)
    rows = perf.run("gpu", queries=40, gallery=60, dim=8, classes=4, samples=2, side=32)
    ranked, trained = rows[:2], rows[2:]
    assert [row["against"] for row in rows] == [None, ranked[0]["name"], None, "bare loop"]
    assert "means within" in ranked[1]["size"] and "steps/s" in trained[1]["size"]
    assert "no accelerator" in ranked[1]["name"] + trained[0]["size"]


@pytest.mark.slow
def test_store():
    rows = perf.run("store", items=500, dim=8)
    assert [(row["name"], row["against"]) for row in rows] == [
        ("write, bare", None), ("write and publish", "write, bare"),
        ("read, bare", None), ("check", "read, bare"),
    ]  # fmt: skip
    assert all(row["seconds"] > 0 or row["against"] is None for row in rows)


def test_records_of_a_site(tmp_path):
    """The committed ones, then others: sealed, with their details, no two of the same run."""
    from benchmark.perf import site
    from benchmark.records.details_files import find_details
    from benchmark.records.files import find_records

    some = site.committed()[:3]
    written = site.write(some, 7, tmp_path)
    found = {stored.path: stored.record for stored in find_records(tmp_path)}
    assert set(found) == set(written) and len(written) == 7
    assert len({(r.protocol, r.track, r.method, r.seed) for r in found.values()}) == 7
    assert found[written[6]].seed > found[written[3]].seed > found[written[0]].seed
    for path, record in found.items():
        assert (record.details is None) == (find_details(record, path) is None)


@pytest.mark.slow  # a command and its start
def test_site():
    bare, built = perf.run("site", items=30)
    assert set(bare) == set(built) == KEYS
    assert built["against"] == bare["name"] and built["ratio"] > 1
    assert re.match(r"30 records, [\d.]+ MB with details; [\d,]+ pages, [\d.]+ s of", built["size"])


@pytest.mark.slow
def test_upgrade():
    """The report on files that the benchmark writes, beside products for each of its lists."""
    products, report, *busy = perf.run("upgrade", items=1500, dim=8, queries=30)
    assert set(products) == set(report) == KEYS
    assert [row["name"] for row in busy] == [
        "score products, processor time", "whole report, processor time",
    ]  # fmt: skip
    assert "peak of the process" in busy[0]["size"] and busy[1]["ratio"] > 0
    assert products["against"] is None and report["against"] == products["name"]
    # keep-old, naive, six maps, re-embed, and queries between the models
    assert re.match(r"30 queries, 1,500 x 8 float16, 1,500 anew, (9|1\d) lists$", report["size"])


@pytest.mark.slow
def test_convert(monkeypatch, tmp_path, capsys):
    """The map of FCT's appendix D.1 against a model, multiply-adds counted by hand."""
    from benchmark.perf import convert

    tiny = {"small": ("convnet-2", 32, 1, 8)}
    monkeypatch.setattr(convert, "_MODELS", tiny)
    monkeypatch.setenv("COLUMNS", "300")
    app.perf("convert", items=1030, dim=8, side=3, as_json=tmp_path / "perf.json")
    printed = capsys.readouterr().out
    assert "memory mib" in printed
    document = json.loads((tmp_path / "perf.json").read_text())
    assert document["command"] == "bench perf convert --dim 8 --items 1030 --side 3"
    assert document["packages"]["numpy"] == np.__version__
    assert len(document["load"]) == 2 and document["hardware"]["cores"]
    converted, small = document["rows"]
    for row in (converted, small):
        rate = re.search(r"([\d,]+)/s, ", row["size"])[1]
        assert int(rate.replace(",", "")) == pytest.approx(1030 / row["seconds"], rel=0.02, abs=1)
        assert rate in printed
        if measure.once(int).memory_mib is not None:
            assert row["memory_mib"] >= 0 and f"{row['memory_mib']:.3g}" in printed
    assert set(converted) == set(small) == KEYS
    assert converted["against"] is None and small["against"] == converted["name"]
    assert small["ratio"] > 0 and "extrapolated" in small["name"]
    work = 256 * (8 + 3 + 2 * 256) + 512 * 2048 + 2048 * 2048 + 2048 * 8
    assert f"{work / 1e6:,.2f} M multiply-adds" in converted["size"]
    assert "1,030 x 8 and side 3" in converted["size"]


def test_memory_is_what_a_call_adds():
    """Also what is freed before it ends, and of the calls before it nothing."""
    keep_freed_memory()  # as commands do
    held = np.ones(2**22)  # 32 MiB
    grown = [
        measure.once(lambda n=n: float(np.ones(n * 2**17).sum())).memory_mib for n in (64, 0, 128)
    ]
    if None in grown:
        pytest.skip("this system does not tell")
    assert grown == pytest.approx([64, 0, 128], abs=4)
    assert held.all()


def test_multiply_adds_of_resnet_50():
    """4.09 G at 224 x 224, as published (He et al. 2016 count 3.8 G without the projections)."""
    import torch

    from benchmark.harness.cost import multiply_adds
    from benchmark.models.backbones import Encoder

    model = Encoder("timm:resnet50", 128, 3, 224)
    with torch.device("meta"):
        counted, _ = multiply_adds(model.to("meta").eval(), torch.empty(1, 3, 224, 224))
    assert counted == pytest.approx(4.09e9, rel=0.01)


@pytest.mark.slow
def test_every_peer_runs():
    """Those of the extra must be there; torchreid, which no extra can bring, where it is."""
    from benchmark.perf import ranking

    for package in ("pytorch_metric_learning", "torchmetrics", "sklearn"):
        pytest.importorskip(package)
    rows = perf.run("ranking", queries=40, gallery=30, dim=8, classes=5)
    expected = {name for name, peer in ranking.PEERS.items() if ranking.available(peer[0])}
    result = {row["name"]: row for row in rows if row["name"] in ranking.PEERS}
    assert set(result) == expected
    assert all(row["ratio"] > 0 for row in result.values())


def test_refusals():
    with pytest.raises(ValueError, match="name: expected one of"):
        perf.run("nothing")
    with pytest.raises(ValueError, match="sizes: expected"):
        perf.run("ranking", width=3)
    with pytest.raises(ValueError, match="side: expected at least 0"):
        perf.run("convert", side=-1)
    with pytest.raises(BenchError, match="perf convert: has no size 'queries'; it has items"):
        perf.run("convert", queries=3)
    with pytest.raises(BenchError, match="perf training: has no size 'gallery'; it has queries"):
        perf.run("training", gallery=3)
    with pytest.raises(ValueError, match="dim: expected at least 1"):
        perf.run("ranking", dim=0)


@pytest.mark.slow
def test_a_device_stays_within_its_tolerance():
    rows = perf.run("tolerance", queries=40, gallery=300, classes=5)
    assert {(row["dim"], row["vectors"], row["order"]) for row in rows} == {
        (dim, kind, order)
        for dim in (64, 128, 512)
        for kind in ("random", "clustered")
        for order in ("as given", "reversed")
    }
    for row in rows:
        assert row["score"] < 2e-6 and row["map"] < 1e-3 < row["exact_map"]
    assert any(row["score"] > 0 for row in rows)


def test_the_readme_shows_the_figures():
    """Those that are measured; each has its place."""
    text = readme.README.read_text(encoding="utf-8")
    assert readme.renewed(text) == text
    shown = " ".join(re.findall(r"<!-- figures: (.+?) -->", text)).split()
    assert {path.stem for path in readme.FIGURES.glob("*.json")} <= set(shown)
    makefile = (readme.README.parents[2] / "Makefile").read_text(encoding="utf-8")
    measured = set(re.findall(r"([\w-]+)\.json", makefile)) | set(perf.names())
    assert set(shown) <= measured


def test_a_table_of_figures(tmp_path, monkeypatch):
    """Commands, rows, ratios; columns without a value are left out; the origin stands below."""
    row = {"name": "ours", "seconds": 0.12345, "against": None, "ratio": None, "memory_mib": None}
    document = {
        "command": "bench perf x", "date": "2026-01-02", "load": [0.5, 1.25],
        "code": {"version": "1", "commit": "0123456789"}, "rows": [row, {**row, "name": "peer"}],
        "packages": {"python": "3", "numpy": "2", "numba": "0", "torch": "2"},
        "hardware": {"cpu": "a chip", "cores": "2"},
    }  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(document))
    monkeypatch.setattr(readme, "FIGURES", tmp_path)
    text = readme.renewed("before\n<!-- figures: one none -->\nold\n<!-- end -->\nafter\n")
    assert text.startswith("before\n<!-- figures: one none -->\n### bench perf x\n\n")
    assert "| name | seconds |\n|---|---:|\n| ours | 0.123 |\n| peer | 0.123 |" in text
    assert "2026-01-02" in text and "0123456;" in text and "Load 0.5 to 1.25." in text
    assert readme.renewed(text) == text and text.endswith("<!-- end -->\nafter\n")


def test_simulations_are_shown_on_a_terminal():
    """Their rows have no name."""
    code, out, _ = call("perf", "verdicts", "--samples", "1")
    assert code == 0 and "undecided" in out


def test_the_help_names_every_benchmark():
    assert {*re.findall(r"\w+", call("perf", "--help")[1])} >= {*perf.names()}
