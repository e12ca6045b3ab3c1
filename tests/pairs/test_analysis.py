"""Coverage, regret and shares on records made by hand, and what the committed ones say."""

import math
from pathlib import Path

import pytest
from support.command import call
from support.pair_records import made, row

from benchmark.config.embedders import load_embedder
from benchmark.errors import BenchError
from benchmark.pairs import analysis, tables
from benchmark.pairs.board import load_board
from benchmark.pairs.corpora import corpus_files
from benchmark.pairs.records import read_record, read_records
from benchmark.pairs.tables import Like
from benchmark.studies.claims import read_claims

RESULTS = Path(__file__).parents[2] / "results" / "pairs"


def test_regret_is_beside_the_best_that_may_be_done(one):
    """On the other queries re-embedding (42.0) is the best, as the cascade is barred."""
    (report,) = one.reports
    assert analysis.regret(report, "keep-old") == pytest.approx(0.10)
    assert analysis.regret(report, "linear:query") == pytest.approx(0.04)
    assert analysis.regret(report, "re-embed") == 0.0
    assert analysis.decision(report) == "re-embed" and analysis.regrets([one]) == [0.0]
    assert analysis.decision(report, 1e-5) == "keep-old"
    assert analysis.regrets([one], "always re-embed") == [0.0]
    # The report says that the rotation beats the old model: on other queries it does not.
    assert analysis.regrets([one], "retention x gain > 1") == pytest.approx([0.15])
    assert analysis.right(report)  # linear:query keeps 60 % of the way from 32 to 42
    (small,) = made(keep_old=row(3000, 3000, 3000), re_embed=row(3100, 3100, 3300)).reports
    assert analysis.decision(small) == "keep-old" and not analysis.right(small)
    assert analysis.right(report.model_copy(update={"verdict": "linear:query"})) is None


def test_truths_of_all_queries_and_shares(one):
    assert analysis.whole(one, "keep-old") == pytest.approx((50 * 0.30 + 150 * 0.32) / 200)
    assert analysis.whole(one, "re-embed") == pytest.approx(0.4175)
    share = (0.375 - 0.315) / (0.4175 - 0.315)
    assert analysis.share(one, "linear:query") == pytest.approx(share)
    assert analysis.gain(one) == pytest.approx(0.4175 / 0.315)
    assert analysis.naive(one) == pytest.approx(0.0125 / 0.4175)
    small = made(keep_old=row(3000, 3000, 3000), re_embed=row(3100, 3100, 3100))
    assert math.isnan(analysis.share(small, "re-embed"))


def test_tables_of_records_with_other_maps():
    """A dash stands for what they lack, and no claim is decided by it."""
    few = {"keep_old": row(3000, 3000, 3000), "naive": row(10, 10, 10),
           "re_embed": row(4000, 4000, 4000)}  # fmt: skip
    others = [made(**few)]
    assert math.isnan(analysis.whole(others[0], analysis.ROTATION))
    assert analysis.RULES["retention x gain > 1"](others[0].reports[0]) is None
    for name, table in tables.TABLES.items():
        assert "'nan'" not in repr(table(others).rows), name
    assert math.isnan(analysis.VALUES["linear-beats-rotation"](others))
    few["re_embed"][1:3] = few["re_embed"][8:10] = [None, None]
    assert {h.covered for h in analysis.held([made(**few)])} == {True, None}


def test_intervals_cover_by_both_errors(one):
    """Arms of 5 points on both sides reach 7.07 points: the rotation is 8 off, the rest less."""
    found = {h.strategy: h for h in analysis.held([one])}
    assert not found["procrustes:query"].covered
    assert all(h.covered for name, h in found.items() if name != "procrustes:query")
    # Gains: the rotation's is 5 points in the report, -5 on the others.
    assert found["procrustes:query"].gain is False and found["linear:query"].gain is True
    assert found["keep-old"].gain is None
    assert found["re-embed"].within is True and found["cascade"].within is True
    assert found["re-embed"].same_off == pytest.approx(-0.01)
    off = made(keep_old=row(1, 1, 1), re_embed=row(4000, 4200, 4000, sampling=150))
    assert next(h for h in analysis.held([off]) if h.strategy == "re-embed").within is False


def test_every_claim_names_a_value():
    claims = read_claims().pairs
    assert len(claims) >= 12 and {c.value for c in claims.values()} <= set(analysis.VALUES)


def test_worse_models_and_cascades(one):
    worse = made(old="minilm-l6", new="minilm-l3", keep_old=row(4000, 4000, 4000),
                 re_embed=row(3000, 3000, 3000), procrustes__query=row(1, 1, 1),
                 linear__query=row(1, 1, 1), naive=row(1, 1, 1))  # fmt: skip
    assert not worse.forward and analysis.upgrades([one, worse]) == [one]
    assert analysis.VALUES["worse-refused"]([one, worse]) == 1.0
    assert analysis.VALUES["cascade-wins"]([one, worse]) == 1.0
    assert analysis.VALUES["linear-beats-rotation"]([one]) == 1.0
    assert math.isnan(analysis.VALUES["drift-adapter-kept"]([one]))


