"""Items that are gone, beside the truth by another evaluator; what is measured, and what is not."""

from dataclasses import replace

import numpy as np
import pytest
from support.pair_records import corpus_of
from support.upgrades import all_scores, ndcg, planted

from benchmark.config.embedders import load_embedder
from benchmark.pairs.board import CellPlan
from benchmark.pairs.cells import CellVectors
from benchmark.pairs.corpora import Vectors, place_of
from benchmark.pairs.gone import OTHERS, OWN, PAIRS, cells, gone_table, least_table, measure


@pytest.fixture
def plans(tmp_path, monkeypatch):
    """Two corpora with the vectors of two models in a cache, and one without."""
    monkeypatch.setenv("COMPATBENCH_STORE", str(tmp_path))
    made = planted(n=700, q=60)
    gains = {f"q{k}": {f"d{row}": 1.0} for k, row in enumerate(made.relevant)}
    old, new = load_embedder("minilm-l3"), load_embedder("minilm-l6")
    out = []
    for number, name in enumerate(("one", "two", "three")):
        corpus = corpus_of(name, 700, gains, f"{number}")
        out.append(CellPlan(corpus, old, new, tmp_path / name))
        for embedder, sides in (
            (old, (made.old, made.old_queries)), (new, (made.new, made.queries)),
        ):  # fmt: skip
            if name != "three":
                place = place_of(embedder, corpus)
                place.parent.mkdir(parents=True, exist_ok=True)
                np.savez(place, items=sides[0], queries=sides[1], seconds=1.0)
    return made, out


def test_rows_beside_the_truth(plans):
    made, found = plans
    todo = cells(found, PAIRS)
    assert [each.plan.corpus.source.id for each in todo] == ["one", "two"]
    assert [o.corpus.source.id for o in todo[0].others] == ["two"]
    rows = list(measure(todo))
    assert [(r["corpus"], r["map"]) for r in rows] == [
        (name, label) for name in ("one", "two") for label in ("procrustes:query", "linear:query")
    ]
    plan = found[0]
    sides = Vectors(made.old, made.old_queries, 1.0), Vectors(made.new, made.queries, 1.0)
    _, unseen = CellVectors.of(plan.corpus, *sides, plan.seed).halves(0)
    relevant = made.relevant[unseen]
    for row in rows[:2]:
        keep, again, turned = (
            ndcg(all_scores(queries[unseen], items), relevant).mean()
            for queries, items in (
                (made.old_queries, made.old), (made.queries, made.new),
                (made.queries @ made.rotation, made.old),
            )
        )  # fmt: skip
        assert (row["keep"], row["again"]) == pytest.approx((keep, again))
        assert row["bridge"] == pytest.approx(turned, abs=0.03)
        assert row["by_queries"] > 0.8 and row["by_pairs"] > 0.8 and row["agree"] is None
    table = gone_table(rows)
    assert [line.labels[0].text for line in table.rows] == [PAIRS] * len(table.rows)


def test_other_sizes_need_pairs(plans):
    _, found = plans
    wide = [replace(each, new=load_embedder("mpnet-base")) for each in found]
    assert cells(wide, PAIRS) == cells(wide, OWN) == []  # nothing in the cache
    assert len(cells(found, OTHERS)) == 2


def row(corpus, by_pairs, bridge, basis=PAIRS, k=0):
    return {
        "corpus": corpus, "old": f"o{k}", "new": "n", "basis": basis, "map": "m",
        "by_queries": None, "by_pairs": by_pairs, "agree": None, "taken": "keep-old",
        "keep": 0.3, "bridge": bridge, "again": 0.4,
    }  # fmt: skip


def test_both_halves_of_corpora_by_hand():
    """A map is of use from 0.2 on; least shares were chosen on Cranfield, and not on CISI."""
    rows = [row("cranfield", 0.99, 0.25, k=k) for k in range(3)]
    rows += [row("cranfield", 0.92, 0.1, k=3), row("cisi", 0.96, 0.1), row("cisi", 0.5, 0.3, k=1)]
    lines = [[c.text for c in (*r.labels, *r.cells[0])] for r in gone_table(rows).rows]
    assert [each[1:6] for each in lines] == [
        ["held-out pairs", "yes", "chosen on", "3", lines[0][5]],
        ["held-out pairs", "no", "chosen on", "1", "0 %"],
        ["held-out pairs", "yes", "shown on", "1", "0 %"],
        ["held-out pairs", "no", "shown on", "1", "100 %"],
    ]
    least = [[c.text for c in (*r.labels, *r.cells[0])] for r in least_table(rows).rows]
    found = {each[1]: each[2:] for each in least if each[0] == "held-out pairs"}
    assert found["95 %"] == ["3 of 4", "100 %", "1 of 2", "0 %"]
    assert found["90 %"] == ["4 of 4", "75 %", "1 of 2", "0 %"]
