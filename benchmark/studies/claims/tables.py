"""Tables of claims: verdicts by kind of networks, every comparison, counts, lists, an overview."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from benchmark.report import numbers
from benchmark.report.notes import track_kind
from benchmark.report.renderers.markdown import escape
from benchmark.report.scenarios import NETWORKS
from benchmark.report.text_table import TextCell, TextTable, shown_table, simple_table
from benchmark.studies.claims import Answer, Line
from benchmark.studies.claims.language import (
    ClaimPart,
    Claims,
    ClaimValue,
    Constant,
    Expression,
    Operation,
)
from benchmark.studies.claims.values import LEAST_ROOM
from benchmark.studies.claims.verdicts import KINDS, LEAST_SEEDS, Status

STATUSES: Mapping[Status, str] = {
    "holds": "Holds on photographs",
    "holds elsewhere": "Holds on other data only",
    "differs": "Differs between photographs or networks",
    "open": "Open",
    "fails": "Fails on photographs",
    "fails elsewhere": "Fails on other data only",
}
"""Status of an answer -> heading of its list; in the order of the overview."""
_HOLD: tuple[Status, ...] = ("holds", "holds elsewhere", "differs")
_FAIL: tuple[Status, ...] = ("fails", "fails elsewhere")
_DECIDED = {"hold": _HOLD[:2], "fail": _FAIL}
ENOUGH = 2 / 3
"""Share of the claims with records that should be decided."""
RULE = (
    "A difference is taken within a seed; its interval is Student's t over the seeds, 95 %. "
    "A claim agrees where the whole interval keeps its rule, disagrees where none of it does; "
    f"below {LEAST_SEEDS} seeds nothing can be told. A metric of which the better model's own "
    f"score is within {100 * LEAST_ROOM:g} points of chance, or within what a rule names, has no "
    "room on a track and decides nothing there, nor does one of which the old model's own score is "
    "nearer to chance than a rule puts another below it."
)
_NOTES = (
    RULE,
    "Behind a verdict stands each track's weakest comparison, left less right in points, the one "
    "that speaks most against the claim.",
)
_VALUES = (
    "claim", "part", "protocol", "track", "pictures", "metric", "method", "comparison", "seeds",
    "difference", "low", "high", "verdict", "reason",
)  # fmt: skip


def verdict_tables(answers: Sequence[Answer], claims: Claims) -> list[TextTable]:
    """A table for each paper: sentence, and verdict for each kind of networks."""
    tables, shown = [], _shown(answers)
    for paper, title in claims.papers.items():
        own = [a for a in answers if a.paper == paper]
        if own:
            lines = [
                [TextCell(a.name), TextCell(sentence(a)), *(_networks(a, n) for n in shown)]
                for a in own
            ]
            heads = ["claim", "what the paper says", *map(NETWORKS.__getitem__, shown)]
            tables.append(simple_table(title, f"claims-{paper}", heads, (), lines))
    return [*tables[:-1], replace(tables[-1], notes=_NOTES)] if tables else []


def short_table(answers: Sequence[Answer]) -> TextTable:
    """Verdicts alone, for a terminal."""
    shown = _shown(answers)
    lines = [[TextCell(a.name), *(_networks(a, n) for n in shown)] for a in answers]
    heads = ["claim", *map(NETWORKS.__getitem__, shown)]
    notes = (*decided_words(answers), *differing_words(answers), *_NOTES)
    return simple_table("Claims", "claims", heads, (), lines, notes=notes)


def counts_table(answers: Sequence[Answer], claims: Claims) -> TextTable:
    """Numbers of claims of each paper that hold, are open or fail."""
    rows = []
    for paper, title in claims.papers.items():
        own = [a.status for a in answers if a.paper == paper]
        if not own:
            continue
        rows.append([title, *(str(own.count(status)) for status in STATUSES)])
    every = [a.status for a in answers]
    rows.append(["all", *(str(every.count(status)) for status in STATUSES)])
    heads = [STATUSES[status].lower() for status in STATUSES]
    notes = (*decided_words(answers), *differing_words(answers))
    return shown_table("", "claims-counts", ["paper"], heads, rows, notes=notes)


def decided_words(answers: Sequence[Answer]) -> Iterator[str]:
    """Counts of decided claims among those that have records, by the kind of networks."""
    for networks in _shown(answers):
        own = [each for a in answers if (each := a.behind(networks)).has_records]
        if not own:
            yield f"With {NETWORKS[networks]} no claim has records."
            continue
        counts = {verb: sum(a.status in of for a in own) for verb, of in _DECIDED.items()}
        decided = sum(counts.values())
        enough = "at least" if decided >= ENOUGH * len(own) else "fewer than"
        told = ", ".join(f"{n} {verb}{'s' * (n == 1)}" for verb, n in counts.items())
        few = sum(max(len(line.differences) for line in a.lines) < LEAST_SEEDS for a in own)
        reasons = [[line.reason.startswith("no record of") for line in a.lines] for a in own]
        lack = sum(a.status == "open" and any(r) for a, r in zip(own, reasons, strict=True))
        apart = len(of_status(own, "differs"))
        of_open = [
            *([f"{apart} on which tracks of photographs contradict each other"] if apart else []),
            *([f"{few} of them with fewer than {LEAST_SEEDS} seeds"] if few else []),
            *([f"{lack} of them without records of a method that they compare"] if lack else []),
        ]
        yield (
            f"With {NETWORKS[networks]} {decided} of {len(own)} claims that have records are "
            f"decided, {enough} two thirds: {told}, "
            f"{', '.join([f'{len(own) - decided} open', *of_open])}."
        )


def differing_words(answers: Sequence[Answer]) -> Iterator[str]:
    """Claims that two kinds of networks decide otherwise, of all that both decide; else nothing."""
    both = [
        a
        for a in answers
        if sum(a.behind(n).status not in ("open", "differs") for n in NETWORKS) > 1
    ]
    other = of_status(both, "differs")
    names = ", ".join(f"{a.name} ({_apart(a)})" for a in other)
    if both:
        yield (
            f"Of {len(both)} claims that more than one kind of networks decides "
            f"{len(other) or 'none'} {'is' if len(other) < 2 else 'are'} decided otherwise"
            f"{': ' if names else ''}{names}."
        )


def _apart(answer: Answer) -> str:
    """``holds with small networks, fails with frozen, pretrained networks``."""
    told = [(answer.behind(n).status.partition(" ")[0], NETWORKS[n]) for n in NETWORKS]
    return ", ".join(f"{verdict} with {words}" for verdict, words in told if verdict != "open")


def _shown(answers: Sequence[Answer]) -> list[str]:
    """Kinds of networks with lines of any claim."""
    return [n for n in NETWORKS if any(a.behind(n).lines for a in answers)]


def lines_table(answers: Sequence[Answer]) -> TextTable:
    """Every comparison of some claims."""
    rows = [_row(a, line) for a in answers for line in a.lines]
    values = tuple(_values(a, line) for a in answers for line in a.lines)
    heads = ["claim", "verdict", "comparison", "on"]
    return simple_table(
        "Comparisons", "claims-lines", heads, ["difference"], rows, notes=(RULE,),
        columns=_VALUES, values=values,
    )  # fmt: skip


def claim_lists(answers: Sequence[Answer]) -> Iterator[str]:
    """Lists in Markdown, one of each status."""
    for status, heading in STATUSES.items():
        own = of_status(answers, status)
        yield f"**{heading}** ({len(own)})\n"
        yield from (f"- `{a.name}` {list_words(a)}" for a in own)
        yield "" if own else "Nothing.\n"


def overview(answers: Sequence[Answer], claims: Claims) -> Iterator[str]:
    """Counts, short lists in Markdown and what fails, with links to the papers' parts of a page."""

    def link(words: str, paper: str) -> str:
        anchor = re.sub(r"[^\w\- ]", "", claims.papers[paper].lower()).replace(" ", "-")
        return f"[{words}](claims.md#{anchor})"

    yield " ".join(decided_words(answers)) + "\n"
    for status in _HOLD:
        own = of_status(answers, status)
        yield f"**{STATUSES[status]}** ({len(own)})\n"
        yield from (f"- {link(f'`{a.name}`', a.paper)} {escape(a.claim.says)}" for a in own)
        yield "" if own else "Nothing yet.\n"
    counts = Counter(a.paper for a in of_status(answers, "open"))
    yield f"**{STATUSES['open']}** ({counts.total()})\n"
    papers = ", ".join(f"{link(paper, paper)} {n}" for paper, n in counts.items())
    yield f"By paper: {papers}.\n" if papers else "Nothing.\n"
    for status in _FAIL:
        names = [link(f"`{a.name}`", a.paper) for a in of_status(answers, status)]
        yield f"{STATUSES[status]}: {', '.join(names) or 'none'}.  "


