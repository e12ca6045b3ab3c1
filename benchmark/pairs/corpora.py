"""Corpora: items and queries with relevance, as YAML files; their data lies in folders of the user.

BEIR's layout is read as it is: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``. Where
there are classes in place of judgements, a thinned gallery makes a question of retrieval of them:
of some classes a few items are relevant, and all others are in their way.

Vectors of whole corpora by embedders lie in the user's cache, named by weights and content.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

import protocols
from benchmark.config.embedders import Embedder, Modality
from benchmark.config.files import default_store, digest, file_digest
from benchmark.config.places import real
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import BenchError, located, unknown
from benchmark.ranking.arrays import Floats, Ints
from benchmark.upgrade.read.request import Tell
from benchmark.upgrade.read.text_files import read_json_texts, read_labels, read_qrels

FOLDER = Path(protocols.__file__).parent / "corpora"
_MOST_BYTES = 2**31
_TELLING = 5  # letters of a name
_FULL = {"nq": "naturalquestions"}
Gains = dict[str, dict[str, float]]
"""Query -> item -> gain, above 0."""


class Thinning(Model):
    """Relevance from classes: which items stay in the gallery, and which queries are asked."""

    judged: Annotated[float, Field(gt=0, lt=1)]
    """Share of the classes with queries; all items of the others are in their way."""
    each: Annotated[int, Field(ge=1)]
    """Items of a judged class that stay, the relevant ones."""
    queries: Annotated[int, Field(ge=1)]
    """Queries of a judged class, at most."""
    others: Annotated[int, Field(ge=1)]
    """Items of each other class, at most."""
    seed: int = 0


class CorpusSource(Model):
    """A corpus: where its files are, and how relevance is known."""

    id: str
    title: str
    modality: Modality
    reader: Literal["text", "grocery", "cifar100"]
    folder: str
    """Below the folder of all data."""
    terms: str
    """Of use."""
    source: str
    thinning: Thinning | None = None
    """Of classes; None where there are judgements."""


@dataclass(frozen=True)
class Corpus:
    """Items and queries with relevance."""

    source: CorpusSource
    items: Sequence[Any]  # texts, files of images, or images [h, w, 3]
    queries: Sequence[Any]
    item_ids: list[str]
    query_ids: list[str]
    gains: Gains  # of every query at least one
    digest: str  # of all contents, 64 hexadecimal digits

    def inside(self, embedder: Embedder) -> bool:
        """True where the embedder's authors name it, or a part of it, among their training data."""
        title = _plain(self.source.title)
        names = [_plain(each) for each in embedder.trained_on]
        long = len(title) >= _TELLING  # "QA" begins too much
        return any(name == title or (long and name.startswith(title)) for name in names)


def _plain(name: str) -> str:
    """Letters and figures of a name, by its full form."""
    found = "".join(filter(str.isalnum, name.casefold()))
    return _FULL.get(found, found)


def corpus_files() -> dict[str, Path]:
    """Files of the corpora that come along, by id."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def load_source(name: str) -> CorpusSource:
    """A corpus by id; ``beir:DIR`` is one in BEIR's layout."""
    if name.startswith("beir:"):
        folder = Path(name.removeprefix("beir:"))
        return CorpusSource(
            id=real(folder).name, title=real(folder).name, modality="text", reader="text",
            folder=str(real(folder)), terms="the user's", source="the user's",
        )  # fmt: skip
    files = corpus_files()
    if name not in files:
        raise unknown("corpus", name, files)
    return build(CorpusSource, read_yaml(files[name]), files[name].name)


def read_corpus(source: CorpusSource, data: Path | None) -> Corpus:
    """Read a corpus below a folder of data; BenchError if it is not there, or damaged."""
    folder = _folder(source, data)
    with located(f"corpus {source.id}"):
        return _READERS[source.reader](source, folder)


def labelled_texts(
    source: CorpusSource, data: Path | None
) -> tuple[tuple[list[str], NDArray[np.str_]], tuple[list[str], NDArray[np.str_]]]:
    """Texts of a corpus, and their classes: items, queries; errors as :func:`read_corpus`."""
    folder = _folder(source, data)
    with located(f"corpus {source.id}"):
        sides = _texts(folder)
        items, asked = zip(sides, _labels(folder, *sides), strict=True)
    return (list(items[0].values()), items[1]), (list(asked[0].values()), asked[1])


def _folder(source: CorpusSource, data: Path | None) -> Path:
    folder = Path(source.folder) if data is None else data / source.folder
    if not folder.is_dir():
        raise BenchError(f"corpus {source.id}: {folder} is no folder: --data DIR names another one")
    return folder


