"""A study of factors: its levels and what counts as an answer, as ``study.yaml`` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from benchmark.config.checks import unique
from benchmark.config.reading import Model, build, read_yaml
from benchmark.records.record import Record

Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)]
FILE = "study.yaml"


class Factor(Model):
    """Something that is varied."""

    title: str
    key: str
    """Of ``--set``; records keep its value."""
    levels: Annotated[Mapping[str, str], Field(min_length=2)]
    """Value of the key, as JSON where it is no text -> words."""
    ordered: bool = False
    """The levels rise, so that a method may pay from one of them on."""

    def level(self, record: Record) -> str | None:
        """Words of a record's level; None where it has none of these."""
        value = record.changed.get(self.key)
        return self.levels.get(value if isinstance(value, str) else json.dumps(value))


class FactorStudy(Model):
    """Factors of one protocol and track, and the thresholds of an answer."""

    track: str
    protocol: str
    metrics: Names
    upgrade: Annotated[float, Field(gt=0, lt=1)]
    """Least upgrade that a share is taken of."""
    cut: tuple[float, float]
    """Range that shares are cut to."""
    matters: Annotated[float, Field(gt=0)]
    """Least difference of the best and the worst level of a factor that matters."""
    draws: Annotated[int, Field(ge=100, le=100_000)]
    """Of seeds, for the intervals."""
    factors: Annotated[Mapping[str, Factor], Field(min_length=1)]

    def levels(self, record: Record) -> tuple[str, ...] | None:
        """Level of each factor; None of a record that is of no cell."""
        if (record.protocol, record.track) != (self.protocol, self.track):
            return None
        found = [factor.level(record) for factor in self.factors.values()]
        return None if None in found else tuple(str(each) for each in found)


def read_study(folder: Path) -> FactorStudy:
    """Read and check the study of a folder.

    Raises:
        BenchError: Naming the file and what is wrong.
    """
    path = folder / FILE
    return build(FactorStudy, read_yaml(path), str(path))
