"""Verdicts on claims: agrees, disagrees or cannot tell, with the interval over seeds.

A difference is taken within a seed. With three seeds or more its 95 % interval is Student's t over
them; a rule holds where the whole interval keeps it, and fails where none of it does. Fewer seeds
never tell, whatever their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report.notes import track_kind
from benchmark.report.scenarios import NETWORKS, networks_of
from benchmark.studies.claims.language import UNITS, Claim, ClaimPart, Claims, ClaimValue, leaves
from benchmark.studies.claims.values import ClaimPlace, MissingValueError, Values, needed

ClaimVerdict = Literal["agrees", "disagrees", "cannot tell"]
Status = Literal["holds", "holds elsewhere", "differs", "open", "fails", "fails elsewhere"]
"""On photographs, elsewhere only, otherwise by the track or networks, or not told anywhere."""
LEAST_SEEDS = 3
KINDS = ("photographs", "texts", "drawings", "rendered")
"""Kinds of data, in the order of tables."""


@dataclass(frozen=True)
class Line:
    """One comparison: a part of a claim on a protocol, a track and a metric."""

    part: int  # number of the part, from 0
    place: ClaimPlace
    step: int  # which of the part's comparisons, from 0
    verdict: ClaimVerdict
    differences: Mapping[int, float]  # seed -> left less right
    estimate: Estimate  # their mean; without an interval below three seeds
    reason: str = ""  # why there is no verdict
    unit: str = "share"
    decides: bool = True  # False where the metric has no room there


@dataclass(frozen=True)
class Answer:
    """The verdicts of all records on one claim."""

    name: str
    claim: Claim
    lines: tuple[Line, ...]

    @property
    def paper(self) -> str:
        """Id of the paper that claims it."""
        return self.name.rpartition("-")[0]

    def behind(self, networks: str) -> Answer:
        """The verdicts of tracks with one kind of networks, a key of ``NETWORKS``."""
        own = [line for line in self.lines if networks_of(line.place.track) == networks]
        return replace(self, lines=tuple(own))

    @property
    def has_records(self) -> bool:
        """Some comparison has a value."""
        return any(line.differences for line in self.lines)

    def of_part(self, part: int, track: str) -> ClaimVerdict | None:
        """On a track: all lines must agree; None without any line.

        Metrics without room on the track are shown and decide nothing; protocols without three
        seeds do not count beside others that have them.
        """
        lines = self.counted(part, track)
        return all_of([line.verdict for line in lines]) if lines else None

    def counted(self, part: int, track: str) -> list[Line]:
        """The lines that a part's verdict on a track is of."""
        lines = [line for line in self.lines if (line.part, line.place.track) == (part, track)]
        told = [line for line in lines if line.decides] or lines
        enough = {line.place.protocol for line in told if line.estimate.ends}
        return [line for line in told if line.place.protocol in enough] or told

    def weakest(self, part: int, track: str) -> Line | None:
        """Of these the one that speaks most against the part, by its mean; None without values."""
        rule = self.claim.parts[part]
        known = [line for line in self.counted(part, track) if line.estimate.value is not None]
        return min(known, key=lambda line: _margin(rule, line), default=None)

    def on_track(self, track: str) -> ClaimVerdict:
        """Every part must agree; one that nothing can answer leaves the claim open."""
        found = [self.of_part(i, track) for i in range(len(self.claim.parts))]
        return all_of([verdict or "cannot tell" for verdict in found])

    def on_kind(self, kind: str) -> ClaimVerdict:
        """Some track of the kind tells, and those that tell say the same."""
        told = self.told(kind)
        return told.pop() if len(told) == 1 else "cannot tell"

    def told(self, kind: str) -> set[ClaimVerdict]:
        """Verdicts of the tracks of a kind that tell."""
        return {self.on_track(track) for track in self.tracks(kind)} - {"cannot tell"}

    def tracks(self, kind: str) -> list[str]:
        """Tracks of a kind of data with lines."""
        return sorted(t for t in {line.place.track for line in self.lines} if track_kind(t) == kind)

    @property
    def status(self) -> Status:
        """Each kind of networks decides apart; where they decide otherwise, neither is taken."""
        found = {self.behind(networks)._decided for networks in NETWORKS} - {"open"}
        if "differs" in found or len({status.partition(" ")[0] for status in found}) > 1:
            return "differs"
        return min(found, default="open", key=len)  # on photographs before elsewhere

    @property
    def _decided(self) -> Status:
        """Photographs decide; where none of them tells all other kinds that tell have to agree."""
        photographs = self.told("photographs")
        if photographs:
            by_verdict: Mapping[ClaimVerdict, Status] = {"agrees": "holds", "disagrees": "fails"}
            return by_verdict[photographs.pop()] if len(photographs) == 1 else "differs"
        told = {self.on_kind(kind) for kind in KINDS} - {"cannot tell"}
        if not told:
            return "open"
        return "fails elsewhere" if "disagrees" in told else "holds elsewhere"


