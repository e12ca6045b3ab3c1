"""Corpora: BEIR's layout, classes in place of judgements, damage."""

from dataclasses import replace

import numpy as np
import pytest
from support.pair_records import write_beir, write_classes

from benchmark.config.embedders import load_embedder
from benchmark.errors import BenchError
from benchmark.pairs.corpora import Thinning, corpus_files, load_source, read_corpus


@pytest.fixture
def beir(tmp_path):
    """Four items, one of them empty, two queries, one of them without a relevant item."""
    items = {"a": ("Title", "text of a"), "b": ("", "text of b"), "c": ("", " "), "d": ("", "d")}
    queries = {q: f"query {q}" for q in ("1", "2", "3")}
    rows = ["1 a 2", "1 b 0", "2 c 1", "1 none 1", "9 a 1"]
    return write_beir(tmp_path / "mine", items, queries, rows)


def test_the_layout_of_beir_is_read_as_it_is(beir):
    corpus = read_corpus(load_source(f"beir:{beir}"), None)
    assert corpus.items == ["Title text of a", "text of b", "d"]
    assert corpus.item_ids == ["a", "b", "d"]
    assert corpus.gains == {"1": {"a": 2.0}} and corpus.query_ids == ["1"]
    assert corpus.queries == ["query 1"]
    same = read_corpus(load_source(f"beir:{beir}"), None)
    assert same.digest == corpus.digest
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1")
    assert read_corpus(load_source(f"beir:{beir}"), None).digest != corpus.digest


def test_damage_is_told_in_one_line(beir):
    (beir / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n{"_id": "b"}')
    with pytest.raises(BenchError, match=r"corpus mine: corpus.jsonl: line 2: expected"):
        read_corpus(load_source(f"beir:{beir}"), None)
    (beir / "corpus.jsonl").unlink()
    with pytest.raises(BenchError, match=r"expected corpus.jsonl or docs.jsonl"):
        read_corpus(load_source(f"beir:{beir}"), None)
    with pytest.raises(BenchError, match="--data DIR names another one"):
        read_corpus(load_source("cisi"), beir)
    with pytest.raises(BenchError, match="cranfield"):
        load_source("cranfeld")


def test_classes_become_a_question_of_retrieval(tmp_path):
    """Of some classes few items stay, the relevant ones; all of the others are in their way."""
    sides = {
        side: [(f"{side}{k}-{i}", f"{side}{k}-{i} words", f"class{k}")
               for k in range(10) for i in range(each)]
        for side, each in (("docs", 30), ("queries", 7))
    }  # fmt: skip
    write_classes(tmp_path / "text" / "banking", sides)
    how = Thinning(judged=0.4, each=3, queries=2, others=20)
    source = load_source("banking77").model_copy(update={"thinning": how})
    corpus = read_corpus(source, tmp_path)
    assert len(corpus.items) == 4 * 3 + 6 * 20 and len(corpus.queries) == 4 * 2
    classes = {name.partition("-")[0].removeprefix("docs") for name in corpus.item_ids}
    assert classes == {str(k) for k in range(10)}
    for query, its in corpus.gains.items():
        mine = query.partition("-")[0].removeprefix("queries")
        there = [n for n in corpus.item_ids if n.startswith(f"docs{mine}-")]
        assert sorted(its) == sorted(there) and len(its) == 3
    assert read_corpus(source, tmp_path).item_ids == corpus.item_ids


def test_files_name_terms_and_sources():
    for name in corpus_files():
        source = load_source(name)
        assert source.id == name and source.terms and source.source


def test_training_data_is_marked(beir):
    corpus = read_corpus(load_source(f"beir:{beir}"), None)
    assert not corpus.inside(load_embedder("bge-small"))
    named = load_embedder("bge-small").model_copy(update={"trained_on": ("Mine v2",)})
    for title, names, known in (
        ("Mine", ("Mine",), True), ("mine-v2", ("Mine v2",), True),
        ("msmarco", ("MS MARCO",), True), ("msmarco", ("msmarco-triplets",), True),
        ("nq", ("Natural Questions",), True), ("qa", ("QAs",), False),
        ("answers", ("Yahoo Answers",), False),
    ):  # fmt: skip
        source = corpus.source.model_copy(update={"title": title})
        by = named.model_copy(update={"trained_on": names})
        assert replace(corpus, source=source).inside(by) == known, title
    assert np.isfinite(len(corpus.digest))
