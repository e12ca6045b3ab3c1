"""The core board, or a study beside it: which records it wants, and what is wrong with each."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from benchmark.config import registry
from benchmark.config.checks import Seed
from benchmark.config.loading import load_protocol
from benchmark.config.reading import Model, build, read_yaml
from benchmark.config.setup import Precision
from benchmark.errors import BenchError, located, unknown
from benchmark.harness.graph import data_source, record_key
from benchmark.harness.requests import Request, make_request
from benchmark.records.details_files import check_digest
from benchmark.records.files import evidence_file, read_record
from benchmark.records.record import Record, record_path
from benchmark.report.comparable import comparable

EVERY = "every"
"""Stands for every built-in method, without variants."""
State = Literal[
    "there", "missing", "stale", "damaged", "not clean", "precision", "threads",
    "of another old model",
]  # fmt: skip
"""Of a record: there as it is wanted; of earlier code, data or settings; not as it was written; of
a commit with changes, or of none; of another precision; of another number of threads; of another
old model than the unit's newest record."""
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Plain = bool | int | float | str
Setting = Plain | Annotated[tuple[Plain, ...], Field(strict=False)]


class Board(Model):
    """Protocols of a track, and the methods that are run under each of them."""

    track: str
    protocols: Names
    methods: str
    """A list of the file, or ``every``, which a list may name, too."""
    set: Mapping[str, Setting] = {}
    """Changes as ``--set`` names them: a study, whose records count on no board."""
    seeds: Annotated[tuple[Seed, ...], Field(strict=False)] = ()
    """Those of this board; empty for those of the file."""


class CoreBoard(Model):
    """Content of ``results/core.yaml``."""

    precision: Precision
    threads: int = Field(ge=1, le=1024)
    device: str
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    lists: Mapping[str, Names]
    """Lists of methods by name."""
    boards: Annotated[tuple[Board, ...], Field(min_length=1)]
    """The most important first."""

    @model_validator(mode="after")
    def _lists_are_known(self) -> CoreBoard:
        for board in self.boards:
            if board.methods not in (EVERY, *self.lists):
                known = ", ".join((EVERY, *self.lists))
                raise ValueError(f"boards: methods: expected {known}, got '{board.methods:.60}'")
        return self

    def methods(self, board: Board) -> tuple[str, ...]:
        """Methods of a board, the independent model first."""
        names = self.lists.get(board.methods, (EVERY,))
        parts = (_built_in() if name == EVERY else [name] for name in names)
        return tuple(dict.fromkeys(["independent", *itertools.chain(*parts)]))

    def only(self, protocols: Collection[str], tracks: Collection[str]) -> CoreBoard:
        """Those of its boards that are chosen, of which there are any; all where nothing is named.

        Raises:
            AbsentError: If a protocol or a track is on none of them.
            BenchError: If no protocol is on a board of a track.
        """
        known = {each.track for each in self.boards}, {p for b in self.boards for p in b.protocols}
        asked = ("track", tracks), ("protocol", protocols)
        for (kind, names), there in zip(asked, known, strict=True):
            for name in names:
                if name not in there:
                    raise unknown(f"{kind} of the board", name, there)
        kept = (
            board.model_copy(update={
                "protocols": tuple(p for p in board.protocols if not protocols or p in protocols)
            }) for board in self.boards if not tracks or board.track in tracks
        )  # fmt: skip
        boards = tuple(board for board in kept if board.protocols)
        if not boards:
            raise BenchError(f"no board of {', '.join(tracks)} under {', '.join(protocols)}")
        return self.model_copy(update={"boards": boards})

    @property
    def units(self) -> tuple[Unit, ...]:
        """Every protocol, track and seed once, board by board, with methods of all its boards."""
        found: dict[tuple[object, ...], Unit] = {}
        for board in self.boards:
            for seed, protocol in itertools.product(board.seeds or self.seeds, board.protocols):
                changes = tuple(board.set.items())
                unit = Unit(protocol, board.track, seed, self.methods(board), changes)
                before = found.get(unit.place)
                methods = (*before.methods, *unit.methods) if before else unit.methods
                found[unit.place] = unit._replace(methods=tuple(dict.fromkeys(methods)))
        return tuple(found.values())


def _built_in() -> list[str]:
    files = registry.method_files().values()
    own = (file for file in files if file.module.startswith("methods."))
    return sorted(file.id for file in own if not file.variant_of)


