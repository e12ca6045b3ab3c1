"""Two orders side by side: correlation, pairs by gap, compatibility, regret, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np

from benchmark.config import registry
from benchmark.metrics.estimate import Estimate
from benchmark.records.published import Number, Published
from benchmark.records.record import Record
from benchmark.studies.transfer import statistics
from benchmark.studies.transfer.orders import (
    Floats,
    MethodOrder,
    TransferRules,
    measured_orders,
    published_orders,
)
from benchmark.studies.transfer.statistics import same_order

TransferVerdict = Literal["transfers", "does not transfer", "open"]
_CASES = ("new/old", "v2/v1")


@dataclass(frozen=True)
class Regret:
    """The loss on one place of choosing there by another one's order."""

    source: str
    target: str
    winner: str  # the method that is best on the source
    chosen: float  # best score on the target less the winner's
    random: float  # less the mean of all methods
    baseline: float | None  # less the baseline's; None where it is not there


@dataclass(frozen=True)
class Transfer:
    """Two orders of the same protocol, value and metric."""

    left: MethodOrder
    right: MethodOrder
    methods: tuple[str, ...]  # that both have
    tau: Estimate  # without a value where one side is constant
    weighted: Estimate
    ceiling: float | None  # the lower one of both sides' own; None where one has a single seed
    compatible: tuple[int, int, float] | None  # methods of one verdict, methods, expected by chance
    regrets: tuple[Regret, Regret]  # left's winner on the right, right's on the left
    verdict: TransferVerdict
    reason: str  # why it is open

    def gaps(self) -> Iterator[tuple[str, str, float, bool]]:
        """Source and target kinds of images, gap of two methods on the source, do both agree?"""
        for source, target in ((self.left, self.right), (self.right, self.left)):
            x, y = (_means(order, self.methods) for order in (source, target))
            for i, j in combinations(range(len(self.methods)), 2):
                gap = float(x[i] - x[j])
                same = statistics.same_order(gap, float(y[i] - y[j]))
                yield source.kind, target.kind, abs(gap), same


def transfers(
    pairs: Iterable[tuple[MethodOrder, MethodOrder]], rules: TransferRules
) -> list[Transfer]:
    """Those of the pairs that are orders of the same, and have two methods or more in common."""
    found = [_transfer(a, b, rules) for a, b in pairs if a.subject == b.subject]
    return [each for each in found if each is not None]


def compare_all(
    records: Iterable[Record], published: Published, rules: TransferRules
) -> list[Transfer]:
    """Every pair of tracks by the rules' metrics, and every paper beside tracks by its own."""
    papers = published_orders(published, rules)
    more = tuple(dict.fromkeys((*rules.metrics, *(order.metric for order in papers))))
    every = measured_orders(records, rules.model_copy(update={"metrics": more}))
    own = [order for order in every if order.metric in rules.metrics]
    return transfers([*combinations(own, 2), *product(papers, every)], rules)


def _means(order: MethodOrder, methods: Sequence[str]) -> Floats:
    return np.array([order.scores[m].mean() for m in methods])


def _transfer(left: MethodOrder, right: MethodOrder, rules: TransferRules) -> Transfer | None:
    methods = tuple(sorted(left.scores.keys() & right.scores.keys()))
    if len(methods) < 2:
        return None
    a, b = (np.stack([order.scores[m] for m in methods]) for order in (left, right))
    rng = np.random.default_rng(0)
    plain, weighted = (_tau(a, b, rules.draws, rng, weighted=w) for w in (False, True))
    ends = [statistics.ceiling(each, rules.draws, rng) for each in (a, b)]
    known = [end for end in ends if end is not None]
    fewest = min((o.n_seeds for o in (left, right) if not o.published), default=0)
    verdict, reason = verdict_of(plain, len(methods), fewest, rules)
    return Transfer(
        left, right, methods, plain, weighted, min(known) if len(known) == 2 else None,
        _compatible(left, right, methods),
        (_regret(left, right, methods, rules), _regret(right, left, methods, rules)),
        verdict, reason,
    )  # fmt: skip


def _tau(a: Floats, b: Floats, n: int, rng: np.random.Generator, *, weighted: bool) -> Estimate:
    x, y = a.mean(axis=1), b.mean(axis=1)
    value = float(statistics.taus(x[None], y[None], weighted=weighted)[0])
    if not np.isfinite(value):
        return Estimate(None)
    return Estimate.of_draws(value, statistics.tau_draws([a], [b], n, rng, weighted=weighted))


def verdict_of(
    tau: Estimate, n: int, fewest: int, rules: TransferRules
) -> tuple[TransferVerdict, str]:
    """The verdict by the rules on orders of ``n`` methods, and why it is open."""
    if n < rules.methods:
        return "open", f"{n} methods"
    if fewest < rules.seeds:
        return "open", "one seed" if fewest == 1 else f"{fewest} seeds"
    if tau.value is None or tau.low is None or tau.high is None:
        return "open", "all methods are alike"
    if tau.value >= rules.tau and tau.low > rules.above:
        return "transfers", ""
    return ("does not transfer", "") if tau.high < rules.tau else ("open", "its interval is wide")


