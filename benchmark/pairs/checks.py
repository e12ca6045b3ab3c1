"""Embedders beside numbers that others publish of the same models: they are run as meant.

Where a corpus has judgements, nDCG@10 of its queries, as BEIR's and MTEB's boards have it. Where it
has classes, MTEB's classification: eight training texts of each class, a logistic regression, the
accuracy on all test texts, by the mean of ten draws (Muennighoff and others, MTEB, 2023, 3.1).
"""

from pathlib import Path

import numpy as np

from benchmark.config.embedders import Embedder
from benchmark.config.files import write_json
from benchmark.config.reading import Model, read_json
from benchmark.errors import BenchError
from benchmark.pairs.corpora import CorpusSource, labelled_texts, load_source, read_corpus
from benchmark.pairs.records import MOST_BYTES
from benchmark.upgrade.read.request import Tell

FILE = "checks.json"
DRAWS, EACH = 10, 8
NEAR = 0.02
"""Difference that other draws, libraries and 8-bit weights make."""


class Check(Model):
    """A number of an embedder, measured here and published."""

    embedder: str
    corpus: str
    metric: str
    published: float
    source: str
    here: float


def read_checks(folder: Path) -> tuple[Check, ...]:
    """Those beside the records of a folder; none where there is no file."""
    path = folder / FILE
    return read_json(tuple[Check, ...], path, MOST_BYTES) if path.is_file() else ()


def write_check(folder: Path, check: Check) -> None:
    """Write one beside the records, in place of an earlier one."""
    key = check.embedder, check.corpus
    others = [c for c in read_checks(folder) if (c.embedder, c.corpus) != key]
    every = sorted([*others, check], key=lambda c: (c.embedder, c.corpus))
    write_json(folder / FILE, [c.model_dump() for c in every])


def check(embedder: Embedder, corpus: str, data: Path | None, tell: Tell) -> Check:
    """Measure what is published of an embedder on a corpus; BenchError where nothing is."""
    source = load_source(corpus)
    if source.id not in embedder.published:
        known = ", ".join(embedder.published) or "nothing"
        raise BenchError(f"{embedder.id}: no published number on {source.id}; there is {known}")
    found = embedder.published[source.id]
    measure, metric = (
        (_retrieval, "nDCG@10") if source.thinning is None else (_classification, "accuracy")
    )
    return Check(
        embedder=embedder.id, corpus=source.id, metric=metric, published=found.value,
        source=found.source, here=round(measure(embedder, source, data, tell), 4),
    )  # fmt: skip


def _retrieval(embedder: Embedder, source: CorpusSource, data: Path | None, tell: Tell) -> float:
    from benchmark.pairs.cells import CellVectors, measured_in_old
    from benchmark.pairs.corpora import embedded

    corpus = read_corpus(source, data)
    its = embedded(embedder, corpus, tell)
    return measured_in_old(CellVectors.of(corpus, its, its), its.queries)


def _classification(
    embedder: Embedder, source: CorpusSource, data: Path | None, tell: Tell
) -> float:
    from sklearn.linear_model import LogisticRegression

    from benchmark.models.embedder_runners import embed_texts

    (texts, labels), (asked, true) = labelled_texts(source, data)
    rng = np.random.default_rng(0)
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= EACH]
    draws = [
        np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:EACH] for c in classes])
        for _ in range(DRAWS)
    ]
    rows = np.unique(draws)
    said = lambda done, n: tell(f"{embedder.id} embeds {source.id}: {done:,} of {n:,}")  # noqa: E731
    train = np.zeros((len(texts), embedder.dim), np.float32)
    train[rows] = embed_texts(embedder, [texts[row] for row in rows], queries=False, tell=said)
    test = embed_texts(embedder, asked, queries=False, tell=said)
    return float(np.mean([
        LogisticRegression(max_iter=100).fit(train[draw], labels[draw]).score(test, true)
        for draw in draws
    ]))  # fmt: skip
