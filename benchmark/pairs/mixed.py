"""``bench upgrade doctor`` on the corpora of the board: of one model, or of several?

Each corpus as one model has embedded it, with a tenth of its items by another model, and with as
many items of another corpus by the same model: those are of one model, but about other things.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmark.metrics.similarity import unit
from benchmark.pairs.board import CellPlan
from benchmark.pairs.corpora import embedded, place_of
from benchmark.ranking.arrays import Floats
from benchmark.report.text_table import TextTable, simple_table
from benchmark.upgrade.read.health import PART
from benchmark.upgrade.read.mixture import mixture
from benchmark.upgrade.read.request import Tell

PLANTED = ONE, MODEL, TOPIC = "nothing", "another model", "another corpus"
"""Vectors that are planted in an index."""
_SHARE = 0.1
_SAME = 0.5  # mean cosine of the same items from which on a model is another one's first numbers

Collections = Mapping[tuple[str, str], Floats]


def collections(plans: Sequence[CellPlan]) -> dict[tuple[str, str], Floats]:
    """Directions of all corpora by all models whose vectors are in the cache, ``[n, dim]``."""
    return {
        (plan.corpus.source.id, side.id): unit(embedded(side, plan.corpus).items, "cosine")
        for plan in plans for side in (plan.old, plan.new) if place_of(side, plan.corpus).is_file()
    }  # fmt: skip


def measure(found: Collections, tell: Tell = lambda words: None) -> Iterator[dict[str, Any]]:
    """A row for each collection, and for each that is mixed.

    Yields:
        ``corpus``, ``model``, ``planted`` (one of :data:`PLANTED`) and ``by`` (its model or
        corpus); ``told``: whether several models are told, ``share`` of those that are not of the
        largest, None where that cannot be told.
    """
    for (corpus, model), whole in found.items():
        tell(f"{corpus} by {model}")
        for planted, by, vectors in _cases(found, corpus, model):
            rows = np.random.default_rng(0).permutation(len(vectors))[:PART]
            said = mixture(vectors[np.sort(rows)])
            yield {
                "corpus": corpus, "model": model, "numbers": whole.shape[1], "planted": planted,
                "by": by, "told": said.odd, "share": said.share,
            }  # fmt: skip


def _cases(found: Collections, corpus: str, model: str) -> Iterator[tuple[str, str, Floats]]:
    whole = found[corpus, model]
    n, dim = whole.shape
    yield ONE, "", whole
    some = np.random.default_rng(1).permutation(n)[: round(_SHARE * n)]
    for (its_corpus, by), other in found.items():
        if its_corpus == corpus and by != model and other.shape[1] >= dim:
            cut = unit(other[:, :dim], "cosine")
            if (cut * whole).sum(axis=1).mean() < _SAME:
                mixed = whole.copy()
                mixed[some] = cut[some]
                yield MODEL, by, mixed
        if its_corpus != corpus and by == model:
            few = round(_SHARE * n / (1 - _SHARE))
            yield TOPIC, its_corpus, np.concatenate([whole, other[:few]])


def mixed_table(rows: Iterable[Mapping[str, Any]]) -> TextTable:
    """Indexes that are told as of several models, by corpus and by what is planted."""
    rows = list(rows)
    lines = [
        [corpus, *(_told(rows, corpus, planted) for planted in PLANTED)]
        for corpus in dict.fromkeys(row["corpus"] for row in rows)
    ]
    whole = ["all", *(_told(rows, None, planted) for planted in PLANTED)]
    return simple_table(
        "Several models told", "pairs-mixed", ("corpus",), PLANTED, [*lines, whole],
        notes=(
            f"Indexes that are told as of several models, of so many: a corpus by each model of "
            f"the board; {100 * _SHARE:g} % of its items by another model, cut to as many numbers; "
            f"{100 * _SHARE:g} % of items of another corpus by the same model.",
        ),
    )  # fmt: skip


def _told(rows: Sequence[Mapping[str, Any]], corpus: str | None, planted: str) -> str:
    its = [r["told"] for r in rows if r["planted"] == planted and corpus in (None, r["corpus"])]
    return f"{sum(its)} of {len(its)}"
