"""Changes of a protocol and a track in one language: files, settings and ``--set``.

A change is ``owner.field``: the owner is a generation (``old.head``, ``old.classes``), ``recipe``,
``recipe.augment``, ``recipe.simclr``, ``recipe.simclr.augment``, ``data``, ``track``, ``protocol``,
``evaluation`` or a method (``bct.weight``).
A number may be given as a multiple of what is there: ``new.dim=x2``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from benchmark.config import registry
from benchmark.config.checks import LARGEST
from benchmark.config.generations import GenerationSpec
from benchmark.config.method_names import RESERVED
from benchmark.config.protocols import Protocol
from benchmark.config.reading import Model, build
from benchmark.config.recipes import OF_BACKBONE, ModelSpec, Recipe, lengthened
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track
from benchmark.errors import BenchError, UnsuitedError, located, nearest

Spec = TypeVar("Spec", bound=Model)
Changes = dict[str, tuple[Any, str]]
"""Field -> its new value, and where that is written."""

_GENERATION = {*GenerationSpec.model_fields} - {"name"}
_MODEL = {*ModelSpec.model_fields}
_PLACES = {
    "track": (), "recipe.augment": ("recipe", "augment")
}  # fmt: skip
"""Owner -> where its fields stand in the track."""
_OF_SIMCLR = ("recipe.simclr", "recipe.simclr.augment")


@cache
def known_methods() -> frozenset[str]:
    """Every method and variant, whether it is run or not."""
    files = registry.method_files()
    return frozenset((*files, *(f"{name}:{v}" for name in files for v in files[name].variants)))


def with_setting(protocol: Protocol, name: str) -> Protocol:
    """The protocol of one setting, ``arch-change:deeper``; BenchError if there is none."""
    names = [setting.name for setting in protocol.settings]
    if name not in names:
        words = nearest(name, names) or "; it has none"
        raise BenchError(f"protocol {protocol.id}: unknown setting '{name}'{words}")
    return list(expand(protocol))[names.index(name)]


def expand(protocol: Protocol) -> Iterator[Protocol]:
    """The protocol of each setting; the protocol itself where it has none."""
    if not protocol.settings:
        yield protocol
    for setting in protocol.settings:
        changes = {
            "id": f"{protocol.id}:{setting.name}",
            "title": f"{protocol.title}: {setting.title or setting.name}",
            "version": setting.version or protocol.version,
            "set": {**protocol.set, **setting.set}, "settings": (),
        }  # fmt: skip
        yield protocol.model_copy(update=changes)


def place_of_setting(protocol: Protocol) -> str:
    """Place of a setting's changes in the file."""
    name = protocol.id.partition(":")[2]
    return f"settings '{name}'" if name else "set"


def apply(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: Sequence[str]
) -> Setup:
    """Apply what the protocol, the track and ``--set`` change, in this order.

    A setting of a protocol comes after the track, of whose values it may name multiples.

    Raises:
        UnsuitedError: If the track has not the models.
        BenchError: If a key names nothing, a value does not fit, or the protocol still has settings
            to choose from.
    """
    if protocol.settings:
        names = ", ".join(f"{protocol.id}:{s.name}" for s in protocol.settings)
        raise BenchError(f"protocol {protocol.id}: expected one of its settings: {names}")
    draft, family = Draft(protocol, track), protocol.family
    of_protocol = protocol.set, f"{family}.yaml: {place_of_setting(protocol)}: "
    of_track = track.protocols.get(family, {}), f"{track.id}.yaml: protocols.{family}: "
    is_setting = protocol.id != family
    for changes, where in (of_track, of_protocol) if is_setting else (of_protocol, of_track):
        draft.change(changes, where)
    if is_setting:
        of_setting = track.protocols.get(protocol.id, {})
        draft.change(of_setting, f"{track.id}.yaml: protocols.{protocol.id}: ")
    owners = frozenset(methods) | {m.partition(":")[0] for m in methods}
    draft.change(settings, "--set ", owners)
    return draft.finish(settings)


def idle(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: Sequence[str]
) -> list[str]:
    """Keys of ``--set`` whose value is there without them, in every setting of the protocol."""

    def made(each: Protocol, chosen: Mapping[str, Any]) -> Setup:
        setup = apply(each, track, chosen, methods)
        of_methods: dict[str, dict[str, Any]] = {}
        for owner, params in setup.methods.items():
            usual = registry.method(owner)
            other = {k: v for k, v in params.items() if getattr(usual, k, None) != v}
            of_methods |= {owner: other} if other else {}
        return replace(setup, changed={}, methods=of_methods)

    found: dict[str, None] | None = None
    for each in expand(protocol):
        try:
            whole = made(each, settings)
        except BenchError:  # it does not suit, or needs what is swept
            continue
        found = dict.fromkeys(settings) if found is None else found
        for key in [*found]:
            with suppress(BenchError):  # others need it
                if made(each, {k: v for k, v in settings.items() if k != key}) == whole:
                    continue
            del found[key]
    return [*(found or ())]


