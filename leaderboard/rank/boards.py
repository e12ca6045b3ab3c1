"""Boards: the records of one protocol on one track with one setting, their scores and ranks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from statistics import median
from typing import Any

from benchmark.config.loading import load_protocol
from benchmark.metrics.estimate import Estimate
from benchmark.records.files import StoredRecord
from benchmark.records.record import Record
from benchmark.report import notes, numbers, outcome, scores, select
from benchmark.report.costs import (
    COSTS,
    cost_text,
    fit_multiply_adds,
    method_costs,
    typical_training_costs,
)
from benchmark.report.effects import PARTS, Standing, standing
from benchmark.report.scenarios import Scenario, scenario
from benchmark.report.scores import CaseVerdict, MethodScores, ScoreTable
from leaderboard.names import file_name
from leaderboard.read.methods import MethodInfo

NO_SCORE = Estimate(None)
NO_VERDICT = CaseVerdict(None, None, None)
FIRST_DAY = "upgrade kept on the first day"
"""Name of the columns of :attr:`Effect.first_day` in downloads."""
# Scores of one enrolment gallery stand on the records' pages.
_PARTS = ("g1_", "g2_", "pooled_")
# One update with every task: any method can take part.
_GENERAL = {"retrieval", "verification", "identification"}
# Cases of a board's main table; those of every pair of a chain have one of their own.
_MOST_CASES = 5


@dataclass(frozen=True)
class RankedBoard:
    """One protocol on one track with one setting; what it says is computed when it is asked for.

    Attributes:
        slug: Name of its page.
        stored: Its records.
        latest: There is no newer version of this protocol and track.
        info: Method -> its card in words.
        whole: The board that this one has some records of, whose cases and costs it shows.
        chosen: Metrics of such a part.
        training_costs: Method -> what its training costs, over all boards.
    """

    slug: str
    stored: tuple[StoredRecord, ...]
    latest: bool
    info: Mapping[str, MethodInfo] = field(default_factory=dict)
    whole: "RankedBoard | None" = None
    chosen: tuple[str, ...] = ()
    training_costs: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def records(self) -> list[Record]:
        """Its records."""
        return [stored.record for stored in self.stored]

    @property
    def first(self) -> Record:
        """One of its records: what all of them share."""
        return self.stored[0].record

    @cached_property
    def by_seed(self) -> Mapping[str, Mapping[int, StoredRecord]]:
        """Method -> seed -> its record, seeds ascending."""
        found: dict[str, dict[int, StoredRecord]] = {}
        for stored in self.stored:
            found.setdefault(stored.record.method, {})[stored.record.seed] = stored
        return found

    @cached_property
    def scenario(self) -> Scenario:
        """The board in plain words."""
        return scenario(self.first)

    @property
    def track(self) -> str:
        """The track in words, with what is changed."""
        changes = ", ".join(f"{key}={value}" for key, value in self.first.changed.items())
        return notes.track_title(self.first) + (f" ({changes})" if changes else "")

    @cached_property
    def cross(self) -> str:
        """Case of the newest model's queries in the gallery of the oldest one."""
        return self.whole.cross if self.whole else select.cross_case(self.records)

    @cached_property
    def own(self) -> str:
        """Case of the newest model by itself."""
        return select.self_case(self.records)

    @cached_property
    def unpaid(self) -> str:
        """That training does not pay here, so that nothing is ranked; empty where it does."""
        return outcome.unpaid((self.whole or self).records)

    @property
    def unchanged(self) -> bool:
        """The newest version of a track with nothing changed."""
        return self.latest and not self.first.changed

    @property
    def current(self) -> bool:
        """A board that is compared with others: unchanged, and training pays there."""
        return self.unchanged and not self.unpaid

    @property
    def comparable(self) -> bool:
        """The track's newest version with nothing changed but the old model."""
        return self.latest and all(
            key.startswith("old.") or key == "first_seed" for key in self.first.changed
        )

    @property
    def of_setting(self) -> bool:
        """A setting tests what something changes, not who is best."""
        return ":" in self.first.protocol

    @cached_property
    def general(self) -> bool:
        """Any method can take part: one update, every task, unmodified, no setting."""
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
    def unranked(self) -> Mapping[str, str]:
        """Methods without a rank for how they were measured -> why, in words."""
        return select.unranked(self.records)

    @cached_property
    def table(self) -> ScoreTable:
        """The scores of all metrics but those of one enrolment gallery, in the main cases."""
        known = select.metrics(self.records, "all")
        every = [m for m in known if not m.startswith(_PARTS)] or known
        made = scores.make_table(self.records, self.chosen or every)
        return replace(made, cases=self.whole.table.cases) if self.whole else made

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Keys, the main ones in front; the first one gives the rank."""
        main = [m for m in select.metrics(self.records) if m in self.table.metrics]
        return self.chosen or tuple(dict.fromkeys([*main, *self.table.metrics]))

    @property
    def metric(self) -> str:
        """The metric that gives the rank."""
        return self.metrics[0]

    @cached_property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """Method -> cost -> value."""
        if self.whole:
            return self.whole.costs
        methods = scores.by_method(self.records, done=False)
        alone = methods.get("independent", ())
        return {method: method_costs(own, alone) for method, own in methods.items()}

    def update_costs(self, method: str) -> dict[str, float]:
        """Costs that make the hours of an update: training by all boards, the map by this one."""
        found = {**self.costs.get(method, {}), "fit_multiply_adds": 0.0}
        if method in self.training_costs:
            found["training_cost"] = self.training_costs[method]
        known = [fit_multiply_adds(r) for r in self.records if r.method == method]
        return found | {"fit_multiply_adds": median(known)} if known else found

    @cached_property
    def by_metric(self) -> Mapping[str, Standing]:
        """The standing of the methods by each metric."""
        may = {m for m, about in self.info.items() if about.ranked and m not in self.unranked}
        ranked = set() if self.unpaid else may
        return {metric: standing(self.records, metric, ranked) for metric in self.metrics}

    @property
    def standing(self) -> Standing:
        """The standing by the board's own metric."""
        return self.by_metric[self.metric]

    @property
    def models(self) -> int:
        """Pairs of models of the methods that were measured on most."""
        return max((e.models for e in self.standing.effects.values()), default=0)

    @property
    def enough(self) -> bool:
        """Some method was measured on enough models for a rank."""
        return any(e.enough for m, e in self.standing.effects.items() if self.info[m].ranked)

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
        """The gallery is backfilled."""
        return self.standing.criterion.kind == "area"

    @property
    def without(self) -> float:
        """The share that is kept without any method: none, but for items that are embedded anew."""
        alone = self.standing.effects.get("independent") if self.curved else None
        return 0.0 if alone is None or alone.share.value is None else alone.share.value

    def beyond(self, method: str) -> Estimate:
        """The share that a method keeps beyond doing without any, on the same old models."""
        of = self.standing
        share = of.effects[method].share
        alone = of.shares.get("independent", {}) if self.curved else {}
        if not alone or share.value is None:
            return share
        return of.margin(method, alone) or Estimate(share.value - self.without)

    @cached_property
    def shown_cases(self) -> tuple[str, ...]:
        """Cases of the main table: the day of the update, its other forms, the new model alone."""
        first, *_, last = select.generations(self.records)
        usual = (
            self.cross, f"{first}/{last}", f"{self.cross} direct", self.own,
            *(case for case in self.table.cases if "'" in case and not self.curved),
        )  # fmt: skip
        known = [case for case in dict.fromkeys(usual) if case in self.table.cases]
        return tuple(known[:_MOST_CASES]) or self.table.cases[:_MOST_CASES]

    def row(self, method: str) -> MethodScores:
        """The row of a method of the board."""
        return next(row for row in self.table.rows if row.method == method)

    @cached_property
    def bounds(self) -> list[MethodScores]:
        """Rows of bounds and the independent model."""
        return [row for row in self.table.rows if row.kind != "method"]

    def bound(self, kind: str, metric: str) -> float | None:
        """Value of the ``lower`` or ``upper`` bound that the gain uses."""
        name = kind if kind == "lower" else self.table.upper
        cells = [cell for row in self.bounds if row.method == name for cell in row.cells.items()]
        return next((score.value for (key, _), score in cells if key == metric), None)

    def words(self, score: float | None) -> str:
        """A score by the board's own metric, as printed."""
        return numbers.number(score, numbers.metric(self.metric).unit)

    def bound_words(self, kind: str) -> str:
        """The ``lower`` or ``upper`` bound by the board's own metric, as printed."""
        return self.words(self.bound(kind, self.metric))

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
            ranked = [m for m, about in self.info.items() if about.ranked and self.costs[m]]
            known = [self.costs[m][key] for m in ranked if key in self.costs[m]]
            texts = {cost_text(key, value) for value in known}
            if len(ranked) == len(known) > 1 and len(texts) == 1 and key != "training_cost":
                shared[key] = min(known)
        return shared


