"""A protocol on a track with the changes of a run: files, settings and ``--set`` in one language.

A change is ``owner.field``: the owner is a generation (``old.head``, ``old.classes``), ``recipe``,
``recipe.augment``, ``data``, ``track``, ``protocol``, ``evaluation`` or a method (``bct.weight``).
A number may be given as a multiple of what is there: ``new.dim=x2``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmark.config.parameters import parameters_of
from benchmark.config.reading import build
from benchmark.config.types import (
    OWNERS,
    EvaluationSpec,
    GenerationSpec,
    ModelSpec,
    Protocol,
    Recipe,
    Setting,
    Track,
)
from benchmark.errors import BenchError, UnsuitedError, nearest, unknown

_GENERATION = {f.name for f in dataclasses.fields(GenerationSpec)} - {"name"}
_MODEL = {f.name for f in dataclasses.fields(ModelSpec)}


@dataclass(frozen=True)
class Setup:
    """A protocol on a track with this run's changes.

    Attributes:
        models: The model of each generation, in order.
        methods: Parameters changed for a method id or ``id:variant``.
        changed: The changes as given; empty for the unmodified track.
    """

    protocol: Protocol
    track: Track
    models: tuple[ModelSpec, ...]
    methods: Mapping[str, Mapping[str, Any]]
    changed: Mapping[str, Any]

    def params(self, method: str) -> dict[str, Any]:
        """Changed parameters of ``bct`` or ``bct:distill``.

        Those of the id give way to the variant's own values, those of ``id:variant`` do not.
        """
        base, _, variant = method.partition(":")
        changed = dict(self.methods.get(base, {}))
        if variant and changed:
            from benchmark.config.registry import method_class

            own = method_class(base).variants.get(variant, {})
            changed = {name: value for name, value in changed.items() if name not in own}
        return {**changed, **self.methods.get(method, {})}

    def recipe(self, generation: int) -> Recipe:
        """How a generation is trained: the track's recipe with its model's changes."""
        recipe = self.track.recipe
        for name, value in self.models[generation].recipe.items():
            recipe = _change(recipe, name, value, f"models: recipe.{name}")
        return recipe

    def split(self, generation: int) -> dict[str, Any]:
        """Which training images a generation sees, as stages name it."""
        protocol, g = self.protocol, self.protocol.generations[generation]
        split: dict[str, Any] = {
            "classes": g.classes, "images": g.images, "order": protocol.order,
            "seed": protocol.split_seed,
        }  # fmt: skip
        if protocol.image_order != "seeded":
            split["image_order"] = protocol.image_order
        if g.groups:
            split["groups"] = self.members(g.groups)
        if g.thinned:
            split["thinned"] = [[self.members([r]), share] for r, share in g.thinned.items()]
        return split

    def judged(self) -> dict[str, Any]:
        """Which items judge, as far as the protocol says more than the track."""
        protocol, chosen = self.protocol, self.protocol.evaluation
        narrow: dict[str, Any] = {}
        if chosen.classes != (0.0, 1.0):
            narrow["classes"] = chosen.classes
        if chosen.ranges:
            narrow["ranges"] = chosen.ranges
        if narrow:  # ranges of classes count as the splits do
            narrow |= {"order": protocol.order, "seed": protocol.split_seed}
        if chosen.groups:
            narrow["groups"] = self.members(chosen.groups)
        if chosen.against is not None:
            narrow["against"] = [chosen.against, self.members([chosen.against])]
        return {"narrow": narrow} if narrow else {}

    @property
    def part(self) -> str:
        """Which of the dataset's evaluation sets judges."""
        return self.protocol.evaluation.part or self.track.evaluation

    def members(self, roles: Iterable[str]) -> list[str]:
        """Groups of the dataset, by the track's names for them."""
        return sorted({name for role in roles for name in self.track.groups[role]})


