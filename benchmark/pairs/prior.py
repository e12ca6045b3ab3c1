"""The nearest measured pairs of real models, as a prior beside a user's own numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.config.embedders import Embedder, load_embedder
from benchmark.errors import BenchError
from benchmark.pairs import analysis
from benchmark.pairs.records import PairRecord
from benchmark.pairs.tables import shown_share
from benchmark.records.files import evidence_file
from benchmark.report.numbers import number
from benchmark.report.text_table import TextTable, simple_table
from benchmark.upgrade.read.request import KEEP, REEMBED

_NEAREST = 2  # other pairs that are shown
_SHOWN = (analysis.ROTATION, analysis.LINEAR, "procrustes", "linear", "slerp", "rrf", "cascade")


@dataclass(frozen=True)
class Like:
    """A pair by the names of its embedders."""

    old: Embedder
    new: Embedder

    @classmethod
    def parse(cls, text: str) -> "Like":
        """Read ``OLD:NEW``; BenchError naming the nearest embedder where one is unknown."""
        old, colon, new = text.partition(":")
        if not colon:
            raise BenchError(f"--like: expected OLD:NEW, got '{text}'")
        sides = load_embedder(old), load_embedder(new)
        if sides[0].modality != sides[1].modality:
            raise BenchError(f"--like: expected two models of one modality, got {text}")
        return cls(*sides)

    def distance(self, record: PairRecord) -> tuple[int, float]:
        """Sides that are other models, then how much larger or smaller they are, by ratios."""
        sides = (self.old, record.old), (self.new, record.new)
        ratios = [a.parameters / b.parameters for a, b in sides]
        return sum(a.id != b.id for a, b in sides), sum(max(r, 1 / r) - 1 for r in ratios)

    def table(self, records: Sequence[PairRecord]) -> TextTable:
        """The pair and the nearest others that were measured: shares of the upgrade kept.

        Raises:
            BenchError: If no pair of this modality was measured.
        """
        pairs = analysis.by_pair(r for r in records if r.corpus.modality == self.old.modality)
        if not pairs:
            raise BenchError(f"--like: no pair of {self.old.modality}s was measured")
        order = sorted(pairs.values(), key=lambda its: self.distance(its[0]))
        exact = order[0][0].name == f"{self.old.id}:{self.new.id}"
        lines = [_line(record) for its in order[: _NEAREST + exact] for record in its]
        heads = ("old", "new", *_SHOWN)
        title = "A prior: measured elsewhere, not on your vectors (share of the upgrade kept, %)"
        return simple_table(title, "pairs-prior", ("pair", "corpus"), heads, lines)


def _line(record: PairRecord) -> list[str]:
    old, new = analysis.whole(record, KEEP), analysis.whole(record, REEMBED)
    shares = (shown_share(analysis.share(record, name)) for name in _SHOWN)
    return [record.name, record.corpus.title, number(old), number(new), *shares]


def default_records() -> Path:
    """``results/pairs`` here, or in the checkout; AbsentError if there is none."""
    return evidence_file("pairs/core.yaml").parent
