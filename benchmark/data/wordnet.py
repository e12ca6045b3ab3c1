"""``wordnet``: meanings of English words: definitions, examples, names (Miller, 1995).

A class is a synset of WordNet 3.0, its texts are what stands in no other synset: the parts of its
gloss, the examples in it, and its words. A group is one of WordNet's 45 topics. Reads the folder of
``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv``.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from benchmark.config.checks import Seed
from benchmark.config.declarations import Origin
from benchmark.data.base import Dataset
from benchmark.data.enrolment import divided_sets
from benchmark.data.files import read_text
from benchmark.data.splits import divided_classes, in_folds, seeded_order
from benchmark.data.texts import TextDatasetReader, as_bytes
from benchmark.errors import BenchError, located

_PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_MOST_BYTES = 2**28
TOPICS = (
    "adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact",
    "noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event",
    "noun.feeling", "noun.food", "noun.group", "noun.location", "noun.motive", "noun.object",
    "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process",
    "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
    "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition",
    "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion",
    "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather",
    "adj.ppl",
)  # fmt: skip
"""By number, as lexnames(5WN) has them."""
_HEAD = re.compile(r"(\d{8}) (\d\d) [nvasr] ([0-9a-f]{2}) ")
_QUOTED, _MARK = re.compile(r'"([^"]+)"'), re.compile(r"\((?:a|p|ip)\)$")


@dataclass(frozen=True)
class Synset:
    """A meaning."""

    name: str  # its first word, part of speech and place
    topic: str
    texts: tuple[str, ...]  # parts of the gloss, examples, words; each once


@dataclass(frozen=True)
class Wordnet(TextDatasetReader):
    """Texts of meanings that have enough of their own; of a class a fifth is kept from training.

    ``test`` is within itself: every text is a query, and the gallery of the others.
    """

    columns: ClassVar = frozenset({"templates", "groups"})
    origin: ClassVar = Origin(
        "https://wordnet.princeton.edu",
        licence="WordNet 3.0 license",
        how="the folder /usr/share/wordnet of Debian's package wordnet-base",
        counts={"training classes": 7589, "test classes": 7589},
        source="Miller, WordNet: a lexical database for English, 1995",
    )

    least: Annotated[int, Field(ge=3, le=20)] = 5  # texts of a meaning that is a class
    most: Annotated[int, Field(ge=3, le=100)] = 8  # texts of a class that are taken
    # Meanings that are taken, in a seeded order; 0 takes all.
    classes: Annotated[int, Field(ge=0, le=100_000)] = 0
    seed: Seed = 0  # decides orders, which items are enrolled, and which classes are held out

    def files(self, root: Path) -> list[Path]:
        """One file a part of speech."""
        return [root / f"data.{part}" for part in _PARTS]

    def read(self, root: Path) -> Dataset:
        """Choose meanings and their texts."""
        chosen = self._chosen([s for path in self.files(root) for s in synsets(path)])
        names = [synset.name for synset in chosen]
        kept, held = divided_classes(names, self.seed, self.held_out, self.tuning)
        order = [*kept, *held]
        rows = [(place, text) for place, c in enumerate(order) for text in chosen[c].texts]
        labels = np.array([place for place, _ in rows])
        texts = as_bytes([text for _, text in rows])
        asked = in_folds(labels, self.least, self.seed) == 0  # of each class at least one
        apart = labels >= len(kept)  # held out: searched for among themselves
        topics = tuple(chosen[c].topic for c in order)
        train_set, evaluations = divided_sets(
            texts, labels, (len(kept), len(order)), self.seed,
            trains=~asked, gallery=~asked | apart, query=asked | apart, class_groups=topics,
        )  # fmt: skip
        class_names = tuple(names[c] for c in order)
        return Dataset(self.name, train_set, evaluations, class_names, class_groups=topics)

    def _chosen(self, found: list[Synset]) -> list[Synset]:
        """Meanings with enough texts that stand in no other, cut to as many as are taken."""
        times = Counter(text.casefold() for synset in found for text in synset.texts)
        own = [
            Synset(s.name, s.topic, tuple(t for t in s.texts if times[t.casefold()] == 1))
            for s in found
        ]
        own = [synset for synset in own if len(synset.texts) >= self.least]
        if not own:
            raise BenchError(f"expected meanings with {self.least} texts of their own, got none")
        order = seeded_order([synset.name for synset in own], self.seed)
        taken = np.sort(order[: self.classes]) if self.classes else range(len(own))
        return [
            Synset(s.name, s.topic, tuple(
                s.texts[i] for i in sorted(seeded_order(s.texts, self.seed)[: self.most])
            ))
            for s in (own[i] for i in taken)
        ]  # fmt: skip


def synsets(path: Path) -> Iterator[Synset]:
    """Meanings of a file ``data.*``, as wndb(5WN) describes it.

    Raises:
        BenchError: Naming the line that is not as expected.
    """
    part = _PARTS.get(path.suffix.removeprefix("."), "")
    for number, line in enumerate(read_text(path, _MOST_BYTES).split("\n"), 1):
        if line.startswith("  ") or not line:  # the licence
            continue
        with located(f"{path}: line {number}"):
            yield _synset(line, part)


def _synset(line: str, part: str) -> Synset:
    head, _, gloss = line.partition(" | ")
    found = _HEAD.match(head)
    words = head[found.end() :].split() if found else []
    n = int(found[3], 16) if found else 0
    if found is None or not n or len(words) < 2 * n or int(found[2]) >= len(TOPICS):
        raise BenchError(f"expected a synset as wndb(5WN) has it, got {line:.60}")
    lemmas = [_MARK.sub("", word).replace("_", " ") for word in words[: 2 * n : 2]]
    examples = _QUOTED.findall(gloss)
    parts = (each.strip(" -") for each in _QUOTED.sub("", gloss).split(";"))
    texts = [each for each in (*parts, *examples, *lemmas) if len(each) > 2]
    return Synset(
        f"{lemmas[0]} {part}{found[1]}", TOPICS[int(found[2])], tuple(dict.fromkeys(texts))
    )
