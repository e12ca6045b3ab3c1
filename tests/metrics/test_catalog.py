"""The catalogue: every declared metric, patterns, refusals, and the committed records' keys."""

import subprocess
import sys

import numpy as np
import pytest

from benchmark.metrics import catalog
from benchmark.metrics.catalog import describe
from benchmark.metrics.identification import all_pairs_tpir_at_fpir, rank_k, search, tpir_at_fpir
from benchmark.metrics.retrieval import cmc, reciprocal_rank
from benchmark.metrics.verification import tar_at_far, tar_at_nearest_far
from benchmark.ranking.ranks import rank
from benchmark.records.files import read_value
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
        record = read_value(path)
        result.update(*record.get("scores", {}).values())
        for order in (record.get("backfilling") or {}).get("orders", {}).values():
            result |= {f"area_{metric}" for metric in order["area"]}
    assert {"map", "rank_1", "area_map"} <= result
    for metric in result:
        assert catalog.describe(metric).rules


FALLING = {"ndcg_at_{k}", "agreement_at_{k}"}
"""A larger cut-off adds to what the best order would have, or to what the other side has."""


def test_who_rises_with_a_cut_off_says_so():
    patterns = {p for p in catalog.declared() if "{k}" in p or "{rate}" in p}
    assert {p for p in patterns if not catalog.declared()[p].rises} == FALLING
    for name, family, at, rises in (
        ("cmc_at_5", "cmc_at_{k}", 5, True), ("map", "map", None, False),
        ("tar_at_far_1e-4", "tar_at_far_{rate}", 1e-4, True),
        ("group_new_latin__cmc_at_10", "group_new_latin__cmc_at_{k}", 10, True),
        ("area_g1_rank_1", "area_g1_rank_{k}", 1, True), ("ndcg_at_10", "ndcg_at_{k}", 10, False),
        ("share_above_cmc_at_1", "share_above_cmc_at_{k}", 1, False),
    ):  # fmt: skip
        about = describe(name)
        assert (about.family, about.cut_off, about.rises) == (family, at, rises)


@pytest.mark.parametrize("seed", range(20))
def test_what_rises_never_falls(seed):
    """Random scores, some tied: what is declared is true of the functions."""
    rng = np.random.default_rng(seed)
    genuine, impostor = rng.integers(0, 40, 30) / 40, rng.integers(0, 40, 200) / 40
    rates = [0.005, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0]
    for function in (tar_at_far, tar_at_nearest_far):
        values = [point.tar for point in function(genuine, impostor, rates)]
        assert values == sorted(values), function.__name__
    vectors = rng.standard_normal((60, 3)).astype(np.float32)
    labels = np.repeat(np.arange(12), 5)
    ids = np.arange(60)
    result = rank(vectors, vectors, labels, labels, query_ids=ids, gallery_ids=ids)
    for function in (cmc, reciprocal_rank):
        values = [function(result, k).mean() for k in (1, 2, 3, 10, 59)]
        assert values == sorted(values)
    probes, gallery = (vectors[::2], labels[::2]), (vectors[1::2][:20], labels[1::2][:20])
    found, targets = search(*probes, *gallery), [0.1, 0.2, 0.5, 1.0]
    for values in (
        [point.tpir for point in tpir_at_fpir(found, targets)],
        [point.tar for point in all_pairs_tpir_at_fpir(*probes, [gallery], targets)],
        [rank_k(found, k).mean() for k in (1, 2, 5, 20)],
    ):
        assert values == sorted(values)


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
    """Declarations beside a function are described; the function stays as it is."""
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
