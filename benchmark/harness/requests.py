"""Requests of runs: names and values checked, nothing computed yet."""

import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.config.checks import SEEDS
from benchmark.config.data_roots import Root, check_roots, parse_root
from benchmark.config.embedders import load_embedder
from benchmark.config.files import digest, sha256_of
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.recipes import OF_MAPS, PACKAGED, is_here
from benchmark.config.setup import Precision, Setup
from benchmark.errors import BenchError, UnsuitedError, located
from benchmark.harness.execution import faults_of_adapters
from benchmark.harness.graph import TRAINING, Plan
from benchmark.harness.published_models import PublishedModels
from benchmark.records.record import Record, record_path
from benchmark.report.numbers import words
from benchmark.report.outcome import RAW

Key = tuple[str, int]
"""A method and a seed."""


@dataclass(frozen=True)
class Request:
    """Methods and seeds on one protocol and track."""

    setup: Setup  # protocol and track with their changes
    labels: tuple[str, ...]  # methods, independent first
    seeds: tuple[int, ...]
    data_root: Root = None  # where the data lies, if it is not built in
    first_seed: int | None = None  # of the first generation, if fixed apart
    precision: Precision = "recipe"  # of all trainings

    def folder(self, out: Path) -> Path:
        """Folder of records: runs of a changed track lie apart from those that may be ranked."""
        return out / "changed" / digest(self.setup.changed)[:8] if self.setup.changed else out

    def paths(self, out: Path) -> dict[Key, Path]:
        """File of each record."""
        protocol, track = self.setup.protocol.id, self.setup.track.id
        return {
            (label, seed): record_path(self.folder(out), protocol, track, label, seed)
            for seed in self.seeds
            for label in self.labels
        }

    def other_versions(self, record: Record) -> list[str]:
        """In words, versions, code, models and recipe of a record's work that are others today."""
        protocol, track, own = self.setup.protocol, self.setup.track, record.adapter
        source = f"sha256:{registry.method_file(record.method).fingerprint}"
        parts: Mapping[str, tuple[object, object]] = {
            "protocol version": (record.protocol_version, protocol.version),
            "track version": (record.track_version, track.version),
            "training version": (record.training, TRAINING),
            "code of the method": (own and own.source[:19], source[:19]),
            **{f"model {n}": pair for n, pair in self._models_beside(record).items()},
            **{f"recipe.{n}": pair for n, pair in self._recipes_beside(record).items()},
        }
        return [
            f"{name} {was or 'none'}, here {now}"
            for name, (was, now) in parts.items()
            if was != now
        ]

    def _models_beside(self, record: Record) -> Mapping[str, tuple[object, object]]:
        """Generation -> its model in the record and here."""
        names = (generation.name for generation in self.setup.protocol.generations)
        here = dict(zip(names, self.setup.models, strict=True))
        return {name: (record.models.get(name), here[name]) for name in here}

    def _recipes_beside(self, record: Record) -> Mapping[str, tuple[object, object]]:
        """Field -> its value in the record's recipe and here; precision is chosen by run."""
        left_out = {"precision"}
        if not registry.method_file(record.method).trains_map:
            left_out |= set(OF_MAPS)
        was, here = dict(record.recipe), dict(self.setup.track.recipe)
        return {name: (was[name], here[name]) for name in here.keys() - left_out}

    def plan(
        self, labels: Sequence[str] | None = None, seeds: Sequence[int] | None = None,
        published: PublishedModels | None = None,
    ) -> Plan:  # fmt: skip
        """The graph of stages; of all methods and seeds where none are named."""
        # Planning imports adapters, and with them torch.
        from benchmark.harness.planner import make_plan

        with faults_of_adapters("plan", own=False):
            return make_plan(
                self.setup, list(self.labels if labels is None else labels),
                list(self.seeds if seeds is None else seeds),
                data_root=self.data_root, first_seed=self.first_seed, precision=self.precision,
                published=published,
            )  # fmt: skip

    def plan_of(self, keys: Sequence[Key], published: PublishedModels | None) -> Plan:
        """The graph of stages of these results."""
        labels, seeds = [label for label, _ in keys], sorted({seed for _, seed in keys})
        return self.plan(labels, seeds, published)


