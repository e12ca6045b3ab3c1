"""From finished stages to records: bounds, compatibility, gain, provenance."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import packages_distributions, version
from operator import itemgetter
from typing import Any

import torch

from benchmark.config import registry
from benchmark.config.files import file_digest
from benchmark.harness.artifacts import DETAILS, read_backfilling, read_cases
from benchmark.harness.cost import cost
from benchmark.harness.graph import Plan, Result, Stage, source_hash
from benchmark.harness.store import Store
from benchmark.metrics import compatibility
from benchmark.metrics.catalog import describe
from benchmark.records.provenance import code_version, hardware, packages
from benchmark.records.record import SCHEMA, Record

Scores = Mapping[str, float | None]

_ELSEWHERE = (
    "id", "version", "title", "source", "question", "note", "needs_root", "extends", "models",
    "recipe",
)  # fmt: skip


def make_record(
    plan: Plan, result: Result, store: Store, *, first_seed: int | None, argv: list[str]
) -> Record:
    """The record of one result, all of whose stages are finished.

    Args:
        plan: Its plan.
        result: Method and seed.
        store: Where the stages lie.
        first_seed: Seed of the first generation, if fixed apart.
        argv: Command line, for provenance.
    """
    setup = plan.setup
    names = [g.name for g in setup.protocol.generations]
    folder = None if result.evaluation is None else store.path(result.evaluation.name)
    cases = {} if folder is None else read_cases(folder)
    scores = {case: values["scores"] for case, values in cases.items()}
    bounds = _bounds(result, store, names)
    upper = f"upper-{setup.protocol.upper}" if setup.protocol.upper == "all" else "upper"
    stages = _stages(result)
    metas = {s.name: store.meta(s.name) for s in stages}
    data = next(m for m in metas.values() if m["kind"] == "data")
    return Record(
        schema=SCHEMA,
        kind="measured",
        key=result.key,
        protocol=setup.protocol.id,
        protocol_version=setup.protocol.version,
        track=setup.track.id,
        track_version=setup.track.version,
        method=result.label,
        seed=result.seed,
        first_seed=result.seed if first_seed is None else first_seed,
        config=dict(result.config),
        changed=dict(setup.changed),
        status="not-applicable" if result.evaluation is None else "done",
        reason=result.reason,
        scores=scores,
        intervals={case: values["intervals"] for case, values in cases.items()},
        counts={case: values["counts"] for case, values in cases.items()},
        bounds=bounds,
        upper=upper,
        **_judged(scores, bounds, bounds[upper], names),
        dataset={"name": setup.track.dataset, **data["facts"]}
        | {"generations": _trained_on(result, names, metas)},
        models=dict(zip(names, [m.model_dump(mode="json") for m in setup.models], strict=True)),
        recipe=setup.track.recipe.model_dump(mode="json"),
        curves=_curves(result, metas),
        cost=cost(result, metas, store),
        checkpoints=_checkpoints(stages, metas),
        environment=packages() | hardware() | _computed(metas),
        run=_run(result, metas, argv),
        backfilling={} if folder is None else read_backfilling(folder),
        side=_side(result, metas),
        adapter=_adapter(result.label),
        parameters={"protocol": _rest(setup.protocol), "track": _rest(setup.track)},
        details=None if folder is None else file_digest(folder / DETAILS),
    )


def _trained_on(
    result: Result, names: list[str], metas: Mapping[str, Any]
) -> dict[str, dict[str, int]]:
    """Training images and classes of each generation, as the independent models saw them."""
    found = {}
    for i, name in enumerate(names):
        facts = metas[result.bound.inputs[f"vectors{i}"].inputs["model"].name]["facts"]
        found[name] = {"images": facts["n_images"], "classes": facts["n_classes"]}
    return found


def _adapter(label: str) -> dict[str, str]:
    """The version of a method: its module, who ships it, and the hash of its code."""
    module = registry.method_file(label).module
    package = module.partition(".")[0]
    # Asked for adapters of others alone: it reads the lists of all that is installed.
    shipped = [] if package == "methods" else packages_distributions().get(package, [])
    by = (
        f"{shipped[0]} {version(shipped[0])}"
        if shipped
        else f"compatbench {version('compatbench')}"
    )
    return {"module": module, "package": by, "source": f"sha256:{source_hash(label)}"}


def _rest(value: Any) -> dict[str, Any]:
    """What a protocol or a track fixes, without words and what the record says elsewhere."""
    return {k: v for k, v in value.model_dump(mode="json").items() if k not in _ELSEWHERE}


def _run(result: Result, metas: Mapping[str, Any], argv: list[str]) -> dict[str, Any]:
    """Times, code and command line: what another run of the same work would change."""
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code_version(),
        "argv": public(argv),
        "stages": {m["title"]: m["run"] for m in metas.values()},
        "seconds": _seconds(metas),
        "peak_memory_bytes": max(m["run"].get("peak_memory_bytes", 0) for m in metas.values()),
        "training_cost": _training_cost(result, metas),
    }


def _seconds(metas: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by kind of stage, its own and shared ones."""
    total: dict[str, float] = {}
    for meta in metas.values():
        total[meta["kind"]] = total.get(meta["kind"], 0.0) + meta["run"].get("seconds", 0.0)
    return {kind: round(seconds, 3) for kind, seconds in total.items()}


