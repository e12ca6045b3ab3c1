"""Claims of papers by our records: a page a paper, and the parts that other pages tell of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark.report.scenarios import KINDS, NETWORKS, networks_of
from benchmark.report.text_table import TextCell, simple_table
from benchmark.studies.claims import Answer, Claims
from benchmark.studies.claims import tables as claim_tables
from benchmark.studies.claims.verdicts import KINDS as TOLD_KINDS
from benchmark.studies.claims.verdicts import Status
from leaderboard.names import file_name
from leaderboard.read.methods import CitedPaper, MethodInfo, cited

_LOOKS: Mapping[Status, str] = {
    "holds": "yes", "holds elsewhere": "yes", "differs": "few", "open": "few", "fails": "no",
    "fails elsewhere": "no",
}  # fmt: skip


@dataclass(frozen=True)
class ToldClaim:
    """A claim with its status, as lists of claims show it."""

    name: str
    says: str
    kind: Status

    @property
    def href(self) -> str:
        """Address from the site's root."""
        return f"{_href(self.name.rpartition('-')[0])}#{self.name}"

    @property
    def look(self) -> str:
        """Class of its status."""
        return _LOOKS[self.kind]

    @property
    def status(self) -> str:
        """``fails on photographs``."""
        heading = claim_tables.STATUSES[self.kind]
        return heading[:1].lower() + heading[1:]


@dataclass(frozen=True)
class ToldClaims:
    """Claims of one status."""

    kind: Status
    claims: tuple[ToldClaim, ...]

    @property
    def heading(self) -> str:
        """``Fails on photographs``."""
        return claim_tables.STATUSES[self.kind]

    @property
    def anchor(self) -> str:
        """Id of the list on the page of evidence."""
        return self.kind.replace(" ", "-")

    @property
    def n(self) -> int:
        """Number of claims."""
        return len(self.claims)

    @property
    def counted(self) -> str:
        """``2 fail on photographs``."""
        verb, _, where = self.heading.partition(" ")
        verbs = {
            "Holds": ("holds", "hold"), "Differs": ("differs", "differ"), "Fails": ("fails", "fail")
        }  # fmt: skip
        one, many = verbs.get(verb, ("is open", "are open"))
        return f"{self.n} {one if self.n == 1 else many} {where}".strip()


@dataclass(frozen=True)
class ToldPaper:
    """A paper with claims."""

    id: str
    title: str
    lists: tuple[ToldClaims, ...]  # of each status that some claim has

    @property
    def href(self) -> str:
        """Address of its page from the site's root."""
        return _href(self.id)

    @property
    def short(self) -> str:
        """The title without authors and year."""
        return self.title.partition(" (")[0]

    @property
    def counts(self) -> str:
        """``1 holds on photographs, 3 are open``."""
        return ", ".join(own.counted for own in self.lists)

    def is_by(self, other: CitedPaper) -> bool:
        """Tell a paper by its first author and its year."""
        return bool(re.search(rf"\({other.first}\b.*\b{other.year}\)", self.title))


@dataclass(frozen=True)
class Told:
    """Claims as pages tell them: by status, by paper, by method."""

    lists: tuple[ToldClaims, ...] = ()
    papers: tuple[ToldPaper, ...] = ()
    methods: Mapping[str, Sequence[ToldClaim]] = field(default_factory=dict)

    def page(self, name: str) -> ToldPaper | None:
        """The paper of an id; None where it has no claim."""
        return next((each for each in self.papers if each.id == name), None)

    def claimed(self, info: MethodInfo) -> str:
        """Address of the claims of a method's own paper from the site's root; else empty."""
        own = cited(str(info.card.get("paper", "")))
        found = (each.href for each in self.papers if own and each.is_by(own))
        return next(found, "")


def tell(found: Sequence[Answer], claims: Claims) -> Told:
    """All that pages tell of some answers."""
    methods: dict[str, list[ToldClaim]] = {}
    for answer in found:
        parts = answer.claim.parts
        named = {value.method for part in parts for value in part.values()}
        for method in sorted(named.union(*(part.methods for part in parts))):
            methods.setdefault(method, []).append(_told(answer))
    papers = [
        ToldPaper(name, title, tuple(each for each in _lists(_of(found, name)) if each.claims))
        for name, title in claims.papers.items()
    ]
    return Told(_lists(found), tuple(each for each in papers if each.lists), methods)


def _href(name: str) -> str:
    return f"claims/{file_name(name)}.html"


def _of(found: Sequence[Answer], name: str) -> list[Answer]:
    return [answer for answer in found if answer.paper == name]


def _told(answer: Answer) -> ToldClaim:
    return ToldClaim(answer.name, answer.claim.says, answer.status)


def _lists(found: Sequence[Answer]) -> tuple[ToldClaims, ...]:
    """Claims that hold on photographs or on other data, that differ, are open; then that fail."""
    return tuple(
        ToldClaims(status, tuple(map(_told, claim_tables.of_status(found, status))))
        for status in claim_tables.STATUSES
    )


def claims_pages(found: Sequence[Answer], told: Told) -> dict[str, dict[str, Any]]:
    """Address -> values of the template, a page a paper."""
    return {
        each.href: {"paper": each, "claims": [_claim(answer) for answer in _of(found, each.id)]}
        for each in told.papers
    }


def _claim(answer: Answer) -> dict[str, Any]:
    """A claim with the comparison that decides on each track, and all others."""
    lines: list[list[str | TextCell]] = []
    for kind in TOLD_KINDS:
        for track in answer.tracks(kind):
            verdict, line = answer.on_track(track), _deciding(answer, track)
            look = {"agrees": "yes", "disagrees": "no"}.get(verdict, "few")
            shown = [TextCell(), TextCell("no value")]
            if line is not None:
                difference = claim_tables.difference(line)
                shown = [TextCell(claim_tables.comparison(answer, line)), difference]
            about = (KINDS[kind], NETWORKS[networks_of(track)], track)
            lines.append([*about, TextCell(verdict, look=look), *shown])
    heads = ("data", "networks", "track", "the records", "by the comparison", "difference")
    unanswered = [part.unanswered for part in answer.claim.parts if part.unanswered]
    return {
        "told": _told(answer), "source": answer.claim.source, "caveat": answer.claim.caveat,
        "unanswered": unanswered,
        "verdicts": simple_table(answer.name, "", heads, (), lines) if lines else None,
        "all": claim_tables.lines_table([answer]) if answer.lines else None,
        "n": len(answer.lines),
    }  # fmt: skip


def _deciding(answer: Answer, track: str) -> Any:
    """Of all parts the comparison that speaks most against the claim; None without values."""
    order = ("disagrees", "cannot tell", "agrees")
    parts = [i for i in range(len(answer.claim.parts)) if answer.of_part(i, track)]
    parts.sort(key=lambda i: order.index(answer.of_part(i, track) or "agrees"))
    weakest = (answer.weakest(i, track) for i in parts)
    return next((line for line in weakest if line is not None), None)