def check_protocol(protocol: Protocol, file: str) -> None:
    """Refuse what names nothing, or names two things; also what a setting's changes make of it.

    A BenchError names file, setting, key and reason. What depends on the track, such as its
    models, is checked where they meet.
    """
    for generation in protocol.generations:
        if generation.name in known_methods():
            raise BenchError(f"{file}: generations: '{generation.name}' is the name of a method")
    check_tasks(protocol.tasks, file)
    for each in expand(protocol):
        Draft(each, None).change(each.set, f"{file}: {place_of_setting(each)}: ")


class Draft:
    """A protocol and a track while changes come in; without a track, only the protocol's."""

    def __init__(self, protocol: Protocol, track: Track | None) -> None:
        self.protocol, self.track = protocol, track
        self.models: list[dict[str, Changes]] = []
        self.methods: dict[str, dict[str, Any]] = {}

    def change(
        self, changes: Mapping[str, Any], where: str, methods: frozenset[str] | None = None
    ) -> None:
        """Change each ``owner.field``, or keep it until the models are known.

        ``where`` stands before the key in errors; the ``methods`` that are owners are by default
        every one.
        """
        self.models.append({})
        together: dict[str, Changes] = {}
        for key, value in changes.items():
            _refuse_twice(key, changes, where)
            if isinstance(value, float) and not -LARGEST <= value <= LARGEST:
                raise BenchError(
                    f"{where}{key}: expected a number within ±{LARGEST:g}, got {value:g}"
                )
            owner, _, name = key.rpartition(".")
            of_model = owner in self._names and name in _MODEL
            if owner in self._at_once and not of_model:
                together.setdefault(owner, {})[name] = value, where + key
            else:
                self._change(key, value, where + key, methods or known_methods())
        self._change_protocol(together)
        if self.track is not None:
            recipe = _with_simclr(self.track.recipe, together, where)
            recipe = _changed_together(recipe, together.get("recipe", {}))
            self.track = self.track.model_copy(update={"recipe": recipe})

    @property
    def _at_once(self) -> set[str]:
        """Owners of fields that need others: milestones a schedule of steps, shares other ones."""
        return {*self._names, "protocol", "evaluation", "recipe", *_OF_SIMCLR}

    @property
    def _names(self) -> list[str]:
        return [generation.name for generation in self.protocol.generations]

    def _change(self, key: str, value: Any, where: str, methods: frozenset[str]) -> None:
        owner, dot, name = key.rpartition(".")
        if not dot:
            raise BenchError(f"{where}: expected owner.field, such as old.head or recipe.epochs")
        if owner in self._names:
            self.models[-1].setdefault(owner, {})[name] = value, where
        elif owner in methods:
            self.methods.setdefault(owner, {})[name] = value
        elif owner not in RESERVED:
            known = {*self._names, *RESERVED, *methods}
            raise BenchError(f"{where}: unknown owner '{owner}'{nearest(owner, known)}")
        elif self.track is None:
            return
        elif owner == "data":
            data = {**self.track.data, name: value}
            registry.check_options(self.track.dataset, data, where)
            self.track = self.track.model_copy(update={"data": data})
        else:
            self.track = _changed(self.track, (*_PLACES[owner], name), value, where)

    def _change_protocol(self, together: Mapping[str, Changes]) -> None:
        """Change the protocol, its evaluation and generations, and check it then as a whole."""
        own, parts = together.get("protocol", {}), Changes()
        generations: list[GenerationSpec] = []
        for generation in self.protocol.generations:
            changes = together.get(generation.name, {})
            for name, (_, where) in changes.items():
                if name not in _GENERATION:
                    known = nearest(name, _MODEL | _GENERATION)
                    raise BenchError(f"{where}: unknown key '{name}'{known}")
                parts["generations"] = generations, where
            generations.append(_changed_together(generation, changes))
        if changes := together.get("evaluation", {}):
            where = next(iter(changes.values()))[1]
            parts["evaluation"] = _changed_together(self.protocol.evaluation, changes), where
        if both := sorted(own.keys() & parts.keys()):
            raise BenchError(f"{own[both[0]][1]}: expected it or {parts[both[0]][1]}, got both")
        self.protocol = _changed_together(self.protocol, own | parts)
        if "tasks" in own:
            check_tasks(self.protocol.tasks, own["tasks"][1])

    def finish(self, settings: Mapping[str, Any]) -> Setup:
        """Look the models up, and change them."""
        if self.track is None:
            raise TypeError("a draft without a track cannot be finished")
        specs: dict[str, ModelSpec] = {}
        for i, g in enumerate(self.protocol.generations):
            name = g.model or ("old" if i == 0 else "new")
            if name not in self.track.models:
                raise UnsuitedError(
                    f"{self.protocol.family}.yaml: generations[{i}]: model: track {self.track.id} "
                    f"has no model '{name}'{nearest(name, self.track.models)}"
                )
            specs[g.name] = self.track.models[name]
        for layer in self.models:
            for owner, changes in layer.items():
                if "backbone" in changes:
                    # What is said of a backbone holds no more where there is another.
                    fields = ModelSpec.model_fields
                    usual = {field: fields[field].default for field in OF_BACKBONE}
                    specs[owner] = specs[owner].model_copy(update=usual)
                specs[owner] = _changed_together(specs[owner], changes)
        length = self.track.recipe.length
        models = tuple(_lengthened(spec, length) for spec in specs.values())
        track = self.track.model_copy(update={"recipe": self.track.recipe.lengthened()})
        setup = Setup(self.protocol, track, models, self.methods, dict(settings))
        for i in range(len(models)):
            setup.recipe(i)
        return setup