def _training_cost(result: Result, metas: Mapping[str, Any]) -> float | None:
    """Time of the method's updates, in that of the independent models they replace.

    What needs the independent models pays for them too. ``None`` where a stage has no time.
    """
    if not result.updates:
        return 1.0 if result.evaluation is not None else None
    own = [metas[stage.name]["run"] for stage in result.updates]
    alone = [m["run"] for m in metas.values() if m["title"].startswith("train independent ")]
    clock = _clock(own + alone)
    base = sum(map(clock, alone)) if clock else 0
    if clock is None or not base:
        return None
    charged = any("independent" in stage.inputs for stage in result.updates)
    return float(sum(map(clock, own)) / base + charged)


def _clock(runs: list[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], float] | None:
    """What all were timed by: on a CPU its own seconds, where known in units of the yardstick."""
    on_cpu = all(run.get("device") == "cpu" for run in runs)
    if on_cpu and all("cpu_seconds" in run and "yardstick_cpu_seconds" in run for run in runs):
        return lambda run: run["cpu_seconds"] / run["yardstick_cpu_seconds"]
    clocks = ("cpu_seconds", "seconds") if on_cpu else ("seconds",)
    key = next((key for key in clocks if all(key in run for run in runs)), None)
    return None if key is None else itemgetter(key)


def _computed(metas: Mapping[str, Any]) -> dict[str, str]:
    """Threads and the precision of training, which not every machine has as asked."""
    used = {meta["run"]["precision"] for meta in metas.values() if "precision" in meta["run"]}
    return {"threads": str(torch.get_num_threads()), "precision": ", ".join(sorted(used))}


def public(argv: list[str]) -> list[str]:
    """A command line for publication: folders of the machine it ran on become ``DIR``.

    Example:
        >>> public(["run", "--data-root", "/home/me/photos", "--out=/tmp/x"])
        ['run', '--data-root', 'DIR', '--out=DIR']
    """
    return [re.sub(r"^(--[\w-]+=)?[/~].*", r"\1DIR", word) for word in argv]


def _stages(result: Result) -> list[Stage]:
    seen: dict[str, Stage] = {}
    for target in (result.bound, result.evaluation):
        for stage in target.walk() if target is not None else ():
            seen.setdefault(stage.name, stage)
    return list(seen.values())


def _bounds(result: Result, store: Store, names: list[str]) -> dict[str, dict[str, float | None]]:
    """``lower``: the first generation by itself; ``upper``: the independent last one."""
    old, new = f"{names[0]}/{names[0]}", f"{names[-1]}/{names[-1]}"
    bound = read_cases(store.path(result.bound.name))
    bounds = {"lower": bound[old]["scores"], "upper": bound[new]["scores"]}
    if result.upper is not None:
        bounds["upper-all"] = read_cases(store.path(result.upper.name))[new]["scores"]
    return bounds


def _judged(
    scores: Mapping[str, Scores],
    bounds: Mapping[str, Scores],
    upper: Scores,
    names: list[str],
) -> dict[str, dict[str, Any]]:
    """Criterion, not hurting, and gain of the last generation against the first, per metric."""
    # A text among new images is the cross-test where the first generation is asked with texts.
    asks_new = f"{names[-1]}/{names[0]}" in scores
    cross = scores.get(f"{names[-1]}/{names[0]}" if asks_new else f"{names[0]}/{names[-1]}", {})
    own = scores.get(f"{names[-1]}/{names[-1]}", {})
    judged: dict[str, dict[str, Any]] = {"compatible": {}, "not_hurting": {}, "update_gain": {}}
    for metric, low in bounds["lower"].items():
        new_old, new_new, high = cross.get(metric), own.get(metric), upper.get(metric)
        if new_old is None or new_new is None or low is None or high is None:
            continue
        paragon = bounds["upper"][metric]
        # Errors and gaps turn round: for them smaller is better.
        sign = -1.0 if describe(metric).higher_is_better is False else 1.0
        judged["compatible"][metric] = compatibility.compatible(sign * new_old, sign * low)
        judged["not_hurting"][metric] = (
            None if paragon is None else compatibility.not_hurting(sign * new_new, sign * paragon)
        )
        # No bound says how well texts could ask: the upper one is of images that ask.
        judged["update_gain"][metric] = (
            compatibility.update_gain(sign * new_old, sign * low, sign * high) if asks_new else None
        )
    return judged


def _curves(result: Result, metas: Mapping[str, Any]) -> dict[str, Any]:
    mine = [s for s in _stages(result) if s.kind in ("train", "update", "side", "first")]
    return {metas[s.name]["title"]: metas[s.name]["facts"].get("curves", {}) for s in mine}


def _side(result: Result, metas: Mapping[str, Any]) -> dict[str, Any]:
    facts = {} if result.evaluation is None else metas[result.evaluation.name]["facts"]
    found: dict[str, Any] = facts.get("side", {})
    return found


def _checkpoints(stages: list[Stage], metas: Mapping[str, Any]) -> dict[str, str]:
    return {
        metas[s.name]["title"]: metas[s.name]["facts"]["checkpoint"]
        for s in stages
        if "checkpoint" in metas[s.name]["facts"]
    }
