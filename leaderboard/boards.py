"""One protocol on one track: its scores, ranks, methods and costs, and its rows as numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

from benchmark.config.loading import load_protocol
from benchmark.metrics.estimate import Estimate
from benchmark.records.record import Record
from benchmark.report import notes, numbers, outcome, scores, select
from benchmark.report.comparable import of_another_old_model
from benchmark.report.ranks import LEAST_MODELS, Place, places
from benchmark.report.scores import MethodScores, ScoreTable, Verdict
from leaderboard.cards import MethodInfo
from leaderboard.costs import COSTS, cost_text, method_costs
from leaderboard.effects import PARTS, Criterion, Effect, criterion, effects, reference
from leaderboard.names import file_name
from leaderboard.reading import Entry
from leaderboard.scenarios import Scenario, scenario

NO_SCORE = Estimate(None)
NO_VERDICT = Verdict(None, None, None)
# Scores of one enrolment gallery stand on the records' pages.
_PARTS = ("g1_", "g2_", "pooled_")
# One update with every task: any method can take part.
_GENERAL = {"retrieval", "verification", "identification"}
# Cases of a board's main table; those of every pair of a chain have one of their own.
_MOST_CASES = 5


@dataclass(frozen=True)
class Group:
    """Records of one protocol on one track with one setting: what pages of records know of it."""

    slug: str  # name of its board's page
    entries: tuple[Entry, ...]
    latest: bool  # whether there is no newer version of this protocol and track

    @cached_property
    def scenario(self) -> Scenario:
        """What happens on it, in plain words."""
        return scenario(self.entries[0].record)

    @cached_property
    def methods(self) -> Mapping[str, Mapping[int, Entry]]:
        """Method -> seed -> its record, seeds ascending."""
        found: dict[str, dict[int, Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.record.method, {})[entry.record.seed] = entry
        return found

    @property
    def independent(self) -> Mapping[int, Entry]:
        """Seed -> the record of the new model without any method."""
        return self.methods.get("independent", {})


@dataclass(frozen=True)
class Board:
    """One protocol on one track with one setting."""

    slug: str  # its page's name
    entries: tuple[Entry, ...]  # its records
    title: str  # what happens, on which pictures
    track: str  # the track in words, with what is changed
    cross: str  # case of the newest model's queries in the gallery of the oldest one
    own: str  # case of the newest model by itself
    table: ScoreTable  # all metrics but those of one enrolment gallery; main cases
    metrics: tuple[str, ...]  # keys, the main ones in front; the first one gives the rank
    info: Mapping[str, MethodInfo]  # method -> what is known of it
    costs: Mapping[str, Mapping[str, float]]  # method -> cost -> value
    latest: bool  # whether the records have no newer version of this protocol and track

    @cached_property
    def records(self) -> list[Record]:
        """Its records."""
        return [entry.record for entry in self.entries]

    @property
    def first(self) -> Record:
        """One of its records: what all of them share."""
        return self.entries[0].record

    @property
    def current(self) -> bool:
        """Whether it is the newest version of an unchanged track: others are not compared."""
        return self.latest and not self.first.changed

    @property
    def comparable(self) -> bool:
        """Whether it is the track's newest version with nothing changed but the old model."""
        return self.latest and all(
            key.startswith("old.") or key == "first_seed" for key in self.first.changed
        )

    @property
    def of_setting(self) -> bool:
        """Whether it is a setting, which tests what something changes, not who is best."""
        return ":" in self.first.protocol

    @cached_property
    def general(self) -> bool:
        """Whether any method can take part: one update, every task, unmodified, no setting."""
        protocol = notes.installed(load_protocol, self.first.protocol)
        if protocol is None:
            return False
        complete = len(protocol.generations) == 2 and set(protocol.tasks) >= _GENERAL
        return complete and self.current and not self.of_setting

    @cached_property
    def older(self) -> frozenset[str]:
        """Methods with records of an older version, whose trainings have no version."""
        return frozenset(record.method for record in self.records if record.training is None)

    @cached_property
    def elsewhere(self) -> frozenset[str]:
        """Methods with a record of another old model than the others of its seed."""
        return frozenset(record.method for record in of_another_old_model(self.records))

    @cached_property
    def unsealed(self) -> frozenset[str]:
        """Methods with a record that no seal guards."""
        return frozenset(select.unsealed(self.records))

    @cached_property
    def unranked(self) -> frozenset[str]:
        """Methods that have no rank, whatever their scores."""
        return frozenset(select.unranked(self.records))

    @property
    def metric(self) -> str:
        """The metric that gives the rank."""
        return self.metrics[0]

    @cached_property
    def scenario(self) -> Scenario:
        """What happens on it, in plain words."""
        return scenario(self.first)

    @cached_property
    def by_metric(self) -> Mapping[str, "Ranking"]:
        """The ranking by each metric."""
        return {metric: make_ranking(self, metric) for metric in self.metrics}

    @property
    def ranking(self) -> "Ranking":
        """The ranking by the board's own metric."""
        return self.by_metric[self.metric]

    @property
    def models(self) -> int:
        """Pairs of models of the methods that were measured on most."""
        return max((e.models for e in self.ranking.effects.values()), default=0)

    @property
    def enough(self) -> bool:
        """Whether some method was measured on enough models for a rank."""
        return any(e.enough for m, e in self.ranking.effects.items() if self.info[m].ranked)

    @cached_property
    def methods(self) -> list[MethodScores]:
        """Rows of methods and controls, best first by the metric that gives the rank."""
        return self.rows(self.metric)

    def rows(self, metric: str) -> list[MethodScores]:
        """Rows of methods and controls: those of enough models first, then by score."""
        order = {method: i for i, method in enumerate(self.by_metric[metric].in_order)}
        rows = [row for row in self.table.rows if row.kind == "method"]
        return sorted(rows, key=lambda row: (order.get(row.method, len(order)), row.method))

    @property
    def curved(self) -> bool:
        """Whether its gallery is backfilled."""
        return self.ranking.criterion.kind == "area"

    @cached_property
    def shown_cases(self) -> tuple[str, ...]:
        """Cases of the main table: the day of the update, its other forms, the new model alone."""
        first, last = select.generations(self.records)[0], select.generations(self.records)[-1]
        usual = (
            self.cross, f"{first}/{last}", f"{self.cross} direct", self.own,
            *(case for case in self.table.cases if "'" in case and not self.curved),
        )  # fmt: skip
        known = [case for case in dict.fromkeys(usual) if case in self.table.cases]
        return tuple(known[:_MOST_CASES]) or self.table.cases[:_MOST_CASES]

    def row(self, method: str) -> MethodScores:
        """The row of a method of the board."""
        return next(row for row in self.table.rows if row.method == method)

    def place(self, metric: str, method: str) -> Place:
        """A method's place; without a score and a rank where it has none."""
        return self.by_metric[metric].places.get(method) or Place(method, None, None)

    @cached_property
    def bounds(self) -> list[MethodScores]:
        """Rows of bounds and the independent model."""
        return [row for row in self.table.rows if row.kind != "method"]

    def bound(self, kind: str, metric: str) -> float | None:
        """Value of the ``lower`` or ``upper`` bound that the gain uses."""
        name = kind if kind == "lower" else self.table.upper
        cells = [cell for row in self.bounds if row.method == name for cell in row.cells.items()]
        return next((score.value for (key, _), score in cells if key == metric), None)

    @cached_property
    def old_is_best(self) -> bool:
        """Whether no method beats keeping the old model, by the metric that gives the rank."""
        return outcome.old_is_best(self.records, self.metric)

    @cached_property
    def upper_is_lower(self) -> bool:
        """Whether the new model alone is worse than the old one, by the same metric."""
        return outcome.upper_is_lower(self.records, self.metric)

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