def set_up(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: Sequence[str]
) -> Setup:
    """Apply what the track, the protocol's setting and ``--set`` change, in this order.

    Raises:
        UnsuitedError: If the track cannot serve the protocol.
        BenchError: If a key names nothing, a value does not fit, or the protocol still has settings
            to choose from.
    """
    if protocol.settings:
        names = ", ".join(f"{protocol.id}:{s.name}" for s in protocol.settings)
        raise BenchError(f"protocol {protocol.id}: expected one of its settings: {names}")
    draft = _Draft(protocol, track)
    layers = [
        (track.protocols.get(protocol.family, {}), f"{track.id}.yaml: protocols.{protocol.family}"),
        (protocol.set, f"{protocol.family}.yaml: {setting_words(protocol)}"),
        (track.protocols.get(protocol.id, {}), f"{track.id}.yaml: protocols.{protocol.id}"),
    ]
    if ":" not in protocol.id:
        layers.pop()
    for changes, where in layers:
        for key, value in changes.items():
            draft.change(key, value, f"{where}: {key}", known_methods())
    for key, value in settings.items():
        owners = frozenset(methods) | {m.partition(":")[0] for m in methods}
        draft.change(key, value, f"--set {key}", owners)
    from benchmark.config.suitability import check_served

    made = draft.finish(settings)
    check_served(made)
    return made


def setting_words(protocol: Protocol) -> str:
    """Where a setting's changes stand."""
    name = protocol.id.partition(":")[2]
    return f"settings '{name}'" if name else "set"


@cache
def known_methods() -> frozenset[str]:
    """Every method and variant, whether it is asked for or not."""
    from benchmark.config.registry import method_files

    files = method_files()
    variants = (f"{name}:{v}" for name, file in files.items() for v in file.variants)
    return frozenset((*files, *variants))


def with_setting(protocol: Protocol, name: str) -> Protocol:
    """The protocol of one setting, ``arch-change:deeper``.

    Raises:
        BenchError: If there is no such setting.
    """
    known = {s.name: s for s in protocol.settings}
    if name not in known:
        words = nearest(name, known) if known else "; it has none"
        raise BenchError(f"protocol {protocol.id}: unknown setting '{name}'{words}")
    return _resolved(protocol, known[name])


def expand(protocol: Protocol) -> Iterator[Protocol]:
    """The protocol of each setting; the protocol itself where it has none."""
    if not protocol.settings:
        yield protocol
    for setting in protocol.settings:
        yield _resolved(protocol, setting)


def _resolved(protocol: Protocol, setting: Setting) -> Protocol:
    return dataclasses.replace(
        protocol,
        id=f"{protocol.id}:{setting.name}",
        title=f"{protocol.title}: {setting.title or setting.name}",
        set={**protocol.set, **setting.set},
        settings=(),
    )


def check_names(protocol: Protocol, file: str) -> None:
    """Refuse what names nothing, or names two things; also what a setting's changes make of it.

    What depends on the track, such as its models, is looked at where they meet.

    Raises:
        BenchError: Naming file, setting, key and reason.
    """
    methods = known_methods()
    for generation in protocol.generations:
        if generation.name in methods:
            raise BenchError(f"{file}: generations: '{generation.name}' is the name of a method")
    check_tasks(protocol.tasks, file)
    for each in expand(protocol):
        draft = _Draft(each, None)
        for key, value in each.set.items():
            draft.change(key, value, f"{file}: {setting_words(each)}: {key}", methods)


