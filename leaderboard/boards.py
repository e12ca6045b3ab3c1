"""What the page of one protocol on one track shows: table model, ranks, facts and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from benchmark.config.loading import load_protocol
from benchmark.errors import BenchError
from benchmark.records.record import Record
from benchmark.report import notes, select
from benchmark.report.ranks import Paired, Place, places
from benchmark.report.scores import MethodScores, ScoreTable, group, make_table
from leaderboard.facts import Facts, cost_text, costs, costs_in_order
from leaderboard.names import file_name
from leaderboard.processes import MANY, spread
from leaderboard.reading import Entry

# Scores of one enrolment gallery stand on the records' pages.
_PARTS = ("g1_", "g2_", "pooled_")
# One update, judged by every task: any method can take part.
_GENERAL = {"retrieval", "verification", "identification"}


@dataclass(frozen=True)
class Board:
    """One protocol on one track with one setting.

    Attributes:
        slug: Its page's name.
        entries: Its records.
        table: All metrics but those of one enrolment gallery; main cases.
        main: Its metrics, those that a reader sees first in front; the first one gives the rank.
        places: Metric -> method -> place.
        facts: Method -> facts.
        costs: Method -> cost -> value.
        latest: Is there no newer version of this protocol and track among the records?
    """

    slug: str
    entries: tuple[Entry, ...]
    table: ScoreTable
    main: tuple[str, ...]
    places: Mapping[str, Mapping[str, Place]]
    facts: Mapping[str, Facts]
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

    @cached_property
    def protocol_title(self) -> str:
        """The protocol in words."""
        return notes.protocol_title(self.first)

    @cached_property
    def track_title(self) -> str:
        """The track in words."""
        return notes.track_title(self.first)

    @property
    def unmodified(self) -> bool:
        """Is it the newest version of the track, with nothing changed but the old model?"""
        olds = all(key.startswith("old.") or key == "first_seed" for key in self.first.changed)
        return self.latest and olds

    @property
    def setting(self) -> str:
        """The changes in words; empty for the unmodified track."""
        return ", ".join(f"{key}={value}" for key, value in self.first.changed.items())

    @cached_property
    def title(self) -> str:
        """Protocol and track in words."""
        words = f"{self.protocol_title} on {self.track_title}"
        return f"{words} ({self.setting})" if self.changed else words

    @property
    def metric(self) -> str:
        """The metric that gives the rank."""
        return self.main[0]

    @cached_property
    def cross(self) -> str:
        """The newest model asks in the oldest one's gallery."""
        return select.cross_case(self.records)

    @cached_property
    def own(self) -> str:
        """The newest model by itself."""
        return select.self_case(self.records)

    @property
    def of_setting(self) -> bool:
        """Is it one of a protocol's settings? They ask what something changes, not who is best."""
        return ":" in self.first.protocol

    @cached_property
    def general(self) -> bool:
        """Can any method take part? One update, judged by every task, unmodified, no setting."""
        try:
            protocol = load_protocol(self.first.protocol)
        except BenchError:
            return False
        two = len(protocol.generations) == 2
        every_task = set(protocol.tasks) >= _GENERAL and not self.of_setting
        return two and every_task and self.latest and not self.changed

    @cached_property
    def methods(self) -> list[MethodScores]:
        """Rows of methods and controls, best first by the metric that gives the rank."""
        return self.rows(self.metric)

    def rows(self, metric: str) -> list[MethodScores]:
        """Rows of methods and controls, best first by a metric; without rank below."""
        found = [row for row in self.table.rows if row.kind == "method"]
        place = {m: i for i, m in enumerate(self.places[metric])}
        return sorted(found, key=lambda row: (place.get(row.method, len(place)), row.method))

    @cached_property
    def bounds(self) -> list[MethodScores]:
        """Rows of bounds and the independent model."""
        return [row for row in self.table.rows if row.kind != "method"]

    def bound(self, kind: str, metric: str) -> float | None:
        """Value of the ``lower`` or ``upper`` bound that the gain uses."""
        wanted = kind if kind == "lower" else self.table.upper
        row = next((r for r in self.bounds if r.method == wanted), None)
        cells = () if row is None else row.cells.items()
        return next((c.value for (key, _), c in cells if key == metric), None)

    @cached_property
    def shown_costs(self) -> list[str]:
        """Costs in which its methods differ."""
        return [key for key in self.cost_keys if key not in self.shared_costs]

    @cached_property
    def shared_costs(self) -> dict[str, float]:
        """Costs that are the same, as printed, for every method that may be ranked."""
        found = {}
        for key in self.cost_keys:
            mine = [self.costs[m].get(key) for m, about in self.facts.items() if about.ranked]
            texts = {cost_text(key, value): value for value in mine if value is not None}
            if len(mine) > 1 and len(texts) == 1 and key != "training_cost":
                found[key] = min(texts.values())
        return found

    @cached_property
    def cost_keys(self) -> list[str]:
        """Costs that tell its methods apart, or say something of any, in reading order."""
        values: dict[str, set[float]] = {}
        for mine in self.costs.values():
            for key, value in mine.items():
                values.setdefault(key, set()).add(value)
        return [key for key in costs_in_order(values) if values[key] != {0.0}]