def _compatible(
    left: MethodOrder, right: MethodOrder, methods: Sequence[str]
) -> tuple[int, int, float] | None:
    """On how many methods both say the same of new/old > old/old, means over the seeds."""
    if left.lower is None or right.lower is None:
        return None
    a, b = (
        _means(order, methods) > float(lower.mean())
        for order, lower in ((left, left.lower), (right, right.lower))
    )
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())) * len(methods)
    return int((a == b).sum()), len(methods), chance


def _regret(
    source: MethodOrder, target: MethodOrder, methods: Sequence[str], rules: TransferRules
) -> Regret:
    x, y = _means(source, methods), _means(target, methods)
    winner = int(x.argmax())
    best = float(y.max())
    at = methods.index(rules.baseline) if rules.baseline in methods else None
    return Regret(
        source.place, target.place, methods[winner], best - float(y[winner]),
        best - float(y.mean()), None if at is None else best - float(y[at]),
    )  # fmt: skip


@dataclass(frozen=True)
class GapShare:
    """Pairs of methods whose scores on the source differ by some gap."""

    source: str  # kind of images, or papers
    target: str
    low: float
    high: float | None  # None: any gap above
    agree: int  # pairs in the same order on the target
    pairs: int

    @property
    def share(self) -> float | None:
        """Of pairs that agree."""
        return self.agree / self.pairs if self.pairs else None


def gap_shares(found: Sequence[Transfer], rules: TransferRules) -> list[GapShare]:
    """Agreement of pairs by gap, over all places that have enough seeds and methods."""
    enough = ("", "its interval is wide")
    told = [t for t in found if t.reason in enough]
    pairs = [pair for t in told for pair in t.gaps()]
    shares = []
    for source, target in sorted({(s, t) for s, t, *_ in pairs}):
        for low, high in zip(rules.gaps, [*rules.gaps[1:], None], strict=True):
            mine = [
                same
                for s, t, gap, same in pairs
                if (s, t) == (source, target) and gap >= low and (high is None or gap < high)
            ]
            shares.append(GapShare(source, target, low, high, sum(mine), len(mine)))
    return shares


def least_gap(shares: Sequence[GapShare], rules: TransferRules) -> float | None:
    """The gap from which on as many pairs agree as the rules ask; None where no gap is enough."""
    least = None
    for share in sorted(shares, key=lambda s: -s.low):
        if share.share is not None and share.share < rules.agreement:
            break
        least = share.low if share.pairs else least
    return least


@dataclass(frozen=True)
class Agreement:
    """One table of a paper, one metric of the day of the update, and scores of ours.

    Attributes:
        says: Methods as the paper has them, best first, with its numbers.
        measured: The same methods as measured, best first.
        same: Pairs in the same order, which a measured tie is not; ``pairs`` are all that the paper
            puts in an order.
    """

    paper: str
    table: str
    metric: str
    says: tuple[tuple[str, str], ...]
    measured: tuple[tuple[str, float], ...]
    same: int
    pairs: int

    @property
    def verdict(self) -> str:
        """The same order, or in so many pairs."""
        if self.same == self.pairs:
            return "yes"
        return "no" if not self.same else f"{self.same} of {self.pairs} pairs"


def paper_tables(published: Published) -> dict[tuple[str, ...], dict[str, Number]]:
    """Cross-tests by paper, table, data, protocol and metric: method -> number.

    Controls, and rows of other models than the first of a table are left out.
    """
    found: dict[tuple[str, ...], dict[str, Number]] = {}
    models: dict[tuple[str, ...], tuple[str, str]] = {}
    for number in published.numbers:
        if number.case not in _CASES or registry.is_control(number.method):
            continue
        key = (number.paper, number.table, number.dataset, number.protocol, number.metric)
        pair = models.setdefault(key, (number.old_model, number.new_model))
        if pair == (number.old_model, number.new_model):
            found.setdefault(key, {}).setdefault(number.method, number)
    return found


def agree(mine: Mapping[str, Number], measured: Mapping[str, float]) -> Agreement | None:
    """Compare one table with scores of methods; None where they order no two methods of both."""
    scores = {m: score for m, score in measured.items() if m in mine}
    said = {method: mine[method].value for method in scores}
    pairs = [(a, b) for a, b in combinations(scores, 2) if said[a] != said[b]]
    if not pairs:
        return None
    first = next(iter(mine.values()))
    return Agreement(
        first.paper, f"{first.table}, {first.dataset}", first.metric,
        tuple((m, mine[m].printed) for m in sorted(said, key=lambda m: (-said[m], m))),
        tuple((m, scores[m]) for m in sorted(scores, key=lambda m: (-scores[m], m))),
        sum(same_order(said[a] - said[b], scores[a] - scores[b]) for a, b in pairs), len(pairs),
    )  # fmt: skip
