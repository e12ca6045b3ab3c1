"""The result record: one JSON file for a protocol, track, method and seed.

The layout is written here once; ``bench schema`` prints it as JSON Schema. Files of older layouts
are read by :mod:`benchmark.records.files`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from benchmark.config.checks import Text, holds
from benchmark.config.files import SEAL
from benchmark.config.protocols import ProtocolRules
from benchmark.config.reading import Model
from benchmark.config.recipes import ModelSpec, Recipe
from benchmark.config.tracks import TrackRules

SCHEMA = 6
"""Version of the layout, the only one that is read."""
TOO_SHORT = "too few epochs"
"""Words that end the reason of a training whose loss still falls; see ``diverged``."""
_MOST_GENERATIONS = 50
_MOST_CASES = 1500
_MOST_METRICS = 300
_LONGEST_NAME = 100


def _name(text: str) -> str:
    # Names become folders, and go to terminals.
    if not text.strip(". ") or not text.isprintable() or re.search(r"[/\\]", text):
        raise ValueError(f"expected a name, got {text!r:.60}")
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"expected at most {_LONGEST_NAME} characters, got {len(text)}")
    return text


def _span(span: tuple[float, float]) -> tuple[float, float]:
    if not span[0] <= span[1] < math.inf:
        raise ValueError(f"expected [low, high], got {list(span)}")
    return span


Name = Annotated[str, AfterValidator(_name)]
# It may end in the name of a group, whatever that is.
MetricKey = Annotated[str, holds(lambda text: text and text == text.strip(), "a metric")]
NotNegative = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
_FEW = Field(max_length=1000)  # metrics: a table of more takes minutes to draw
Scores = Mapping[MetricKey, Share | None]
"""Metric -> value in [0, 1]; null where it is undefined."""
Span = Annotated[tuple[float, float], AfterValidator(_span)]


class Cost(Model):
    """Costs of a method for a deployment."""

    parameters: NotNegative | None = None
    """Parameters of the new model."""
    added_parameters: NotNegative | None = None
    """Parameters of the parts beside it (maps, priorities)."""
    multiply_adds: NotNegative | None = None
    """Multiply-adds of embedding an image with the new model."""
    old_multiply_adds: NotNegative | None = None
    """Multiply-adds of embedding an image with the old model."""
    convert_multiply_adds: NotNegative | None = None
    """Multiply-adds of converting an item of the gallery, over all updates."""
    query_multiply_adds: NotNegative | None = None
    """Multiply-adds of a query's view, over all updates."""
    model_runs: NotNegative | None = Field(None, description="Of a query; null for one.")
    indexes: NotNegative | None = Field(None, description="Kept at one time; null for one.")
    new_embeddings: NotNegative | None = Field(None, description="At most, a query; null: 0.")
    bytes_before: Amount | None = None
    """Bytes of an item as the old model stores it with its side-information, in float32."""
    bytes_after: Amount | None = None
    """Bytes of an item after the conversion."""
    bytes_new: Amount | None = None
    """Bytes of an item embedded by the new model."""


class TrainingSize(Model):
    """Training data of a generation."""

    images: int
    classes: int


class DatasetFacts(Model):
    """The dataset that was used."""

    name: str
    fingerprint: str = ""
    """SHA-256 over every pixel, label and column."""
    n_train: int = 0
    n_test: int = 0
    n_classes: int = 0
    facts: Mapping[str, JsonValue] = {}
    """Options, reading version, files."""
    licence: str = ""
    """As stated with the files, or that none is; empty where they are drawn, or the user's own."""
    generations: Mapping[str, TrainingSize] = {}


class KeptCurve(Model):
    """Training loss and learning rate, one number an epoch, or the mean of some in a row."""

    loss: tuple[float | None, ...]
    """Null where a training diverged."""
    lr: tuple[float | None, ...] = ()
    steps_an_epoch: int = 0


class SideScores(Model):
    """Side-information of one generation."""

    dim: NotNegative
    bytes: Amount
    """Of an item."""
    cka: float | None = None
    """Linear CKA with the embedding on the gallery; null where one is constant."""
    scores: Mapping[MetricKey, Share | None] = {}
    """Of the side-information by itself, where items are ranked."""


class SideInformation(Model):
    """Side-information that the method uses."""

    kind: str
    generations: Mapping[str, SideScores]
    """By the generation that stores it."""


class Flips(Model):
    """Shares of the queries that turned right or wrong along an order."""

    positive: tuple[float, ...] = ()
    negative: tuple[float, ...] = ()