class Unit(NamedTuple):
    """Work of one command: methods that share an old and a new model."""

    protocol: str
    track: str
    seed: int
    methods: tuple[str, ...]
    changes: tuple[tuple[str, Setting], ...] = ()  # as ``--set`` names them

    @property
    def place(self) -> tuple[object, ...]:
        """Identity of a unit on its board."""
        return self.protocol, self.track, self.seed, frozenset(self.changes)

    @property
    def title(self) -> str:
        """The protocol, and what is changed."""
        changes = (f"{key}={json.dumps(value)}" for key, value in self.changes)
        return ", ".join([self.protocol, *changes])


@dataclass(frozen=True)
class UnitStatus:
    """A unit, and what is there of it."""

    unit: Unit
    states: Mapping[str, State]  # by method
    unknown: str = ""  # why the unit cannot be run here; empty where it can

    @property
    def todo(self) -> tuple[str, ...]:
        """Methods whose record is not there as it is wanted."""
        return tuple(method for method, state in self.states.items() if state != "there")


def read_core_board(path: Path | None = None) -> CoreBoard:
    """Read and check a core board, by default the committed one; a BenchError names the fault."""
    path = path or evidence_file("core.yaml")
    board = build(CoreBoard, read_yaml(path), str(path))
    with located(f"{path}: lists"):
        for name in {name for names in board.lists.values() for name in names} - {EVERY}:
            registry.method_file(name)
    with located(f"{path}: boards"):
        for name in {name for each in board.boards for name in each.protocols}:
            load_protocol(name)
    return board


def unit_statuses(
    board: CoreBoard, results: Path, roots: Mapping[str, Path]
) -> Iterator[UnitStatus]:
    """Records of each unit below a folder of results; loads neither torch nor any method.

    Of a track whose images are not here only code and versions are compared.
    """
    for unit in board.units:
        try:
            request = unit_request(unit, roots)
        except BenchError as error:
            states: dict[str, State] = dict.fromkeys(unit.methods, "missing")
            yield UnitStatus(unit, states, str(error))
            continue
        needed = request.setup.track.needs_root and request.data_root is None
        why = f"needs --data-root {unit.track}=DIR" if needed else ""
        yield UnitStatus(unit, _states(unit, request, board, results, known=not needed), why)


def unit_request(unit: Unit, roots: Mapping[str, Path], precision: Precision = "recipe") -> Request:
    """Request of a unit; its data need not be here."""
    return make_request(
        unit.methods, unit.protocol, unit.track, data_root=roots.get(unit.track), seeds=[unit.seed],
        without_data=True, settings=dict(unit.changes), precision=precision,
    )  # fmt: skip


def _states(
    unit: Unit, request: Request, board: CoreBoard, results: Path, *, known: bool
) -> dict[str, State]:
    source = data_source(request.setup, request.data_root) if known else {}
    states: dict[str, State] = {}
    found: dict[str, Record] = {}
    for method in unit.methods:
        path = record_path(request.folder(results), unit.protocol, unit.track, method, unit.seed)
        key = record_key(request.setup, source, method, unit.seed, None) if known else None
        try:
            record = read_record(path) if path.is_file() else None
            if record is not None:
                check_digest(record, path)
        except BenchError:
            states[method] = "damaged"
            continue
        states[method] = "missing" if record is None else _state(record, request, key, board)
        if record is not None and states[method] == "there":
            found[method] = record
    return states | dict.fromkeys(_of_earlier_old_models(found), "of another old model")


def _of_earlier_old_models(records: Mapping[str, Record]) -> Iterator[str]:
    """Methods whose old model is not that of the newest record.

    A majority does not decide: processors train different old models, so one of another kind would
    repeat its few records for ever, and they would never have the old model of most.
    """
    done = {method: record for method, record in records.items() if record.status == "done"}
    if not done:
        return
    newest = max(done.values(), key=lambda r: r.run.finished or "")
    yield from (m for m, record in done.items() if len(comparable([newest, record])) < 2)


def _state(record: Record, request: Request, key: str | None, board: CoreBoard) -> State:
    # Where the data is not here, versions and code are what can be compared.
    stale = record.key != key if key is not None else bool(request.other_versions(record))
    if stale or record.seal is None:
        return "stale"
    if record.run.code.dirty is not False or record.run.code.commit is None:
        return "not clean"
    if board.precision not in ("recipe", record.environment.get("precision")):
        return "precision"
    return "there" if record.environment.get("threads") == str(board.threads) else "threads"


def count_states(statuses: Collection[UnitStatus]) -> Counter[State]:
    """State -> number of records."""
    return Counter(state for status in statuses for state in status.states.values())
