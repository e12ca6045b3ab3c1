"""Records of pairs of embedders made by hand."""

from __future__ import annotations

import json

from benchmark.config.embedders import load_embedder
from benchmark.pairs.corpora import Corpus, CorpusSource
from benchmark.pairs.records import PairRecord


def row(score, same, other, arm=500, sampling=None):
    """A strategy whose intervals have arms of so many ten-thousandths on both sides."""
    return [score, score - arm, score + arm, sampling, 0, 0,
            same, other, other - arm, other + arm, 0, 0]  # fmt: skip


def made(corpus="one", old="minilm-l3", new="minilm-l6", verdict="keep-old", **rows):
    """A record of one report on 50 and 150 queries."""
    sides = {
        side: {
            "id": e.id, "title": e.title, "weights": "0" * 64, "dim": e.dim,
            "parameters": e.parameters, "vintage": e.vintage, "seconds": 1.0,
            "trained_on_corpus": False,
        }
        for side, e in (("old", load_embedder(old)), ("new", load_embedder(new)))
    }  # fmt: skip
    for each in rows.values():
        for first, value in ((4, 0), (10, 7)):
            gain = each[value] - rows["keep_old"][value]
            each[first : first + 2] = [gain - 500, gain + 500]
    report = {
        "size": 1000, "draw": 0, "embedded": 1200, "queries": [50, 150], "seconds": 1.0,
        "fit_seconds": 0.1, "verdict": verdict, "better": True, "barred": ["cascade"],
        "strategies": {name.replace("_", "-").replace("--", ":"): r for name, r in rows.items()},
    }  # fmt: skip
    facts = {"id": corpus, "title": corpus.title(), "modality": "text", "terms": "", "items": 5000,
             "queries": 200, "judgements": 400, "digest": "0" * 64}  # fmt: skip
    return PairRecord.model_validate_json(json.dumps({
        "schema": 1, "corpus": facts, **sides, "metric": "ndcg_at_10", "maps": "quick", "code": {},
        "machine": {}, "reports": [report],
    }))  # fmt: skip


def write_beir(folder, items, queries, qrels):
    """A corpus in BEIR's layout: id -> title and text, id -> text, lines of judgements."""
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": i, "title": t, "text": x}) for i, (t, x) in items.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    rows = [json.dumps({"_id": q, "text": text}) for q, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows))
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(row.split()) for row in qrels)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))
    return folder


def write_classes(folder, sides):
    """Texts and their classes; side -> id, text and class of each."""
    folder.mkdir(parents=True)
    for side, rows in sides.items():
        lines = [json.dumps({"id": i, "text": text}) for i, text, _ in rows]
        (folder / f"{side}.jsonl").write_text("\n".join(lines))
        labels = ["id\tlabel", *(f"{i}\t{label}" for i, _, label in rows)]
        (folder / f"{side}.labels.tsv").write_text("\n".join(labels))


def corpus_of(name, n, gains, digest="0"):
    """A corpus of ``n`` items ``d0``, ..., and of the queries that have gains."""
    source = CorpusSource(
        id=name, title=name, modality="text", reader="text", folder=".", terms="none",
        source="none",
    )  # fmt: skip
    items, asked = [f"d{k}" for k in range(n)], list(gains)
    return Corpus(source, items, asked, items, asked, gains, digest * 64)