def _texts(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Items and queries, id -> text."""
    items = _lines(_one(folder, "corpus.jsonl", "docs.jsonl"))
    return items, _lines(_one(folder, "queries.jsonl"))


def _text(source: CorpusSource, folder: Path) -> Corpus:
    items, queries = _texts(folder)
    if source.thinning is None:
        found = read_qrels(_one(folder, "qrels/test.tsv", "qrels.tsv"))
        gains: Gains = {}
        for q, i, gain in zip(found.queries, found.items, found.gains, strict=True):
            query, item = found.query_names[q], found.item_names[i]
            if gain > 0 and query in queries and item in items:
                gains.setdefault(query, {})[item] = float(gain)
        return _corpus(source, items, queries, gains)
    return _thinned(source, items, queries, _labels(folder, items, queries))


def _labels(
    folder: Path, items: Mapping[str, str], queries: Mapping[str, str]
) -> list[NDArray[np.str_]]:
    ids = [np.array(list(each)) for each in (items, queries)]
    return [
        np.array([str(x) for x in read_labels(_one(folder, f"{side}.labels.tsv"), its)])
        for side, its in zip(("docs", "queries"), ids, strict=True)
    ]


def _grocery(source: CorpusSource, folder: Path) -> Corpus:
    from benchmark.data.grocery import listed

    parts: list[dict[str, Path]] = []
    labels = []
    for names in (("train", "val"), ("test",)):
        rows = [row for name in names for row in listed(folder, name)]
        parts.append({name: folder / name for name, _ in rows})
        labels.append(np.array([str(label) for _, label in rows]))
    return _thinned(source, parts[0], parts[1], labels)


def _cifar100(source: CorpusSource, folder: Path) -> Corpus:
    from benchmark.data.cifar100 import Cifar100

    read = Cifar100().read(folder)
    parts: list[dict[str, Any]] = []
    labels = []
    for name, part in (("train", read.train), ("test", read.evaluations["test"])):
        images, its = np.asarray(part.images[np.arange(len(part))]), part.labels
        # In an order of their own, whatever the archive's.
        order = sorted(range(len(its)), key=lambda k: hashlib.sha256(images[k].tobytes()).digest())
        parts.append({f"{name}-{k}": images[k].transpose(1, 2, 0) for k in order})
        labels.append(np.array([read.class_names[its[k]] for k in order]))
    return _thinned(source, parts[0], parts[1], labels)


_READERS = {"text": _text, "grocery": _grocery, "cifar100": _cifar100}


def _one(folder: Path, *names: str) -> Path:
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise BenchError(f"{folder}: expected {' or '.join(names)}")
    return found[0]


def _lines(path: Path) -> dict[str, str]:
    """Id -> title and text."""
    with located(path.name):
        return read_json_texts(path, _MOST_BYTES, titled=True)


def _corpus(
    source: CorpusSource, items: Mapping[str, Any], queries: Mapping[str, Any], gains: Gains
) -> Corpus:
    """Queries with a relevant item, and all items but empty texts, which have no direction."""
    items = {n: each for n, each in items.items() if not isinstance(each, str) or each.strip()}
    gains = {q: {i: g for i, g in its.items() if i in items} for q, its in gains.items()}
    gains = {q: its for q, its in gains.items() if its}
    asked = [name for name in queries if name in gains]
    if not asked:
        raise BenchError("expected a query with a relevant item, got none")
    hashed = hashlib.sha256(json.dumps(gains, sort_keys=True).encode())
    for name, content in (*items.items(), *((n, queries[n]) for n in asked)):
        hashed.update(name.encode() + b"\0" + _content(content) + b"\0")
    return Corpus(
        source, list(items.values()), [queries[n] for n in asked], list(items), asked,
        {name: gains[name] for name in asked}, hashed.hexdigest(),
    )  # fmt: skip


def _content(value: Any) -> bytes:
    if isinstance(value, Path):
        return file_digest(value).encode()
    return value.encode() if isinstance(value, str) else np.ascontiguousarray(value).tobytes()


def _thinned(
    source: CorpusSource, items: Mapping[str, Any], queries: Mapping[str, Any],
    labels: Sequence[Any],
) -> Corpus:  # fmt: skip
    """Classes in place of judgements, as :class:`Thinning` has it."""
    how = source.thinning
    if how is None:
        raise BenchError("expected a thinning")
    rng = np.random.default_rng([how.seed, 3])
    item_labels, query_labels = labels
    classes = np.intersect1d(item_labels, query_labels)
    judged = set(rng.permutation(classes)[: round(how.judged * len(classes))].tolist())
    kept = _some(item_labels, lambda c: how.each if c in judged else how.others, rng)
    asked = _some(query_labels, lambda c: how.queries if c in judged else 0, rng)
    item_names, query_names = list(items), list(queries)
    of_class: dict[str, dict[str, float]] = {}
    for row in kept:
        of_class.setdefault(str(item_labels[row]), {})[item_names[row]] = 1.0
    return _corpus(
        source, {item_names[row]: items[item_names[row]] for row in kept},
        {query_names[row]: queries[query_names[row]] for row in asked},
        {query_names[row]: of_class[str(query_labels[row])] for row in asked},
    )  # fmt: skip


def _some(labels: Any, most: Any, rng: np.random.Generator) -> Ints:
    """Rows of at most so many of each class, in their order."""
    rows = [
        rng.permutation(np.flatnonzero(labels == each))[: most(str(each))]
        for each in np.unique(labels)
    ]
    return np.sort(np.concatenate(rows))


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
    """Embed a corpus, or take it from the cache; BenchError if weights or modality are others."""
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
