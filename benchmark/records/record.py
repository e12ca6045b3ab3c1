"""The result record: one JSON file for a protocol, track, method and seed.

The layout is written here once, as :class:`Record`; ``bench schema`` prints it as JSON Schema. A
file of an older layout is read as it is, its newer fields empty; see ``SCHEMA``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA = 2
"""Version of the layout. 2 adds ``details``, ``adapter``, ``parameters``, multiply-adds and bytes
to ``cost``, ``generations`` to ``dataset``, ``seconds`` and ``peak_memory_bytes`` to ``run``."""
OLDEST = 1


@dataclass(frozen=True)
class Record:
    """One result, with what is needed to judge it and to run it again.

    Attributes:
        schema: Version of this layout.
        kind: ``measured``; published numbers live elsewhere.
        key: Hash of everything that determines the scores.
        method: ``bct`` or ``bct:distill``.
        config: The method's parameters.
        changed: ``--set`` changes of the track; empty for results that may be ranked.
        status: ``done``, or ``not-applicable`` with a ``reason``.
        scores: Case -> metric -> value in [0, 1]; ``None`` where it is undefined.
        intervals: Case -> metric -> (low, high), 95 %.
        counts: Case -> name -> number.
        bounds: ``lower``, ``upper`` and, if trained, ``upper-all`` -> metric -> value.
        upper: Which of the bounds the update gain uses.
        compatible: Metric -> new/old > old/old (BCT eq. 2).
        not_hurting: Metric -> new/new >= the independent model's (BT2 definition 2).
        update_gain: Metric -> BCT eq. 9; ``None`` where not compatible, or where texts ask, for
            which no upper bound is measured.
        dataset: Name, fingerprint, counts; ``generations``: training images and classes of each.
        models: Generation -> what its model is made of.
        curves: Training curves of the method's own stages, by stage and name.
        recipe: How everything was trained.
        cost: ``parameters`` of the new model and ``added_parameters`` of the parts beside it (maps,
            priorities); multiply-adds of embedding an image with the new (``multiply_adds``) and
            the old model (``old_multiply_adds``), of converting a stored item
            (``convert_multiply_adds``) and of a query's view (``query_multiply_adds``), over all
            updates; bytes that an item takes as stored by the old model with its side-information
            (``bytes_before``), after the conversion (``bytes_after``) and embedded anew
            (``bytes_new``), in float32.
        checkpoints: Generation -> hash of its weights.
        environment: Versions and device.
        side: Side-information that the method asked for: its kind and, by the generation that
            stores it, its size, own scores and CKA with the embedding; empty where none is used.
        backfilling: Scores along the refilling of the gallery, as the task ``backfilling`` gives
            them; empty where the protocol does not ask for it.
        adapter: The method's version: its module, the package that it comes with, and the hash of
            its code, comments and docstrings apart.
        parameters: What else the protocol and the track fix: splits, tasks, dataset, rates.
        details: Hash of the details file beside it (``benchmark.records.details``), or ``None``.
        run: What differs between two runs of the same work: times (``stages`` by title, ``seconds``
            by kind), memory, code, command line.
    """

    schema: int
    kind: Literal["measured"]
    key: str
    protocol: str
    protocol_version: int
    track: str
    track_version: int
    method: str
    seed: int
    first_seed: int
    config: Mapping[str, Any]
    changed: Mapping[str, Any]
    status: Literal["done", "not-applicable"]
    reason: str | None
    scores: Mapping[str, Mapping[str, float | None]]
    intervals: Mapping[str, Mapping[str, tuple[float, float] | None]]
    counts: Mapping[str, Mapping[str, int]]
    bounds: Mapping[str, Mapping[str, float | None]]
    upper: str
    compatible: Mapping[str, bool | None]
    not_hurting: Mapping[str, bool | None]
    update_gain: Mapping[str, float | None]
    dataset: Mapping[str, Any]
    models: Mapping[str, Mapping[str, Any]]
    recipe: Mapping[str, Any]
    curves: Mapping[str, Any]
    cost: Mapping[str, Any]
    checkpoints: Mapping[str, str]
    environment: Mapping[str, str]
    run: Mapping[str, Any]
    backfilling: Mapping[str, Any] = field(default_factory=dict)
    side: Mapping[str, Any] = field(default_factory=dict)
    adapter: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    details: str | None = None

    def path(self, root: Path) -> Path:
        """Where the record belongs below ``root``."""
        return record_path(root, self.protocol, self.track, self.method, self.seed)

    def result(self) -> dict[str, Any]:
        """The record without what differs between two runs of the same work."""
        return {k: v for k, v in asdict(self).items() if k != "run"}


def added_parameters(record: Record, alone: Record | None) -> int:
    """Parameters that a method asks for: its parts', and its model's beyond the independent one's.

    Args:
        record: What the method gave; negative numbers say that its model is the smaller one.
        alone: The record of ``independent`` beside it; without one, models count as alike.
    """
    parts = int(record.cost["added_parameters"])
    if alone is None or "parameters" not in alone.cost:
        return parts
    return parts + int(record.cost["parameters"]) - int(alone.cost["parameters"])


def record_path(root: Path, protocol: str, track: str, method: str, seed: int) -> Path:
    """``measured/<protocol>/<track>/<method>/seed-<n>.json``; ``a:b`` becomes ``a+b``."""
    folder = root / "measured" / protocol.replace(":", "+") / track / method.replace(":", "+")
    return folder / f"seed-{seed}.json"
