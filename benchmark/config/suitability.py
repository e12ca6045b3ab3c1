"""Does a track have what a protocol asks for? Looked at before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.overlap import overlap
from benchmark.config.reading import build
from benchmark.config.split_sizes import boundary, declared, lack, none_of
from benchmark.errors import UnsuitedError, nearest

if TYPE_CHECKING:
    from benchmark.config.overrides import Setup
    from benchmark.config.types import GenerationSpec


def check_served(setup: Setup) -> None:
    """Refuse a protocol that asks for what the track does not have.

    A dataset says by ``OFFERS`` what its items carry and by ``RULES_OUT`` which tasks would score
    nonsense on which of its evaluation sets, by ``UNSEEN`` which of these have no class that is
    trained on, a task by ``NEEDS`` what it looks at; a dataset that does not say is believed to
    have all.

    Raises:
        UnsuitedError: Naming file, key and reason.
        BenchError: If the track has an option that its dataset does not know.
    """
    file = f"{setup.protocol.family}.yaml"
    dataset = registry.dataset(setup.track.dataset)
    check_options(setup.track.dataset, setup.track.data, f"{setup.track.id}.yaml: data")
    _check_groups(setup, dataset, file)
    _check_tasks(setup, dataset, file)
    _check_sizes(setup, dataset, file)


def check_options(name: str, options: Mapping[str, Any], where: str) -> None:
    """Refuse options that a dataset's ``load`` does not have; one that does not say has any.

    Raises:
        BenchError: Naming ``where``, the option and the nearest known one.
    """
    known = getattr(registry.dataset(name), "Options", None)
    if known is not None:
        build(known, options, where)


def _check_groups(setup: Setup, dataset: ModuleType, file: str) -> None:
    """Groups are the track's, splits of them are apart where they must be."""
    protocol, track = setup.protocol, setup.track
    for where, role in protocol.roles:
        if role not in track.groups:
            known = nearest(role, track.groups) or "; it names none"
            raise UnsuitedError(f"{file}: {where}: track {track.id} has no group '{role}'{known}")
    if any(protocol.roles) and "groups" not in getattr(dataset, "OFFERS", ("groups",)):
        raise UnsuitedError(f"{file}: dataset {track.dataset} of track {track.id} has no groups")
    for i, generation in enumerate(protocol.generations):
        _check_thinned(setup, generation, f"{file}: generations[{i}]")
    found = overlap(protocol.generations, setup.members) if protocol.apart else None
    if found is not None:
        raise UnsuitedError(f"{file}: generations: on track {track.id} {found}")


def _check_thinned(setup: Setup, generation: GenerationSpec, where: str) -> None:
    """A group that is not taken at all cannot become thinner."""
    taken = {*setup.members(generation.groups)}
    for role in generation.thinned if taken else ():
        outside = sorted({*setup.members([role])} - taken)
        if outside:
            raise UnsuitedError(
                f"{where}: thinned.{role}: expected groups among those of "
                f"{', '.join(generation.groups)} on track {setup.track.id}, got also "
                f"{', '.join(outside)}"
            )


def _check_tasks(setup: Setup, dataset: ModuleType, file: str) -> None:
    """Every task means something on these items, and the evaluation set exists."""
    protocol, track = setup.protocol, setup.track
    which = f"dataset {track.dataset} of track {track.id}"
    ruled_out = getattr(dataset, "RULES_OUT", {}).get(setup.part, {})
    for i, task in enumerate(protocol.tasks):
        if task in ruled_out:
            raise UnsuitedError(
                f"{file}: tasks[{i}]: {which} rules {task} out on its evaluation set "
                f"'{setup.part}': {ruled_out[task]}"
            )
    offers = getattr(dataset, "OFFERS", None)
    if offers is None:
        return
    for i, task in enumerate(protocol.tasks):
        for need in getattr(registry.task(task), "NEEDS", ()):
            made_here = need == "groups" and protocol.evaluation.ranges  # its own, of classes
            if need not in offers and not made_here:
                raise UnsuitedError(
                    f"{file}: tasks[{i}]: {task} needs {need}, which {which} does not have"
                )
    if setup.part != "test" and setup.part not in offers:
        raise UnsuitedError(
            f"{file}: evaluation: part: {which} has no evaluation set '{setup.part}'"
        )


def _check_sizes(setup: Setup, dataset: ModuleType, file: str) -> None:
    """Every generation sees something and something judges, as far as is known without data."""
    facts, here = declared(setup.track), f"on track {setup.track.id}"
    for i, generation in enumerate(setup.protocol.generations):
        why = lack(generation, facts, setup.members)
        if why is not None:
            raise UnsuitedError(f"{file}: generations[{i}] '{generation.name}': {why} {here}")
    judged = setup.protocol.evaluation
    if judged.classes == (0.0, 1.0) and not judged.ranges:
        return
    if setup.part in getattr(dataset, "UNSEEN", ()):
        low, high = judged.classes
        asked = f"ranges {judged.ranges}" if judged.ranges else f"classes [{low:g}, {high:g}]"
        raise UnsuitedError(
            f"{file}: evaluation: {asked} of those trained on: expected items of them in "
            f"evaluation set '{setup.part}' of dataset {setup.track.dataset}, got none"
        )
    n = facts.get("train_classes")
    if n is not None and len({boundary(share, n) for share in judged.classes}) == 1:
        why = none_of("classes", judged.classes, f"{n:,}")
        raise UnsuitedError(f"{file}: evaluation: {why} {here}")
