"""The verdict: which strategy to take, by a rule that is written down, and what would change it.

The rule, in this order, among strategies that the user can follow:

1. Where re-embedding is not likely better than keeping the old model (by a one-sided test at 30 %,
   about half a standard error), or by less than is worthwhile (two points), keep the old model, if
   it still runs. That is the safe way, but not decided, where the 95 % interval of the difference
   holds a worthwhile upgrade. Nor is anything else decided where the interval holds 0:
   it is likely the better way. Without judgements which model is better is not known: nothing is
   decided, and steps 2 to 4 go by agreement with re-embedding. Nor is it known without queries by
   the old model, while that still runs: nothing is decided.
2. What must be kept is the wanted share (90 %) of the upgrade, the way from the old model's score
   to that of re-embedding; of the latter score itself, where it is not likely better or where
   there are no queries by the old model. Short of embedding every item, strategies come in three
   groups of effort: one model run a query; two runs; items embedded while a query waits. In the
   first group that has one which surely keeps the share, take the best of these: by one-sided
   tests at 2.5 %, with Holm's correction for all strategies that are tried; where one answers every
   query as re-embedding does, by the chance that it would if it kept just the share. Where others
   cannot be told from the best (the interval of the paired difference holds 0), one that leaves the
   index as it is goes first, then the better one.
3. Otherwise embed everything again, if that is possible.
4. Otherwise take the best strategy that is surely better than keeping the old model, by the same
   tests and correction, or one that leaves the index as it is and cannot be told from it; else keep
   it, if it still runs; else take the best there is. What has less than a tenth of re-embedding's
   score serves nobody, and is not taken.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.intervals import LEAST_GROUPS, group_sums
from benchmark.metrics.kept_share import Scored, beyond, contrast, difference, share_kept
from benchmark.metrics.statistics import surely
from benchmark.upgrade.measure.evaluation import AGREEMENT
from benchmark.upgrade.measure.study import StrategyOutcome
from benchmark.upgrade.read.request import (
    CONSTRAINTS,
    KEEP,
    LIKELY,
    REEMBED,
    SCORE,
    WANTED,
    WORTHWHILE,
    Constraints,
    missing,
)

LEVEL = 0.025
"""Of the one-sided tests that it does."""
_SHARES = (0.5, 0.8, 0.95, 0.99)
_POWER = 2.8
"""Standard errors of a difference that is found four times in five by a test at 2.5 %: so many
queries would find the least worthwhile upgrade."""
_ALL = 3  # effort of embedding every item
_LEAST_SERVING = 0.1  # of re-embedding's score


@dataclass(frozen=True)
class Decision:
    """The strategy to take.

    It is not ``decided`` where the queries cannot tell: the old model is kept for that, or
    re-embedding is likely better and no more; where nothing is judged; and where the old model
    runs, but nobody has its queries.
    """

    name: str | None  # None where the user can follow none
    reason: str  # the step of the rule, in words
    # what the rule takes without it and, where it embeds every item, without any other that
    # does; None if nothing is left
    runner_up: str | None
    changes: tuple[tuple[str, str], ...]  # what would change the answer, and the strategy then
    decided: bool = True


@dataclass(frozen=True)
class Evidence:
    """Outcomes, and the differences and shares that the rule reads."""

    outcomes: Mapping[str, StrategyOutcome]
    metric: str  # the one that decides
    groups: Any  # of queries that are drawn together, [n]; None where each is drawn alone
    # re-embedding minus the old model; None without old queries or judgements
    upgrade: Estimate | None
    likely: bool | None  # re-embedding is likely better; None as above
    # kept, of the upgrade where ``likely``, else of re-embedding's score
    shares: Mapping[str, Estimate | None]
    least: float = WORTHWHILE  # the smallest upgrade that is worthwhile
    _keeping: dict[float, set[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, outcomes: Mapping[str, StrategyOutcome], metric: str, groups: Any,
        least: float = WORTHWHILE,
    ) -> "Evidence":  # fmt: skip
        """Shares with their intervals."""
        scored = {name: outcome.scored[metric] for name, outcome in outcomes.items()}
        # By agreement re-embedding is the measure, whatever the new model is.
        old, new = scored.get(KEEP) if metric != AGREEMENT else None, scored.get(REEMBED)
        if new is None:  # the items are gone
            return cls(outcomes, metric, groups, None, None, dict.fromkeys(scored), least)
        upgrade = None if old is None else difference(new, old, groups)
        likely = None if old is None else contrast(new, old, groups).p_above(0.0) <= LIKELY
        before = old if likely else None
        shares = {name: share_kept(each, before, new, groups) for name, each in scored.items()}
        return cls(outcomes, metric, groups, upgrade, likely, shares, least)

    @property
    def judged(self) -> bool:
        """False where agreement with the new model is all there is."""
        return self.metric != AGREEMENT

    @property
    def better(self) -> bool | None:
        """Re-embedding measurably is; None where no old queries, or no judgements, say."""
        return None if self.upgrade is None else self.upgrade.is_above(0.0)

    @property
    def worthwhile(self) -> bool:
        """The upgrade is likely one, and not of less than the least, or nothing is known of it."""
        large = self.upgrade is None or self.upgrade.known >= self.least
        return self.likely is not False and large

    @property
    def decided(self) -> bool:
        """False where the queries allow a worthwhile upgrade."""
        return self.upgrade is None or self.upgrade.is_below(self.least)

    @property
    def what(self) -> str:
        """The whole of the shares, in words."""
        if self.likely:
            return "the upgrade"
        return SCORE if self.judged else "re-embedding's results"

    def scored(self, name: str) -> Scored:
        """Scores of a strategy."""
        return self.outcomes[name].scored[self.metric]

    def mean(self, name: str) -> float:
        """Mean score of a strategy."""
        return self.scored(name).mean

    def serves(self, name: str) -> bool:
        """False of what finds next to nothing of what re-embedding does."""
        if name == KEEP or REEMBED not in self.outcomes:
            return True
        return self.mean(name) >= _LEAST_SERVING * self.mean(REEMBED)

    def beats(self, name: str, other: str) -> bool:
        """True where the interval of the paired difference lies above 0."""
        return difference(self.scored(name), self.scored(other), self.groups).is_above(0.0)

    def keeping(self, wanted: float) -> set[str]:
        """Strategies short of re-embedding that keep a share, corrected for how many are tried."""
        if REEMBED not in self.outcomes:
            return set()
        if wanted in self._keeping:
            return self._keeping[wanted]
        tried = [n for n, o in self.outcomes.items() if n != KEEP and o.strategy.effort < _ALL]
        old, new = self.scored(KEEP) if self.likely else None, self.scored(REEMBED)
        tests = {
            n: wanted**self.changed if self.equal(n)
            else beyond(self.scored(n), old, new, wanted, self.groups).p_above(0.0) for n in tried
        }  # fmt: skip
        return self._keeping.setdefault(wanted, surely(tests, LEVEL))

    @cached_property
    def above(self) -> set[str]:
        """Strategies that are surely better than keeping the old model, corrected as above."""
        old = self.scored(KEEP)
        return surely({
            name: contrast(self.scored(name), old, self.groups).p_above(0.0)
            for name in self.outcomes if name != KEEP
        }, LEVEL)  # fmt: skip

    def equal(self, name: str) -> bool:
        """True where the score is re-embedding's on every query, none of which is estimated."""
        mine, new = self.scored(name), self.scored(REEMBED)
        return mine.noise is None and new.noise is None and bool((mine.values == new.values).all())

    @property
    def changed(self) -> int:
        """Queries, or groups of them, whose score the whole of the shares changes.

        What keeps a share of the changes keeps all of so many only by a chance of the share to the
        power of their number.
        """
        rest = self.scored(REEMBED).values
        if self.likely:
            rest = rest - self.scored(KEEP).values
        return int((group_sums(rest, self.groups)[0] != 0).sum())


