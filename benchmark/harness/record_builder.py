"""From finished stages to records: bounds, compatibility, gain, provenance, divergence."""

import json
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmark.config import registry
from benchmark.config.backbones import backbone_version
from benchmark.config.entry_points import package_of
from benchmark.config.protocols import ProtocolRules
from benchmark.config.reading import Model, build
from benchmark.config.recipes import ModelSpec
from benchmark.config.setup import Setup
from benchmark.config.tracks import TrackRules
from benchmark.errors import printable
from benchmark.harness.cost import cost
from benchmark.harness.graph import TRAINING, EvaluationStage, Result, Stage
from benchmark.harness.store import BACKFILLING, CASES, DETAILS, Store
from benchmark.harness.work import TakenWork, TrainingWork
from benchmark.records.layout import verdicts
from benchmark.records.provenance import code_version, hardware, packages
from benchmark.records.record import SCHEMA, TOO_SHORT, Record

Metas = Mapping[str, Any]
"""Facts and times of each stage, by the stage's name."""
_MOST_POINTS = 200
_RISE = 0.05
"""Share of the first epoch's loss by which the last one's may be above it, or must be below it."""
_ABOVE = 1.5
"""Times the loss of a guess. Short trainings of normalised heads end near it, with embeddings that
retrieve well: their classifiers are late."""
_LEARNED = 0.85
"""Share of the loss with random labels below which a normalised classifier knows its classes, late
as it may be."""


def make_record(setup: Setup, result: Result, store: Store) -> Record:
    """The record of one result of a plan, all of whose stages are finished."""
    evaluation, names = result.evaluation, [g.name for g in setup.protocol.generations]
    cases = {} if evaluation is None else _output(store, evaluation, CASES)
    parts = {
        part: {case: values[part] for case, values in cases.items()}
        for part in ("scores", "intervals", "counts")
    }
    over = {name: words for case in cases.values() for name, words in case["over"].items()}
    bounds = _bounds(result, store, names)
    upper = setup.protocol.upper_bound
    metas = {s.name: store.meta(s.name) for s in result.stages}
    trained = [s for s in result.stages if isinstance(s.work, TrainingWork | TakenWork)]
    facts = {} if evaluation is None else metas[evaluation.name]["facts"]
    values = {
        "schema": SCHEMA, "kind": "measured", "key": result.key, "training": TRAINING,
        "protocol": setup.protocol.id, "protocol_version": setup.protocol.version,
        "track": setup.track.id, "track_version": setup.track.version,
        "method": result.label, "seed": result.seed, "first_seed": result.first_seed,
        "config": dict(result.config), "changed": dict(setup.changed),
        "status": "not-applicable" if evaluation is None else "done", "reason": result.reason,
        **parts, "over": over, "bounds": bounds, "upper": upper,
        **verdicts(parts["scores"], bounds, bounds[upper], names),
        "dataset": _dataset(setup, result, metas),
        "models": dict(zip(names, _models(setup, result, metas), strict=True)),
        "recipe": setup.track.recipe,
        "curves": {
            metas[s.name]["title"]: {
                name: shortened(curve)
                for name, curve in metas[s.name]["facts"].get("curves", {}).items()
            }
            for s in trained
        },
        "cost": cost(result, metas, store),
        "diverged": {
            metas[s.name]["title"]: reason
            for s in trained
            if (reason := divergence(metas[s.name]["facts"]))
        },
        "checkpoints": {
            meta["title"]: meta["facts"]["checkpoint"]
            for meta in metas.values()
            if "checkpoint" in meta["facts"]
        },
        "environment": packages() | hardware() | _of_trainings(metas),
        "run": _run(result, metas),
        "backfilling": evaluation and _output(store, evaluation, BACKFILLING),
        "side": facts.get("side"),
        "adapter": _adapter(result.label),
        "parameters": {
            "protocol": _plain(setup.protocol, ProtocolRules),
            "track": _plain(setup.track, TrackRules),
        },
        # As the stage wrote it: one that was damaged since must not get a hash that fits.
        "queries": evaluation and metas[evaluation.name]["files"][DETAILS]["digest"],
    }  # fmt: skip
    return build(Record, values, "record")


