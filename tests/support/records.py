"""Records made by hand: whatever a test does not name has a plain value."""

from typing import Any

from benchmark.config.reading import build
from benchmark.records.record import SCHEMA, Record

LOWER, UPPER = 0.5, 0.9
MODEL = {"backbone": "convnet-16", "dim": 64}


def make_record(
    method: str = "bct",
    cross: float | dict[str, float] = 0.6,
    own: float | dict[str, float] = 0.8,
    seed: int = 0,
    *,
    lower: float = LOWER,
    high: float = UPPER,
    converted: float | None = None,
    old: str | None = None,
    reason: str | None = None,
    **fields: Any,
) -> Record:
    """A finished record, or one that is not applicable where a reason is given.

    Another ``lower`` is of another old model, unless ``old`` says which one it is.
    """
    new_old = cross if isinstance(cross, dict) else {"cmc_at_1": cross}
    new_new = own if isinstance(own, dict) else {"cmc_at_1": own}
    bounds = {"lower": dict.fromkeys(new_old, lower), "upper": dict.fromkeys(new_old, high)}
    scores = {"new/new": new_new, "new/old": new_old, "old/old": bounds["lower"]}
    if converted is not None:
        scores["old'/old'"] = dict.fromkeys(new_old, converted)
    if reason is not None:
        new_old, new_new, scores = {}, {}, {}
    known = {k: v for k, v in new_old.items() if v is not None}
    gains = {k: (v - lower) / (high - lower) if v > lower else None for k, v in known.items()}
    values: dict[str, Any] = {
        "schema": SCHEMA, "kind": "measured", "key": "k", "protocol": "open-class",
        "protocol_version": 1, "track": "glyphs", "track_version": 1, "method": method,
        "seed": seed, "first_seed": seed, "config": {}, "changed": {},
        "status": "done" if reason is None else "not-applicable", "reason": reason,
        "scores": scores,
        "intervals": {
            case: {k: None if v is None else [v - 0.01, v + 0.02] for k, v in found.items()}
            for case, found in scores.items()
        },
        "counts": {}, "bounds": bounds, "upper": "upper",
        "compatible": {k: v > lower for k, v in known.items()},
        "not_hurting": {k: v is not None and v >= high for k, v in new_new.items()},
        "update_gain": gains,
        "dataset": {"name": "glyphs", "fingerprint": "f" * 64},
        "models": {"old": {}, "new": {}},
        "recipe": {"epochs": 1},
        "curves": {
            f"train {method} (seed {seed})": {
                "model": {"loss": [2.0, 1.0, 0.5], "lr": [0.1, 0.1, 0.1], "steps_an_epoch": 4}
            }
        },
        "cost": {},
        "checkpoints": {f"train old model (seed {seed})": f"sha256:{old or lower}"},
        "environment": {"python": "3.11.7", "torch": "2.11.0"},
        "run": {
            "finished": f"2025-01-0{seed + 1}T00:00:00+00:00",
            "code": {"version": "0.1.0", "commit": "abc123", "dirty": True},
            "argv": [],
            "stages": {"a": {"seconds": 2.0, "device": "cpu"}},
        },
        "seal": "of a record that was read",
    }  # fmt: skip
    values |= fields
    values["models"] = {name: MODEL | dict(spec) for name, spec in values["models"].items()}
    # Names that no file may have are tried on tables and pages too.
    names = {key: values[key] for key in ("protocol", "track", "method")}
    record = build(Record, values | {"protocol": "p", "track": "t", "method": "m"}, "record")
    return record.model_copy(update=names)
