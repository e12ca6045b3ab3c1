"""The language of ``results/claims.yaml``: values of records, a few operations, and rules.

A value is ``METHOD CASE``, as in ``fct new/old``, a mapping with ``method`` and what else says what
is read (:class:`ClaimValue`), an operation on values (:class:`Operation`), or a number. Nothing in
a file is carried out as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from benchmark.config import registry
from benchmark.config.checks import Text
from benchmark.config.loading import load_protocol
from benchmark.config.protocols import Protocol
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import BenchError, located
from benchmark.metrics.catalog import describe
from benchmark.records.files import evidence_file
from benchmark.report.select import AVG

Share = Annotated[float, Field(ge=0, le=1)]
EACH = "*"
"""Stands for each of a part's ``methods``."""

Kind = Literal[
    "score", "area", "curve", "positive_flips", "negative_flips", "group_gap", "tau", "cka",
    "side_score", "added_parameters", "training_cost", "chance",
]  # fmt: skip
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "score": ("case",), "area": ("order",), "curve": ("order", "at"), "tau": ("order", "oracle"),
    "positive_flips": ("order", "at"), "negative_flips": ("order", "at"),
    "group_gap": ("order", "at"), "cka": ("generation",), "side_score": ("generation",),
    "added_parameters": (), "training_cost": (), "chance": (),
}  # fmt: skip
UNITS: Mapping[str, str] = {
    "tau": "coefficient", "cka": "coefficient", "added_parameters": "count",
    "training_cost": "coefficient",
}  # fmt: skip
"""Units of what is no share."""


class ClaimValue(Model):
    """One number of a record."""

    method: str
    """A method, or ``*`` for each of the part's."""
    value: Kind = "score"
    """Of a case; area, point or flips of a backfilling curve, gap of its groups, its agreement with
    an oracle order; likeness of side-information to the embedding and its own score; cost; what the
    metric of a random order of the gallery is."""
    case: str | None = None
    """``new/old``."""
    order: str | None = None
    """An order of backfilling; ``own``: the method's priority, or ``random`` without one."""
    at: Share | None = None
    """Share of the gallery that is backfilled."""
    oracle: str | None = None
    """The order that another one is compared with."""
    generation: str | None = None
    """The one that stores side-information."""
    metric: str | tuple[str, ...] | None = None
    """Else the part's; of several the mean."""
    protocol: str | None = None
    """Else the part's."""
    track: str | None = None
    """Else the one that is looked at."""
    changed: Mapping[str, JsonValue] = {}
    """``--set`` changes of the run."""

    @model_validator(mode="after")
    def _complete(self) -> ClaimValue:
        needed = _NEEDS[self.value]
        for name in ("case", "order", "at", "oracle", "generation"):
            if (getattr(self, name) is not None) != (name in needed):
                words = "expected" if name in needed else "expected no"
                raise ValueError(f"{words} '{name}' of '{self.value}' of {self.method:.60}")
        return self


class Operation(Model):
    """An operation on values; exactly one."""

    minus: Annotated[tuple[Expression, ...], Field(min_length=2, max_length=2)] | None = None
    """The first less the second."""
    mean: Annotated[tuple[Expression, ...], Field(min_length=1)] | None = None
    largest: Annotated[tuple[Expression, ...], Field(min_length=1)] | None = None
    smallest: Annotated[tuple[Expression, ...], Field(min_length=1)] | None = None
    spread: Annotated[tuple[Expression, ...], Field(min_length=2)] | None = None
    """The largest less the smallest."""

    @model_validator(mode="after")
    def _one(self) -> Operation:
        given = [name for name, value in self if value is not None]
        if len(given) != 1:
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"expected one of {names}, got {', '.join(given) or 'none'}")
        return self

    @property
    def parts(self) -> tuple[str, tuple[Expression, ...]]:
        """Its name, and what it is of."""
        return next((name, value) for name, value in self if value is not None)


class Constant(Model):
    """A constant."""

    number: float


