"""The result record: one JSON file for a protocol, track, method and seed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmark import __version__
from benchmark.config import build
from benchmark.errors import BenchError

SCHEMA = 1
_CODE = ("benchmark", "methods", "protocols", "leaderboard", "pyproject.toml")
_PACKAGES = ("torch", "torchvision", "lightning-fabric", "timm", "numpy", "numba", "matplotlib")


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
        update_gain: Metric -> BCT eq. 9; ``None`` where not compatible.
        dataset: Name, fingerprint, counts.
        models: Generation -> what its model is made of.
        curves: Training curves of the method's own stages, by stage and name.
        cost: Parameters, added parameters.
        checkpoints: Generation -> hash of its weights.
        environment: Versions and device.
        side: Side-information that the method asked for: its kind and, by the generation that
            stores it, its size, own scores and CKA with the embedding; empty where none is used.
        backfilling: Scores along the refilling of the gallery, as the task ``backfilling`` gives
            them; empty where the protocol does not ask for it.
        run: What differs between two runs of the same work: times, memory, code, command line.
    """

    schema: int
    kind: str
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
    status: str
    reason: str | None
    scores: Mapping[str, Mapping[str, float | None]]
    intervals: Mapping[str, Any]
    counts: Mapping[str, Mapping[str, int]]
    bounds: Mapping[str, Mapping[str, float | None]]
    upper: str
    compatible: Mapping[str, bool | None]
    not_hurting: Mapping[str, bool | None]
    update_gain: Mapping[str, float | None]
    dataset: Mapping[str, Any]
    models: Mapping[str, Any]
    recipe: Mapping[str, Any]
    curves: Mapping[str, Any]
    cost: Mapping[str, Any]
    checkpoints: Mapping[str, str]
    environment: Mapping[str, str]
    run: Mapping[str, Any]
    backfilling: Mapping[str, Any] = field(default_factory=dict)
    side: Mapping[str, Any] = field(default_factory=dict)

    def path(self, root: Path) -> Path:
        """Where the record belongs below ``root``."""
        return record_path(root, self.protocol, self.track, self.method, self.seed)

    def result(self) -> dict[str, Any]:
        """The record without what differs between two runs of the same work."""
        return {k: v for k, v in asdict(self).items() if k != "run"}


def record_path(root: Path, protocol: str, track: str, method: str, seed: int) -> Path:
    """``measured/<protocol>/<track>/<method>/seed-<n>.json``; ``a:b`` becomes ``a+b``."""
    folder = root / "measured" / protocol / track / method.replace(":", "+")
    return folder / f"seed-{seed}.json"


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        BenchError: If it is not JSON, of another schema, or a field is unknown, missing or wrong.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except ValueError as error:
        raise BenchError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        got = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise BenchError(f"{path}: schema: expected {SCHEMA}, got {got!r}")
    record = build(Record, value, str(path))
    for case, metrics in record.scores.items():
        for metric, score in metrics.items():
            if score is not None and not 0.0 <= score <= 1.0:
                raise BenchError(f"{path}: scores.{case}.{metric}: expected 0 to 1, got {score}")
    return record


def read_records(root: Path) -> list[Record]:
    """Every record below a folder, in the order of their paths.

    Raises:
        BenchError: If the folder holds none, or one of them is damaged.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    return [read_record(path) for path in paths]


def packages() -> dict[str, str]:
    """Versions of everything that computes."""
    found = {"python": platform.python_version(), "compatbench": __version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def code_version() -> dict[str, Any]:
    """Commit of the checkout this package runs from, and whether it was clean."""
    folder = Path(__file__).parent
    # An installed wheel inside somebody's checkout must not report that checkout's commit.
    if not (folder.parent / "pyproject.toml").is_file():
        return {"version": __version__, "commit": None, "dirty": None}
    commit = _git(folder, "rev-parse", "HEAD")
    # New records in the checkout do not make its code another one.
    status = _git(folder.parent, "status", "--porcelain", "--", *_CODE)
    return {
        "version": __version__, "commit": commit or None,
        "dirty": None if status is None else bool(status),
    }  # fmt: skip


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def hardware() -> dict[str, str]:
    """The machine in plain words; no name of a host."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {"cpu": cpu, "cores": str(os.cpu_count()), "system": platform.system()}