def answers(claims: Claims, records: Iterable[Record]) -> list[Answer]:
    """The answers of records to every claim; random patterns say nothing of any."""
    values, found = Values(each for each in records if each.track != "toy"), []
    for name, claim in claims.claims.items():
        lines = [line for i, part in enumerate(claim.parts) for line in _part(i, part, values)]
        found.append(Answer(name, claim, tuple(lines)))
    return found


def _margin(part: ClaimPart, line: Line) -> tuple[int, float]:
    """A line's order by how well it keeps a part's rule: its verdict, then its mean."""
    order: tuple[ClaimVerdict, ...] = ("disagrees", "cannot tell", "agrees")
    mean = line.estimate.value or 0.0
    return order.index(line.verdict), mean if part.above is not None else -abs(mean)


def all_of(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of several that must all agree."""
    if "disagrees" in verdicts:
        return "disagrees"
    return "agrees" if verdicts and set(verdicts) == {"agrees"} else "cannot tell"


def _part(number: int, part: ClaimPart, values: Values) -> list[Line]:
    lines = []
    for track in part.tracks or values.tracks(part.protocols):
        if track in part.without:
            continue
        # A protocol that a track has no records of is left out, unless it has those of none.
        protocols = [p for p in part.protocols if track in values.tracks([p])]
        for protocol in protocols or part.protocols[:1]:
            for method in part.methods or ("",):
                places = [ClaimPlace(protocol, track, metric, method) for metric in part.metrics]
                found = [[*_compared(number, part, place, values)] for place in places]
                # A metric that a track does not score is left out, unless it scores none.
                scored = [each for each in found if any(line.differences for line in each)]
                lines += [line for each in (scored or found[:1]) for line in each]
    told = {line.place.track for line in lines if line.differences}
    return [line for line in lines if line.place.track in told or part.tracks]


def _compared(number: int, part: ClaimPart, place: ClaimPlace, values: Values) -> Iterator[Line]:
    """A line for each pair of neighbours."""
    for step, pair in enumerate(pairwise(part.expressions)):
        found_in = (leaf for side in pair for leaf in leaves(side))
        kinds = {leaf.value for leaf in found_in if isinstance(leaf, ClaimValue)}
        unit = next((UNITS[kind] for kind in kinds if kind in UNITS), "share")
        line = partial(Line, number, place, step, unit=unit)
        try:
            differences = values.difference(*pair, place)
        except MissingValueError as missing:
            yield line("cannot tell", {}, Estimate(None), str(missing))
            continue
        n, found = len(differences), mean_score([*differences.values()])
        without = _without_room(part, pair[0], place, values)
        few = "one seed" if n == 1 else f"{n} seeds" if n < LEAST_SEEDS else ""
        if without or few:
            mean, why = Estimate(found.value), without or few
            yield line("cannot tell", differences, mean, why, decides=not without)
        else:
            yield line(_rule(part, *(found.ends or (-math.inf, math.inf))), differences, found)


def _without_room(part: ClaimPart, left: Any, place: ClaimPlace, values: Values) -> str:
    """That a metric's room on a track is none that the rule could be kept or broken in, in words.

    One that no track could meet tells nothing of a method: no score lies ``by`` so much below an
    old model that is not so far above chance itself.
    """
    least = needed(part)
    found = [values.room(value, place) for value in part.values()]
    if part.by and isinstance(left, ClaimValue):
        found.append(values.room(left, place, below=True))
    known = [each for each in found if each is not None]
    if least is None or not known or min(known) > least:
        return ""
    return f"no room, {100 * max(min(known), 0.0):.1f} points above chance"


def _rule(part: ClaimPart, low: float, high: float) -> ClaimVerdict:
    """The verdict of an interval that keeps a part's rule as a whole, not at all, or in part."""
    if part.above is not None:
        return "agrees" if low > part.by else "disagrees" if high <= part.by else "cannot tell"
    within = part.within or 0.0
    if -within <= low and high <= within:
        return "agrees"
    return "disagrees" if low > within or high < -within else "cannot tell"