def of_status(answers: Sequence[Answer], status: Status) -> list[Answer]:
    """Answers of one status."""
    return [answer for answer in answers if answer.status == status]


def list_words(answer: Answer) -> str:
    """A claim in a list: what the paper says, and the networks and kinds of data that tell."""
    words = "; ".join(
        f"{NETWORKS[n]}: {told}" for n in NETWORKS if (told := _told(answer.behind(n)))
    )
    return f"{sentence(answer)} ({words})" if words else sentence(answer)


def _told(answer: Answer) -> str:
    told = [(" and ".join(sorted(answer.told(kind))), kind) for kind in KINDS]
    return ", ".join(f"{verdicts} on {kind}" for verdicts, kind in told if verdicts)


def sentence(answer: Answer) -> str:
    """The paper's sentence, its source and the caveat."""
    claim = answer.claim
    caveat = f" Caveat: {claim.caveat}." if claim.caveat else ""
    return f"{claim.says} {claim.source}.{caveat}"


def difference(line: Line) -> TextCell:
    """Mean over the seeds and its interval; of one seed the one value."""
    found = line.estimate
    if found.value is None:
        return TextCell(line.reason)
    around = numbers.spread(found.value, found.low, found.high, line.unit)
    return TextCell(numbers.number(found.value, line.unit, signed=True), around)


