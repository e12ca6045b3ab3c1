"""The rules of transfer: ``results/transfer.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from benchmark.config import registry
from benchmark.config.checks import unique
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import located
from benchmark.records.evidence import evidence_file

ValueKind = Literal["cross-test", "area"]
Words = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class TransferRules(Model):
    """Thresholds, and what is compared."""

    metrics: Words
    values: Annotated[tuple[ValueKind, ...], Field(min_length=1), AfterValidator(unique)]
    """By what methods are ordered: the cross-test, or the area of a backfilled gallery's curve."""
    left_out: tuple[str, ...]
    """Methods that no correlation counts."""
    baseline: str
    """A method whose regret stands beside the winner's."""
    tau: Annotated[float, Field(ge=-1, le=1)]
    """Least tau-b of orders that transfer."""
    above: Annotated[float, Field(ge=-1, le=1)]
    """Bound that the lower end of its interval must exceed."""
    seeds: int = Field(ge=2, le=100)
    """Fewest of each side; below, nothing is told."""
    methods: int = Field(ge=3, le=100)
    """Fewest that both sides have."""
    draws: int = Field(ge=100, le=100_000)
    """Of seeds and methods, for the intervals."""
    gaps: Annotated[tuple[Fraction, ...], Field(min_length=2)]
    """Edges of the classes of gaps, rising."""
    agreement: Fraction
    """Share of pairs that must agree from a gap on."""
    papers: tuple[str, ...]

    @model_validator(mode="after")
    def _rising(self) -> TransferRules:
        if list(self.gaps) != sorted(set(self.gaps)):
            raise ValueError(f"gaps: expected rising numbers, got {list(self.gaps)}")
        return self


def read_rules(path: Path | None = None) -> TransferRules:
    """Read and check what counts as transfer; by default the committed file.

    Raises:
        BenchError: Naming the file and what is wrong.
    """
    path = path or evidence_file("transfer.yaml")
    rules = build(TransferRules, read_yaml(path), str(path))
    with located(str(path)):
        for method in (*rules.left_out, rules.baseline):
            registry.method_file(method)
    return rules