def decide(evidence: Evidence, constraints: Constraints, wanted: float = WANTED) -> Decision:
    """Apply the rule of this module."""
    name, reason = _choose(evidence, constraints, wanted, frozenset())
    if name is None:  # the old model may still run where nobody has its queries
        return Decision(None, reason, None, (), decided=not constraints.old_model)
    runner_up, _ = _choose(evidence, constraints, wanted, _like(evidence, name))
    changes = []
    for key, each in CONSTRAINTS.items():
        now = bool(getattr(constraints, key))
        other = replace(constraints, **{key: not now})
        words = each.without if now else each.with_it
        changes.append((words, _choose(evidence, other, wanted)[0]))
    for share in _SHARES:
        if share != wanted:
            words = f"if {100 * share:g} % of {evidence.what} were wanted"
            changes.append((words, _choose(evidence, constraints, share)[0]))
    kept = tuple((words, to) for words, to in changes if to is not None and to != name)
    sure = evidence.decided or evidence.worthwhile if name == KEEP else evidence.better
    told = KEEP in evidence.outcomes and sure is not False
    decided = evidence.judged and (told or not constraints.old_model)
    return Decision(name, reason, runner_up, kept, decided)


def _like(evidence: Evidence, name: str) -> frozenset[str]:
    """Strategies that cannot be followed by who cannot follow one: itself, and all that embed."""
    if evidence.outcomes[name].strategy.effort < _ALL:
        return frozenset({name})
    return frozenset(n for n, o in evidence.outcomes.items() if o.strategy.effort == _ALL)


