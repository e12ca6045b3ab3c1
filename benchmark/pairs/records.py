"""Records of cells: one JSON file each, ``CORPUS/OLD--NEW.json``, small enough to be committed."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from benchmark.config.embedders import Embedder
from benchmark.config.files import write_json
from benchmark.config.reading import Model, read_json
from benchmark.errors import BenchError
from benchmark.records import provenance

if TYPE_CHECKING:
    from benchmark.pairs.corpora import Corpus

SIZES = (300, 1000, 3000)
"""Items of the random sample."""
DRAWS = 3
METRIC = "ndcg_at_10"
SCALE = 10_000
"""Of numbers in a record, which are whole ones."""
COLUMNS = (
    "score", "low", "high", "sampling", "gain_low", "gain_high",
    "same", "other", "other_low", "other_high", "other_gain_low", "other_gain_high",
)  # fmt: skip
"""Of a strategy: what the report says of it, then the truth. A gain is over keeping the old model;
its value is a difference of scores. ``sampling`` is None where nothing is estimated."""
SCHEMA = 1
MOST_BYTES = 2**20
"""Of a file of records, or beside them."""
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


def record_path(folder: Path, corpus: str, old: str, new: str) -> Path:
    """The file of a cell."""
    return folder / corpus / f"{old}--{new}.json"


def write_record(
    folder: Path, corpus: "Corpus", sides: Sequence[tuple[Embedder, float]], maps: str,
    reports: list[dict[str, Any]],
) -> Path:  # fmt: skip
    """Write the record of a cell, whole or not at all.

    ``sides`` are the old and the new embedder, with the seconds that they took for the corpus.
    """
    source = corpus.source
    old, new = (
        {
            "id": e.id, "title": e.title, "weights": e.files["weights"].sha256, "dim": e.dim,
            "parameters": e.parameters, "vintage": e.vintage, "seconds": round(seconds, 1),
            "trained_on_corpus": corpus.inside(e),
        }
        for e, seconds in sides
    )  # fmt: skip
    path = record_path(folder, source.id, *(e.id for e, _ in sides))
    write_json(path, {
        "schema": SCHEMA,
        "corpus": {
            "id": source.id, "title": source.title, "modality": source.modality,
            "terms": source.terms, "items": len(corpus.items), "queries": len(corpus.queries),
            "judgements": sum(map(len, corpus.gains.values())), "digest": corpus.digest,
        },
        "old": old, "new": new, "metric": METRIC, "maps": maps,
        "code": provenance.code_version().model_dump(),
        "machine": provenance.hardware(), "reports": reports,
    })  # fmt: skip
    return path


def read_record(path: Path) -> PairRecord:
    """Read one; BenchError if it is damaged."""
    return read_json(PairRecord, path, MOST_BYTES)


def read_records(folder: Path) -> list[PairRecord]:
    """Every record below a folder, by corpus and pair; BenchError without one, or if damaged."""
    found = [read_record(path) for path in sorted(folder.glob("*/*--*.json"))]
    if not found:
        raise BenchError(f"{folder}: expected records of pairs, CORPUS/OLD--NEW.json, got none")
    return found