class GroupCurves(Model):
    """Groups of queries along an order."""

    gap: tuple[float, ...] = ()
    """CMC@1, best minus worst group."""
    share_gap: tuple[float, ...] = ()
    """Share that is backfilled, most minus least group."""
    cmc_at_1: tuple[float | None, ...] = ()
    """Mean of each group."""
    share: tuple[float | None, ...] = ()
    """Mean of each group; 0.5 where an order ignores groups."""


class OrderCurves(Model):
    """Scores along one order of backfilling."""

    area: Annotated[Mapping[MetricKey, float | None], _FEW] = {}
    worst: Annotated[Mapping[MetricKey, Share | None], _FEW] = {}
    """Lowest point of each curve."""
    share_above: Annotated[Mapping[MetricKey, Share | None], _FEW] = {}
    """Share of the gallery from which on a curve stays above old/old; null where its end is not."""
    intervals: Mapping[MetricKey, tuple[float, float] | None] = {}
    """Of the areas, and by ``worst_`` and ``share_above_`` of the others, 95 %."""
    curves: Annotated[Mapping[MetricKey, tuple[float, ...]], _FEW] = {}
    flips: Flips = Flips()
    groups: GroupCurves = GroupCurves()
    tau: Mapping[str, float | None] = {}
    """Agreement with each oracle order."""


class OfflineScore(Model):
    """A score of a deployment that waits until all is backfilled."""

    before: float
    after: float
    area: float


class BackfillScores(Model):
    """Scores while the gallery is backfilled, at the last update."""

    old: str
    """Name of the generation that is replaced."""
    new: str
    reason: str | None = None
    """Reason that nothing can be compared."""
    points: int = 0
    """Of each curve."""
    every: int = 0
    """Flips and groups are kept at every so many points."""
    groups: tuple[str, ...] = ()
    counts: Mapping[str, int] = {}
    offline: Mapping[str, OfflineScore] = {}
    orders: Mapping[str, OrderCurves] = {}
    omitted: Mapping[str, str] = {}
    """Order -> why it is not possible."""

    @model_validator(mode="after")
    def _curves_of_one_length(self) -> BackfillScores:
        lengths = {len(curve) for order in self.orders.values() for curve in order.curves.values()}
        if len(lengths) > 1 or min(lengths, default=2) < 2:
            raise ValueError("orders: expected curves of one length, of 2 points or more")
        return self


class AdapterVersion(Model):
    """The version of a method."""

    module: str
    package: str
    """Distribution that it comes with."""
    source: str
    """Hash of its code, comments and docstrings apart."""


class Parameters(Model):
    """Other rules of protocol and track: splits, tasks, dataset, rates."""

    protocol: ProtocolRules
    track: TrackRules


class CodeVersion(Model):
    """The code that computed a record."""

    version: str | None = None
    commit: str | None = None
    dirty: bool | None = None


class StageRun(Model):
    """Time, memory and device of one stage."""

    seconds: Amount | None = None
    peak_memory_bytes: NotNegative | None = None
    peak_device_memory_bytes: NotNegative | None = None
    device: str | None = None
    precision: str | None = None
    """Of a training."""
    cpu_seconds: Amount | None = None
    """Of the processor."""
    calibration_cpu_seconds: Amount | None = None
    """Of the calibration workload while the stage ran."""
    published: bool | None = None
    """True if the model was taken from the published ones; the rest is then of its training."""


class Run(Model):
    """Differences between two runs of the same work."""

    finished: str | None = None
    code: CodeVersion = CodeVersion()
    argv: tuple[str, ...] = ()
    """The command line, without folders of the machine."""
    stages: Mapping[str, StageRun] = {}
    """By title."""
    seconds: Mapping[str, float] = {}
    """By kind of stage."""
    peak_memory_bytes: NotNegative | None = None
    training_cost: Amount | None = None
    """Training time of the method's updates over that of the independent models; a model of
    side-information is not counted."""