@dataclass(frozen=True)
class Ranking:
    """How the methods of a board stand by one metric.

    Attributes:
        reference: Seed -> score without any method.
        in_order: Methods with a score, those of enough models first, each by score.
    """

    criterion: Criterion
    reference: Mapping[int, float]
    effects: Mapping[str, Effect]
    places: Mapping[str, Place]
    in_order: tuple[str, ...]

    def below(self, method: str, records: Sequence[Record]) -> bool:
        """Whether a method is no better than doing without any, over the seeds of both."""
        higher = numbers.metric(self.criterion.metric).higher_is_better is not False
        margins = [
            value - self.reference[record.seed]
            for record in records
            if record.method == method and record.seed in self.reference
            if (value := self.criterion.value(record)) is not None
        ]
        total = sum(margins)
        return bool(margins) and (total <= 0 if higher else total >= 0)


def make_ranking(board: Board, metric: str) -> Ranking:
    """The ranking of a board's methods by one metric; see :data:`benchmark.report.ranks.RULE`."""
    of = criterion(board.records, metric)
    higher = numbers.metric(metric).higher_is_better is not False
    values: dict[str, dict[int, float]] = {
        m: {} for m, about in board.info.items() if about.ranked and m not in board.unranked
    }
    for record in board.records:
        value = of.value(record) if record.method in values else None
        if value is not None:
            values[record.method][record.seed] = value
    without = reference(board.records, of)
    found = effects(board.records, of)
    ranks = places(values, higher=higher, reference=without)
    sign = -1.0 if higher else 1.0

    def order(method: str) -> tuple[Any, ...]:
        rank = ranks[method].rank if method in ranks else None
        few = found[method].models < LEAST_MODELS
        return few, rank is None and not few, sign * (found[method].value.value or 0.0), method

    scored = [m for m, e in found.items() if e.value.value is not None and m != "independent"]
    return Ranking(of, without, found, ranks, tuple(sorted(scored, key=order)))