def _of_trainings(metas: Metas) -> dict[str, str]:
    """Threads and precision of the trainings, whichever process did them, by a comma if several.

    Not every machine has the precision that a recipe sets.
    """
    runs = [meta["run"] for meta in metas.values()]
    threads, precisions = (
        sorted({str(run[key]) for run in runs if key in run}) for key in ("threads", "precision")
    )
    here = [str(torch.get_num_threads())]  # of an earlier store, whose trainings do not say it
    return {"threads": ", ".join(threads or here), "precision": ", ".join(precisions)}


def shortened(curve: Mapping[str, Any]) -> dict[str, Any]:
    """A training curve of at most 200 points: of longer ones means of epochs in a row.

    Example:
        >>> curve = {"loss": [2.0] * 300 + [1.0] * 300, "lr": [], "steps_an_epoch": 4}
        >>> shortened(curve)["loss"][99:101], shortened(curve)["steps_an_epoch"]
        ([2.0, 1.0], 12)
    """
    group = -(-len(curve["loss"]) // _MOST_POINTS)
    if group <= 1:
        return dict(curve)

    def means(values: list[float | None]) -> list[float | None]:
        rows = (values[i : i + group] for i in range(0, len(values), group))
        return [None if None in row else fmean(v for v in row if v is not None) for row in rows]

    return {
        name: means(value) if isinstance(value, list) else value * group
        for name, value in curve.items()
    }


def _output(store: Store, evaluation: EvaluationStage, name: str) -> Any:
    """A JSON file of an evaluation; ``None`` where it is not written."""
    path = store.path(evaluation.name) / name
    return json.loads(path.read_text()) if path.exists() else None


def _plain(spec: Model, base: type[Model]) -> dict[str, Any]:
    """The fields of a specification that a base class has."""
    return spec.model_dump(mode="json", include=set(base.model_fields))


def _dataset(setup: Setup, result: Result, metas: Metas) -> dict[str, Any]:
    """The dataset, and training images and classes of each generation as independent models."""
    generations = {}
    for i, generation in enumerate(setup.protocol.generations):
        facts = metas[_bound_model(result, i).name]["facts"]
        generations[generation.name] = {"images": facts["n_images"], "classes": facts["n_classes"]}
    data = next(m["facts"] for m in metas.values() if m["kind"] == "data")
    origin = registry.check_options(setup.track.dataset, setup.track.data, "track").origin
    licence = {} if origin is None else {"licence": origin.terms}
    return {"name": setup.track.dataset, **data, **licence, "generations": generations}


def _bound_model(result: Result, i: int) -> Stage:
    """The stage of generation ``i`` of the independent models."""
    model: Stage = result.bound.work.vectors[i].work.model
    return model


def _models(setup: Setup, result: Result, metas: Metas) -> list[ModelSpec]:
    """Each generation's model, with the hash of the weights and the package that it is of."""
    versions = [backbone_version(model.backbone) for model in setup.models]
    models = [
        model.model_copy(update={"package": version}) if version else model
        for model, version in zip(setup.models, versions, strict=True)
    ]
    for i, model in enumerate(models):
        if model.weights is not None:
            found = metas[_bound_model(result, i).name]["facts"]["weights_sha256"]
            used = {"weights": Path(model.weights).name, "weights_sha256": found}
            models[i] = model.model_copy(update=used)
    return models


def _adapter(label: str) -> dict[str, str]:
    """The version of a method: its module, its distribution, and the hash of its code."""
    file = registry.method_file(label)
    package = package_of(file.module) or f"compatbench {version('compatbench')}"
    return {"module": file.module, "package": package, "source": f"sha256:{file.fingerprint}"}


def _run(result: Result, metas: Metas) -> dict[str, Any]:
    """Times, code and command line: what another run of the same work would change."""
    seconds: dict[str, float] = {}
    for meta in metas.values():
        seconds[meta["kind"]] = seconds.get(meta["kind"], 0.0) + meta["run"].get("seconds", 0.0)
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": code_version(), "argv": public(sys.argv[1:]),
        "stages": {
            m["title"]: {k: v for k, v in m["run"].items() if k != "threads"}
            for m in metas.values()
        },
        "seconds": {kind: round(value, 3) for kind, value in seconds.items()},
        "peak_memory_bytes": max(m["run"].get("peak_memory_bytes", 0) for m in metas.values()),
        "training_cost": _training_cost(result, metas),
    }  # fmt: skip


