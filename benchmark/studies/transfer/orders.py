"""Orders of methods by records or by a table of a paper, and the rules of ``transfer.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from benchmark.config import registry
from benchmark.config.checks import unique
from benchmark.config.grouping import grouped
from benchmark.config.overrides import known_methods
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import located
from benchmark.records.files import evidence_file
from benchmark.records.published import Published
from benchmark.records.record import Record
from benchmark.report import select
from benchmark.report.comparable import comparable
from benchmark.report.notes import track_kind
from benchmark.report.outcome import unpaid
from benchmark.report.scenarios import classes_of, networks_of
from benchmark.report.tables import backfilling

ValueKind = Literal["cross-test", "area"]
Words = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Floats = NDArray[np.float64]
_CROSS = ("new/old", "new/h(old)", "new/h(old,side)")
"""The cross-test as papers write it: h converts the gallery, with side-information or without."""


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
    """Read and check what counts as transfer, by default the committed file; else a BenchError."""
    path = path or evidence_file("transfer.yaml")
    rules = build(TransferRules, read_yaml(path), str(path))
    with located(str(path)):
        for method in (*rules.left_out, rules.baseline):
            registry.method_file(method)
    return rules


@dataclass(frozen=True)
class MethodOrder:
    """Scores of methods in one place, of the seeds that all of them have; larger is better."""

    protocol: str
    place: str  # a track, or ``fct: Table 1, imagenet``
    pictures: str  # photographs, drawings, rendered
    value: ValueKind
    metric: str
    scores: Mapping[str, Floats]  # method -> [n seeds]
    lower: Floats | None = None  # old/old by seed; None where unknown, and for areas
    published: bool = False
    seeds: tuple[int, ...] = field(default=(0,))
    classes: str = ""  # seen in training, unseen or both
    networks: str = ""  # a key of ``NETWORKS``

    @property
    def kind(self) -> str:
        """Kind of images of a track; all papers are of one kind."""
        return "papers" if self.published else self.pictures

    @property
    def subject(self) -> tuple[str, str, str]:
        """Protocol, value and metric: only orders of the same are compared."""
        return self.protocol, self.value, self.metric

    @property
    def n_seeds(self) -> int:
        """Of every method."""
        return len(self.seeds)


def measured_orders(records: Iterable[Record], rules: TransferRules) -> list[MethodOrder]:
    """An order for each protocol, track, value and metric of records without changes.

    Of several versions of a protocol or track the newest counts, of several old models of a seed
    independent's. Methods that lack a seed that most of them have, or of which a training diverged,
    are left out, as are those that the rules leave out. Where training does not beat the raw
    features of a frozen backbone there is no order.
    """
    done = (record for record in records if not record.changed and record.status == "done")
    found = grouped(((record.protocol, record.track), record) for record in done)
    orders = []
    for here in (found[key] for key in sorted(found)):
        if unpaid(here):
            continue
        kept = comparable(here)
        diverged = {r.method for r in kept if r.diverged}  # scores say nothing of it
        kept = [r for r in kept if r.method not in diverged]
        for value in rules.values:
            for metric in rules.metrics:
                order = _measured(kept, value, metric, rules)
                if order is not None:
                    orders.append(order)
    return orders


def _measured(
    records: Sequence[Record], value: ValueKind, metric: str, rules: TransferRules
) -> MethodOrder | None:
    case = select.cross_case(records)
    by_method: dict[str, dict[int, float]] = {}
    lower: dict[int, float] = {}
    for r in records:
        bound = r.bounds.get("lower", {}).get(metric)
        if bound is not None:
            lower[r.seed] = bound
        score = _score(r, value, metric, case)
        if score is not None and r.method not in rules.left_out:
            by_method.setdefault(r.method, {})[r.seed] = score
    seeds = _shared_seeds(by_method)
    scores = {
        m: np.array([mine[s] for s in seeds])
        for m, mine in by_method.items()
        if seeds and set(seeds) <= mine.keys()
    }
    if len(scores) < 2:
        return None
    first = records[0]
    known = value == "cross-test" and set(seeds) <= lower.keys()
    return MethodOrder(
        first.protocol, first.track, track_kind(first.track), value, metric,
        scores, np.array([lower[s] for s in seeds]) if known else None, seeds=seeds,
        classes=classes_of(first), networks=networks_of(first.track),
    )  # fmt: skip


def _score(record: Record, value: ValueKind, metric: str, case: str) -> float | None:
    if value == "cross-test":
        return select.score(record, case, metric)
    order = backfilling.order(record)
    return None if order is None else order.area.get(metric)


def _shared_seeds(by_method: Mapping[str, Mapping[int, float]]) -> tuple[int, ...]:
    """Seeds that at least half of the methods have."""
    every = {seed for mine in by_method.values() for seed in mine}
    n = len(by_method)
    return tuple(s for s in sorted(every) if 2 * sum(s in mine for mine in by_method.values()) >= n)


def published_orders(published: Published, rules: TransferRules) -> list[MethodOrder]:
    """An order for each table, protocol, data and metric of the rules' papers: one value a method.

    Only tables in which one old and one new model serve all methods can order these.
    """
    found: dict[tuple[str, ...], dict[str, set[float]]] = {}
    lower: dict[tuple[str, ...], set[float]] = {}
    for number in published.numbers:
        if number.paper not in rules.papers or number.fraction is None:
            continue
        words = (number.protocol, number.paper, number.table, number.dataset, number.old_model)
        if number.case == "old/old":
            lower.setdefault((*words, number.metric), set()).add(number.fraction)
        elif number.case in _CROSS and number.method in known_methods() - {*rules.left_out}:
            values = found.setdefault((*words, number.metric), {})
            values.setdefault(number.method, set()).add(number.fraction)
    orders = []
    for key, by_method in sorted(found.items()):
        protocol, paper, table, data, old, metric = key
        single = {m: np.array([*v]) for m, v in by_method.items() if len(v) == 1}
        today = lower.get(key, set())
        if len(single) > 1:
            place = ", ".join(filter(None, (f"{paper}: {table}", data, old)))
            orders.append(MethodOrder(
                protocol, place, "photographs", "cross-test", metric, single,
                np.array([*today]) if len(today) == 1 else None, published=True,
            ))  # fmt: skip
    return orders