def test_the_nearest_pairs_come_first(one):
    other = made(old="wordllama-64", new="mpnet-base", keep_old=row(2000, 2000, 2000),
                 re_embed=row(4000, 4000, 4000), linear__query=row(3000, 3000, 3000))  # fmt: skip
    table = Like.parse("minilm-l3:minilm-l6").table([other, one])
    lines = [[cell.text for cell in row.labels] for row in table.rows]
    assert [line[0] for line in lines] == ["minilm-l3:minilm-l6", "wordllama-64:mpnet-base"]
    assert table.notes[0].startswith("Below it stand the nearest other pairs")
    nearest = Like.parse("minilm-l3:bge-small").table([other, one])
    assert nearest.notes[0].startswith("minilm-l3:bge-small is not measured: these are")
    assert "prior" in table.title and "not on your vectors" in table.title
    with pytest.raises(BenchError, match="did you mean 'bge-small'"):
        Like.parse("minilm-l6:bge-smal")
    with pytest.raises(BenchError, match="one modality"):
        Like.parse("minilm-l6:efficientnet-lite0")
    with pytest.raises(BenchError, match="expected OLD:NEW"):
        Like.parse("minilm-l6")


def test_the_commands_say_what_is_wrong(tmp_path):
    code, _, err = call("pairs", "table", tmp_path)
    assert code == 2 and "expected records of pairs" in err
    code, _, err = call("pairs", "table", "--show", "helt")
    assert code == 2 and "did you mean 'held'" in err
    code, _, err = call("pairs", "run", "--pairs", "minilm-l6", "--data", tmp_path)
    assert code == 2 and "--pairs: expected OLD:NEW, got 'minilm-l6'" in err
    code, _, err = call("pairs", "run", "--corpora", "cisi", "--data", tmp_path)
    assert code == 2 and "--data DIR names another one" in err
    code, out, _ = call("pairs", "table", "--show", "embedders", "-f", "csv")
    assert code == 0 and "all-mpnet-base-v2" in out
    code, out, err = call("pairs", "table", "--show", "embedders,checks", "-f", "csv")
    assert (code, out) == (2, "") and "expected tables of the same columns, got Embedders, " in err
    assert err.endswith("; choose one with --show\n")
    for verb in ("gone", "mixed"):
        code, _, err = call("pairs", verb, "-f", "csv")
        assert code == 2 and "got csv; all rows: --json FILE" in err


def test_a_board_is_told_of_the_corpora_that_are_there(tmp_path, monkeypatch):
    folder = tmp_path / "text" / "cisi"
    folder.mkdir(parents=True)
    for name in ("docs", "queries"):
        lines = [f'{{"id": "{i}", "text": "some words {i}"}}\n' for i in "ab"]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    heads = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels.tsv").write_text(f"{heads}a\ta\t1\nb\tb\t1\n")
    code, out, err = call("pairs", "status", "--data", tmp_path)
    assert code == 0 and "cisi" in out and "npl" not in out
    assert err.count("bench: left out: corpus ") == 5 and "corpus npl" in err
    code, _, err = call("pairs", "status", "--data", tmp_path, "--corpora", "cisi,npl")
    assert code == 2 and err.startswith("bench: corpus npl: ")
    code, _, err = call("pairs", "status", "--data", tmp_path / "text")
    assert code == 2 and err.startswith("bench: corpus cranfield: ")
    monkeypatch.setattr("benchmark.pairs.board.CellPlan.left", 0)
    words = ["--pairs", "wordllama-64:minilm-l3", "--corpora", "cisi", "--data", tmp_path]
    code, out, _ = call("pairs", "run", *words, "--out", tmp_path / "out")
    said = f"0 of 1 cells to measure: {tmp_path / 'out'} has all; --out says where to measure anew"
    assert (code, out) == (0, f"{said}\n")
    monkeypatch.setattr("benchmark.pairs.board.CellPlan.record", lambda each: made())
    code, _, err = call("pairs", "run", *words, "--out", tmp_path / "out", "--maps", "linear")
    assert code == 2 and "is of the maps quick, got linear; --out says where" in err
    (folder / "qrels.tsv").write_text(f"{heads}a\ta\t1\nb\ta\t1\n")
    code, _, err = call("pairs", "run", *words, "--out", tmp_path / "out")
    assert code == 2 and "corpus cisi: expected queries of two groups or more" in err


def test_the_core_board_and_its_records():
    """Cells of the board, with intervals that hold what they promise."""
    board = load_board(RESULTS / "core.yaml")
    assert set(board.corpora) <= set(corpus_files()) and len(set(board.pairs)) == len(board.pairs)
    for old, new in board.pairs:
        assert load_embedder(old).modality == load_embedder(new).modality
    records = read_records(RESULTS)
    for path in RESULTS.glob("*/*.json"):
        found = read_record(path)
        assert path.parent.name == found.corpus.id
        assert path.stem == f"{found.old.id}--{found.new.id}"
        assert path.stat().st_size < 16_000
    assert 0.90 <= analysis.VALUES["coverage"](records) <= 0.98
    for name, table in tables.TABLES.items():
        assert table(records).rows, name
