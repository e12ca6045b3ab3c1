"""Warnings about inputs that are not what they are taken for, and none where all is well."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.upgrades import planted

from benchmark.errors import BenchError
from benchmark.metrics.relevance import RelevantRanks, ndcg
from benchmark.metrics.retrieval import average_precision
from benchmark.report.renderers.terminal import plain
from benchmark.upgrade.decide import doubts
from benchmark.upgrade.run import upgrade
from benchmark.upgrade.show.tables import tables
from benchmark.upgrade.show.wording import risks


@pytest.fixture(scope="module")
def made():
    return planted(n=400, q=100, dim=16)


def warnings(made, **changes):
    told = upgrade(**made.whole(**changes)).document["inputs"]["told"]
    return [line.removeprefix("Warning: ") for line in told if line.startswith("Warning: ")]


def test_nothing_is_odd_where_all_is_well(made):
    assert warnings(made) == warnings(made, qrels=None) == []
    groups = (made.new @ made.new[:9].T).argmax(1)
    assert warnings(made, qrels=None, labels=(groups[made.relevant], groups)) == []
    assert warnings(made, old_queries=None) == []


def test_scores_of_a_random_order(made):
    order = np.random.default_rng(2).permutation(400)
    wrong = {q: {int(order[row]): 1.0} for q, row in enumerate(made.relevant)}
    old, new = warnings(made, qrels=wrong)
    assert "with the old model is not measurably more than a random order has (1.1)" in old
    assert "are new gallery and queries of one model" in new
    ids = {"queries": np.arange(100), "old_queries": np.arange(100)}
    noise = np.random.default_rng(2).normal(size=(100, 16))
    second, first = warnings(made, old_queries=noise, ids=ids)
    assert first == (
        "rows that are near in old_queries are not near in queries: do the ids name the same "
        "things?"
    )
    assert "with the old model is not" in second


def test_queries_of_another_scale_than_the_gallery(made):
    """As floats beside whole numbers: by l2 lengths count, and no other reason is told."""
    (told,) = warnings(made, distance="l2", old_gallery=made.old * 30)
    pattern = r"old queries have length [\d.]+, those in old_gallery [\d.]+: another scale\?"
    assert re.fullmatch(pattern, told)
    (told,) = warnings(made, distance="l2", new_gallery=made.new / 30)
    assert told.startswith("queries have length ") and "those in new_gallery 0." in told
    assert warnings(made, distance="cosine", old_gallery=made.old * 30) == []
    assert warnings(made, distance="l2", old_gallery=made.old * 2, old_queries=None) == []


def test_queries_in_another_order(made):
    """They have no ids: nothing else says that they are not those of the other file."""
    shuffled = made.old_queries[np.random.default_rng(0).permutation(100)]
    with pytest.raises(BenchError, match=r"^queries: expected the rows of old_queries in the same"):
        warnings(made, old_queries=shuffled)


def test_rows_that_are_shifted_from_some_row_on():
    """One row is lost and another comes at the end: most rows still fit."""
    made = planted(n=1000, q=400, dim=16)
    shifted = np.r_[:600, 601:1000, 600]
    (one,) = warnings(made, new_gallery=made.new[shifted], qrels=None)
    first, last = map(int, re.findall(r"\d+", one.replace(",", ""))[:2])
    assert 450 <= first <= 760 and 950 <= last < 1000
    assert one.endswith("those of other parts are: is a row missing, or twice?")
    half = np.r_[:200, 201:400, 200]
    (one,) = warnings(made, old_queries=made.old_queries[half])
    assert one.startswith("rows 200 to 399 of old_queries that are near there are not near in")


@pytest.mark.parametrize("sides", [("queries", "old_queries"), ("old_gallery", "new_gallery")])
def test_swapped_files(made, sides):
    names = {"queries": made.queries, "old_queries": made.old_queries, "old_gallery": made.old,
             "new_gallery": made.new}  # fmt: skip
    (one,) = warnings(made, **{sides[0]: names[sides[1]], sides[1]: names[sides[0]]})
    assert "swapped?" in one


@pytest.mark.parametrize("name", ["old_gallery", "new_gallery", "queries", "old_queries"])
def test_constant_vectors(made, name):
    n = 100 if "queries" in name else 400
    words = f"the {name.replace('_', ' ')}" if "queries" in name else name
    told = warnings(made, **{name: np.full((n, 16), 0.3, np.float32)})
    assert told[0] == f"all vectors of {words} are the same: nothing can be told from them"


@pytest.mark.parametrize(("n", "which"), [(400, "all"), (100, "25 % of the"), (8, None)])
def test_equal_vectors_by_both_models(made, n, which):
    """Among them vectors of one file in float16."""
    new = np.r_[made.old[:n].astype(np.float16).astype(np.float32), made.new[n:]]
    told = [line for line in warnings(made, new_gallery=new) if "one model?" in line]
    said = f"{which} items with vectors in both old_gallery and new_gallery have the same in both"
    assert not told if which is None else told[0].startswith(said)


def test_queries_that_are_items():
    made = planted(n=120, dim=16)
    qrels = {i: {i: 1.0} for i in range(120)}
    own = {"queries": made.new, "old_queries": made.old, "qrels": qrels}
    (one,) = warnings(made, **own)
    assert one.startswith("120 of 120 queries are items of the gallery and find themselves")
    near = {i: {(i + 1) % 120: 1.0} for i in range(120)}
    told = warnings(made, **(own | {"qrels": near}), queries_are_items=True)
    assert not any("find themselves" in line for line in told)


def test_own_items_are_no_relevant_pairs():
    """Of each query its own item and another one are judged relevant: one of the two counts."""
    made = planted(n=400, q=40, dim=16)
    qrels = {q: {q: 1.0, 100 + q: 1.0} for q in range(40)}
    changes = {"queries": made.new[:40], "old_queries": made.old[:40], "qrels": qrels}
    report = upgrade(**made.whole(**changes, queries_are_items=True))
    inputs = report.document["inputs"]
    assert (inputs["pairs"], inputs["judged_pairs"]) == (40, 40)
    assert "relevant pairs count" not in plain(tables(report.document, every=True))


def test_queries_that_maps_of_other_texts_are_fitted_on(made):
    rest = np.setdiff1d(np.arange(400), made.relevant)
    pairs = {"pairs_old": made.old[rest], "pairs_new": made.new[rest], "new_gallery": None}
    assert warnings(made, **pairs) == []
    pairs |= {"pairs_old": made.old_queries, "pairs_new": made.queries}
    (one,) = warnings(made, **pairs)
    assert one.startswith("100 of 100 queries are among the texts that maps are fitted on")


def test_queries_that_should_be_items_and_are_none():
    """Of forty queries none, or one, has the id of an item."""
    made = planted(n=300, q=40, dim=16)
    for first, odd in ((300, True), (299, False)):
        ids = {"queries": np.arange(first, first + 40), "old_gallery": np.arange(300)}
        ids |= {"old_queries": ids["queries"], "new_gallery": ids["old_gallery"]}
        qrels = {first + q: {int(row): 1.0} for q, row in enumerate(made.relevant)}
        told = warnings(made, qrels=qrels, ids=ids, queries_are_items=True)
        assert told == odd * [
            "queries are items, but no query has the id of an item of old_gallery, so none is left "
            "out of its own results: the first is '300'"
        ]
        assert warnings(made, qrels=qrels, ids=ids) == []


def test_judgements_that_count_from_one():
    made = planted(n=300, q=40, dim=16)

    def counted(query, item):
        qrels = {q + query: {int(row) + item: 1.0} for q, row in enumerate(made.relevant)}
        return qrels | {40 - 1 + query: {300 - 1 + item: 1.0, 1: 1.0}}

    told = [line for line in warnings(made, qrels=counted(1, 1)) if "counted" in line]
    assert told == [
        f"{name} has no ids, so its rows are known by number, from 0; the judgements name "
        f"{last} but no {last.split()[0]} 0: are they counted from 1?"
        for name, last in (("queries", "query 40"), ("old_gallery", "item 300"))
    ]
    for query, item, names in ((1, 0, ["queries"]), (0, 1, ["old_gallery"]), (0, 0, [])):
        told = warnings(made, qrels=counted(query, item))
        assert [line.split()[0] for line in told if "counted" in line] == names
    ids = {"queries": np.arange(1, 41), "old_gallery": np.arange(1, 301)}
    ids |= {"old_queries": ids["queries"], "new_gallery": ids["old_gallery"]}
    assert warnings(made, qrels=counted(1, 1), ids=ids) == []
    texts = {"pairs_old": made.old[:150], "pairs_new": made.new[:150], "new_gallery": None}
    told = warnings(made, qrels=counted(1, 1), **texts)
    assert sum("counted" in line for line in told) == 2


def test_a_sample_without_a_relevant_item_is_refused_before_maps_are_fitted():
    made = planted(n=300, q=40, dim=16)
    rows = np.setdiff1d(np.arange(300), made.relevant)
    ids = {"old_gallery": np.arange(300), "new_gallery": rows}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(BenchError, match="embed the items"):
        patch.setattr("benchmark.upgrade.fit.maps.fit", None)
        upgrade(**made.whole(new_gallery=made.new[rows], ids=ids))


def test_a_sample_without_most_of_the_relevant_items():
    """Of 40 relevant items 19, or 20, have a new vector: the report says so, and then warns."""
    made = planted(n=300, q=40, dim=16)
    others = np.setdiff1d(np.arange(300), made.relevant)[:150]
    qrels = {q: {str(row): 1.0} for q, row in enumerate(made.relevant)}
    for n, odd in ((19, True), (20, False), (40, False)):
        rows = np.concatenate([made.relevant[:n], others])
        ids = {"old_gallery": np.arange(300), "new_gallery": rows}
        report = upgrade(**made.whole(qrels=qrels, new_gallery=made.new[rows], ids=ids))
        told = [line for line in risks(report.document) if "relevant items have no new" in line]
        assert len(told) == odd
        if odd:
            assert told[0].startswith("Warning: 21 of 40 relevant items have no new vector")
        shown = str(report).replace("\n", " ")
        assert (f"{n} of 40 relevant pairs count" in shown) == (n < 40)
        whole = plain(tables(report.document, every=True)).replace("\n", " ")
        assert whole.count("relevant pairs count") == (n < 40)
    groups = (made.new @ made.new[:9].T).argmax(1)
    labels = {"qrels": None, "labels": (groups[made.relevant], groups)}
    assert warnings(made, **labels, new_gallery=made.new[rows], ids=ids) == []


@pytest.mark.parametrize(("criterion", "n"), [("qrels", 40), ("labels", 40), ("labels", 1)])
def test_chance_is_the_mean_of_random_orders(criterion, n):
    rng = np.random.default_rng(0)
    sizes = np.array([1, 1, 1]) if n == 1 else np.array([1, 3, 12])
    offset = np.concatenate([[0], np.cumsum(sizes)])
    study = SimpleNamespace(
        n_gallery=n, queries=np.arange(3), relevant=SimpleNamespace(offset=offset),
        inputs=SimpleNamespace(criterion=criterion),
    )  # fmt: skip
    scores = []
    for _ in range(4000):
        ranks = np.concatenate([np.sort(rng.permutation(n)[:size] + 1) for size in sizes])
        found = RelevantRanks(offset, ranks, np.ones(len(ranks)))
        scores.append(
            (ndcg(found, 10) if criterion == "qrels" else average_precision(found)).mean()
        )
    error = np.std(scores) / np.sqrt(len(scores))
    assert doubts._chance(study, "re-embed") == pytest.approx(np.mean(scores), abs=5 * error + 1e-9)


def test_few_copies_in_a_sample_are_warned_of():
    made = planted(n=1500, q=40, dim=16)
    rows = np.union1d(np.random.default_rng(0).permutation(3000)[:150], made.relevant)
    old, new = (np.concatenate([each, each]) for each in (made.old, made.new))
    ids = {"old_gallery": np.arange(3000), "new_gallery": rows}
    (one,) = (w for w in warnings(made, old_gallery=old, new_gallery=new[rows], ids=ids)
              if "copies" in w)  # fmt: skip
    share = int(one.removeprefix("some ").partition(" ")[0])
    pairs = len(rows) - len(np.unique(rows % 1500))
    assert 20 <= share <= 100 and f"and {pairs} pairs of them are too few" in one
    rows = np.union1d(np.arange(0, 3000, 3), rows)
    ids = {"old_gallery": np.arange(3000), "new_gallery": rows}
    told = warnings(made, old_gallery=old, new_gallery=new[rows], ids=ids)
    assert not [each for each in told if "copies" in each], "estimates allow for them"
    assert warnings(made, old_gallery=old, new_gallery=new, ids={}) == []