def _training_cost(result: Result, metas: Metas) -> float | None:
    """Time of the method's updates, in that of the independent models they replace.

    What needs the independent models pays for them too. ``None`` where a stage has no time.
    """
    if not result.updates:
        return 1.0 if result.evaluation is not None else None
    updates = [metas[stage.name]["run"] for stage in result.updates]
    n = len(result.updates)
    independent = [metas[_bound_model(result, i).name]["run"] for i in range(1, n + 1)]
    times = _times(updates + independent)
    if times is None or not sum(times[n:]):
        return None
    charged = any(stage.work.independent is not None for stage in result.updates)
    return float(sum(times[:n]) / sum(times[n:]) + charged)


def _times(runs: list[Mapping[str, Any]]) -> list[float] | None:
    """Times by what all have: on a CPU its own seconds, where known in calibrated units.

    Published models were trained elsewhere: nothing but calibrated units compares with theirs.
    """
    clocks = [("cpu_seconds", "calibration_cpu_seconds"), ("cpu_seconds", ""), ("seconds", "")]
    on_cpu = all(run.get("device") == "cpu" for run in runs)
    clocks = clocks if on_cpu else clocks[-1:]
    if any(run.get("published") for run in runs):
        clocks = [each for each in clocks if each[1]]
    for clock, unit in clocks:
        if all(clock in run and (not unit or unit in run) for run in runs):
            return [run[clock] / (run[unit] if unit else 1.0) for run in runs]
    return None


def public(argv: list[str]) -> list[str]:
    """A command line for publication: folders of the machine it ran on become ``DIR``.

    Example:
        >>> public(["run", "--data-root", "a=/home/me/photos,b=../x", "--set=old.weights=~/x"])
        ['run', '--data-root', 'a=DIR,b=DIR', '--set=old.weights=DIR']
    """
    # A record is text: what it refuses to hold must not keep a finished run from being read.
    return [printable(re.sub(r"(^|^-\w|[=,])(?:/|~|\.\./)[^,]*", r"\1DIR", word)) for word in argv]


def _bounds(result: Result, store: Store, names: list[str]) -> dict[str, dict[str, float | None]]:
    """``lower``: the first generation by itself; ``upper``: the independent last one."""
    old, new = f"{names[0]}/{names[0]}", f"{names[-1]}/{names[-1]}"
    bound = _output(store, result.bound, CASES)
    bounds = {"lower": bound[old]["scores"], "upper": bound[new]["scores"]}
    if result.upper is not None:
        bounds["upper-all"] = _output(store, result.upper, CASES)[new]["scores"]
    return bounds


def divergence(facts: Mapping[str, Any]) -> str:
    """Reason that a training is no good; empty where none is seen.

    Args:
        facts: Of its stage: ``curves`` by name, each with the ``loss`` of every epoch, and ``fit``,
            the classifier's ``loss`` on training images, that of a guess, ``chance``, and of a
            normalised classifier that with ``random_labels``.

    Example:
        >>> divergence({"curves": {"model": {"loss": [2.0, 1.0]}}})
        ''
        >>> divergence({"curves": {"model": {"loss": [2.0, 3.0]}}})
        'its loss rises from 2 to 3'
        >>> divergence({"fit": {"loss": 9.5, "chance": 2.302585}})
        "its classifier's loss on training images is 9.5, a guess's 2.3"
        >>> divergence({"fit": {"loss": 4.3, "chance": 2.6}, "curves": {"model": {"loss": [9, 4]}}})
        "its classifier's loss on training images is 4.3, a guess's 2.6, and falls: too few epochs"
    """
    fit = {"random_labels": 0.0} | (facts.get("fit") or {})
    least = max(_ABOVE * fit.get("chance", 0.0), _LEARNED * fit["random_labels"])
    if "chance" in fit and (fit["loss"] is None or fit["loss"] > least):
        found = "no number" if fit["loss"] is None else f"{fit['loss']:.3g}"
        losses = facts.get("curves", {}).get("model", {}).get("loss") or [None]
        falls = None not in losses and losses[-1] < (1 - _RISE) * losses[0]
        return (
            f"its classifier's loss on training images is {found}, a guess's {fit['chance']:.2g}"
            + f", and falls: {TOO_SHORT}" * falls
        )
    for name, curve in facts.get("curves", {}).items():
        losses = curve["loss"]
        if len(losses) > 1 and losses[-1] > losses[0] + _RISE * abs(losses[0]):
            of = "its loss" if name == "model" else f"the loss of its {name}"
            return f"{of} rises from {losses[0]:.3g} to {losses[-1]:.3g}"
    return ""
