"""All checks of an adapter, on toy images, and its stages again: after others, poisoned."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmark.config import registry
from benchmark.config.setup import Setup
from benchmark.data.base import read_options
from benchmark.data.serialization import read_dataset
from benchmark.errors import BenchError, DivergedError, RefusedError, located
from benchmark.harness.checking.parts import Given, check_parts
from benchmark.harness.checking.replay import (
    FAILURE,
    Done,
    Elsewhere,
    Output,
    Part,
    Poison,
    Twin,
    applied,
    other_images,
    other_images_and_labels,
    other_labels,
    otherwise,
    output_of,
)
from benchmark.harness.execution import Compute, faults_of_adapters, run_one
from benchmark.harness.graph import Result, Stage
from benchmark.harness.requests import Request, make_requests
from benchmark.harness.runs import carry_out
from benchmark.harness.store import MODEL, Store, load_stored, load_vectors
from benchmark.harness.work import EvaluationWork, UpdateWork

_CPU = Compute("cpu")
CHECKS = 7
"""Lines of :func:`check_method` of a method that nothing is wrong with."""
_FEW = {"recipe.transform_steps": 6}
"""Steps of a map: two epochs of the toy images, so that a killed fit goes on from one."""


def check_method(
    label: str, protocol: str, track: str = "toy", store: Path | None = None
) -> Iterator[str]:
    """Try an adapter in seconds; a line for each thing that is right.

    Of a protocol with several settings the first one is taken; stages lie in ``store``, by default
    in a folder that goes afterwards.

    Raises:
        BenchError: Naming the first fault, or why the method cannot be applied.
    """
    _check_declared(label)
    request = make_requests([label], protocol, track, settings=_FEW)[0]
    result = next(r for r in request.plan().results if r.label == label)
    if result.evaluation is None:
        raise BenchError(f"check {label}: {result.reason}; try another --protocol")
    with tempfile.TemporaryDirectory(prefix="bench-check-") as folder, located(f"check {label}"):
        stages = Store(store or Path(folder, "store"))
        own = [
            s for s in result.stages if isinstance(s.work, UpdateWork) and s.work.method == label
        ]
        _run_before_scores(result, own, stages)
        for stage in result.stages:
            if stage.kind != "evaluate" and (damage := stages.damage(stage.name)) is not None:
                raise BenchError(f"undeclared change of what is stored: {stage.title}: {damage}")
        yield "trained and embedded; nothing else that is stored was changed"
        updates = [_given(request.setup, result, stages, i) for i in range(len(result.updates))]
        with faults_of_adapters("applied to vectors and images", own=True):
            words = _check_updates(updates)
        yield words
        parts = [part for given in updates for part in given.files()]
        yield from check_replays(own, _seen(result, own), parts, stages, Path(folder))
        yield from _check_record(label, request, stages, Path(folder, "runs"))
    yield f"{label} is fine"


def _check_declared(label: str) -> None:
    """Build the method and all of its variants, and read what they were built from."""
    name = label.partition(":")[0]
    file, cls = registry.method_file(label), registry.method_class(name)
    if "__dataclass_params__" not in vars(cls):
        raise BenchError(
            f"{file.path.name}: expected @dataclass(frozen=True) above class {cls.__name__}, or "
            "its fields are no hyper-parameters"
        )
    for variant in ("", *cls.variants):
        registry.method(f"{name}:{variant}" if variant else name)
        file.fidelity(variant)


def _stands_on(stage: Stage, own: Sequence[Stage]) -> bool:
    """Tell a stage that is one of the adapter's, or stands on one."""
    names = {each.name for each in own}
    return any(each.name in names for each in stage.walk())


def _seen(result: Result, own: Sequence[Stage]) -> list[Stage]:
    """Stages that lie in the store when the adapter's begin, and all that those are given."""
    given = {stage.name for each in own for stage in each.inputs.values()}
    return [
        stage for stage in result.stages
        if stage.kind != "evaluate" and (stage.name in given or not _stands_on(stage, own))
    ]  # fmt: skip


def _run_before_scores(result: Result, own: Sequence[Stage], store: Store) -> None:
    """Carry out everything but evaluations, the adapter's stages as late as they can be."""
    todo = [stage for stage in result.stages if stage.kind != "evaluate"]
    todo.sort(key=lambda stage: _stands_on(stage, own))
    for stage in todo:
        try:
            run_one(stage, store, _CPU, lambda share: None)
        except DivergedError as error:
            raise BenchError(f"{stage.title}: {error}") from error
        except RefusedError as error:
            raise BenchError(f"{stage.title}: {error}; try another --protocol") from error


def _given(setup: Setup, result: Result, store: Store, i: int) -> Given:
    """Output of update ``i``, and what its parts are tried on."""
    assert result.evaluation is not None
    work = result.evaluation.work
    there: EvaluationWork[Path] = work.at(lambda stage: store.path(stage.name))
    dataset = read_dataset(there.data)
    items = read_options(dataset.name).evaluation(dataset, work.part)
    old, new = (work.vectors[j].work.model.name for j in (i, i + 1))
    return Given(
        registry.method(result.label, result.config), setup.models[i + 1],
        store.path(result.updates[i].name), store.path(new) / MODEL, store.path(old) / MODEL,
        load_stored(there, i), load_vectors(there.vectors[i + 1]), items.images,
    )  # fmt: skip