def compared(boards: Sequence[RankedBoard]) -> list[RankedBoard]:
    """The boards that pages compare: current ones; of nothing but changed tracks, the newest."""
    current = [board for board in boards if board.current]
    return current or [board for board in boards if board.latest and not board.unpaid]


def unpaid(boards: Sequence[RankedBoard]) -> list[RankedBoard]:
    """Those that are not compared, as training does not pay there."""
    return [board for board in boards if board.unchanged and board.unpaid]


def make_boards(
    stored: Iterable[StoredRecord], info: Mapping[str, MethodInfo]
) -> list[RankedBoard]:
    """A board for each protocol, track and setting: unmodified ones first, then photographs."""
    by_record = {id(each.record): each for each in stored}
    groups = scores.group(each.record for each in by_record.values())
    training = typical_training_costs(each.record for each in by_record.values())
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    for first, *_ in groups:
        key, version = _version(first)
        newest[key] = max(newest.get(key, version), version)
    found: dict[str, RankedBoard] = {}
    for members in groups:
        key, version = _version(members[0])
        latest = newest[key] == version
        base = _slug(members[0], latest=latest)
        slugs = chain([base], (f"{base}-{i}" for i in count(2)))
        slug = next(slug for slug in slugs if slug not in found)
        own = {record.method: info[record.method] for record in members}
        here = tuple(by_record[id(record)] for record in members)
        found[slug] = RankedBoard(slug, here, latest, own, training_costs=training)
    return sorted(
        found.values(),
        key=lambda b: (bool(b.first.changed), not b.latest, b.scenario.place, not b.general),
    )


