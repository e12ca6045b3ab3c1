"""The verdict: which strategy to take, by a rule that is written down, and what would change it.

The rule, in this order, among strategies that the user can follow:

1. Where re-embedding is not better than keeping the old model (the interval of the difference holds
   0 or less), or by less than two points, keep the old model, if it still runs.
2. What must be kept is the wanted share (90 %) of the upgrade, the way from the old model's score
   to that of re-embedding; of the latter score itself, where it is not better or where there are
   no queries by the old model. Short of embedding every item, strategies come in three groups of
   effort: one model run a query; two runs; items embedded while a query waits. In the first group
   that has one which surely keeps the share (by one-sided tests at 2.5 %, with Holm's correction
   for all strategies that are tried), or whose score is not below re-embedding's, take the best of
   these. Where others cannot be told from the best (the interval of the paired difference holds 0),
   one that leaves the index as it is goes first, then the better one.
3. Otherwise embed everything again, if that is possible.
4. Otherwise take the best strategy that is better than keeping the old model; else keep it, if it
   still runs; else take the best there is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmark.metrics.compatibility import LEAST_UPGRADE
from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import Scored, beyond, difference, share_kept
from benchmark.metrics.statistics import holm
from benchmark.upgrade.measure.study import StrategyOutcome
from benchmark.upgrade.read.request import CONSTRAINTS, WANTED, Constraints, missing
from benchmark.upgrade.search.strategies import KEEP, REEMBED

LEVEL = 0.025
"""Of the one-sided tests that it does."""
_SHARES = (0.5, 0.8, 0.95, 0.99)
_ALL = 3
"""Effort of embedding every item."""


@dataclass(frozen=True)
class Decision:
    """The strategy to take.

    Attributes:
        name: The strategy; None where the user can follow none.
        reason: The step of the rule, in words.
        runner_up: The strategy that the rule takes without it; None if nothing is left.
        changes: Things that would change the answer, and the strategy then.
    """

    name: str | None
    reason: str
    runner_up: str | None
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Evidence:
    """Outcomes, and the differences and shares that the rule reads.

    Attributes:
        outcomes: Of all strategies, by name.
        metric: The one that decides.
        groups: Of queries that are drawn together, ``[n]``; None where each is drawn alone.
        upgrade: Re-embedding minus keeping the old model; None where no old queries say.
        shares: Shares that strategies keep, of the upgrade where ``better``, else of
            re-embedding's score.
    """

    outcomes: Mapping[str, StrategyOutcome]
    metric: str
    groups: object
    upgrade: Estimate | None
    shares: Mapping[str, Estimate | None]

    @classmethod
    def of(cls, outcomes: Mapping[str, StrategyOutcome], metric: str, groups: object) -> "Evidence":
        """Shares with their intervals."""
        scored = {name: outcome.scored[metric] for name, outcome in outcomes.items()}
        old, new = scored.get(KEEP), scored[REEMBED]
        upgrade = None if old is None else difference(new, old, groups)
        before = old if upgrade is not None and upgrade.is_above(0.0) else None
        shares = {name: share_kept(each, before, new, groups) for name, each in scored.items()}
        return cls(outcomes, metric, groups, upgrade, shares)

    @property
    def better(self) -> bool | None:
        """Re-embedding measurably is; None where no old queries say."""
        return None if self.upgrade is None else self.upgrade.is_above(0.0)

    @property
    def worthwhile(self) -> bool:
        """The upgrade is not known to be none, or of less than the least."""
        large = self.upgrade is None or self.upgrade.known >= LEAST_UPGRADE
        return self.better is not False and large

    @property
    def what(self) -> str:
        """The whole of the shares, in words."""
        return "the upgrade" if self.better else "re-embedding's score"

    def scored(self, name: str) -> Scored:
        """Scores of a strategy."""
        return self.outcomes[name].scored[self.metric]

    def mean(self, name: str) -> float:
        """Mean score of a strategy."""
        return self.scored(name).mean

    def beats(self, name: str, other: str) -> bool:
        """True where the interval of the paired difference lies above 0."""
        return difference(self.scored(name), self.scored(other), self.groups).is_above(0.0)

    def keeping(self, wanted: float) -> set[str]:
        """Strategies short of re-embedding that keep a share, corrected for how many are tried.

        Those whose score is not below re-embedding's are among them.
        """
        tried = [n for n, o in self.outcomes.items() if n != KEEP and o.strategy.effort < _ALL]
        old, new = self.scored(KEEP) if self.better else None, self.scored(REEMBED)
        tests = [beyond(self.scored(n), old, new, wanted, self.groups).p_above(0.0) for n in tried]
        sure = holm(tests) <= LEVEL if tests else ()
        return {n for n, is_sure in zip(tried, sure, strict=True) if is_sure} | {
            n for n in tried if self.mean(n) >= new.mean
        }


def decide(evidence: Evidence, constraints: Constraints, wanted: float = WANTED) -> Decision:
    """Apply the rule of this module."""
    name, reason = _choose(evidence, constraints, wanted, frozenset())
    if name is None:
        return Decision(None, reason, None, ())
    runner_up, _ = _choose(evidence, constraints, wanted, frozenset({name}))
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
    return Decision(name, reason, runner_up, kept)


def _choose(
    evidence: Evidence, constraints: Constraints, wanted: float,
    without: frozenset[str] = frozenset(),
) -> tuple[str | None, str]:  # fmt: skip
    """The strategy that the rule takes, and why."""
    possible = [
        name for name, outcome in evidence.outcomes.items()
        if name not in without and not missing(outcome.strategy.needs, constraints)
    ]  # fmt: skip
    if not possible:
        return None, "nothing is left that can be done"
    if not evidence.worthwhile and KEEP in possible:
        if evidence.better:
            return KEEP, f"the new model is better by less than {100 * LEAST_UPGRADE:g} points"
        return KEEP, "the new model is not measurably better here"
    keeping = evidence.keeping(wanted)
    for effort in range(_ALL):
        strategies = {name: evidence.outcomes[name].strategy for name in possible}
        group = [n for n, each in strategies.items() if n in keeping and each.effort == effort]
        if group:
            name = _simplest(evidence, group)
            return name, _kept(evidence, name, wanted)
    if REEMBED in possible:
        return REEMBED, f"nothing cheaper surely keeps {100 * wanted:g} % of {evidence.what}"
    return _best(evidence, possible)


def _kept(evidence: Evidence, name: str, wanted: float) -> str:
    if evidence.mean(name) >= evidence.mean(REEMBED):
        return "its score is not below that with everything embedded again"
    return f"it keeps {100 * wanted:g} % of {evidence.what} or more"


def _best(evidence: Evidence, possible: list[str]) -> tuple[str, str]:
    best = max(possible, key=evidence.mean)
    if KEEP in possible and not evidence.beats(best, KEEP):
        return KEEP, "nothing that can be done is measurably better"
    return best, "it is the best of what can be done"


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