def make_requests(
    methods: Iterable[str], protocol: str, track: str = "glyphs", *,
    on_unsuited: Callable[[BenchError], None] = lambda e: warnings.warn(str(e), stacklevel=5),
    **options: Any,
) -> list[Request]:  # fmt: skip
    """A request for each setting of a protocol, or for the protocol.

    ``on_unsuited`` is called with what is wrong with a setting that does not suit the track, which
    is then left out; one that is named alone is an error. Options are those of
    :func:`make_request`.

    Raises:
        BenchError: As :func:`make_request`, or if no setting suits the track.
    """
    labels, settings = words(methods), list(expand(load_protocol(protocol)))
    if "seeds" in options:  # once: it may be an iterator, and there may be several settings
        options["seeds"] = _seeds("seeds", options["seeds"])
    requests, unsuited = [], {}
    for setting in settings:
        try:
            requests.append(make_request(labels, setting, track, **options))
        except UnsuitedError as error:
            if len(settings) == 1:
                raise
            unsuited[setting.id] = str(error)
    name = load_track(track).id
    if not requests:
        reasons = "; ".join(dict.fromkeys(unsuited.values()))
        raise UnsuitedError(f"no setting of {protocol} suits track {name}: {reasons}")
    for setting_id, reason in unsuited.items():
        on_unsuited(UnsuitedError(f"{setting_id} does not suit track {name}: {reason}"))
    return requests


def make_request(
    methods: Iterable[str], protocol: str | Protocol, track: str = "glyphs", *,
    data_root: str | Path | Mapping[str, str | Path] | None = None, seeds: Iterable[int] = (0,),
    settings: Mapping[str, Any] | None = None, first_seed: int | None = None,
    without_data: bool = False, precision: Precision = "recipe",
) -> Request:  # fmt: skip
    """Check the names and values of a run.

    Arguments are those of :func:`benchmark.api.run`; with ``without_data`` the data may be
    missing: the request can be planned, not carried out.

    Raises:
        UnsuitedError: If the track does not have what the protocol needs.
        BenchError: On an unknown name, key or value, or a missing data root.
    """
    labels = words(methods)
    if not labels:
        raise BenchError("methods: expected at least one")
    for label in labels:
        registry.method_file(label)
    labels = list(dict.fromkeys(["independent", *labels]))
    chosen = _seeds("seeds", seeds)
    if first_seed is not None:
        (first_seed,) = _seeds("first seed", [first_seed])
    changes = _changes(settings)
    spec = load_protocol(protocol) if isinstance(protocol, str) else protocol
    root, on = parse_root(data_root), load_track(track)
    dataset = registry.check_options(on.dataset, on.data, f"{on.id}.yaml: data")
    other = on.other_domain.get("dataset")
    check_roots(dataset, on.dataset, root, [str(other)] if other else [])
    setup = _with_hashes(set_up(spec, on, changes, labels, root))
    if first_seed is not None:
        setup = replace(setup, changed={**setup.changed, "first_seed": first_seed})
    if any(model.frozen for model in setup.models):  # what training has to beat
        labels = list(dict.fromkeys(["independent", RAW, *labels]))
    if setup.track.needs_root and root is None and not without_data:
        raise BenchError(f"track {setup.track.id}: needs --data-root, the folder of its images")
    return Request(setup, tuple(labels), tuple(chosen), root, first_seed, precision)


def _changes(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(settings, Mapping | None):
        kind = f'a mapping such as {{"bct.weight": 2}}, got {settings!r:.60}'
        raise BenchError(f"settings: expected {kind}")
    return dict(settings or {})


def _seeds(name: str, given: Iterable[int]) -> list[int]:
    """Seeds that a record can hold, each once; a BenchError on any other."""
    try:
        seeds = list(dict.fromkeys(map(operator.index, given)))
    except TypeError:
        seeds = []
    if not seeds or not 0 <= min(seeds) <= max(seeds) < SEEDS:
        got = f"{given!r:.60}"
        raise BenchError(f"{name}: expected whole numbers from 0 on, below 2^63, got {got}")
    return seeds


def _with_hashes(setup: Setup) -> Setup:
    """The same with the hash of each file of weights; models keep the path, which names no work."""
    models, changed = list(setup.models), dict(setup.changed)
    for i, (generation, model) in enumerate(zip(setup.protocol.generations, models, strict=True)):
        if model.weights is None or not is_here(model.weights):
            continue
        where = f"weights of generation '{generation.name}'"
        found, place = _hash_of(model.weights, where)
        if model.weights_sha256 not in ("", found):
            raise BenchError(
                f"{where}: {place}expected SHA-256 {model.weights_sha256}, got {found}"
            )
        models[i] = model.model_copy(update={"weights_sha256": found})
        key = f"{generation.name}.weights"
        if place and key in changed:
            changed |= {key: Path(model.weights).name, f"{key}_sha256": found}
    return replace(setup, models=tuple(models), changed=changed)


def _hash_of(weights: str, where: str) -> tuple[str, str]:
    """SHA-256 of a file of weights, with its place; of a package's the one that it must have."""
    if weights.startswith(PACKAGED):  # the embedder's file says it
        with located(where):
            return load_embedder(weights.removeprefix(PACKAGED)).files["weights"].sha256, ""
    path = Path(weights)
    if not path.is_file():
        raise BenchError(
            f"{where}: expected a safetensors file or a tag, got {path}, which does not exist"
        )
    return sha256_of(path), f"{path}: "
