"""Descriptions of Debian's packages, from apt's lists, and two models that embed them.

A package's short description asks, its long one is found. The models are latent semantic analysis
(Deerwester et al., 1990) of two sizes and vintages: the old one has seen a third of the long
descriptions and counts words; the new one has seen all, and weighs words and pairs of them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

LISTS = Path(os.environ.get("COMPATBENCH_APT_LISTS", "/var/lib/apt/lists"))
HELPER = Path("/usr/lib/apt/apt-helper")
LEAST = 20_000


@dataclass(frozen=True)
class Corpus:
    """Packages that both models can embed.

    Attributes:
        ids: Names of the packages, ``[n]``.
        old: Long descriptions by the old model, ``[n, 48]``.
        new: By the new one, ``[n, 96]``.
        asked: Rows whose short description asks, ``[q]``.
        old_queries: These by the old model, ``[q, 48]``.
        new_queries: By the new one, ``[q, 96]``.
    """

    ids: list[str]
    old: np.ndarray
    new: np.ndarray
    asked: np.ndarray
    old_queries: np.ndarray
    new_queries: np.ndarray


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """Fields of each paragraph of a list, however it is compressed; names in small letters."""
    done = subprocess.run([HELPER, "cat-file", path], capture_output=True, check=True)
    for paragraph in done.stdout.decode("utf-8", "replace").split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.split("\n"):
            if line.startswith((" ", "\t")):
                fields[name] += "\n" + line[1:]
            elif line:
                name, _, value = line.partition(":")
                name = name.lower()
                fields[name] = value.strip()
        yield fields


def descriptions() -> dict[str, tuple[str, str]]:
    """Package -> its short and long description, each long one once; skips where there are none."""
    files = sorted(LISTS.glob("*_Translation-en*"))
    if not HELPER.exists() or not files:
        pytest.skip(
            f"no Translation-en in {LISTS}: apt-get -o Acquire::Languages=en update brings it"
        )
    found, seen = {}, set()
    for path in files:
        for fields in paragraphs(path):
            short, _, long = fields.get("description-en", "").partition("\n")
            if short and long and long not in seen:
                seen.add(long)
                found[fields["package"]] = short, long
    if len(found) < LEAST:
        pytest.skip(f"expected {LEAST} descriptions in {LISTS}, got {len(found)}")
    return found


def corpus(n: int = 24_000, n_queries: int = 800, seed: int = 0) -> Corpus:
    """``n`` packages, drawn from all, of which some are asked for."""
    found = descriptions()
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(sorted(found))[: min(n, len(found))]]
    long = [found[name][1] for name in names]
    asked = np.sort(rng.choice(len(names), n_queries, replace=False))
    short = [found[names[row]][0] for row in asked]
    old, old_queries = _embedded(long[: len(long) // 3], long, short, 48, (1, 1))
    new, new_queries = _embedded(long, long, short, 96, (1, 2))
    # Some have no word that a model knows: they have no direction.
    items = old.any(axis=1) & new.any(axis=1)
    kept = items[asked] & old_queries.any(axis=1) & new_queries.any(axis=1)
    place = np.cumsum(items) - 1
    return Corpus(
        [name for name, there in zip(names, items, strict=True) if there], old[items], new[items],
        place[asked[kept]], old_queries[kept], new_queries[kept],
    )  # fmt: skip


def _embedded(
    seen: list[str], documents: list[str], queries: list[str], dim: int, grams: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Documents and queries by a model that has seen some documents, float32 ``[n, dim]``."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(
        min_df=5, max_df=0.2, ngram_range=grams, sublinear_tf=grams[1] > 1, use_idf=grams[1] > 1,
        stop_words="english", max_features=30_000, dtype=np.float32,
    )  # fmt: skip
    basis = TruncatedSVD(dim, n_iter=2, random_state=0).fit(words.fit_transform(seen))
    documents_, queries_ = (basis.transform(words.transform(each)) for each in (documents, queries))
    return documents_.astype(np.float32), queries_.astype(np.float32)
