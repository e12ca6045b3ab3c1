"""Records of cells: one JSON file each, ``CORPUS/OLD--NEW.json``, small enough to be committed."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from benchmark.config.embedders import Embedder
from benchmark.config.files import read_bytes, write_json
from benchmark.config.reading import Model, parse
from benchmark.errors import BenchError
from benchmark.pairs.columns import COLUMNS, SCALE
from benchmark.records import provenance

if TYPE_CHECKING:
    from benchmark.pairs.cells import CellVectors

SCHEMA = 1
_MOST_BYTES = 2**20
Number = Annotated[int, Field(ge=-10 * SCALE, le=10 * SCALE)] | None
_Row = Annotated[tuple[Number, ...], Field(min_length=len(COLUMNS), max_length=len(COLUMNS))]


class CorpusFacts(Model):
    """Facts of a corpus, and nothing of its contents."""

    id: str
    title: str
    modality: str
    terms: str
    items: int
    queries: int
    judgements: int
    digest: str


class EmbedderFacts(Model):
    """Facts of an embedder."""

    id: str
    title: str
    weights: str
    """SHA-256."""
    dim: int
    parameters: int
    vintage: str
    seconds: float
    """That it took for the whole corpus, on one thread."""
    trained_on_corpus: bool
    """Its authors name the corpus among their training data."""


class ReportRow(Model):
    """A report beside the truth, as :func:`benchmark.pairs.cells.cell` has it."""

    size: int
    draw: int
    embedded: int
    queries: tuple[int, int]
    seconds: float
    fit_seconds: float
    verdict: str | None
    better: bool | None
    barred: tuple[str, ...]
    strategies: Mapping[str, _Row]

    @cached_property
    def table(self) -> dict[str, dict[str, float | None]]:
        """Strategy -> column -> number."""
        return {
            name: {c: None if x is None else x / SCALE for c, x in zip(COLUMNS, row, strict=True)}
            for name, row in self.strategies.items()
        }

    def value(self, strategy: str, column: str = "score") -> float:
        """A number that is there: one of ``score``, ``same``, ``other`` is of every strategy."""
        found = self.table[strategy][column]
        if found is None:
            raise ValueError(f"column: expected a number of {strategy}, got none of {column}")
        return found


class PairRecord(Model):
    """A pair of embedders on a corpus: the truth, and reports beside it."""

    schema_: Annotated[int, Field(alias="schema", ge=SCHEMA, le=SCHEMA)]
    corpus: CorpusFacts
    old: EmbedderFacts
    new: EmbedderFacts
    metric: str
    maps: str
    code: Mapping[str, Any]
    machine: Mapping[str, Any]
    reports: tuple[ReportRow, ...]

    @property
    def name(self) -> str:
        """``OLD:NEW``."""
        return f"{self.old.id}:{self.new.id}"

    @property
    def forward(self) -> bool:
        """The new model is the larger one."""
        return self.old.parameters < self.new.parameters


_ADAPTER: TypeAdapter[PairRecord] = TypeAdapter(PairRecord)


def record_path(folder: Path, corpus: str, old: str, new: str) -> Path:
    """The file of a cell."""
    return folder / corpus / f"{old}--{new}.json"


def write_record(
    folder: Path, problem: "CellVectors", embedders: tuple[Embedder, Embedder], maps: str,
    metric: str, reports: list[dict[str, Any]],
) -> Path:  # fmt: skip
    """Write the record of a cell, whole or not at all."""
    source, corpus = problem.corpus.source, problem.corpus
    sides = zip(embedders, (problem.old, problem.new), strict=True)
    old, new = (
        {
            "id": e.id, "title": e.title, "weights": e.files["weights"].sha256, "dim": e.dim,
            "parameters": e.parameters, "vintage": e.vintage, "seconds": round(v.seconds, 1),
            "trained_on_corpus": corpus.inside(e),
        }
        for e, v in sides
    )  # fmt: skip
    path = record_path(folder, source.id, embedders[0].id, embedders[1].id)
    write_json(path, {
        "schema": SCHEMA,
        "corpus": {
            "id": source.id, "title": source.title, "modality": source.modality,
            "terms": source.terms, "items": len(corpus.items), "queries": len(corpus.queries),
            "judgements": sum(map(len, corpus.gains.values())), "digest": corpus.digest,
        },
        "old": old, "new": new, "metric": metric, "maps": maps,
        "code": provenance.code_version().model_dump(),
        "machine": provenance.hardware(), "reports": reports,
    })  # fmt: skip
    return path


def read_record(path: Path) -> PairRecord:
    """Read one; BenchError if it is damaged."""
    return parse(_ADAPTER, read_bytes(path, _MOST_BYTES), str(path))


def read_records(folder: Path) -> list[PairRecord]:
    """Every record below a folder, by corpus and pair.

    Raises:
        BenchError: If there is none, or one is damaged.
    """
    found = [read_record(path) for path in _files(folder)]
    if not found:
        raise BenchError(f"{folder}: expected records of pairs, CORPUS/OLD--NEW.json, got none")
    return found


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*/*--*.json"))
