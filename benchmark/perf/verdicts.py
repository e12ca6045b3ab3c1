"""Verdicts of ``bench upgrade`` on simulated queries, whose truth is known.

Each draw makes queries anew: their score by the old model, by the new one, which changes some of
them, and by strategies that follow the new model on a share of what it changes. A verdict that says
that it is decided is wrong where it finds an upgrade that is none, or takes a strategy that keeps
no more than is wanted: at most one in twenty may be. Where a strategy keeps all and another thing
is done, queries are too few to be sure: what is cheap is missed.
"""

from typing import Any

import numpy as np

from benchmark.metrics.kept_share import measured
from benchmark.ranking.arrays import Values
from benchmark.upgrade.decide.verdict import Evidence, decide
from benchmark.upgrade.measure.study import StrategyOutcome
from benchmark.upgrade.read.request import KEEP, REEMBED, WANTED, Constraints
from benchmark.upgrade.search.strategies import Strategy

QUERIES = (50, 200, 1000)
TRIED = (1, 20)
"""Strategies that are tried side by side, all of one true share."""
SHARES = (0.8, WANTED, 1.0)
UPGRADE = 0.1
_CHANGED = 0.6
"""Share of the queries whose score the new model changes."""
_SCORES = np.array([0.0, 0.3, 0.4, 0.5, 0.63, 1.0])
"""Of nDCG@10 with one relevant item, about."""
_OTHERWISE = 0.05
"""Share of the queries on which a strategy does as well as the new model, but otherwise."""
_METRIC = "ndcg_at_10"
_WAYS = ("keep", "strategy", "re-embed")


def rows(samples: int = 400) -> list[dict[str, Any]]:
    """Draw each design ``samples`` times.

    Returns:
        A row for each number of queries and strategies, true ``upgrade`` and true ``share`` that is
        kept (None where there is no upgrade): the shares of draws that kept the old model, took a
        strategy, or embedded everything again; of those that said that queries are too few to
        decide (``undecided``), of those that were decided and ``wrong``, and of those that
        ``missed`` a strategy that keeps all.
    """
    designs = [(0.0, None), *((UPGRADE, share) for share in SHARES)]
    return [
        _row(queries, tried, upgrade, share, samples)
        for queries in QUERIES for tried in TRIED for upgrade, share in designs
    ]  # fmt: skip


def _row(
    queries: int, tried: int, upgrade: float, share: float | None, samples: int
) -> dict[str, Any]:
    rng = np.random.default_rng([queries, tried, round(100 * upgrade), round(100 * (share or 0))])
    drawn = (_draw(queries, tried, upgrade, share or 0.0, rng) for _ in range(samples))
    found = [_taken(scores, tried) for scores in drawn]
    counts = {n: sum(way == n for way, _ in found) / samples for n in _WAYS}
    sure = {n: found.count((n, True)) / samples for n in _WAYS}
    wrong = {None: sure["strategy"] + sure["re-embed"], 1.0: 0.0}.get(share, sure["strategy"])
    return {
        "queries": queries, "tried": tried, "upgrade": upgrade, "share": share, **counts,
        "undecided": 1 - sum(sure.values()), "wrong": wrong,
        "missed": 1 - counts["strategy"] if share == 1.0 else 0.0, "draws": samples,
    }  # fmt: skip


def _draw(
    queries: int, tried: int, upgrade: float, share: float, rng: np.random.Generator
) -> dict[str, Values]:
    """Scores by name, ``[queries]`` each."""
    old = rng.choice(_SCORES, queries)
    other = rng.choice(_SCORES, queries)
    # Of changed queries some have the better of both scores: the mean change is the upgrade.
    gain = float(np.maximum.outer(_SCORES, _SCORES).mean() - _SCORES.mean())
    changed = rng.random(queries) < _CHANGED
    up = rng.random(queries) < upgrade / (_CHANGED * gain)
    new = np.where(changed, np.where(up, np.maximum(old, other), other), old)
    out = {KEEP: old, REEMBED: new}
    for k in range(tried):
        follows = rng.random(queries) < share
        mine = np.where(follows, new, old)
        # Two queries change places: nothing is gained or lost on average.
        some = np.flatnonzero(rng.random(queries) < _OTHERWISE)
        mine[some] = mine[rng.permutation(some)]
        out[f"map {k}"] = mine
    return out


def _taken(scores: dict[str, Values], tried: int) -> tuple[str, bool]:
    """The way that is taken, and is it decided?"""
    kinds = {
        KEEP: Strategy(KEEP, "", frozenset({"old_model"})),
        REEMBED: Strategy(REEMBED, "", frozenset({"sources", "index"}), effort=3),
        **{f"map {k}": Strategy(f"map {k}", "") for k in range(tried)},
    }
    outcomes = {
        name: StrategyOutcome(kinds[name], {_METRIC: measured(values)}, values, estimated=False)
        for name, values in scores.items()
    }
    said = decide(Evidence.of(outcomes, _METRIC, None), Constraints())
    return {KEEP: "keep", REEMBED: "re-embed"}.get(said.name or "", "strategy"), said.decided