class Record(Model):
    """One result of CompatBench: a protocol, a track, a method, a seed."""

    model_config = ConfigDict(populate_by_name=True)

    schema_version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    """Version of this layout."""
    kind: Literal["measured"]
    """Published numbers live elsewhere."""
    key: str
    """Hash of everything that determines the scores."""
    training: int | None = None
    """Version of trainings, embeddings and conversions."""
    protocol: Name
    protocol_version: int
    track: Name
    track_version: int
    method: Name
    """``bct`` or ``bct:distill``."""
    seed: int = Field(ge=0)
    first_seed: int
    """Seed of the first generation, where it is fixed apart."""
    config: Mapping[str, JsonValue] = {}
    """The method's parameters."""
    changed: Mapping[str, JsonValue] = {}
    """``--set`` changes of the track; empty for results that may be ranked."""
    status: Literal["done", "not-applicable"]
    reason: str | None = None
    """Reason that the method is not applicable."""
    scores: Mapping[str, Scores] = {}
    """Case -> metric -> value in [0, 1]; null where it is undefined."""
    intervals: Mapping[str, Mapping[MetricKey, Span | None]] = {}
    """Case -> metric -> (low, high), 95 %; null where too little is known for one."""
    over: Mapping[MetricKey, Name] | None = None
    """Metric -> what its intervals are over, ``classes``; null in older records: single queries,
    for TAR, TPIR and rank-k identities at the threshold of the scores."""
    counts: Mapping[str, Mapping[str, int]] = {}
    """Case -> name -> number."""
    bounds: Mapping[str, Scores]
    """``lower``, ``upper`` and, if trained, ``upper-all`` -> metric -> value."""
    upper: str
    """Name of the bound that the update gain uses."""
    compatible: Mapping[str, bool | None]
    """Metric -> new/old > old/old (BCT eq. 2)."""
    not_hurting: Mapping[str, bool | None]
    """Metric -> new/new >= the independent model's (BT2 definition 2)."""
    update_gain: Mapping[str, float | None]
    """Metric -> BCT eq. 9; null where not compatible, or for text queries, for which no upper
    bound is measured."""
    dataset: DatasetFacts
    models: Mapping[str, ModelSpec]
    """Generation -> its model."""
    recipe: Recipe
    """Recipe of all trainings."""
    curves: Mapping[str, Mapping[str, KeptCurve]] = {}
    """Training curves of the method's own stages, by title of the stage and name."""
    diverged: Mapping[str, Text] = {}
    """Title of a stage -> why its training is no good: its loss rises, or is that of a guess."""
    cost: Cost = Cost()
    checkpoints: Mapping[str, str] = {}
    """Title of a stage -> hash of the weights that it trained."""
    environment: Mapping[str, str]
    """Versions of packages, the machine, threads and precision."""
    run: Run = Run()
    """Differences between two runs of the same work."""
    backfilling: BackfillScores | None = None
    """Null where the protocol has no such task."""
    side: SideInformation | None = None
    """Null where the method uses no side-information."""
    adapter: AdapterVersion | None = None
    parameters: Parameters | None = None
    details: str | None = None
    """Hash of the details file beside it (``benchmark.records.details``); null without."""
    queries: str | None = None
    """Hash of the file with all results by query, which ``bench results details`` writes."""
    seal: str | None = None
    """SHA-256 of all else in the file; null of a record that no file has."""

    @model_validator(mode="after")
    def _can_be_shown(self) -> Record:
        """Has a generation, and no more than tables show in seconds."""
        if not self.models:
            raise ValueError("models: expected at least one generation, got none")
        metrics = {m for part in (self.scores, self.bounds) for each in part.values() for m in each}
        for field, found, most in (
            ("models", self.models, _MOST_GENERATIONS), ("scores", self.scores, _MOST_CASES),
            ("scores: metrics", metrics, _MOST_METRICS), ("orders", self.orders, _MOST_METRICS),
        ):  # fmt: skip
            if len(found) > most:
                raise ValueError(f"{field}: expected at most {most}, got {len(found)}")
        return self

    @property
    def orders(self) -> Mapping[str, OrderCurves]:
        """Backfilling curves by order; empty where there are none."""
        return {} if self.backfilling is None else self.backfilling.orders

    def path(self, root: Path) -> Path:
        """Place of the record below ``root``."""
        return record_path(root, self.protocol, self.track, self.method, self.seed)

    def as_json(self) -> dict[str, Any]:
        """Plain values, as the file has them."""
        return self.model_dump(mode="json", by_alias=True)

    def result(self) -> dict[str, Any]:
        """Plain values without what differs between two runs of the same work, as times do."""
        return self.model_dump(mode="json", by_alias=True, exclude={"run", "details", SEAL})


def record_path(root: Path, protocol: str, track: str, method: str, seed: int) -> Path:
    """``measured/<protocol>/<track>/<method>/seed-<n>.json``; ``a:b`` becomes ``a+b``."""
    folder = root / "measured" / protocol.replace(":", "+") / track / method.replace(":", "+")
    return folder / f"seed-{seed}.json"


def json_schema() -> dict[str, Any]:
    """Schema that ``bench schema`` prints: types, limits, each field in words."""
    return Record.model_json_schema(by_alias=True) | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"CompatBench record, schema {SCHEMA}",
    }
