"""An adapter's stages again: after other ones, elsewhere, killed, on poisoned evaluations."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmark.errors import BenchError
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
from benchmark.harness.graph import Stage
from benchmark.harness.store import Store

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