def _version(record: Record) -> tuple[tuple[str, str], tuple[int, int]]:
    return (record.protocol, record.track), (record.protocol_version, record.track_version)


def _slug(record: Record, *, latest: bool) -> str:
    version = [] if latest else [f"v{record.protocol_version}.{record.track_version}"]
    changes = [f"{key}-{value}" for key, value in record.changed.items()]
    return file_name(record.protocol, record.track, *version, *changes)


def number_rows(board: RankedBoard) -> list[dict[str, Any]]:
    """Every row of every metric's table, as numbers: what is downloaded and what charts read."""
    return [
        _numbers(board, row, metric)
        for metric in board.metrics
        for row in (*board.bounds, *board.rows(metric))
    ]


def _numbers(board: RankedBoard, row: MethodScores, metric: str) -> dict[str, Any]:
    own = board.by_metric[metric]
    place, effect = own.place(row.method), None
    method = row.kind in ("method", "independent")
    if method:
        effect = own.effects.get(row.method)
    parts = ("share", "value", *board.standing.criterion.own_parts)
    ends = {PARTS[part]: getattr(effect, part, NO_SCORE) for part in parts}
    cells: dict[str, Any] = {}
    for case in board.table.cases:
        cells |= _ends(case, row.cells.get((metric, case), NO_SCORE))
    verdict = row.verdicts.get(metric, NO_VERDICT)
    for name, answer in (("compatible", verdict.compatible), ("not hurting", verdict.not_hurting)):
        cells[name] = None if answer is None else numbers.of_seeds(answer)
    costs = board.costs.get(row.method, {}) if method else {}
    numbers_of_effect: dict[str, Any] = {"ranked by": own.criterion.words}
    ends[FIRST_DAY] = NO_SCORE if effect is None else effect.first_day
    for name, score in ends.items():
        numbers_of_effect |= _ends(name, score)
    return {
        "kind": row.kind, "method": row.full,
        "family": board.info[row.method].family if method else "bound",
        "metric": metric, "rank": place.rank, "tied with": place.tied if place.rank else None,
        "best rank": place.span[0] if place.span else None,
        "worst rank": place.span[1] if place.span else None,
        **numbers_of_effect, "hurts": None if effect is None else "yes" if effect.hurts else "no",
        **cells, "gain": rounded(verdict.gain), **{key: costs.get(key) for key in board.cost_keys},
        "seeds": " ".join(map(str, row.seeds)), "reason": row.reason,
    }  # fmt: skip


def _ends(name: str, score: Estimate) -> dict[str, float | None]:
    ends = {name: score.value, f"{name} low": score.low, f"{name} high": score.high}
    return {key: rounded(value) for key, value in ends.items()}


def rounded(value: float | None, digits: int = 6) -> float | None:
    """A score with six decimals, more than any number of queries gives."""
    return None if value is None else round(float(value), digits)
