"""Cells: halves, samples, and truths beside other people's evaluators."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from support.pair_records import corpus_of
from support.upgrades import all_scores, planted, unit

from benchmark.config.embedders import load_embedder
from benchmark.errors import BenchError
from benchmark.pairs import analysis
from benchmark.pairs.cells import CellVectors, _report, cell, others, same, sample_sizes
from benchmark.pairs.corpora import Vectors, load_source, read_corpus
from benchmark.pairs.records import COLUMNS, METRIC, read_record, read_records, write_record
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.formats.ids import rows_of
from benchmark.upgrade.measure.study import study

MAPS = "procrustes,procrustes:query,linear"


def problem(n=700, q=60, several=3):
    """Queries with up to three relevant items of different gains."""
    made = planted(n=n, q=q)
    rng = np.random.default_rng(5)
    gains = {}
    for k, row in enumerate(made.relevant):
        more = rng.permutation(n)[: rng.integers(0, several)]
        gains[f"q{k}"] = {f"d{row}": 3.0} | {f"d{r}": float(1 + r % 2) for r in more if r != row}
    corpus = corpus_of("small", n, gains)
    sides = ((made.old, made.old_queries), (made.new, made.queries))
    return CellVectors.of(corpus, *(Vectors(x, y, 1.0) for x, y in sides), seed=7)


@pytest.fixture(scope="module")
def small():
    return problem()


def judged(problem, rows, queries, items, asked):
    """nDCG@10 by pytrec_eval on rankings by brute force, in float64."""
    scores = all_scores(queries, items)
    names = [problem.corpus.query_ids[k] for k in asked]
    run = {
        name: dict(zip(problem.corpus.item_ids, map(float, line), strict=True))
        for name, line in zip(names, scores[rows], strict=True)
    }
    qrels = {name: {i: int(g) for i, g in problem.corpus.gains[name].items()} for name in names}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    return np.array([found[name]["ndcg_cut_10"] for name in names])


def fits_of(report, small, asked):
    """Items that each fit saw: those of the report's, or two without a half of what is relevant."""
    if report.refits:
        return [fold.sample.fitted for fold in report.refits]
    sample = report.first.sample
    part = (np.random.default_rng(small.seed).random(small.n) < 0.5)[sample.rows]
    unwanted = np.isin(sample.rows, small.relevant(asked))
    return [sample.fitted & ~(unwanted & half) for half in (part, ~part)]


@pytest.mark.parametrize("much", [0.1, 1.0])
def test_truths_equal_those_of_another_evaluator(small, monkeypatch, much):
    """By four fits, where maps see much of the gallery, and by one."""
    monkeypatch.setattr("benchmark.upgrade.read.sampling.MUCH", much)
    halves, rows = small.halves(0), small.sample(300, 0)
    report = study(small.inputs(rows, halves[0]), chosen_maps(MAPS))
    assert bool(report.refits) == (much < 1)
    true = others(small, report, halves[1])
    asked = halves[1]
    old, new = small.old, small.new
    plain = {
        "keep-old": (old.queries, old.items), "re-embed": (new.queries, new.items),
    }  # fmt: skip
    for name, (queries, items) in plain.items():
        naive = judged(small, asked, queries, items, asked)
        assert true[name][METRIC] == pytest.approx(naive, abs=1e-6), name
    # Each item is scored by the first rotation that was fitted without it.
    sides, seen = [], []
    for fitted in fits_of(report, small, asked):
        sample = report.first.sample
        a, b = unit(sample.old[fitted]), unit(sample.new[fitted])
        u, _, vt = np.linalg.svd((b - b.mean(0)).T @ (a - a.mean(0)))
        sides.append((unit(new.queries) - b.mean(0)) @ (u @ vt) + a.mean(0))
        seen.append(set(sample.rows[fitted].tolist()))
    by_fold = [all_scores(side, old.items) for side in sides]
    fold = [next((k for k, s in enumerate(seen) if row not in s), 0) for row in range(small.n)]
    scores = np.stack([by_fold[k][:, row] for row, k in enumerate(fold)], axis=1)
    for k, q in enumerate(asked):
        gains = small.corpus.gains[f"q{q}"]
        ranks = [(scores[q] >= scores[q, int(i[1:])] - 1e-7).sum() for i in gains]
        ranks, of = np.array(ranks), np.array(list(gains.values()))
        dcg = (of / np.log2(1 + ranks))[ranks <= 10].sum()
        ideal = (np.sort(of)[::-1] / np.log2(2 + np.arange(len(of)))).sum()
        assert true["procrustes:query"][METRIC][k] == pytest.approx(dcg / ideal, abs=1e-5), q
    mine = same(small, report, halves[0])["re-embed"][METRIC]
    naive = judged(small, halves[0], new.queries, new.items, halves[0])
    assert mine == pytest.approx(naive, abs=1e-6)


