"""The core board of pairs: which cells there are, what is measured, and what the rest costs."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmark.config.embedders import Embedder, install_command, load_embedder
from benchmark.config.files import digest
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import BenchError
from benchmark.pairs.cells import CellVectors, cell, query_groups, sample_sizes
from benchmark.pairs.corpora import Corpus, embedded, load_source, place_of, read_corpus
from benchmark.pairs.records import (
    DRAWS,
    PairRecord,
    ReportRow,
    read_record,
    record_path,
    write_record,
)  # fmt: skip
from benchmark.report.text_table import TextTable, shown_table
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.read.request import Tell

_REPORT_S = 4.0
"""Seconds of a report and its truth on one core, of some thousand items by closed-form maps."""
_PER_ITEM_S = 0.0006  # more for each item of the gallery
_CHARACTERS = 4.5  # of a token


class PairBoard(Model):
    """A board in a file: corpora, and ladders of models, of which each meets every one above it."""

    title: str
    maps: str
    """Of the reports; as of ``bench upgrade``."""
    corpora: tuple[str, ...]
    upwards: tuple[tuple[str, ...], ...]
    """Ladders of embedders, smaller ones first."""
    backwards: tuple[tuple[str, str], ...] = ()
    """Old and new ones, where the new one is smaller."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Old and new embedders: cheap ones first, as a ladder begins with them."""
        up = [(ladder[i], b) for ladder in self.upwards for k, b in enumerate(ladder)
              for i in range(k)]  # fmt: skip
        return [*up, *self.backwards]


@dataclass(frozen=True)
class CellPlan:
    """A cell that is wanted."""

    corpus: Corpus
    old: Embedder
    new: Embedder
    path: Path

    @property
    def name(self) -> str:
        """As commands have it."""
        return f"{self.corpus.source.id} {self.pair}"

    @property
    def pair(self) -> str:
        """``OLD:NEW``."""
        return f"{self.old.id}:{self.new.id}"

    @cached_property
    def sizes(self) -> list[int]:
        """Of the samples."""
        return sample_sizes(len(self.corpus.items))

    def record(self) -> PairRecord | None:
        """Its record; None where there is none, or one of another corpus or of other weights."""
        if not self.path.is_file():
            return None
        found = read_record(self.path)
        its = found.corpus.digest, found.old.weights, found.new.weights
        sides = (e.files["weights"].sha256 for e in (self.old, self.new))
        return found if its == (self.corpus.digest, *sides) else None

    def reports(self) -> list[ReportRow]:
        """Reports of its record."""
        found = self.record()
        return [] if found is None else list(found.reports)

    def require_maps(self, maps: str) -> None:
        """Raise a BenchError if its record is of other maps, which one record cannot mix."""
        found = self.record()
        if found is not None and found.maps != maps:
            raise BenchError(
                f"--maps: {self.path} is of the maps {found.maps}, got {maps}; --out says where to "
                "measure anew"
            )

    def vectors(self, tell: Tell = lambda words: None) -> CellVectors:
        """Its corpus with all vectors, from the cache or made now."""
        old, new = (embedded(e, self.corpus, tell) for e in (self.old, self.new))
        return CellVectors.of(self.corpus, old, new, self.seed)

    @property
    def left(self) -> int:
        """Reports that are not measured."""
        return len(self.sizes) * DRAWS - len(self.reports())

    @property
    def seed(self) -> int:
        """Of its halves and samples."""
        return int(digest(self.name)[:8], 16)

    @property
    def reports_s(self) -> float:
        """Seconds of the reports that are left, about."""
        return self.left * (_REPORT_S + _PER_ITEM_S * len(self.corpus.items))


def load_board(path: Path) -> PairBoard:
    """A board from its YAML file."""
    return build(PairBoard, read_yaml(path), path.name)


