"""Strategies behind an approximate index, beside the exact answer."""

import itertools
import sys

import numpy as np
import pytest
from support.upgrades import planted, studied

import benchmark
from benchmark import BenchError
from benchmark.metrics.similarity import unit
from benchmark.upgrade.measure import behind_index as approximate
from benchmark.upgrade.measure.behind_index import ANEW, AS_IT_IS, KEPT, behind_index
from benchmark.upgrade.search.index import Settings, build
from benchmark.upgrade.show import sections


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("faiss")
    return planted(n=3000, q=60, dim=16)


@pytest.fixture(scope="module")
def result(made):
    return studied(made.arguments(made.sample(1200)))


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_a_rotated_gallery_keeps_its_index(result, kind):
    """Distances stay, so the old links find what they found; queries alone leave it as it is."""
    found = behind_index(result, Settings(kind))
    states = {(each.strategy, each.index): each for each in found.rows}
    assert {s for n, s in states if n == "keep-old"} == {AS_IT_IS}
    assert {s for n, s in states if n in ("naive", "procrustes:query", "slerp")} == {AS_IT_IS}
    assert {s for n, s in states if n == "procrustes"} == {KEPT, ANEW}
    gained = found.build_anew["procrustes"]
    assert not gained["needed"] and abs(gained["value"]) < 0.02
    kept = states["procrustes", KEPT]
    assert kept.found.value == pytest.approx(states["keep-old", AS_IT_IS].found.value, abs=0.05)
    assert found.left_out == ["rrf-converted", "rrf", "cascade", "cascade-mapped", "re-embed"]
    assert found.items == 3000
    for each in found.rows:
        assert each.score.value <= each.exact.value + 0.02
        outcome = result.outcomes[each.strategy]
        fitted = outcome.strategy.fitted or each.strategy in ("midpoint", "slerp")
        exact = outcome.scores["ndcg_at_10"].mean()  # by more fits than the first
        assert each.exact.value == pytest.approx(exact, abs=0.02 if fitted else 1e-9)


def test_all_lists_give_the_exact_answer(made):
    result = studied(made.arguments(np.arange(3000)))
    found = behind_index(result, Settings("ivf", lists=10, probes=10))
    assert "re-embed" in {each.strategy for each in found.rows}
    for each in found.rows:
        assert each.found.value == pytest.approx(1, abs=1e-3)
        assert each.lost.value == pytest.approx(0, abs=1e-3)


@pytest.mark.slow
def test_what_is_left_out_is_left_out_of_both(made):
    """Of three classes most items have no new vector: the index does not lose them."""
    classes = (made.new @ made.new[:3].T).argmax(1)
    sample = made.sample(600)
    given = made.arguments(sample) | {"qrels": None, "labels": (classes[made.relevant], classes)}
    found = behind_index(studied(given), Settings("hnsw"))
    assert found.shortened == 60
    for each in found.rows:
        if each.index != KEPT:
            assert each.found.value > 0.9 and abs(each.lost.value) < 0.02
    # What is found is of a search for 100, as Qdrant searches, though more are asked for scores.
    assert found.asked > 100
    exact = np.argsort(-unit(made.old_queries, "cosine") @ unit(made.old, "cosine").T, 1)[:, :10]
    there = build(made.old).search(made.old_queries, 100)[:, :10]
    share = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, there, strict=True)])
    keep = next(each for each in found.rows if each.strategy == "keep-old")
    assert keep.found.value == pytest.approx(share, abs=0.002)
    report = benchmark.upgrade(**given, approximate="hnsw")
    said = str(report).replace("\n", " ")
    assert "are left out for 60 queries" in said and "Scores are of searches for 200" in said


def test_one_list_tries_nothing(made):
    report = benchmark.upgrade(**made.arguments(made.sample(600)), approximate="ivf")
    assert report.document["index"]["lists"] == 3 and report.document["index"]["probes"] == 2
    assert "serve on after" in str(report) or "Build the index anew" in str(report)
    for n, its in ((900, "Its one list is"), (2100, "All 2 lists are")):
        few = planted(n=n, q=60, dim=16)
        said = str(benchmark.upgrade(**few.arguments(few.sample(300)), approximate="ivf"))
        assert f"{its} searched, which finds everything" in said
        assert "serve on after" not in said and "Build the index anew" not in said


def test_a_large_gallery_is_drawn_from(result, monkeypatch):
    monkeypatch.setattr(approximate, "MOST", 500)
    found = behind_index(result, Settings("hnsw"))
    assert 500 <= found.items <= 560
    assert all(0.9 < each.found.value <= 1 for each in found.rows if each.index != KEPT)


def test_by_agreement_the_index_holds_the_held_out_items(made):
    given = made.arguments(made.sample(1200)) | {"qrels": None}
    report = benchmark.upgrade(**given, approximate="hnsw")
    document = report.document["index"]
    assert document["items"] == report.document["inputs"]["held"]
    rows = {(each["strategy"], each["index"]): each for each in document["rows"]}
    assert rows["re-embed", ANEW]["exact"]["value"] == 1.0
    assert "Behind an index (hnsw)" in str(report)
    from benchmark.upgrade.show.page import render

    assert "Behind an approximate index (HNSW)" in render(report.document)


@pytest.mark.parametrize(("n", "several"), [(50, True), (400, False)])
def test_scores_of_the_first_of_several_fits_say_so(n, several):
    """It leaves out half of the relevant items, if most of the sample is relevant."""
    pytest.importorskip("faiss")
    made = planted(n=800, q=60, dim=16)
    document = benchmark.upgrade(**made.arguments(made.sample(n)), approximate="hnsw").document
    pairs = document["index"]["judged_pairs"]
    assert document["inputs"]["judged_pairs"] == 60 and (pairs < 60) == several
    said = f"these are of the first fit, by the {pairs} of 60 relevant pairs"
    assert any(said in line for line in sections.index(document).notes) == several


def test_queries_that_are_items_do_not_find_themselves(made):
    items = made.relevant
    ids = {"old_gallery": np.arange(3000), "new_gallery": np.arange(3000), "queries": items,
           "old_queries": items}  # fmt: skip
    qrels = {int(a): {int(b): 1.0} for a, b in itertools.pairwise(items)}
    given = {
        "old_gallery": made.old, "new_gallery": made.new, "queries": made.new[items],
        "old_queries": made.old[items], "qrels": qrels, "ids": ids, "queries_are_items": True,
        "maps": "procrustes",
    }  # fmt: skip
    found = behind_index(studied(given), Settings("ivf", lists=4, probes=4))
    assert all(each.found.value == pytest.approx(1, abs=1e-3) for each in found.rows)


def test_refusals(made, monkeypatch):
    given = made.arguments(made.sample(1200))
    with pytest.raises(BenchError, match="unknown index 'hsnw'; did you mean 'hnsw'"):
        benchmark.upgrade(**given, approximate="hsnw")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(BenchError, match=r"needs the package faiss: pip install 'compatbench\[fa"):
        benchmark.upgrade(**given, approximate="hnsw")
