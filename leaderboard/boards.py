"""One protocol on one track: its scores, ranks, methods and costs, and its rows as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from benchmark.config.loading import load_protocol
from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.ranks import Paired, Place, places
from benchmark.report.scores import MethodScores, Score, ScoreTable, by_method, group, make_table
from leaderboard.cards import MethodInfo
from leaderboard.costs import COSTS, cost_text, method_costs
from leaderboard.names import file_name
from leaderboard.processes import MANY, spread
from leaderboard.reading import Entry

# Scores of one enrolment gallery stand on the records' pages.
_PARTS = ("g1_", "g2_", "pooled_")
# One update with every task: any method can take part.
_GENERAL = {"retrieval", "verification", "identification"}


@dataclass(frozen=True)
class Board:
    """One protocol on one track with one setting.

    Attributes:
        slug: Its page's name.
        entries: Its records.
        table: All metrics but those of one enrolment gallery; main cases.
        metrics: Keys, the main ones in front; the first one gives the rank.
        places: Metric -> method -> place.
        info: Method -> what is known of it.
        costs: Method -> cost -> value.
        latest: Is there no newer version of this protocol and track among the records?
    """

    slug: str
    entries: tuple[Entry, ...]
    table: ScoreTable
    metrics: tuple[str, ...]
    places: Mapping[str, Mapping[str, Place]]
    info: Mapping[str, MethodInfo]
    costs: Mapping[str, Mapping[str, float]]
    latest: bool

    @cached_property
    def records(self) -> list[Record]:
        """Its records."""
        return [entry.record for entry in self.entries]

    @property
    def first(self) -> Record:
        """One of its records: what all of them share."""
        return self.entries[0].record

    @property
    def changed(self) -> bool:
        """Was the track changed for these runs? Then they are not compared with others."""
        return bool(self.first.changed)

    @property
    def current(self) -> bool:
        """Is it the newest version of an unchanged track?"""
        return self.latest and not self.changed

    @property
    def comparable(self) -> bool:
        """Is it the newest version of the track, with nothing changed but the old model?"""
        return self.latest and all(
            key.startswith("old.") or key == "first_seed" for key in self.first.changed
        )

    @property
    def of_setting(self) -> bool:
        """Is it a setting of a protocol, which tests what something changes, not who is best?"""
        return ":" in self.first.protocol

    @cached_property
    def general(self) -> bool:
        """Can any method take part? One update with every task, unmodified, no setting."""
        try:
            protocol = load_protocol(self.first.protocol)
        except BenchError:
            return False
        complete = len(protocol.generations) == 2 and set(protocol.tasks) >= _GENERAL
        return complete and self.current and not self.of_setting

    @cached_property
    def older(self) -> frozenset[str]:
        """Methods with records of an older version, whose trainings have no version."""
        return frozenset(record.method for record in self.records if record.training is None)

    @cached_property
    def track(self) -> str:
        """The track in words, with what is changed."""
        setting = ", ".join(f"{key}={value}" for key, value in self.first.changed.items())
        title = notes.track_title(self.first)
        return f"{title} ({setting})" if setting else title

    @cached_property
    def title(self) -> str:
        """Protocol and track in words."""
        return f"{notes.protocol_title(self.first)} on {self.track}"

    @property
    def metric(self) -> str:
        """The metric that gives the rank."""
        return self.metrics[0]

    @cached_property
    def cross(self) -> str:
        """Queries of the newest model in the gallery of the oldest one."""
        return select.cross_case(self.records)

    @cached_property
    def own(self) -> str:
        """The newest model by itself."""
        return select.self_case(self.records)

    @cached_property
    def methods(self) -> list[MethodScores]:
        """Rows of methods and controls, best first by the metric that gives the rank."""
        return self.rows(self.metric)

    def rows(self, metric: str) -> list[MethodScores]:
        """Rows of methods and controls, best first by a metric; without rank below."""
        place = {method: i for i, method in enumerate(self.places[metric])}
        rows = [row for row in self.table.rows if row.kind == "method"]
        return sorted(rows, key=lambda row: (place.get(row.method, len(place)), row.method))

    def row(self, method: str) -> MethodScores:
        """The row of a method of the board."""
        return next(row for row in self.table.rows if row.method == method)

    def place(self, metric: str, method: str) -> Place:
        """A method's place; without a score and a rank where it has none."""
        return self.places[metric].get(method) or Place(method, None, None, "")

    @cached_property
    def bounds(self) -> list[MethodScores]:
        """Rows of bounds and the independent model."""
        return [row for row in self.table.rows if row.kind != "method"]

    def bound(self, kind: str, metric: str) -> float | None:
        """Value of the ``lower`` or ``upper`` bound that the gain uses."""
        name = kind if kind == "lower" else self.table.upper
        row = next((row for row in self.bounds if row.method == name), None)
        cells = () if row is None else row.cells.items()
        return next((score.value for (key, _), score in cells if key == metric), None)

    @property
    def unranked(self) -> frozenset[str]:
        """Methods that may have no rank: bounds and controls."""
        return frozenset(method for method, about in self.info.items() if not about.ranked)

    @cached_property
    def cost_keys(self) -> list[str]:
        """Costs that tell its methods apart, or say something of any, in reading order."""
        values = {key: {own[key] for own in self.costs.values() if key in own} for key in COSTS}
        return [key for key, known in values.items() if known - {0.0}]

    @cached_property
    def shared_costs(self) -> dict[str, float]:
        """Costs that are the same, as printed, for every method that may be ranked."""
        shared = {}
        for key in self.cost_keys:
            known = [self.costs[m].get(key) for m, about in self.info.items() if about.ranked]
            texts = {cost_text(key, value): value for value in known if value is not None}
            if len(known) > 1 and len(texts) == 1 and key != "training_cost":
                shared[key] = min(texts.values())
        return shared


