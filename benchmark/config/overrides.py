"""Changes of a protocol and a track in one language: files, settings and ``--set``.

A change is ``owner.field``: the owner is a generation (``old.head``, ``old.classes``), ``recipe``,
``recipe.augment``, ``data``, ``track``, ``protocol``, ``evaluation`` or a method (``bct.weight``).
A number may be given as a multiple of what is there: ``new.dim=x2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from benchmark.config import registry
from benchmark.config.generations import RESERVED, GenerationSpec
from benchmark.config.protocols import Protocol, Setting
from benchmark.config.reading import Model, build
from benchmark.config.recipes import ModelSpec
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track
from benchmark.errors import BenchError, UnsuitedError, nearest, unknown

Spec = TypeVar("Spec", bound=Model)

_GENERATION = {*GenerationSpec.model_fields} - {"name"}
_MODEL = {*ModelSpec.model_fields}


@cache
def known_methods() -> frozenset[str]:
    """Every method and variant, whether it is run or not."""
    files = registry.method_files()
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
    return protocol.model_copy(
        update={
            "id": f"{protocol.id}:{setting.name}",
            "title": f"{protocol.title}: {setting.title or setting.name}",
            "set": {**protocol.set, **setting.set},
            "settings": (),
        }
    )


def place_of_setting(protocol: Protocol) -> str:
    """Where a setting's changes stand in the file."""
    name = protocol.id.partition(":")[2]
    return f"settings '{name}'" if name else "set"


def apply(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: Sequence[str]
) -> Setup:
    """Apply what the track, the protocol's setting and ``--set`` change, in this order.

    Raises:
        UnsuitedError: If the track has not the models.
        BenchError: If a key names nothing, a value does not fit, or the protocol still has settings
            to choose from.
    """
    if protocol.settings:
        names = ", ".join(f"{protocol.id}:{s.name}" for s in protocol.settings)
        raise BenchError(f"protocol {protocol.id}: expected one of its settings: {names}")
    draft = Draft(protocol, track)
    family, place = protocol.family, place_of_setting(protocol)
    layers = [
        (track.protocols.get(family, {}), f"{track.id}.yaml: protocols.{family}"),
        (protocol.set, f"{family}.yaml: {place}"),
    ]
    if protocol.id != family:
        own = track.protocols.get(protocol.id, {})
        layers.append((own, f"{track.id}.yaml: protocols.{protocol.id}"))
    for changes, where in layers:
        for key, value in changes.items():
            draft.change(key, value, f"{where}: {key}", known_methods())
    owners = frozenset(methods) | {m.partition(":")[0] for m in methods}
    for key, value in settings.items():
        draft.change(key, value, f"--set {key}", owners)
    return draft.finish(settings)


def check_protocol(protocol: Protocol, file: str) -> None:
    """Refuse what names nothing, or names two things; also what a setting's changes make of it.

    What depends on the track, such as its models, is checked where they meet.

    Raises:
        BenchError: Naming file, setting, key and reason.
    """
    methods = known_methods()
    for generation in protocol.generations:
        if generation.name in methods:
            raise BenchError(f"{file}: generations: '{generation.name}' is the name of a method")
    check_tasks(protocol.tasks, file)
    for each in expand(protocol):
        draft = Draft(each, None)
        for key, value in each.set.items():
            draft.change(key, value, f"{file}: {place_of_setting(each)}: {key}", methods)


class Draft:
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
            self._change_generation(names.index(owner), name, value, where)
        elif owner == "protocol":
            self.protocol = _changed(self.protocol, name, value, where)
            check_tasks(self.protocol.tasks, where)
        elif owner == "evaluation":
            evaluation = _changed(self.protocol.evaluation, name, value, where)
            self.protocol = self.protocol.model_copy(update={"evaluation": evaluation})
        elif owner in RESERVED:
            self._change_track(owner, name, value, where)
        elif owner in methods:
            self.methods.setdefault(owner, {})[name] = value
        else:
            known = {*names, *RESERVED, *methods}
            raise BenchError(f"{where}: unknown owner '{owner}'{nearest(owner, known)}")

    def _change_generation(self, i: int, name: str, value: Any, where: str) -> None:
        generations = list(self.protocol.generations)
        if name in _MODEL:
            self.models.append((generations[i].name, name, value, where))
            return
        if name not in _GENERATION:
            raise BenchError(f"{where}: unknown key '{name}'{nearest(name, _MODEL | _GENERATION)}")
        generations[i] = _changed(generations[i], name, value, where)
        # The protocol as a whole is checked again: two generations may overlap now.
        self.protocol = build(Protocol, {**dict(self.protocol), "generations": generations}, where)

    def _change_track(self, owner: str, name: str, value: Any, where: str) -> None:
        if self.track is None:
            return
        track, recipe = self.track, self.track.recipe
        if owner == "track":
            self.track = _changed(track, name, value, where)
            return
        if owner == "data":
            data = {**track.data, name: value}
            registry.check_options(track.dataset, data, where)
            changes: dict[str, Any] = {"data": data}
        elif owner == "recipe":
            changes = {"recipe": _changed(recipe, name, value, where)}
        else:
            augment = _changed(recipe.augment, name, value, where)
            changes = {"recipe": recipe.model_copy(update={"augment": augment})}
        self.track = track.model_copy(update=changes)

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
            specs[owner] = _changed(specs[owner], name, value, where)
        models = tuple(specs.values())
        setup = Setup(self.protocol, self.track, models, self.methods, dict(settings))
        for i in range(len(models)):
            setup.recipe(i)
        return setup


def check_tasks(names: Sequence[str], where: str) -> None:
    """Refuse an unknown task, and two of which one would overwrite the other's scores.

    Raises:
        BenchError: Naming ``where``, its place and the nearest known one, or the scores.
    """
    known = registry.tasks()
    owner: dict[tuple[str, bool], str] = {}
    for i, name in enumerate(names):
        if name not in known:
            raise BenchError(f"{where}: tasks[{i}]: {unknown('task', name, known)}")
        task = registry.task(name)
        # Text and image queries are cases of their own, each with its scores.
        own = [(score, task.text_queries) for score in task.scores]
        shared = [score for score in own if score in owner]
        if shared:
            raise BenchError(
                f"{where}: tasks[{i}]: expected scores of other names than those of "
                f"{owner[shared[0]]}, got {name}, which has {', '.join(s for s, _ in shared)} too"
            )
        owner |= dict.fromkeys(own, name)


def _changed(spec: Spec, name: str, value: Any, where: str) -> Spec:
    known = dict(spec)
    if name not in known:
        raise BenchError(f"{where}: unknown key '{name}'{nearest(name, known)}")
    return build(type(spec), {**known, name: _multiple(known[name], value, where)}, where)


def _multiple(now: Any, value: Any, where: str) -> Any:
    """``x2`` as twice what is there."""
    factor = re.fullmatch(r"x(\d+(?:\.\d+)?)", value) if isinstance(value, str) else None
    if factor is None or isinstance(now, bool) or not isinstance(now, int | float):
        return value
    product = float(factor[1]) * now
    if isinstance(now, int):
        if product != int(product):
            raise UnsuitedError(
                f"{where}: expected a whole number, got {value} of {now}: {product:g}"
            )
        return int(product)
    return product