def _networks(answer: Answer, networks: str) -> TextCell:
    """The verdicts on each kind of data with some networks."""
    own = answer.behind(networks)
    return TextCell(
        "; ".join(_kind(own, kind) for kind in KINDS if own.tracks(kind)) or "no record"
    )


def _kind(answer: Answer, kind: str) -> str:
    """The verdict on a kind of data, and each track's weakest comparison."""
    tracks, words = answer.tracks(kind), []
    for track in tracks:
        lines = [answer.weakest(i, track) for i in range(len(answer.claim.parts))]
        shown = " and ".join(_briefly(line) for line in lines)
        told = f" {answer.on_track(track)}" if len(tracks) > 1 else ""
        words.append(f"{track}{told} {shown}")
    return f"{kind}: {answer.on_kind(kind)} ({'; '.join(words)})"


def _briefly(line: Line | None) -> str:
    if line is None:
        return "no value"
    seeds = f" ({line.reason})" if line.reason else ""
    return difference(line).whole + seeds


def _row(answer: Answer, line: Line) -> list[TextCell]:
    place = line.place
    where = f"{place.protocol}, {place.track}, {numbers.metric(place.metric).label}"
    words = [answer.name, line.reason or line.verdict, comparison(answer, line), where]
    shown = difference(line) if line.differences else TextCell(numbers.DASH)
    return [*map(TextCell, words), shown]


def _values(answer: Answer, line: Line) -> list[object]:
    place = line.place
    return [
        answer.name, line.part, place.protocol, place.track, track_kind(place.track),
        place.metric, place.method, comparison(answer, line), len(line.differences),
        line.estimate.value, line.estimate.low, line.estimate.high, line.verdict, line.reason,
    ]  # fmt: skip


def comparison(answer: Answer, line: Line) -> str:
    """The comparison in the words of the file."""
    part = answer.claim.parts[line.part]
    left, right = part.expressions[line.step : line.step + 2]
    words = [_words(side, line.place.method) for side in (left, right)]
    return _rule(part, *words)


def _rule(part: ClaimPart, left: str, right: str) -> str:
    if part.close is not None:
        return f"{left} = {right}" + (f" within {_points(part.within)}" if part.within else "")
    return f"{left} > {right}" + (f" by {_points(part.by)}" if part.by else "")


def _points(value: float | None) -> str:
    return f"{100 * (value or 0):g} points"


def _words(expression: Expression, method: str) -> str:
    if isinstance(expression, Constant):
        return f"{expression.number:g}"
    if isinstance(expression, ClaimValue):
        return _value(expression, method)
    assert isinstance(expression, Operation)
    name, parts = expression.parts
    inner = [_words(part, method) for part in parts]
    if name == "minus":
        return f"({inner[0]} - {inner[1]})"
    return f"{name} of {len(inner)}" if len(inner) > 3 else f"{name} of ({', '.join(inner)})"


def _value(value: ClaimValue, method: str) -> str:
    name = method if value.method == "*" else value.method
    kind = "" if value.value == "score" else value.value.replace("_", " ")
    share = f"at {100 * value.at:g} %" if value.at is not None else ""
    given = (name, value.case, kind, value.order, value.oracle, value.generation, share)
    where = ", ".join(filter(None, (value.protocol, value.track)))
    changed = ", ".join(f"{key}={each}" for key, each in value.changed.items())
    words = " ".join(word for word in given if word)
    return words + (f" on {where}" if where else "") + (f" with {changed}" if changed else "")
