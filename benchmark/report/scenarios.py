"""Boards in plain words: what happens, on which pictures, with classes seen in training or not."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from benchmark.config.loading import load_protocol, load_track
from benchmark.records.record import Record
from benchmark.report import notes

Classes = Literal["seen", "unseen", "both", ""]
ScenarioGroup = Literal["one update", "backfilling", "a chain of updates", "templates and cameras"]
KINDS = {
    "photographs": "photographs", "texts": "texts", "drawings": "drawings",
    "rendered": "rendered pictures",
    "own": "pictures of whoever ran it", "": "pictures of an unknown kind",
}  # fmt: skip
"""Kind of a track -> words; what weighs most comes first."""
SHORT_KINDS = {
    "photographs": "photographs", "texts": "texts", "drawings": "drawings",
    "rendered": "characters",
    "own": "your pictures", "": "other pictures",
}  # fmt: skip
"""Kind of a track -> the fewest words."""
NETWORKS = {
    "small": "small networks", "frozen": "frozen, pretrained networks", "": "other networks",
}  # fmt: skip
"""Kind of a track's models -> words."""
_SMOKE_TEST = "rendered"
"""Kind whose order of methods is not that of photographs, as ``results/studies`` says."""
CLASSES = {
    "seen": "classes seen in training", "unseen": "classes never seen in training",
    "both": "classes seen and never seen", "": "",
}  # fmt: skip
_ENROLLED = {"verification", "identification", "reidentification"}


@dataclass(frozen=True)
class Scenario:
    """A protocol on a track in plain words."""

    title: str  # ``The new model learns more classes, on rendered characters (smoke test)``
    id: str  # ``extended-class · glyphs``
    happens: str  # ``the new model learns more classes``
    subject: str  # ``rendered characters (smoke test)``
    kind: str  # a key of :data:`KINDS`
    classes: Classes  # whether the new model saw the classes that it is judged on
    group: ScenarioGroup

    @property
    def place(self) -> int:
        """Place of its kind of pictures among all kinds."""
        return [*KINDS].index(self.kind)


def scenario(record: Record) -> Scenario:
    """The scenario that a record is of."""
    track = notes.installed(load_track, record.track)
    happens = _happens(record)
    subject = (track.subject if track else "") or notes.track_title(record)
    kind = track.kind if track else ""
    if kind == _SMOKE_TEST:
        subject += " (smoke test)"
    classes = classes_of(record)
    also = f", {CLASSES[classes]}" if classes in ("seen", "both") else ""
    changes = "".join(f", {key}={value}" for key, value in record.changed.items())
    title = f"{happens[:1].upper()}{happens[1:]}, on {subject}{also}{changes}"
    ids = f"{record.protocol} · {record.track}"
    return Scenario(title, ids, happens, subject, kind, classes, _group(record))


def networks_of(track: str) -> str:
    """The kind of a track's models, a key of :data:`NETWORKS`; empty where it is not known here."""
    made = notes.installed(load_track, track)
    models = [made.models[name] for name in ("old", "new")] if made else []
    if models and all(model.frozen for model in models):
        return "frozen"
    return "small" if models and all(model.is_small for model in models) else ""


def _happens(record: Record) -> str:
    """The event in words; the setting behind it, if the protocol has settings."""
    family, _, setting = record.protocol.partition(":")
    protocol = notes.installed(load_protocol, family)
    words = (protocol.scenario if protocol else "") or notes.protocol_title(family)
    if not setting:
        return words
    return f"{words}: {notes.settings(record).get(record.protocol, setting)}"


def _group(record: Record) -> ScenarioGroup:
    tasks = _tasks(record)
    if len(record.models) > 2:
        return "a chain of updates"
    if record.orders or "backfilling" in tasks:
        return "backfilling"
    return "templates and cameras" if tasks and set(tasks) <= _ENROLLED else "one update"


def _tasks(record: Record) -> tuple[str, ...]:
    if record.parameters is not None:
        return record.parameters.protocol.tasks
    protocol = notes.installed(load_protocol, record.protocol)
    return protocol.tasks if protocol else ()


def classes_of(record: Record) -> Classes:
    """Tell if the newest model was trained on the classes that it is evaluated on.

    Sets that a data set keeps for evaluation have other classes where it has more of them than are
    trained on; ``seen`` is a part of the training classes, which a protocol may narrow.
    """
    rules = _rules(record)
    if rules is None:
        return ""
    protocol, part = rules
    if part == "seen":
        # As recorded it stands in place; a protocol that is only read keeps what a setting changes.
        low, high = protocol.set.get("evaluation.classes", protocol.evaluation.classes)
        first, last = protocol.generations[-1].classes
        if first <= low and high <= last:
            return "seen"
        return "unseen" if high <= first or last <= low else "both"
    track = notes.installed(load_track, record.track)
    facts = record.dataset.facts or (track.facts if track else {})
    trained, every = facts.get("train_classes"), record.dataset.n_classes or facts.get("classes")
    if not isinstance(trained, int) or not isinstance(every, int):
        return ""
    return "unseen" if every > trained else "seen"


def _rules(record: Record) -> tuple[Any, str] | None:
    """Rules of the protocol, and the evaluation set: as recorded, or as installed here."""
    if record.parameters is not None:
        known = record.parameters
        return known.protocol, known.protocol.evaluation.part or known.track.evaluation
    protocol = notes.installed(load_protocol, record.protocol)
    track = notes.installed(load_track, record.track)
    if protocol is None or track is None:
        return None
    return protocol, protocol.evaluation.part or track.evaluation


def kinds_words(scenarios: Iterable[Scenario]) -> str:
    """The kinds of pictures that some boards are on, ``rendered pictures and drawings``."""
    found = {each.kind for each in scenarios}
    words = [KINDS[kind] for kind in KINDS if kind in found]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1] if words else ""]))
