"""The catalogue: every declared metric, patterns, refusals, and the committed records' keys."""

import json
import subprocess
import sys

import pytest

from benchmark.metrics import catalog
from benchmark.metrics.catalog import describe
from benchmark.report.card import MEASURED
from benchmark.tasks.base import key


@pytest.mark.parametrize("key", catalog.examples())
def test_every_metric_is_described(key):
    metric = catalog.describe(key)
    assert metric.key == key
    assert metric.label
    assert metric.rules.endswith(".")
    assert metric.low is None or metric.low < metric.high


def test_catalogue_parses_and_refuses():
    assert catalog.describe("offline_area_cmc_at_1").label == "offline area of CMC@1"
    assert catalog.describe("g1_tpir_at_fpir_1e-2").label == "TPIR@FPIR 1e-2 (G1)"
    assert not catalog.describe("eer").higher_is_better
    for bad in ("cmc_at_0", "cmc_at_", "tar_at_far_x", "area_", "area_nothing", "mpa"):
        with pytest.raises(ValueError, match="key: expected a known metric"):
            catalog.describe(bad)
    with pytest.raises(ValueError, match="did you mean 'minp'"):
        catalog.describe("mimp")
    for value in (1e-6, 1e-1, 5e-2, 1.0, 0.125, 0.025, 2.5e-5):
        assert catalog.describe(key("tar_at_far", value)).label.startswith("TAR@FAR ")
        assert float(catalog.rate(value)) == value


def test_every_metric_of_the_committed_records_is_in_the_catalogue():
    result = set()
    for path in MEASURED.glob("*/*/*/seed-0.json"):
        value = json.loads(path.read_text())
        for scores in (*value["scores"].values(), *value["bounds"].values()):
            result |= set(scores)
        for order in (value["backfilling"] or {}).get("orders", {}).values():
            result |= {f"area_{metric}" for metric in order["area"]}
    assert {"map", "rank_1", "area_map"} <= result
    for metric in result:
        assert catalog.describe(metric).rules


def test_metrics_import_light():
    code = (
        "import sys, pkgutil, importlib, benchmark.metrics\n"
        "for module in pkgutil.iter_modules(benchmark.metrics.__path__):\n"
        "    importlib.import_module(f'benchmark.metrics.{module.name}')\n"
        "    loaded = {'numba', 'torch', 'scipy'} & set(sys.modules)\n"
        "    assert not loaded, (module.name, loaded)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_declaration_is_enough(monkeypatch):
    """What a module declares beside a function is described; the function stays as it is."""
    monkeypatch.setattr(catalog, "_DECLARED", {**catalog.declared()})
    monkeypatch.setattr(catalog, "declared", lambda: catalog._DECLARED)
    plain = lambda scores, k: scores[:k]  # noqa: E731
    assert catalog.metric("first_at_{k}", "First {k}", "None.", high=None)(plain) is plain
    metric = catalog.describe("area_first_at_12")
    assert (metric.label, metric.low, metric.high) == ("area of First 12", 0.0, None)
    assert metric.rules.endswith("constant. None.")


def test_a_share_until_it_is_above_is_better_lower():
    """Whatever the direction of the score itself; the worst point is as the score."""
    assert describe("share_above_map").higher_is_better is False
    assert describe("worst_map").higher_is_better is True
    assert describe("worst_tar_at_far_1e-3").threshold and not describe("worst_map").threshold