def _plain(value: Any) -> Any:
    """``"fct new/old"`` and numbers as mappings."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return {"number": value}
    if isinstance(value, str):
        method, _, case = value.partition(" ")
        return {"method": method, "case": case.strip()} if case.strip() else value
    return value


def _kind(value: Any) -> Any:
    """Read a mapping as the class that its keys belong to, so that an error is about that one."""
    plain = _plain(value)
    if not isinstance(plain, dict):
        raise ValueError(f"expected 'METHOD CASE', a number or a mapping, got {value!r:.60}")
    cls: type[Model] = Operation
    cls = Constant if "number" in plain else ClaimValue if "method" in plain else cls
    try:
        return build(cls, plain, "")
    except BenchError as error:
        raise ValueError(str(error).removeprefix(": ")) from error


Expression = Annotated[Any, BeforeValidator(_kind)]
"""A :class:`ClaimValue`, an :class:`Operation` or a :class:`Constant`."""


class ClaimPart(Model):
    """One half of a claim: where it is looked at, and its rule; or why it cannot be answered."""

    says: Text = ""
    """The half's own words; empty where the claim has one part."""
    protocols: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()
    """By default all with records."""
    without: tuple[str, ...] = ()
    """Tracks of which the claim says nothing."""
    metrics: tuple[str, ...] = ()
    """Those that a track does not have are left out of it."""
    methods: tuple[str, ...] = ()
    """Values of ``*``, one after the other."""
    above: Annotated[tuple[Expression, ...], Field(min_length=2)] | None = None
    """Each is above the next."""
    by: Annotated[float, Field(ge=0)] = 0.0
    """By more than this."""
    close: Annotated[tuple[Expression, ...], Field(min_length=2, max_length=2)] | None = None
    """The two differ by no more than ``within``."""
    within: Annotated[float, Field(ge=0)] | None = None
    unanswered: Text | None = None
    """The reason why no records can answer it."""

    @model_validator(mode="after")
    def _one_rule(self) -> ClaimPart:
        rules = [n for n in ("above", "close", "unanswered") if getattr(self, n) is not None]
        if len(rules) != 1:
            raise ValueError(f"expected one of above, close, unanswered, got {rules or 'none'}")
        if (self.close is None) != (self.within is None):
            raise ValueError("expected 'close' and 'within' together")
        if self.unanswered is None and not (self.protocols and self.metrics):
            raise ValueError("expected 'protocols' and 'metrics'")
        stars = any(value.method == EACH for value in self.values())
        if stars != bool(self.methods):
            raise ValueError("expected 'methods' and the method '*' together")
        return self

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions that are compared, each with the next."""
        return self.above or self.close or ()

    def values(self) -> Iterator[ClaimValue]:
        """Every value that is read."""
        found = (leaf for each in self.expressions for leaf in leaves(each))
        yield from (leaf for leaf in found if isinstance(leaf, ClaimValue))


class Claim(Model):
    """One claim of a paper."""

    says: Text
    """The condition."""
    source: Text
    """Sections and tables of the paper."""
    caveat: Text = ""
    """Cases where the paper's own numbers do not carry its sentence."""
    parts: Annotated[tuple[ClaimPart, ...], Field(min_length=1)]


class PairClaim(Model):
    """A claim about upgrades of real models, as one number of all records of pairs."""

    says: Text
    source: Text
    value: Text
    """Its name, of :data:`benchmark.pairs.analysis.VALUES`."""
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> PairClaim:
        if self.at_least is None and self.at_most is None:
            raise ValueError("expected at_least or at_most, got neither")
        return self


class Claims(Model):
    """The contents of ``results/claims.yaml``."""

    papers: Mapping[str, Text]
    """Id -> title; ids of claims begin with one."""
    claims: Mapping[str, Claim]
    pairs: Mapping[str, PairClaim] = {}
    """Of real models; ``bench pairs table --show claims`` says what records make of them."""

    @model_validator(mode="after")
    def _of_papers(self) -> Claims:
        for name in self.claims:
            if name.rpartition("-")[0] not in self.papers:
                known = ", ".join(self.papers)
                raise ValueError(f"claims: expected ids of {known}, got '{name:.60}'")
        return self


def leaves(expression: Any) -> Iterator[ClaimValue | Constant]:
    """Every value and number that an expression has."""
    if isinstance(expression, Operation):
        for part in expression.parts[1]:
            yield from leaves(part)
    else:
        yield expression


def read_claims(path: Path | None = None) -> Claims:
    """Read and check claims; by default the committed ones.

    Raises:
        BenchError: Naming file, claim and what is wrong: a key, a rule, a method, a protocol.
    """
    path = path or evidence_file("claims.yaml")
    claims = build(Claims, read_yaml(path), str(path))
    protocol = cache(load_protocol)
    for name, claim in claims.claims.items():
        with located(f"{path}: {name}"):
            for part in claim.parts:
                _check_names(part, protocol)
    return claims


def _check_names(part: ClaimPart, protocol_of: Callable[[str], Protocol]) -> None:
    """Refuse methods, protocols, tracks and metrics that are not there."""
    values = list(part.values())
    for method in {*part.methods, *(v.method for v in values)} - {EACH}:
        registry.method_file(method)
    for protocol in {*part.protocols, *(v.protocol for v in values)} - {None}:
        base, _, setting = str(protocol).partition(":")
        settings = {s.name: s for s in protocol_of(base).settings}
        if setting:
            registry.known(f"setting of {base}", setting, settings)
    for track in {*part.tracks, *part.without, *(v.track for v in values)} - {None}:
        registry.known("track", str(track), registry.track_files())
    given = [
        m for v in values for m in ((v.metric,) if isinstance(v.metric, str) else v.metric or ())
    ]
    for metric in {*part.metrics, *given} - {AVG}:
        try:
            describe(metric)
        except ValueError as error:
            raise BenchError(f"metrics: {error}") from error