def plan(
    pairs: Sequence[tuple[str, str]], corpora: Sequence[str], data: Path | None, out: Path,
    passed_over: list[str] | None = None,
) -> list[CellPlan]:  # fmt: skip
    """Cells of all pairs on all corpora of their modality, pair by pair.

    Corpora that cannot be read are left out where there is a list for the reasons, if one can.

    Raises:
        BenchError: If a name is unknown, data is missing, or nothing fits.
    """
    loaded = {name: load_embedder(name) for pair in pairs for name in pair}
    read = []
    for source in [load_source(name) for name in corpora]:
        try:
            query_groups(corpus := read_corpus(source, data))
            read.append(corpus)
        except BenchError as error:
            if passed_over is None:
                raise
            passed_over.append(str(error))
    if not read and passed_over:
        raise BenchError(passed_over[0])
    cells = [
        CellPlan(
            corpus, loaded[old], loaded[new],
            record_path(out, corpus.source.id, loaded[old].id, loaded[new].id),
        )
        for old, new in pairs
        for corpus in read
        if loaded[old].modality == loaded[new].modality == corpus.source.modality
    ]  # fmt: skip
    if not cells:
        raise BenchError("pairs: no corpus has the modality of a pair: texts or images")
    return cells


def embedding_s(cells: Sequence[CellPlan]) -> float:
    """Seconds that embedding what is not in the cache takes on one core, about."""
    wanted = {place_of(e, c.corpus): (e, c.corpus) for c in cells for e in (c.old, c.new)}
    return sum(_cost(e, c) for place, (e, c) in wanted.items() if not place.is_file())


def _cost(embedder: Embedder, corpus: Corpus) -> float:
    sides = corpus.items, corpus.queries
    if embedder.modality == "image":
        return sum(map(len, sides)) / embedder.speed
    most = embedder.longest or 10**9
    tokens = sum(min(len(text) / _CHARACTERS, most) for side in sides for text in side)
    return tokens / embedder.speed


def require_weights(cells: Sequence[CellPlan]) -> None:
    """Raise a BenchError that names one command for all that is missing."""
    embedders = {e.id: e for c in cells for e in (c.old, c.new)}
    missing = [e for e in embedders.values() if e.missing]
    if missing:
        names = ", ".join(e.id for e in missing)
        raise BenchError(f"weights of {names} are not installed: {install_command(missing)}")


def run(cells: Sequence[CellPlan], maps: str, hours: float, tell: Tell) -> Iterator[Path]:
    """Measure what is left: one draw of every cell, then the next, none begun after some hours.

    Yields:
        The file of each record, as it is written.
    """
    import torch

    torch.set_num_threads(1)
    chosen_maps(maps)
    end = time.monotonic() + 3600 * hours
    for draw in range(DRAWS):
        for each in cells:
            found = each.reports()
            if len(found) >= len(each.sizes) * (draw + 1):
                continue
            if time.monotonic() > end:
                return
            problem = each.vectors(tell)
            tell(f"{each.name}: draw {draw + 1} of {DRAWS}")
            reports = [r.model_dump(mode="json") for r in found if r.draw < draw]
            reports += cell(problem, draw, maps)
            sides = (each.old, problem.old.seconds), (each.new, problem.new.seconds)
            yield write_record(each.path.parents[1], each.corpus, sides, maps, reports)


def status_table(cells: Sequence[CellPlan]) -> TextTable:
    """Cells of a board that are measured, by corpus, and hours of the rest."""
    lines = []
    for corpus in dict.fromkeys(c.corpus.source.id for c in cells):
        its = [c for c in cells if c.corpus.source.id == corpus]
        todo = [c for c in its if c.left]
        hours = (embedding_s(todo), sum(c.reports_s for c in todo))
        lines.append([corpus, str(len(its)), str(len(its) - len(todo)),
                      *(f"{s / 3600:.2f}" for s in hours)])  # fmt: skip
    heads = ("cells", "done", "hours of embedding", "hours of reports")
    return shown_table("The board of pairs", "pairs-status", ("corpus",), heads, lines)