def group_entries(entries: Iterable[Entry]) -> list[Group]:
    """The records of each protocol, track and setting; nothing is computed of them yet."""
    by_record = {id(entry.record): entry for entry in entries}
    groups = scores.group(entry.record for entry in by_record.values())
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    for first, *_ in groups:
        key, version = _version(first)
        newest[key] = max(newest.get(key, version), version)
    found: dict[str, Group] = {}
    for members in groups:
        key, version = _version(members[0])
        latest = newest[key] == version
        base = _slug(members[0], latest=latest)
        slugs = chain([base], (f"{base}-{i}" for i in count(2)))
        slug = next(slug for slug in slugs if slug not in found)
        found[slug] = Group(slug, tuple(by_record[id(record)] for record in members), latest)
    return list(found.values())


def make_boards(groups: Iterable[Group], info: Mapping[str, MethodInfo]) -> list[Board]:
    """A board for each protocol, track and setting: unmodified ones first, then photographs."""
    return sorted(
        (_board(group, info) for group in groups),
        key=lambda b: (bool(b.first.changed), not b.latest, b.scenario.place, not b.general),
    )


def _version(record: Record) -> tuple[tuple[str, str], tuple[int, int]]:
    return (record.protocol, record.track), (record.protocol_version, record.track_version)


def _slug(record: Record, *, latest: bool) -> str:
    version = [] if latest else [f"v{record.protocol_version}.{record.track_version}"]
    changes = [f"{key}-{value}" for key, value in record.changed.items()]
    return file_name(record.protocol, record.track, *version, *changes)


def _board(group: Group, info: Mapping[str, MethodInfo]) -> Board:
    """All but the ranks."""
    records = [entry.record for entry in group.entries]
    first = records[0]
    known = select.metrics(records, "all")
    table = scores.make_table(records, [m for m in known if not m.startswith(_PARTS)] or known)
    main = [m for m in select.metrics(records) if m in table.metrics]
    methods = scores.by_method(records, done=False)
    alone = methods.get("independent", ())
    changes = ", ".join(f"{key}={value}" for key, value in first.changed.items())
    track = notes.track_title(first) + (f" ({changes})" if changes else "")
    return Board(
        slug=group.slug,
        entries=group.entries,
        title=group.scenario.title,
        track=track,
        cross=select.cross_case(records),
        own=select.self_case(records),
        table=table,
        metrics=tuple(dict.fromkeys([*main, *table.metrics])),
        info={record.method: info[record.method] for record in records},
        costs={method: method_costs(own, alone) for method, own in methods.items()},
        latest=group.latest,
    )


def number_rows(board: Board) -> list[dict[str, Any]]:
    """Every row of every metric's table, as numbers: what is downloaded and what charts read."""
    return [
        _numbers(board, row, metric)
        for metric in board.metrics
        for row in (*board.bounds, *board.rows(metric))
    ]


def _numbers(board: Board, row: MethodScores, metric: str) -> dict[str, Any]:
    place, ranking = board.place(metric, row.method), board.by_metric[metric]
    cells: dict[str, Any] = {}
    for case in board.table.cases:
        score = row.cells.get((metric, case), NO_SCORE)
        ends = {case: score.value, f"{case} low": score.low, f"{case} high": score.high}
        cells |= {name: rounded(value) for name, value in ends.items()}
    verdict = row.verdicts.get(metric, NO_VERDICT)
    for name, answer in (("compatible", verdict.compatible), ("not hurting", verdict.not_hurting)):
        cells[name] = None if answer is None else numbers.of_seeds(answer)
    method = row.kind in ("method", "independent")
    costs = board.costs.get(row.method, {}) if method else {}
    return {
        "kind": row.kind, "method": row.full,
        "family": board.info[row.method].family if method else "bound",
        "metric": metric, "rank": place.rank, "tied with": place.tied if place.rank else None,
        **_effect_numbers(board, ranking, row), **cells,
        "gain": rounded(verdict.gain), **{key: costs.get(key) for key in board.cost_keys},
        "seeds": " ".join(map(str, row.seeds)), "reason": row.reason,
    }  # fmt: skip


def _effect_numbers(board: Board, ranking: Ranking, row: MethodScores) -> dict[str, Any]:
    """What a method keeps of the upgrade, and what the board ranks by."""
    known = row.kind in ("method", "independent")
    effect = ranking.effects.get(row.method) if known else None
    parts = {part: PARTS[part] for part in ("share", "value", *board.ranking.criterion.own_parts)}
    cells: dict[str, Any] = {"ranked by": ranking.criterion.words}
    for part, name in parts.items():
        score: Estimate = NO_SCORE if effect is None else getattr(effect, part)
        ends = {name: score.value, f"{name} low": score.low, f"{name} high": score.high}
        cells |= {key: rounded(value) for key, value in ends.items()}
    return cells | {"hurts": None if effect is None else "yes" if effect.hurts else "no"}


def rounded(value: float | None, digits: int = 6) -> float | None:
    """A score with six decimals, more than any number of queries gives."""
    return None if value is None else round(float(value), digits)
