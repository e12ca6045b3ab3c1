"""Time that a run takes: medians of committed records, in ``results/times.csv``.

``python docs/times.py`` writes the file. Its seconds are of the processor, on one core of the
machines that the records come from; another machine is faster or slower.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from benchmark.config.loading import load_track
from benchmark.config.split_sizes import declared_sizes
from benchmark.errors import AbsentError, BenchError
from benchmark.records.files import evidence_file
from benchmark.records.record import Record, StageRun
from benchmark.records.stage_titles import StageTitle

FILE = "times.csv"
HEADS = ("protocol", "track", "work", "seconds")
FIRST_RUN = "first run"
"""Work of one method that trains, with the independent model and one seed."""
_METHOD = "bct"
_FITTED = "fct"  # where the first is not there


class TimeRow(NamedTuple):
    """A line of the file; ``protocol`` is empty for stages of any."""

    protocol: str
    track: str
    work: str
    seconds: float


def seconds_of(stage: StageRun) -> float:
    """Seconds of the processor; of the clock where these are unknown."""
    known = stage.cpu_seconds if stage.cpu_seconds is not None else stage.seconds
    return known or 0.0


def measure(records: Iterable[Record]) -> list[TimeRow]:
    """Lines of some records: a first run under each protocol, and stages by kind, on each track."""
    runs: dict[tuple[str, str], dict[int, dict[str, dict[str, float]]]] = {}
    stages: dict[tuple[str, str], dict[tuple[object, ...], float]] = {}
    for record in records:
        if record.status != "done" or record.changed:
            continue
        mine = {title: seconds_of(stage) for title, stage in record.run.stages.items()}
        seeds = runs.setdefault((record.protocol.partition(":")[0], record.track), {})
        seeds.setdefault(record.seed, {}).setdefault(record.method, mine)
        for title, seconds in mine.items():
            own = stages.setdefault((record.track, StageTitle.parse(title).verb), {})
            own[record.protocol, record.seed, title] = seconds
    rows = [
        TimeRow(protocol, track, FIRST_RUN, round(statistics.median(of), 1))
        for (protocol, track), seeds in sorted(runs.items())
        if (of := [*_first_runs(seeds.values())])
    ]
    rows += [
        TimeRow("", track, kind, round(statistics.median(of.values()), 2))
        for (track, kind), of in sorted(stages.items())
    ]
    return rows


def _first_runs(seeds: Iterable[Mapping[str, Mapping[str, float]]]) -> Iterator[float]:
    """Seconds of the independent model and a method of each seed that has both."""
    for methods in seeds:
        method = next((m for m in (_METHOD, _FITTED) if m in methods), None)
        if method and "independent" in methods:
            yield sum({**methods["independent"], **methods[method]}.values())


@cache
def times() -> dict[tuple[str, str, str], float]:
    """Protocol, track and work -> seconds; empty in an installation without the file."""
    try:
        text = evidence_file(FILE).read_text("utf-8")
    except AbsentError:
        return {}
    rows = csv.DictReader(text.splitlines())
    return {(row["protocol"], row["track"], row["work"]): float(row["seconds"]) for row in rows}


def first_runs(protocol: str = "", track: str = "") -> dict[tuple[str, str], float]:
    """Protocol and track -> seconds of a first run, those of one protocol or track.

    A track without records that extends one with some, and has its networks, has those of that,
    by the share of its training images.
    """
    known = {(p, t): s for (p, t, work), s in times().items() if work == FIRST_RUN}
    known = {place: s for place, s in known.items() if protocol in ("", place[0])}
    if not track or any(t == track for _, t in known):
        return {place: s for place, s in known.items() if track in ("", place[1])}
    like, share = _like(track)
    return {(p, track): share * s for (p, t), s in known.items() if t == like}


def stage_seconds(track: str, verb: str) -> float | None:
    """Seconds of a stage of a track, by its title's verb; None where nothing says."""
    known, share = times(), 1.0
    if not any(t == track for _, t, _ in known):
        track, share = _like(track)
    found = known.get(("", track, verb))
    return None if found is None else share * found


@cache
def _like(track: str) -> tuple[str, float]:
    """The track that one extends, and the share of its training images; ``"", 1`` of none."""
    try:
        mine = load_track(track)
        base = load_track(mine.extends) if mine.extends else None
    except BenchError:
        return "", 1.0
    known = (each for each in (mine, base) if each is not None)
    images = [declared_sizes(each).get("train_images") for each in known]
    if base is None or None in images or (mine.dataset, mine.models) != (base.dataset, base.models):
        return "", 1.0
    own, other = (n or 1 for n in images)
    return base.id, own / other