def _choose(
    evidence: Evidence, constraints: Constraints, wanted: float,
    without: frozenset[str] = frozenset(),
) -> tuple[str | None, str]:  # fmt: skip
    """The strategy that the rule takes, and why."""
    possible = [
        name for name, outcome in evidence.outcomes.items()
        if name not in without and not missing(outcome.strategy.needs, constraints)
        and evidence.serves(name)
    ]  # fmt: skip
    if not possible:
        if constraints.old_model:
            return None, "nothing is left but the old model, whose queries would tell more of maps"
        return None, "nothing is left that can be done"
    if not evidence.worthwhile and KEEP in possible:
        return KEEP, _why_not(evidence) + _better_than_either(evidence, possible)
    keeping = evidence.keeping(wanted)
    for effort in range(_ALL):
        strategies = {name: evidence.outcomes[name].strategy for name in possible}
        group = [n for n, each in strategies.items() if n in keeping and each.effort == effort]
        if group:
            name = _simplest(evidence, group)
            return name, _kept(evidence, name, wanted)
    if REEMBED in possible:
        return REEMBED, _nothing(evidence, possible, wanted)
    name, reason = _best(evidence, possible)
    if KEEP not in evidence.outcomes and constraints.old_model:
        reason += "; the old model, which still runs, may well be better"
    return name, reason


def _alone(evidence: Evidence, names: Sequence[str], wanted: float) -> str:
    """The best of those whose own interval lies above the wanted share, which is not enough."""
    lows = {n: share.low for n in names if (share := evidence.shares[n]) and share.low is not None}
    best = max(lows, key=lows.__getitem__, default=None)
    if best is None or lows[best] < wanted:
        return ""
    return (
        f"; {best} does by its own interval, but not surely as one of the several strategies that "
        "were tried"
    )


def _nothing(evidence: Evidence, possible: list[str], wanted: float) -> str:
    reason = f"nothing cheaper surely keeps {100 * wanted:g} % of {evidence.what}"
    if evidence.likely and not evidence.better:
        reason += f", which is likely, but not sure ({_too_few(evidence)})"
    tried = [
        n for n in possible if n != KEEP and evidence.outcomes[n].strategy.effort < _ALL
    ]  # fmt: skip
    equal = [n for n in tried if evidence.equal(n)]
    if not equal:
        return reason + _alone(evidence, tried, wanted)
    return (
        f"{reason}: {equal[0]} answers every query as well, but only {evidence.changed:,} are "
        "changed at all"
    )