class _Draft:
    """A protocol and a track while changes come in; without a track, only the protocol's."""

    def __init__(self, protocol: Protocol, track: Track | None) -> None:
        self.protocol, self.track = protocol, track
        self.models: list[tuple[str, str, Any, str]] = []
        self.methods: dict[str, dict[str, Any]] = {}

    def change(self, key: str, value: Any, where: str, methods: frozenset[str]) -> None:
        """Make one change, or keep it until the models are known."""
        owner, dot, name = key.rpartition(".")
        names = [g.name for g in self.protocol.generations]
        if not dot:
            raise BenchError(f"{where}: expected owner.field, such as old.head or recipe.epochs")
        if owner in names:
            self._generation(owner, name, value, where)
        elif owner == "protocol":
            self.protocol = _change(self.protocol, name, value, where)
            check_tasks(self.protocol.tasks, where)
        elif owner == "evaluation":
            spec: EvaluationSpec = _change(self.protocol.evaluation, name, value, where)
            self.protocol = dataclasses.replace(self.protocol, evaluation=spec)
        elif owner in OWNERS:
            self._track(owner, name, value, where)
        elif owner in methods:
            _check_parameter(owner, name, where)
            self.methods.setdefault(owner, {})[name] = value
        else:
            known = {*names, *OWNERS, *methods}
            raise BenchError(f"{where}: unknown owner '{owner}'{nearest(owner, known)}")

    def _generation(self, owner: str, name: str, value: Any, where: str) -> None:
        if name not in _GENERATION:
            if name not in _MODEL:
                known = nearest(name, _MODEL | _GENERATION)
                raise BenchError(f"{where}: unknown key '{name}'{known}")
            self.models.append((owner, name, value, where))
            return
        generations = tuple(
            _change(g, name, value, where) if g.name == owner else g
            for g in self.protocol.generations
        )
        try:
            self.protocol = dataclasses.replace(self.protocol, generations=generations)
        except ValueError as error:
            raise BenchError(f"{where}: {error}") from error

    def _track(self, owner: str, name: str, value: Any, where: str) -> None:
        if self.track is None:
            return
        if owner == "data":
            from benchmark.config.suitability import check_options

            data = {**self.track.data, name: value}
            check_options(self.track.dataset, data, where)
            self.track = dataclasses.replace(self.track, data=data)
        elif owner == "track":
            self.track = _change(self.track, name, value, where)
        else:
            recipe = self.track.recipe
            if owner == "recipe":
                recipe = _change(recipe, name, value, where)
            else:
                augment = _change(recipe.augment, name, value, where)
                recipe = dataclasses.replace(recipe, augment=augment)
            self.track = dataclasses.replace(self.track, recipe=recipe)

    def finish(self, settings: Mapping[str, Any]) -> Setup:
        """Look the models up, and change them."""
        if self.track is None:
            raise TypeError("a draft without a track cannot be finished")
        specs: dict[str, ModelSpec] = {}
        for i, g in enumerate(self.protocol.generations):
            name = g.model or ("old" if i == 0 else "new")
            if name not in self.track.models:
                known = nearest(name, self.track.models)
                raise UnsuitedError(
                    f"{self.protocol.family}.yaml: generations[{i}]: model: track {self.track.id} "
                    f"has no model '{name}'{known}"
                )
            specs[g.name] = self.track.models[name]
        for owner, name, value, where in self.models:
            specs[owner] = _change(specs[owner], name, value, where)
        made = Setup(self.protocol, self.track, tuple(specs.values()), self.methods, dict(settings))
        for i in range(len(specs)):
            made.recipe(i)
        return made


def check_tasks(names: Sequence[str], where: str) -> None:
    """Refuse a task that nobody knows, and two of which one would overwrite the other's scores.

    Raises:
        BenchError: Naming ``where``, its place and the nearest known one, or the scores.
    """
    from benchmark.config.registry import task, tasks

    known = tasks()
    owner: dict[tuple[str, bool], str] = {}
    for i, name in enumerate(names):
        if name not in known:
            raise BenchError(f"{where}: tasks[{i}]: {unknown('task', name, known)}")
        made = task(name)
        # What texts and what images ask are cases of their own, each with its scores.
        own = [(s, getattr(made, "TEXTS", False)) for s in getattr(made, "SCORES", ())]
        shared = [score for score in own if score in owner]
        if shared:
            raise BenchError(
                f"{where}: tasks[{i}]: expected scores of other names than those of "
                f"{owner[shared[0]]}, got {name}, which has {', '.join(s for s, _ in shared)} too"
            )
        owner |= dict.fromkeys(own, name)


def _check_parameter(method: str, name: str, where: str) -> None:
    from benchmark.config.registry import method_file

    known = parameters_of(method_file(method).module)
    if known is not None and name not in known:
        raise BenchError(f"{where}: unknown key '{name}'{nearest(name, known)}")


def _change(obj: Any, name: str, value: Any, where: str) -> Any:
    known = {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
    if name not in known:
        raise BenchError(f"{where}: unknown key '{name}'{nearest(name, known)}")
    return build(type(obj), {**known, name: _multiple(known[name], value, where)}, where)


def _multiple(now: Any, value: Any, where: str) -> Any:
    """``x2`` as twice what is there."""
    found = re.fullmatch(r"x(\d+(?:\.\d+)?)", value) if isinstance(value, str) else None
    if found is None or isinstance(now, bool) or not isinstance(now, int | float):
        return value
    made = float(found[1]) * now
    if isinstance(now, int):
        if made != int(made):
            raise UnsuitedError(f"{where}: expected a whole number, got {value} of {now}: {made:g}")
        return int(made)
    return made
