"""The result record: one JSON file for a protocol, track, method and seed.

The layout is written here once, as :class:`Record`; ``bench schema`` prints it as JSON Schema. A
file of an older layout is read as it is, its newer fields empty; see ``SCHEMA``.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from benchmark import __version__, sound
from benchmark.config import build
from benchmark.errors import BenchError, located

SCHEMA = 2
"""Version of the layout. 2 adds ``details``, ``adapter``, ``parameters``, multiply-adds and bytes
to ``cost``, ``generations`` to ``dataset``, ``seconds`` and ``peak_memory_bytes`` to ``run``."""
OLDEST = 1
_CODE = ("benchmark", "methods", "protocols", "leaderboard", "pyproject.toml")
_PACKAGES = (
    "torch", "torchvision", "lightning-fabric", "timm", "numpy", "numba", "scipy", "scikit-learn",
    "safetensors", "matplotlib",
)  # fmt: skip
_MOST_BYTES = 4 * 1024 * 1024


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
        details: Hash of the details file beside it (:mod:`benchmark.details`); ``None`` without.
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


def record_path(root: Path, protocol: str, track: str, method: str, seed: int) -> Path:
    """``measured/<protocol>/<track>/<method>/seed-<n>.json``; ``a:b`` becomes ``a+b``."""
    folder = root / "measured" / protocol.replace(":", "+") / track / method.replace(":", "+")
    return folder / f"seed-{seed}.json"


def read_record(path: Path) -> Record:
    """Read and validate a record.

    Raises:
        BenchError: If it is not JSON, of another schema, or a field is unknown, missing or wrong.
    """
    value = _read_json(path)
    schema = value.get("schema") if isinstance(value, dict) else type(value).__name__
    if isinstance(schema, bool) or schema not in range(OLDEST, SCHEMA + 1):
        raise BenchError(f"{path}: schema: expected {OLDEST} to {SCHEMA}, got {schema!r}")
    record = build(Record, value, str(path))
    with located(str(path)):
        sound.check(record)
    return record


@dataclass(frozen=True)
class Found:
    """A record, and the file that it was read from."""

    record: Record
    path: Path


Tried = Record | BenchError
"""A record, or why a file is none."""
Each = Callable[[Callable[[Path], Tried], Sequence[Path]], Iterable[Tried]]
"""``map``, or what does the same by several processes."""


def find_records(
    root: Path, on_damaged: Callable[[BenchError], None] | None = None, each: Each = map
) -> list[Found]:
    """Every record below a folder, in the order of their paths.

    Args:
        root: A folder, or one record.
        on_damaged: Called with what is wrong with a file that is no record of ours, which is then
            left out; without it such a file is an error.
        each: Calls a function with every path, as ``map`` does; another one by several processes.

    Raises:
        BenchError: If there is no record.
    """
    paths = [root] if root.is_file() else sorted(root.rglob("seed-*.json"))
    if not paths:
        raise BenchError(f"{root}: no records (files named seed-<n>.json)")
    found = []
    for path, tried in zip(paths, each(_tried, paths), strict=True):
        if isinstance(tried, Record):
            found.append(Found(tried, path))
        elif on_damaged is None or len(paths) == 1:
            raise tried
        else:
            on_damaged(tried)
    if not found:
        raise BenchError(f"{root}: none of {len(paths)} files is a record that can be read")
    return found


def _tried(path: Path) -> Record | BenchError:
    try:
        return read_record(path)
    except BenchError as error:
        return error


def read_records(root: Path) -> list[Record]:
    """Every record below a folder; see :func:`find_records`.

    Raises:
        BenchError: If the folder holds none, or one of them is damaged.
    """
    return [found.record for found in find_records(root)]


def _read_json(path: Path) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no number")

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BenchError(f"{path}: larger than any record ({_MOST_BYTES} bytes)")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: not valid JSON: {error}") from error


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
