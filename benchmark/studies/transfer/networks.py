"""Orders of methods with small networks beside those with frozen, pretrained ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.scenarios import CLASSES
from benchmark.report.text_table import TextColumn, TextTable, simple_table
from benchmark.studies.transfer.compare import Transfer, TransferVerdict, verdict_of
from benchmark.studies.transfer.orders import MethodOrder, TransferRules
from benchmark.studies.transfer.statistics import mean_places, tau_draws, taus
from benchmark.studies.transfer.tables import score_words

SIDES = ("small", "frozen")


@dataclass(frozen=True)
class Carried:
    """Orders of one protocol, score and kind of classes, by mean place over tracks of either side.

    Attributes:
        tracks: Kind of networks -> tracks.
        methods: That all tracks have.
        tau: Of the two orders.
        moves: Method -> places that it is higher with frozen, pretrained networks.
        compatible: Kind of networks -> methods and tracks whose cross-test exceeds old/old, of how
            many; nothing of areas.
    """

    first: MethodOrder
    tracks: Mapping[str, tuple[str, ...]]
    methods: tuple[str, ...]
    tau: Estimate
    moves: Mapping[str, float]
    compatible: Mapping[str, tuple[int, int]]
    verdict: TransferVerdict
    reason: str

    @property
    def score(self) -> str:
        """The score and the kind of classes in words."""
        return f"{score_words(self.first)}, {CLASSES[self.first.classes]}".removesuffix(", ")


def carried(transfers: Sequence[Transfer], rules: TransferRules) -> list[Carried]:
    """Every protocol, score and kind of classes that both kinds of networks have enough of."""
    groups: dict[tuple[str, ...], dict[str, dict[str, MethodOrder]]] = {}
    for order in (order for t in transfers for order in (t.left, t.right)):
        enough = order.n_seeds >= rules.seeds and len(order.scores) >= rules.methods
        if order.networks in SIDES and order.metric in rules.metrics and enough:
            sides = groups.setdefault((*order.subject, order.classes), {})
            sides.setdefault(order.networks, {})[order.place] = order
    both = [sides for sides in groups.values() if len(sides) == len(SIDES)]
    found = [_carried([[*sides[name].values()] for name in SIDES], rules) for sides in both]
    return [each for each in found if each is not None]


def _carried(sides: Sequence[Sequence[MethodOrder]], rules: TransferRules) -> Carried | None:
    every = [order for side in sides for order in side]
    methods = sorted(set(every[0].scores).intersection(*(order.scores for order in every)))
    if len(methods) < 2:
        return None
    left, right = (
        [np.stack([order.scores[m] for m in methods]) for order in side] for side in sides
    )
    small, frozen = (mean_places([b.mean(axis=1)[None] for b in side]) for side in (left, right))
    draws = tau_draws(left, right, rules.draws, np.random.default_rng(0))
    value = float(taus(small, frozen)[0])
    found = Estimate.of_draws(value, draws) if np.isfinite(value) else Estimate(None)
    verdict, reason = verdict_of(found, len(methods), min(o.n_seeds for o in every), rules)
    named = dict(zip(SIDES, sides, strict=True))
    return Carried(
        every[0], {name: tuple(o.place for o in side) for name, side in named.items()},
        tuple(methods), found,
        {m: float(move) for m, move in zip(methods, (frozen - small)[0], strict=True)},
        {name: _compatible(side, methods) for name, side in named.items()}, verdict, reason,
    )  # fmt: skip


def _compatible(orders: Sequence[MethodOrder], methods: Sequence[str]) -> tuple[int, int]:
    known = [(order, order.lower.mean()) for order in orders if order.lower is not None]
    above = [bool(order.scores[m].mean() > lower) for order, lower in known for m in methods]
    return sum(above), len(above)


def changed_words(found: Sequence[Carried]) -> Iterator[str]:
    """Sentences on what changed from small networks to frozen ones; nothing without both."""
    if not found:
        return
    verdicts = Counter(each.verdict for each in found)
    known = [each.tau.value for each in found if each.tau.value is not None]
    between = f" (tau-b {min(known):.2f} to {max(known):.2f})" if known else ""
    over, not_over, still = (
        f"{verdicts[verdict] or 'none'} {'is' if verdicts[verdict] == 1 else 'are'}"
        for verdict in ("transfers", "does not transfer", "open")
    )
    yield (
        f"Of {len(found)} orders of methods on boards of small networks, by protocol, score and "
        f"kind of classes, {over} sure to carry over to those of frozen, pretrained networks, "
        f"{not_over} sure not to, and {still} open{between}."
    )
    names = sorted({m for each in found for m in each.moves})
    means = {m: fmean(each.moves[m] for each in found if m in each.moves) for m in names}
    up, down = max(names, key=means.__getitem__), min(names, key=means.__getitem__)
    yield (
        f"Behind frozen, pretrained networks {up} rises most, by {means[up]:.1f} places of "
        f"{max(len(each.methods) for each in found)} on average, and {down} falls most, by "
        f"{-means[down]:.1f}."
    )
    sums = {side: np.sum([each.compatible[side] for each in found], axis=0) for side in SIDES}
    small, frozen = (f"{n} of {of} ({100 * n / of:.0f} %)" if of else "" for n, of in sums.values())
    if small and frozen:
        yield (
            f"Of these methods' cross-tests {small} exceed old/old with small networks, and "
            f"{frozen} with frozen, pretrained ones."
        )


def carried_table(found: Sequence[Carried], words: Sequence[str] = ()) -> TextTable:
    """A line for each order, with words below."""
    notes = (
        *words,
        "Methods are ordered by their mean place over the tracks of either side; interval and "
        "verdict as of two tracks. Above old/old: methods and tracks whose cross-test is.",
    )
    lines = [
        [
            each.first.protocol, each.score, each.verdict, numbers.with_ends(each.tau),
            *_moves(each), *("{} of {}".format(*each.compatible[side]) for side in SIDES),
            *(", ".join(each.tracks[side]) for side in SIDES),
        ]
        for each in found
    ]  # fmt: skip
    columns: list[str | TextColumn] = [
        "tau-b", "rises most", "falls most", "above old/old, small", "frozen",
        TextColumn("small networks", words=True), TextColumn("frozen, pretrained", words=True),
    ]  # fmt: skip
    return simple_table(
        "Small networks and frozen, pretrained ones", "transfer-networks",
        ["protocol", "score", "verdict"], columns, lines, [_data(each) for each in found],
        notes=notes,
    )  # fmt: skip


def _moves(each: Carried) -> Iterator[str]:
    for choose in (max, min):
        method = choose(each.methods, key=each.moves.__getitem__)
        yield f"{method} {each.moves[method]:+.1f}"


def _data(each: Carried) -> dict[str, Any]:
    first = each.first
    return {
        "protocol": first.protocol, "value": first.value, "metric": first.metric,
        "classes": first.classes, **{side: " ".join(each.tracks[side]) for side in SIDES},
        "methods": len(each.methods), "tau": each.tau.value, "tau_low": each.tau.low,
        "tau_high": each.tau.high, "verdict": each.verdict, "reason": each.reason,
        "moves": " ".join(f"{m}={move:g}" for m, move in each.moves.items()),
    }  # fmt: skip