def _check_updates(updates: Sequence[Given]) -> str:
    for given in updates:
        check_parts(given)
    sizes = ", ".join("x".join(map(str, given.new.shape)) for given in updates)
    return (
        f"embeddings {sizes}: finite, of the declared size, each item by itself; "
        "gallery, queries and cost are as declared"
    )


def _check_record(label: str, request: Request, store: Store, out: Path) -> Iterator[str]:
    records = carry_out([request], store=store.root, out=out, compute=_CPU)
    record = next(r for r in records if r.method == label)
    missing = [f"{c} {m}" for c, s in record.scores.items() for m, v in s.items() if v is None]
    if missing:
        raise BenchError(f"no score for {', '.join(missing)}")
    found = {case: record.scores[case].get("cmc_at_1") for case in sorted(record.scores)}
    hits = [f"{case} {100 * hit:.1f} %" for case, hit in found.items() if hit is not None]
    yield f"scored, the record written and read back: {', '.join(hits)}"


_POISON = Poison(other_images_and_labels, embeddings=True)
_POISONS = {
    "reading evaluation labels": Poison(other_labels, embeddings=False),
    "training on evaluation items": Poison(other_images, embeddings=True),
}


def check_replays(
    own: Sequence[Stage], seen: Sequence[Stage], parts: Sequence[Part], store: Store, folder: Path
) -> Iterator[str]:
    """Carry an adapter's stages out again: repeated, after others, killed, poisoned.

    ``seen`` lay in the store when they began, or came in between; ``parts`` are what they gave,
    applied again in a process that has run no update. A BenchError names what makes a difference.
    """
    twin, poisoned = Twin(store, seen, folder / "twin"), folder / "poisoned"
    first = {s.name: output_of(store.path(s.name), store.meta(s.name)["facts"]) for s in own}
    with Elsewhere() as elsewhere:
        # Each process begins with another update, so what is kept from it shows in the second.
        pairs = [elsewhere.do(twin, [otherwise(s), s]) for s in own]
        unseen = elsewhere.do(Twin(store, seen, poisoned, _POISON), own, parts)
        for stage, pair in zip(own, pairs, strict=True):
            here = [twin.output(otherwise(stage)), twin.output(stage)]
            if here != pair.result().stages or here[1] != first[stage.name]:
                raise _not_repeated(elsewhere, twin, stage)
            if FAILURE in here[0]:
                raise BenchError(f"fails with another seed and embeddings: {here[0][FAILURE]}")
        yield "the same seed gives the same, bit for bit, also after another update and elsewhere"
        for stage in own:
            again = twin.resumed(stage)
            if again != first[stage.name]:
                how = _differences(first[stage.name], again)
                raise BenchError(f"killed and resumed, it differs ({how})")
        yield "killed and resumed, it gives the same"
        expected = Done([applied(*part) for part in parts], [first[stage.name] for stage in own])
        if _apart(expected, unseen.result(), parts):

            def done(poison: Poison | None, name: str) -> Done:
                return elsewhere.do(Twin(store, seen, folder / name, poison), own, parts).result()

            raise _poisoned(expected, parts, done)
    yield "evaluation items and their labels change nothing"


def _apart(expected: Done, found: Done, parts: Sequence[Part]) -> str:
    """In words, what of some work came out otherwise; empty if nothing did."""
    words = [
        f"what {path.stem} gives" for (path, _), one, other in
        zip(parts, expected.parts, found.parts, strict=True)
        if len(one) != len(other) or not all(map(np.array_equal, one, other))
    ]  # fmt: skip
    stages = zip(expected.stages, found.stages, strict=True)
    return ", ".join(words + [_differences(one, other) for one, other in stages if one != other])


def _poisoned(
    expected: Done, parts: Sequence[Part], done: Callable[[Poison | None, str], Done]
) -> BenchError:
    """Tell which part of the evaluation data is seen, or whether something else is amiss."""
    if kept := _apart(expected, done(None, "alone"), parts):
        return BenchError(
            f"leaking state between updates: in a process of its own {kept} differs; a part keeps "
            "all that it needs in its file, as parameters, buffers and arguments"
        )
    faults = []
    for i, (fault, poison) in enumerate(_POISONS.items()):
        if how := _apart(expected, done(poison, f"poisoned-{i}"), parts):
            faults.append(f"{fault}: with other ones the update differs ({how})")
    return BenchError("; ".join(faults) or "seeing evaluation data: poisoned, the update differs")


def _differences(first: Output, again: Output) -> str:
    if FAILURE in again:
        return f"it fails, {again[FAILURE]}"
    names = sorted(name for name in first | again if first.get(name) != again.get(name))
    return ", ".join("curves and counts" if name == "facts" else name for name in names)


def _not_repeated(elsewhere: Elsewhere, twin: Twin, stage: Stage) -> BenchError:
    """Tell chance from memory: two fresh processes differ by chance alone."""
    pair = [elsewhere.do(twin, [stage]).result().stages[0] for _ in range(2)]
    if pair[0] != pair[1]:
        return BenchError(
            "non-deterministic: two updates with one seed differ in "
            f"{_differences(*pair)}; draw from job.trainer.seed or batch.rng, from nothing global"
        )
    return BenchError(
        "leaking state between updates: after another update, or without its files, the same one "
        "gives something else; keep nothing outside of the result of prepare"
    )
