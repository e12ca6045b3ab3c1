"""All checks of an adapter, on toy images."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmark.config import registry
from benchmark.config.setup import Setup
from benchmark.data.base import read_options
from benchmark.data.serialization import read_dataset
from benchmark.errors import BenchError, RefusedError, located
from benchmark.harness.artifacts import MODEL, load_stored, load_vectors
from benchmark.harness.checking.parts import Given, check_parts
from benchmark.harness.checking.replay import (
    Elsewhere,
    Output,
    Twin,
    other_images,
    other_labels,
    output_of,
    with_seed,
)
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import Result, Stage
from benchmark.harness.local import execute_locally
from benchmark.harness.requests import Request, make_requests
from benchmark.harness.runs import carry_out
from benchmark.harness.store import Store
from benchmark.records.record import Record

_POISONS = {
    "reading evaluation labels": other_labels, "training on evaluation items": other_images
}  # fmt: skip
_CPU = Compute("cpu")


def check_method(
    label: str, protocol: str, track: str = "toy", store: Path | None = None
) -> Iterator[str]:
    """Try an adapter in seconds; a line for each thing that is right.

    Args:
        label: ``bct`` or ``bct:distill``.
        protocol: Of several settings the first one is taken.
        track: With images in memory.
        store: Where stages lie; by default a folder that goes afterwards.

    Raises:
        BenchError: Naming the first fault, or why the method cannot be applied.
    """
    registry.method_file(label)
    request = make_requests([label], protocol, track)[0]
    result = request.plan().results[-1]
    if result.evaluation is None:
        raise _refused(label, str(result.reason))
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder, located(f"check {label}"):
        stages = Store(store or Path(folder, "store"))
        own = _own_stages(result, label)
        _run_before_scores(result, stages)
        _check_store(result, stages)
        yield "trained and embedded; nothing else that is stored was changed"
        yield _check_updates(request.setup, result, stages, label)
        yield from check_replays(own, stages, Path(folder))
        yield from _check_record(request, stages, Path(folder, "runs"))
    yield f"{label} is fine"


def _refused(label: str, reason: str) -> BenchError:
    return BenchError(f"check {label}: {reason}; try another --protocol")


def _own_stages(result: Result, label: str) -> list[Stage]:
    """Stages that the adapter carries out, first its own first generation."""
    return [stage for stage in result.stages if stage.params.get("method") == label]


def _run_before_scores(result: Result, store: Store) -> None:
    """Carry out everything but evaluations."""
    todo = [stage for stage in result.stages if stage.kind != "evaluate"]
    missing = [stage for stage in todo if not store.has(stage.name)]
    try:
        execute_locally(missing, store, _CPU, Reporter(), {stage.name for stage in todo})
    except RefusedError as error:
        raise BenchError(f"{error}; try another --protocol") from error


def _check_updates(setup: Setup, result: Result, store: Store, label: str) -> str:
    evaluation, method = result.evaluation, registry.method(label, result.config)
    assert evaluation is not None
    inputs = {role: store.path(stage.name) for role, stage in evaluation.inputs.items()}
    dataset = read_dataset(inputs["data"])
    items = read_options(dataset.name).evaluation(dataset, evaluation.params["part"])
    sizes = []
    for i, update in enumerate(result.updates, 1):
        folder = store.path(update.name)
        old, new = (evaluation.inputs[f"vectors{j}"].inputs["model"].name for j in (i - 1, i))
        given = Given(
            method, setup.models[i], folder, store.path(new) / MODEL, store.path(old) / MODEL,
            load_stored(inputs, i - 1), load_vectors(inputs[f"vectors{i}"]), items.images,
        )  # fmt: skip
        check_parts(given)
        sizes.append("x".join(map(str, given.new.shape)))
    return (
        f"embeddings {', '.join(sizes)}: finite, of the declared size, each item by itself; "
        "gallery, queries and cost are as declared"
    )


def check_replays(own: Sequence[Stage], store: Store, folder: Path) -> Iterator[str]:
    """Carry an adapter's stages out again: repeated, under another seed, killed, poisoned.

    Raises:
        BenchError: Naming what makes their output another.
    """
    twin = Twin(store, own, folder / "twin")
    with Elsewhere(twin.root) as elsewhere:
        for stage in own:
            first, other = first_of(store, stage), with_seed(stage, 1)
            # Each process begins with another seed, so what it keeps shows in the second.
            there = elsewhere.outputs(other, stage)
            here = [first, twin.output(other), twin.output(stage)]
            if here != [first, there.result()[0], first] or there.result()[1] != first:
                raise _not_repeated(elsewhere, stage)
    yield "the same seed gives the same, bit for bit, also after another seed and elsewhere"
    for stage in own:
        _same(first_of(store, stage), twin.resumed(stage), "killed and resumed, it differs")
    yield "killed and resumed, it gives the same"
    poisoned = Twin(store, own, folder / "poisoned", lambda d: other_images(other_labels(d)))
    for stage in own:
        if poisoned.output(stage) != first_of(store, stage):
            raise _poisoned(stage, store, folder)
    yield "evaluation items and their labels change nothing"


def _poisoned(stage: Stage, store: Store, folder: Path) -> BenchError:
    """Tell which part of the evaluation data an update has seen."""
    first, faults = first_of(store, stage), {}
    for fault, change in _POISONS.items():
        again = Twin(store, [stage], folder / fault.replace(" ", "-"), change).output(stage)
        if again != first:
            faults[fault] = _differences(first, again)
    words = [
        f"{fault}: with other ones the update differs ({how})" for fault, how in faults.items()
    ]
    return BenchError("; ".join(words) or "seeing evaluation data: poisoned, the update differs")


def first_of(store: Store, stage: Stage) -> Output:
    """What a stage wrote in the first place."""
    return output_of(store.path(stage.name), store.meta(stage.name)["facts"])


def _same(first: Output, again: Output, fault: str) -> None:
    if first != again:
        raise BenchError(f"{fault} ({_differences(first, again)})")


def _differences(first: Output, again: Output) -> str:
    names = sorted(name for name in first | again if first.get(name) != again.get(name))
    return ", ".join("curves and counts" if name == "facts" else name for name in names)


def _not_repeated(elsewhere: Elsewhere, stage: Stage) -> BenchError:
    """Tell chance from memory: two fresh processes differ by chance alone."""
    pair = [elsewhere.outputs(stage).result()[0] for _ in range(2)]
    if pair[0] != pair[1]:
        return BenchError(
            "non-deterministic: two updates with one seed differ in "
            f"{_differences(*pair)}; draw from job.trainer.seed or batch.rng"
        )
    return BenchError(
        "leaking state between seeds: after another update the same one gives something else; "
        "keep nothing outside of the result of prepare"
    )


def _check_store(result: Result, store: Store) -> None:
    for stage in result.stages:
        if stage.kind != "evaluate" and (damage := store.damage(stage.name)) is not None:
            raise BenchError(f"undeclared change of what is stored: {stage.title}: {damage}")


def _check_record(request: Request, store: Store, out: Path) -> Iterator[str]:
    record = carry_out([request], store=store.root, out=out, compute=_CPU)[-1]
    missing = [f"{c} {m}" for c, s in record.scores.items() for m, v in s.items() if v is None]
    if missing:
        raise BenchError(f"no score for {', '.join(missing)}")
    yield f"scored, the record written and read back: {_hits(record)}"


def _hits(record: Record) -> str:
    hits = {case: record.scores[case].get("cmc_at_1") for case in sorted(record.scores)}
    return ", ".join(f"{case} {hit:.3f}" for case, hit in hits.items() if hit is not None)
