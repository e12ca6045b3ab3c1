"""Embedders beside numbers that others publish."""

import numpy as np
import pytest
from support.command import call
from support.pair_records import write_beir, write_classes

from benchmark.config.embedders import every_embedder, load_embedder
from benchmark.errors import BenchError
from benchmark.pairs import checks


@pytest.fixture
def beir(tmp_path):
    """A corpus in BEIR's layout: three items and others far from them, two queries."""
    texts = {"a": "apples and pears", "b": "a bridge over a river", "c": "clouds in the sky"}
    items = texts | {f"x{i}": f"filler {i}" for i in range(120)}
    asked = {"1": "fruit", "2": "rain"}
    rows = ["1 a 1", "2 c 1"]
    return write_beir(tmp_path / "scifact", {k: ("", v) for k, v in items.items()}, asked, rows)


def vectors(texts):
    """One axis of each topic; rain is a little nearer to rivers than to clouds."""
    axes = {"apples": 0, "fruit": 0, "bridge": 1, "clouds": 2, "filler": 3}
    out = np.zeros((len(texts), 4), np.float32)
    for row, text in enumerate(texts):
        out[row] = (
            (0, 0.8, 0.6, 0)
            if text == "rain"
            else np.eye(4)[next(axis for word, axis in axes.items() if word in text)]
        )
    return out


def test_a_corpus_with_judgements_by_hand(beir, monkeypatch, tmp_path):
    """The first query's item is first, the second one's is second: (1 + 1 / log2(3)) / 2."""
    from benchmark.pairs.corpora import Vectors

    def embedded(embedder, corpus, tell):
        return Vectors(vectors(corpus.items), vectors(corpus.queries), 0.0)

    monkeypatch.setattr("benchmark.pairs.corpora.embedded", embedded)
    found = checks.check(load_embedder("minilm-l6"), f"beir:{beir}", None, lambda words: None)
    assert found.here == pytest.approx((1 + 1 / np.log2(3)) / 2, abs=1e-4)
    assert found.published == 0.645 and found.metric == "nDCG@10"
    for here in (0.5, 0.6):
        checks.write_check(tmp_path, found.model_copy(update={"here": here}))
    assert [c.here for c in checks.read_checks(tmp_path)] == [0.6]


def test_a_corpus_with_classes_by_hand(tmp_path, monkeypatch):
    """Classes lie on two axes: every draw of eight tells them apart but for one wrong label."""
    queries = [(f"{i}", f"{'ab'[i % 2]} {i}", "ab"[i % 2] if i != 3 else "a") for i in range(10)]
    docs = [(f"{i}", f"{'ab'[i % 2]} {i}", "ab"[i % 2]) for i in range(20)]
    write_classes(tmp_path / "text" / "banking", {"docs": docs, "queries": queries})

    def embed(embedder, texts, *, queries, tell):
        out = np.zeros((len(texts), embedder.dim), np.float32)
        out[np.arange(len(texts)), ["ab".index(t[0]) for t in texts]] = 1
        return out

    monkeypatch.setattr("benchmark.models.embedder_runners.embed_texts", embed)
    found = checks.check(load_embedder("mpnet-base"), "banking77", tmp_path, lambda words: None)
    assert found.here == pytest.approx(0.9) and found.metric == "accuracy"


def test_what_nobody_publishes_is_told():
    with pytest.raises(BenchError, match="no published number on banking77; there is nothing"):
        checks.check(load_embedder("wordllama-64"), "banking77", None, lambda words: None)


def test_committed_checks_are_near():
    from pairs.test_analysis import RESULTS

    found = checks.read_checks(RESULTS)
    assert {c.embedder for c in found} >= {"minilm-l6", "mpnet-base"}
    for each in found:
        assert abs(each.here - each.published) <= checks.NEAR
        its = next(e for e in every_embedder() if e.id == each.embedder)
        assert its.published[each.corpus].value == each.published
    code, out, _ = call("pairs", "table", RESULTS, "--show", "checks", "-f", "csv")
    assert code == 0 and "minilm-l6" in out