def test_halves_are_of_whole_groups_and_other_in_each_draw_and_cell(small):
    grouped = replace(small, groups=np.arange(60) // 4)
    for draw in range(3):
        mine, rest = grouped.halves(draw)
        assert sorted([*mine, *rest]) == list(range(60))
        assert not set(mine // 4) & set(rest // 4) and abs(len(mine) - len(rest)) <= 4
    first, second = (set(grouped.halves(draw)[0]) for draw in (0, 1))
    assert first != second and first != set(replace(grouped, seed=8).halves(0)[0])


def test_a_sample_is_random_but_for_what_is_relevant_to_its_half(small):
    mine = small.relevant(small.halves(1)[0])
    rows = small.sample(300, 1)
    assert np.isin(mine, rows).all() and 300 <= len(rows) <= 300 + len(mine)
    assert not np.isin(small.relevant(small.halves(1)[1]), rows).all()
    hand = {int(i[1:]) for q in small.halves(1)[0] for i in small.corpus.gains[f"q{q}"]}
    assert set(mine) == hand


@pytest.fixture(scope="module")
def record(small, tmp_path_factory):
    sides = [(load_embedder(name), 1.0) for name in ("minilm-l3", "minilm-l6")]
    folder = tmp_path_factory.mktemp("pairs")
    reports = [row for draw in range(2) for row in cell(small, draw, MAPS)]
    return write_record(folder, small.corpus, sides, MAPS, reports), reports


def test_a_cell_is_recorded_and_read_again(record, small):
    path, reports = record
    assert path.parts[-2:] == ("small", "minilm-l3--minilm-l6.json")
    (found,) = read_records(path.parents[1])
    assert found == read_record(path) and found.name == "minilm-l3:minilm-l6" and found.forward
    assert [(r.size, r.draw) for r in found.reports] == [(300, 0), (300, 1)]
    assert json.loads(path.read_text())["reports"] == reports
    for report in found.reports:
        table = report.table
        assert set(report.barred) == {"cascade", "cascade-mapped"} <= set(table)
        for row in table.values():
            assert list(row) == list(COLUMNS)
            assert row["low"] <= row["score"] <= row["high"]
        # What reads stored vectors alone is measured; the rest is estimated.
        assert table["keep-old"]["same"] == table["keep-old"]["score"]
        assert table["re-embed"]["sampling"] > 0 and table["linear"]["sampling"] is None
        assert report.queries[0] + report.queries[1] == 60
    every = np.arange(60)
    naive = judged(small, every, small.old.queries, small.old.items, every).mean()
    assert analysis.whole(found, "keep-old") == pytest.approx(naive, abs=2e-4)


def test_a_damaged_record_is_refused(record, tmp_path):
    path, _ = record
    document = json.loads(path.read_text())
    document["reports"][0]["strategies"]["keep-old"].pop()
    place = tmp_path / "x" / "a--b.json"
    place.parent.mkdir()
    place.write_text(json.dumps(document))
    with pytest.raises(BenchError, match=r"a--b\.json"):
        read_record(place)
    with pytest.raises(BenchError, match="expected records of pairs"):
        read_records(tmp_path / "none")


def test_sizes_leave_a_fifth_of_the_items_out(small):
    assert sample_sizes(small.n) == [300]


REAL = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.slow
@pytest.mark.skipif(not (REAL / "vectors").is_dir(), reason="vectors of real models are not here")
@pytest.mark.parametrize(
    ("old", "new", "better"),
    [
        ("bge-small-en-v1.5", "paraphrase-minilm-l3-v2", False),
        ("wordllama", "bge-small-en-v1.5", True),
    ],
)
def test_real_models_are_told_apart_from_a_tenth(old, new, better, monkeypatch):
    """NPL: 11,426 items, of which 1,000 at random and the relevant ones are embedded."""
    monkeypatch.setattr("benchmark.upgrade.measure.list_estimate.DRAWS", 12)
    corpus = read_corpus(load_source("npl"), REAL)
    with np.load(REAL / "vectors" / "npl.npz", allow_pickle=False) as file:
        sides = [
            [
                file[f"{model}.{side}"][rows_of(ids, np.array(file[f"ids.{side}"]))]
                for side, ids in (("docs", corpus.item_ids), ("queries", corpus.query_ids))
            ]
            for model in (old, new)
        ]
    its = CellVectors.of(corpus, *(Vectors(*(x.astype(np.float32) for x in s), 0.0) for s in sides))
    row = _report(its, 1000, 0, ["procrustes:query"])
    table = {k: dict(zip(COLUMNS, v, strict=True)) for k, v in row["strategies"].items()}
    gains = [table["re-embed"][c] - table["keep-old"][c] for c in ("score", "same", "other")]
    assert [gain > 0 for gain in gains] == [better] * 3
    assert (row["verdict"] == "keep-old") != better
    for name, each in table.items():  # what is measured is the truth, estimates are near it
        assert abs(each["score"] - each["same"]) <= 2.5 * (each["sampling"] or 0), name
        assert each["low"] <= each["same"] <= each["high"], name
