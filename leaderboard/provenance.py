"""Where numbers come from, in words: the command, versions, and whether the code was clean."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from benchmark.config.loading import load_track
from benchmark.errors import BenchError
from benchmark.records.record import Record

_SHOWN = ("python", "torch", "lightning-fabric", "timm", "numpy", "cpu", "system")


@dataclass(frozen=True)
class Origin:
    """One record: when, by which code, how long.

    Attributes:
        commit: First twelve digits; empty for an installed package.
        clean: Was the checkout unchanged? None where unknown.
        seconds: Time of the record's own and shared stages.
    """

    method: str
    seed: int
    status: str
    finished: str
    version: str
    commit: str
    clean: bool | None
    seconds: float


def origins(records: Sequence[Record]) -> list[Origin]:
    """One line for each record, by method and seed."""
    return [_origin(r) for r in sorted(records, key=lambda r: (r.method.partition(":"), r.seed))]


def _origin(record: Record) -> Origin:
    code = record.run.code
    return Origin(
        method=record.method,
        seed=record.seed,
        status=record.status.replace("-", " "),
        finished=record.run.finished or "unknown",
        version=code.version or "unknown",
        commit=(code.commit or "")[:12],
        clean=None if code.dirty is None else not code.dirty,
        seconds=sum(stage.seconds or 0.0 for stage in record.run.stages.values()),
    )


def command(records: Sequence[Record]) -> str:
    """The command that makes these records again."""
    first = records[0]
    methods = dict.fromkeys(o.method for o in origins(records))
    asked = [method for method in methods if method != "independent"] or ["independent"]
    words = ["bench", "run", "--methods", ",".join(asked), "--protocol", first.protocol]
    words += ["--track", first.track]
    words += ["--seeds", ",".join(str(seed) for seed in sorted({r.seed for r in records}))]
    for key, value in first.changed.items():
        words += (
            ["--first-seed", str(value)] if key == "first_seed" else ["--set", f"{key}={value}"]
        )
    quoted = shlex.join(words)
    return f"{quoted} --data-root DIR" if _needs_root(first.track) else quoted


@cache
def _needs_root(track: str) -> bool:
    try:
        return load_track(track).needs_root
    except BenchError:
        return False


def versions(records: Sequence[Record]) -> dict[str, str]:
    """What computed the numbers; several values where records differ."""
    found = {
        "protocol version": {str(r.protocol_version) for r in records},
        "track version": {str(r.track_version) for r in records},
        "dataset": {f"{r.dataset.name} {_short(r)}".strip() for r in records},
    }
    for name in _SHOWN:
        found[name] = {r.environment[name] for r in records if name in r.environment}
    found["device"] = {
        stage.device for r in records for stage in r.run.stages.values() if stage.device
    }
    return {name: ", ".join(sorted(values)) for name, values in found.items() if values}


def _short(record: Record) -> str:
    fingerprint = record.dataset.fingerprint
    return f"({fingerprint[:12]})" if fingerprint else ""