def make_boards(
    entries: Iterable[Entry], facts: Mapping[str, Facts], paired: Paired | None
) -> list[Board]:
    """A board for each protocol, track and setting, the unmodified ones first."""
    entries = list(entries)
    by_record = {id(entry.record): entry for entry in entries}
    groups = group(entry.record for entry in entries)
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    for members in groups:
        key, version = _version(members[0])
        newest[key] = max(newest.get(key, version), version)
    taken: set[str] = set()
    found = []
    for members in groups:
        key, version = _version(members[0])
        mine = tuple(by_record[id(record)] for record in members)
        slug = _slug(members[0], newest[key] == version, taken)
        found.append(_board(mine, slug, facts, newest[key] == version))
    found = _placed(found, paired, len(entries))
    return sorted(found, key=lambda board: (board.changed, not board.latest, not board.general))


def _placed(boards: Sequence[Board], paired: Paired | None, n_records: int) -> list[Board]:
    """Boards with their ranks; these compare every method with every other."""
    asked = [(board, key) for board in boards for key in board.table.metrics]

    def place(one: tuple[Board, str]) -> dict[str, Place]:
        board, key = one
        unranked = frozenset(m for m, about in board.facts.items() if not about.ranked)
        return places(board.records, key, board.cross, unranked, paired)

    made = iter(spread(place, asked, enough=n_records >= MANY))
    return [
        replace(board, places={key: next(made) for key in board.table.metrics}) for board in boards
    ]


def _version(record: Record) -> tuple[tuple[str, str], tuple[int, int]]:
    return (record.protocol, record.track), (record.protocol_version, record.track_version)


def _slug(record: Record, latest: bool, taken: set[str]) -> str:
    words: list[object] = [record.protocol, record.track]
    if not latest:
        words.append(f"v{record.protocol_version}.{record.track_version}")
    if record.changed:
        words += [f"{key}-{value}" for key, value in record.changed.items()]
    base = file_name(*words)
    slug, number = base, 1
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    taken.add(slug)
    return slug


def _board(
    entries: tuple[Entry, ...],
    slug: str,
    facts: Mapping[str, Facts],
    latest: bool,
) -> Board:
    """All but the ranks."""
    records = [entry.record for entry in entries]
    known = select.metrics(records, "all")
    table = make_table(records, [m for m in known if not m.startswith(_PARTS)] or known)
    main = [m for m in select.metrics(records) if m in table.metrics]
    by_method: dict[str, list[Record]] = {}
    for record in records:
        by_method.setdefault(record.method, []).append(record)
    return Board(
        slug=slug,
        entries=entries,
        table=table,
        main=(*main, *(key for key in table.metrics if key not in main)),
        places={},
        facts={method: facts[method] for method in by_method},
        costs={m: costs(mine, by_method.get("independent", ())) for m, mine in by_method.items()},
        latest=latest,
    )


def number_columns(board: Board) -> list[str]:
    """Names of what :func:`flat_rows` gives, in order."""
    ends = [f"{case}{end}" for case in board.table.cases for end in ("", " low", " high")]
    return [
        "kind", "method", "family", "metric", "rank", "group", *ends, "compatible", "not hurting",
        "gain", *board.cost_keys, "seeds", "reason",
    ]  # fmt: skip


def flat_rows(board: Board) -> list[list[Any]]:
    """Every row of every metric's table, as numbers: what is downloaded and what charts read."""
    return [
        _flat(board, row, metric)
        for metric in board.main
        for row in (*board.bounds, *board.rows(metric))
    ]


def _flat(board: Board, row: MethodScores, metric: str) -> list[Any]:
    place = board.places[metric].get(row.method)
    verdict = row.verdicts.get(metric)
    cells: list[Any] = []
    for case in board.table.cases:
        cell = row.cells.get((metric, case))
        cells += [None] * 3 if cell is None else map(short, (cell.value, cell.low, cell.high))
    method = row.kind in ("method", "independent")
    mine = board.costs.get(row.method, {}) if method else {}
    family = board.facts[row.method].family if method else "bound"
    return [
        row.kind, row.full, family, metric,
        None if place is None else place.rank,
        None if place is None or not place.letters else place.letters,
        *cells,
        None if verdict is None else share(verdict.compatible),
        None if verdict is None else share(verdict.not_hurting),
        None if verdict is None else short(verdict.gain),
        *(mine.get(key) for key in board.cost_keys),
        " ".join(map(str, row.seeds)),
        row.reason,
    ]  # fmt: skip


def short(value: float | None) -> float | None:
    """A score with six decimals, more than any number of queries gives."""
    return None if value is None else round(float(value), 6)


def share(answers: tuple[int, int] | None) -> str | None:
    """``yes``, ``no`` or ``2 of 3`` seeds."""
    if answers is None:
        return None
    good, of = answers
    return "yes" if good == of else "no" if not good else f"{good} of {of}"
