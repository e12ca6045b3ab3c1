"""Vectors of whole corpora by embedders, in the user's cache: named by weights and content."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.config.embedders import Embedder
from benchmark.config.files import default_store, digest
from benchmark.errors import BenchError
from benchmark.pairs.corpora import Corpus
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.read.request import Tell


@dataclass(frozen=True)
class Vectors:
    """Vectors of a corpus by one embedder."""

    items: Floats  # [n, dim]
    queries: Floats  # [q, dim]
    seconds: float  # that this machine took for them, on one thread


def place_of(embedder: Embedder, corpus: Corpus) -> Path:
    """The file that holds them."""
    return default_store() / "vectors" / f"{digest([embedder.run, corpus.digest])}.npz"


def embedded(embedder: Embedder, corpus: Corpus, tell: Tell = lambda words: None) -> Vectors:
    """Embed a corpus whole, or take it from the cache.

    Raises:
        BenchError: If weights are missing or differ, or the corpus is of another modality.
    """
    if embedder.modality != corpus.source.modality:
        raise BenchError(
            f"embedder {embedder.id}: expected {embedder.modality}s, {corpus.source.id} has "
            f"{corpus.source.modality}s"
        )
    place = place_of(embedder, corpus)
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        made = _embed(embedder, corpus, tell)
        part = place.with_suffix(".part.npz")
        np.savez(part, items=made.items, queries=made.queries, seconds=made.seconds)
        part.replace(place)
    with np.load(place, allow_pickle=False) as file:
        return Vectors(file["items"], file["queries"], float(file["seconds"]))


def _embed(embedder: Embedder, corpus: Corpus, tell: Tell) -> Vectors:
    import time

    from benchmark.models.embedder_runners import embed_images, embed_texts

    def said(done: int, n: int) -> None:
        tell(f"{embedder.id} embeds {corpus.source.id}: {done:,} of {n:,}")

    started = time.process_time()
    if embedder.modality == "text":
        sides = [
            embed_texts(embedder, texts, queries=queries, tell=said)
            for texts, queries in ((corpus.items, False), (corpus.queries, True))
        ]
    else:
        sides = [embed_images(embedder, each, said) for each in (corpus.items, corpus.queries)]
    items, asked = sides
    return Vectors(items, asked, time.process_time() - started)