def check_tasks(names: Sequence[str], where: str) -> None:
    """BenchError on an unknown task, or two of which one would overwrite the other's scores."""
    owner: dict[tuple[str, bool], str] = {}
    for i, name in enumerate(names):
        with located(f"{where}: tasks[{i}]"):
            task = registry.task(name)
            # Text and image queries are cases of their own, each with its scores.
            scores = [(score, task.text_queries) for score in task.scores]
            shared = [score for score in scores if score in owner]
            if shared:
                raise BenchError(
                    f"expected scores of other names than those of {owner[shared[0]]}, got {name}, "
                    f"which has {', '.join(score for score, _ in shared)} too"
                )
        owner |= dict.fromkeys(scores, name)


def _changed(spec: Spec, path: Sequence[str], value: Any, where: str) -> Spec:
    """A model with the field at the end of a path changed."""
    name, *inner = path
    if inner:
        return spec.model_copy(update={name: _changed(getattr(spec, name), inner, value, where)})
    return _changed_together(spec, {name: (value, where)})


def _changed_together(spec: Spec, changes: Changes) -> Spec:
    """A model with several fields changed at once, of which one may need another.

    Errors name the place of the field that they are about, else of the first one.
    """
    if not changes:
        return spec
    fields, wheres = dict(spec), {name: where for name, (_, where) in changes.items()}
    for name, (value, where) in changes.items():
        if name not in fields:
            raise BenchError(f"{where}: unknown key '{name}'{nearest(name, fields)}")
        fields[name] = _multiple(fields[name], value, where)
    try:
        return build(type(spec), fields, "")
    except BenchError as error:
        reason = str(error).removeprefix(": ")
        named = re.split(r"[.\[:]", reason)[0]
        raise BenchError(f"{wheres.get(named, next(iter(wheres.values())))}: {reason}") from error


def _with_simclr(recipe: Recipe, together: Mapping[str, Changes], where: str) -> Recipe:
    """A recipe with changes of that of SimCLR's training."""
    own, views = (together.get(owner, {}) for owner in _OF_SIMCLR)
    if not own and not views:
        return recipe
    made = recipe.for_simclr()
    if views:
        augment = _changed_together(made.augment, views)
        own = {**own, "augment": (augment, next(iter(views.values()))[1])}
    values = _changed_together(made, own).model_dump(mode="json")
    simclr = {**recipe.simclr, **{name: values[name] for name in own}}
    return _changed(recipe, ("simclr",), simclr, f"{where}{_OF_SIMCLR[0]}")


def _refuse_twice(key: str, changes: Mapping[str, Any], where: str) -> None:
    """Refuse a field of something that is given as a whole, too."""
    for whole in changes:
        if key.startswith(f"{whole}."):
            raise BenchError(f"{where}{key}: expected it or all of {whole}, got both")


def _lengthened(spec: ModelSpec, length: int) -> ModelSpec:
    """A model whose own recipe trains so many times as long, as far as it says how long."""
    if "length" in spec.recipe:
        raise BenchError("models: recipe: length is the track's, --set recipe.length=2")
    return spec.model_copy(update={"recipe": lengthened(spec.recipe, length)})


def _multiple(now: Any, value: Any, where: str) -> Any:
    """``x2`` as twice what is there."""
    factor = re.fullmatch(r"x(\d+(?:\.\d+)?)", value) if isinstance(value, str) else None
    if factor is None or isinstance(now, bool) or not isinstance(now, int | float):
        return value
    product = float(factor[1]) * now
    if isinstance(now, float):
        return product
    if not product.is_integer():
        raise UnsuitedError(f"{where}: expected a whole number, got {value} of {now}: {product:g}")
    return int(product)