def make_boards(
    entries: Iterable[Entry], info: Mapping[str, MethodInfo], paired: Paired | None
) -> list[Board]:
    """A board for each protocol, track and setting, the unmodified ones first."""
    by_record = {id(entry.record): entry for entry in entries}
    groups = group(entry.record for entry in by_record.values())
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    for members in groups:
        key, version = _version(members[0])
        newest[key] = max(newest.get(key, version), version)
    boards: dict[str, Board] = {}
    for members in groups:
        key, version = _version(members[0])
        own = tuple(by_record[id(record)] for record in members)
        base = _slug(members[0], latest=newest[key] == version)
        slug, number = base, 1
        while slug in boards:
            number += 1
            slug = f"{base}-{number}"
        boards[slug] = _board(own, slug, info, newest[key] == version)
    ranked = _ranked(list(boards.values()), paired, len(by_record))
    return sorted(ranked, key=lambda board: (board.changed, not board.latest, not board.general))


def _version(record: Record) -> tuple[tuple[str, str], tuple[int, int]]:
    return (record.protocol, record.track), (record.protocol_version, record.track_version)


def _slug(record: Record, *, latest: bool) -> str:
    version = [] if latest else [f"v{record.protocol_version}.{record.track_version}"]
    changes = [f"{key}-{value}" for key, value in record.changed.items()]
    return file_name(record.protocol, record.track, *version, *changes)


def _board(
    entries: tuple[Entry, ...], slug: str, info: Mapping[str, MethodInfo], latest: bool
) -> Board:
    """All but the ranks."""
    records = [entry.record for entry in entries]
    known = select.metrics(records, "all")
    table = make_table(records, [m for m in known if not m.startswith(_PARTS)] or known)
    main = [m for m in select.metrics(records) if m in table.metrics]
    methods = by_method(records, done=False)
    alone = methods.get("independent", ())
    return Board(
        slug=slug,
        entries=entries,
        table=table,
        metrics=tuple(dict.fromkeys([*main, *table.metrics])),
        places={},
        info={method: info[method] for method in dict.fromkeys(r.method for r in records)},
        costs={method: method_costs(own, alone) for method, own in methods.items()},
        latest=latest,
    )


def _ranked(boards: Sequence[Board], paired: Paired | None, n_records: int) -> list[Board]:
    """Boards with their ranks, which compare every method with every other."""

    def place(one: tuple[Board, str]) -> dict[str, Place]:
        board, key = one
        return places(board.records, key, board.cross, board.unranked, paired)

    work = [(board, key) for board in boards for key in board.table.metrics]
    ranks = iter(spread(place, work, enough=n_records >= MANY))
    return [
        replace(board, places={key: next(ranks) for key in board.table.metrics}) for board in boards
    ]


def number_columns(board: Board) -> list[str]:
    """Names of what :func:`number_rows` gives, in order."""
    ends = [f"{case}{end}" for case in board.table.cases for end in ("", " low", " high")]
    return [
        "kind", "method", "family", "metric", "rank", "group", *ends, "compatible", "not hurting",
        "gain", *board.cost_keys, "seeds", "reason",
    ]  # fmt: skip


def number_rows(board: Board) -> list[list[Any]]:
    """Every row of every metric's table, as numbers: what is downloaded and what charts read."""
    return [
        _numbers(board, row, metric)
        for metric in board.metrics
        for row in (*board.bounds, *board.rows(metric))
    ]


def _numbers(board: Board, row: MethodScores, metric: str) -> list[Any]:
    place = board.place(metric, row.method)
    scores = [row.cells.get((metric, case), Score(None)) for case in board.table.cases]
    verdict = row.verdicts.get(metric)
    judged: list[Any] = [None] * 3
    if verdict is not None:
        answers = (verdict.compatible, verdict.not_hurting)
        judged = [None if each is None else numbers.of_seeds(each) for each in answers]
        judged.append(_short(verdict.gain))
    method = row.kind in ("method", "independent")
    costs = board.costs.get(row.method, {}) if method else {}
    return [
        row.kind, row.full, board.info[row.method].family if method else "bound", metric,
        place.rank, place.letters or None,
        *(_short(end) for score in scores for end in (score.value, score.low, score.high)),
        *judged,
        *(costs.get(key) for key in board.cost_keys),
        " ".join(map(str, row.seeds)),
        row.reason,
    ]  # fmt: skip


def _short(value: float | None) -> float | None:
    """A score with six decimals, more than any number of queries gives."""
    return None if value is None else round(float(value), 6)
