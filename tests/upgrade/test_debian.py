"""A real corpus with real queries: what a sample predicts, beside everything embedded again."""

from __future__ import annotations

import numpy as np
import pytest
from support import debian
from support.upgrades import all_scores, ndcg

from benchmark.metrics.kept_share import mean
from benchmark.upgrade.fit.maps import QUICK
from benchmark.upgrade.measure.evaluation import evaluate
from benchmark.upgrade.measure.study import study
from benchmark.upgrade.read.gallery import GalleryBlock, Whole
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.request import UpgradeRequest

pytestmark = [pytest.mark.data, pytest.mark.slow]
SAMPLE = 5000


@pytest.fixture(scope="module")
def corpus():
    made = debian.corpus()
    assert len(made.ids) >= debian.LEAST and len(made.asked) > 700
    return made


def inputs(corpus, rows):
    """Inputs of a user who has embedded some rows again."""
    names = np.array(corpus.ids)
    queries = np.array([f"of {name}" for name in names[corpus.asked]])
    qrels = {q: {name: 1.0} for q, name in zip(queries, names[corpus.asked], strict=True)}
    return read_inputs(UpgradeRequest(
        corpus.old, corpus.new[rows], corpus.new_queries, corpus.old_queries, qrels=qrels,
        ids={
            "old_gallery": names, "new_gallery": names[rows], "queries": queries,
            "old_queries": queries,
        },
    ))  # fmt: skip


@pytest.fixture(scope="module")
def predicted(corpus):
    """The study of a sample that holds what is relevant, and items that are drawn."""
    rng = np.random.default_rng(1)
    others = rng.permutation(np.setdiff1d(np.arange(len(corpus.ids)), corpus.asked))
    return study(inputs(corpus, np.sort(np.append(corpus.asked, others[:SAMPLE]))), QUICK)


@pytest.fixture(scope="module")
def measured(corpus, predicted):
    """The same strategies with the same maps, and every item embedded again."""
    gallery = inputs(corpus, np.arange(len(corpus.ids))).gallery
    assert gallery.complete
    known = GalleryBlock.whole(np.arange(len(corpus.ids)), corpus.old, corpus.new)
    return evaluate(
        Whole(gallery), predicted.relevant, known, predicted.first.plan, "cosine"
    ).scores  # fmt: skip


def test_what_is_measured_is_what_products_say(corpus, predicted, measured):
    c = corpus
    for name, queries, gallery in [
        ("keep-old", c.old_queries, c.old), ("re-embed", c.new_queries, c.new),
        ("linear", c.new_queries, predicted_map(predicted, "linear").convert(c.old)),
        ("procrustes:query", predicted_map(predicted, "procrustes:query").view(c.new_queries),
         c.old),
    ]:  # fmt: skip
        expected = ndcg(all_scores(queries, gallery), c.asked).mean()
        assert measured[name]["ndcg_at_10"].mean() == pytest.approx(expected, abs=0.002), name
    new, old = (measured[name]["ndcg_at_10"].mean() for name in ("re-embed", "keep-old"))
    assert new > old + 0.03, "the newer model is better"


def predicted_map(found, label):
    return next(fit.conversion for fit in found.first.maps if fit.label == label)


def test_the_report_is_right_about_what_embedding_again_confirms(predicted, measured):
    """For every strategy the truth lies in the interval; estimates are near it."""
    assert set(predicted.outcomes) == set(measured)
    rows = []
    for name, outcome in predicted.outcomes.items():
        told = mean(outcome.scores["ndcg_at_10"])
        truth = measured[name]["ndcg_at_10"].mean()
        rows.append((name, outcome.estimated, told, truth))
    wrong = [row for row in rows if not row[2].low <= row[3] <= row[2].high]
    assert not wrong
    assert all(told.value == pytest.approx(t, abs=1e-9) for _, est, told, t in rows if not est)
    assert any(estimated for _, estimated, _, _ in rows)