def _why_not(evidence: Evidence) -> str:
    """The reason of no upgrade, as the difference and its interval say."""
    upgrade, least = evidence.upgrade, f"{100 * evidence.least:g} points"
    if upgrade is None or (evidence.likely and upgrade.known < evidence.least):
        less = f"the new model is better by less than {least}"
        return (
            less
            if evidence.decided
            else f"{less} here, but on too few queries: {_too_few(evidence)}"
        )
    if upgrade.is_below(0.0):
        return "the new model is worse here"
    if evidence.decided:
        return f"the new model is not better by {least} here"
    return f"too few queries to tell: {_too_few(evidence)}"


def _too_few(evidence: Evidence) -> str:
    """The number of queries, and of those that would tell an upgrade."""
    old, new = evidence.scored(KEEP), evidence.scored(REEMBED)
    n, differ = len(old.values), int((old.values != new.values).sum())
    if evidence.groups is None and n < LEAST_GROUPS:
        return f"they are {n}, expected {LEAST_GROUPS} or more"
    if evidence.groups is not None and (k := len(np.unique(evidence.groups))) < LEAST_GROUPS:
        of = f"{k} group{'s' * (k > 1)} of common relevant items"
        return f"they are of {of}, expected {LEAST_GROUPS} or more"
    found = contrast(new, old, evidence.groups)
    if found.freedom < LEAST_GROUPS - 1:
        return "most are of a few groups of common relevant items"
    half = max(found.below[1], found.above[1])
    enough = math.ceil(n * (_POWER * half / evidence.least) ** 2)
    return (
        f"the models differ on {differ:,} of {n:,}; some {enough:,} like these would tell an "
        f"upgrade of {100 * evidence.least:g} points"
    )


def _better_than_either(evidence: Evidence, possible: list[str]) -> str:
    """The best that is worthwhile where re-embedding is not, as two lists may be; maybe empty."""
    least = evidence.mean(KEEP) + evidence.least
    better = [name for name in possible if name in evidence.above and evidence.mean(name) >= least]
    if not better:
        return ""
    best = max(better, key=evidence.mean)
    return f"; but {best} is measurably better on these queries: try it on others"


def _kept(evidence: Evidence, name: str, wanted: float) -> str:
    if evidence.equal(name):
        return "it answers every query as well as with everything embedded again does"
    return f"it keeps {100 * wanted:g} % of {evidence.what} or more"


def _best(evidence: Evidence, possible: list[str]) -> tuple[str, str]:
    better = possible
    if KEEP in possible:
        better = [name for name in possible if name in evidence.above]
    if not better:
        more = "is measurably better" if evidence.judged else "agrees measurably more"
        return KEEP, f"nothing that can be done {more}"
    most = "is the best" if evidence.judged else "agrees most"
    return _simplest(evidence, better), f"it {most} of what can be done"


def serving(evidence: Evidence, constraints: Constraints) -> str | None:
    """The best strategy that needs no new index, which serves until there is one; None for none.

    The old model, as it is, where it still runs, whether there is a score of it or not.
    """
    if constraints.old_model:
        return KEEP
    ready = [
        name for name, each in evidence.outcomes.items()
        if not each.strategy.rebuild and each.strategy.effort < _ALL
        and not missing(each.strategy.needs, constraints) and evidence.serves(name)
    ]  # fmt: skip
    return max(ready, key=evidence.mean, default=None)


def _simplest(evidence: Evidence, group: list[str]) -> str:
    """The best of a group, or a simpler one that cannot be told from it."""
    best = max(group, key=evidence.mean)
    alike = [name for name in group if name == best or not evidence.beats(best, name)]

    def order(name: str) -> tuple[bool, float]:
        return evidence.outcomes[name].strategy.rebuild, -evidence.mean(name)

    return min(alike, key=order)


def rule() -> list[str]:
    """The steps of the rule, as this module has them."""
    steps: list[str] = []
    for line in (__doc__ or "").splitlines():
        if line[:1].isdigit():
            steps.append(line.partition(". ")[2])
        elif line.strip() and steps:
            steps[-1] += " " + line.strip()
    return steps
