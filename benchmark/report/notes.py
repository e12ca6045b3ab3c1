"""Words above and below a table: protocol, track, seeds, how to read it, warnings."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from benchmark.config.grouping import grouped
from benchmark.config.loading import load_protocol, load_track
from benchmark.errors import AbsentError
from benchmark.metrics.intervals import LEAST_GROUPS
from benchmark.metrics.threshold_draws import FEWEST
from benchmark.records.record import Record
from benchmark.report import numbers, outcome, select
from benchmark.report.comparable import mixed_settings, of_another_old_model

T = TypeVar("T")


# Read once: a site needs each thousands of times, and reading YAML takes milliseconds.
@lru_cache(maxsize=512)
def installed(load: Callable[[str], T], name: str) -> T | None:
    """A protocol or track; None where it is not installed."""
    try:
        return load(name)
    except AbsentError:
        return None


def track_kind(track: str) -> str:
    """Kind of a track's data; ``photographs`` where it is not known here."""
    made = installed(load_track, track)
    return made.kind if made and made.kind else "photographs"


def title(records: Sequence[Record], name: str | None = None) -> str:
    """``Open-Class on Glyphs, seeds 0, 1, 2``; another name for the protocol's title."""
    first = records[0]
    seeds = sorted({record.seed for record in records})
    words = f"{name or protocol_title(first.protocol)} on {track_title(first)}, {seed_words(seeds)}"
    changed = changed_words(first)
    return f"{words}, changed: {changed}" if changed else words


def changed_words(record: Record) -> str:
    """Settings changed of protocol, track and methods: ``bct.weight=2, old.dim=8``; or empty."""
    return ", ".join(f"{key}={value}" for key, value in record.changed.items())


def seed_words(seeds: Sequence[int]) -> str:
    """Seeds in words.

    Example:
        >>> seed_words([3]), seed_words([0, 1, 2]), seed_words([0, 2])
        ('seed 3', 'seeds 0 to 2', 'seeds 0, 2')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return "seeds " + ", ".join(map(str, seeds))


def rival_words(seeds: Mapping[str, tuple[int, ...]], rivals: Collection[str]) -> str:
    """The seeds of methods of which one is the best, where others have other seeds; else empty.

    Example:
        >>> rival_words({"bct": (0, 1), "fct": (0, 1), "l2": (0,)}, ["bct", "fct"])
        ', of those with seeds 0, 1'
    """
    of_rivals = next((its for method, its in seeds.items() if method in rivals), ())
    unequal = of_rivals and any(its != of_rivals for its in seeds.values())
    return f", of those with {seed_words(of_rivals)}" if unequal else ""


def settings(record: Record) -> dict[str, str]:
    """Settings of the record's protocol, by id, with their titles, in its order."""
    family = record.protocol.partition(":")[0]
    protocol = installed(load_protocol, family)
    known = protocol.settings if protocol else ()
    return {f"{family}:{setting.name}": setting.title or setting.name for setting in known}


def protocol_title(name: str) -> str:
    """The title of a protocol or setting; its id where the protocol is not installed."""
    protocol = installed(load_protocol, name)
    return protocol.title if protocol else name


def question(record: Record) -> str:
    """The question of the protocol; empty where the protocol is not installed."""
    protocol = installed(load_protocol, record.protocol)
    return protocol.question if protocol else ""


def training_sizes(record: Record) -> str:
    """Classes and items that each model was trained on: tracks may change what the question says.

    Empty where the record does not say it.
    """
    sizes, track = record.dataset.generations, installed(load_track, record.track)
    items = "texts" if track and track.kind == "texts" else "images"
    kinds = {
        "Classes": {name: size.classes for name, size in sizes.items()},
        items: {name: size.images for name, size in sizes.items()},
    }
    words = (
        f"{kind}: {', '.join(f'{name} {n:,}' for name, n in of.items())}"
        for kind, of in kinds.items()
    )
    return f"{'; '.join(words)} (seed {record.seed})." if sizes else ""


def track_title(record: Record) -> str:
    """The track's title; its id where the track is not installed."""
    track = installed(load_track, record.track)
    return track.title if track else record.track


def track_note(record: Record) -> str:
    """A note for readers of a track's numbers; empty where there is none."""
    track = installed(load_track, record.track)
    return track.note if track else ""


def notes(records: Sequence[Record], shown: Sequence[str]) -> list[str]:
    """Lines below a table of some metrics."""
    rest = [key for key in select.metrics(records, "all") if key not in shown]
    left_out = f"Also measured: {', '.join(numbers.metric(key).label for key in rest)}."
    return [
        *_reading(records, shown), *query_costs(records), *([left_out] if rest else []),
        *warnings(records),
        *outcome.warnings({"": records}, shown),
    ]  # fmt: skip


def query_costs(records: Sequence[Record]) -> Iterator[str]:
    """Costs of methods at query time beyond one model run and one index, if any has such."""
    words = {}
    for record in records:
        cost = record.cost
        if cost.model_runs is None:
            continue
        parts = [f"{cost.model_runs} model runs"]
        if (cost.indexes or 1) > 1:
            parts.append(f"{cost.indexes} indexes")
        if cost.new_embeddings:
            parts.append(f"up to {cost.new_embeddings} new embeddings")
        words[record.method] = ", ".join(parts)
    kinds = {text: [m for m in words if words[m] == text] for text in words.values()}
    if kinds:
        yield "A query takes " + "; ".join(f"{k} ({', '.join(m)})" for k, m in kinds.items()) + "."


def interval_words(records: Sequence[Record], metrics: Sequence[str] = ()) -> str:
    """The meaning of ``±``: ``± is the wider side of the 95 % interval (over classes)``.

    ``metrics`` are those shown; by default all that have intervals.
    """
    several = len({r.seed for r in records}) > 1
    over = "Student's t over the seeds" if several else over_words(records, metrics)
    if several and (of_one := over_words(alone(records), metrics)):
        over = f"{over}; of one seed {of_one}"
    if not over and any(record.counts for record in records):
        if over_words(records):  # of other scores
            fewer = f"fewer than {FEWEST} impostors decide the threshold"
            return f"no intervals: none is made, or {fewer}"
        return f"no intervals, as there are fewer than {LEAST_GROUPS} classes"
    return "± is the wider side of the 95 % interval" + (f" ({over})" if over else "")


def alone(records: Sequence[Record]) -> list[Record]:
    """Records of methods of which there is one seed."""
    done = [record for record in records if record.status == "done"]
    counts = Counter(record.method for record in done)
    return [record for record in done if counts[record.method] == 1]


def over_words(records: Sequence[Record], metrics: Sequence[str] = ()) -> str:
    """The units that intervals of one seed are over, ``over classes``; empty where there are none.

    Where it differs by metric, each kind of metric stands before what it is over.
    """
    kinds: dict[str, dict[str, None]] = {}
    for record in records:
        spans = [*record.intervals.values(), *(each.intervals for each in record.orders.values())]
        known = dict.fromkeys(key for found in spans for key, span in found.items() if span)
        for key in (key for key in known if key in metrics or not metrics):
            kind = numbers.metric(key).label.partition("@")[0].partition(" (")[0]
            kinds.setdefault(_over(record, key), {})[kind] = None
    if len(kinds) < 2:
        return "".join(f"over {words}" for words in kinds)
    parts = (f"over {words} for {', '.join(names)}" for words, names in kinds.items())
    return "; ".join(parts)


def _over(record: Record, metric: str) -> str:
    """The units that a metric's intervals are over; a curve's are those of its metric."""
    base = re.sub("^(area|worst|share_above)_", "", metric)
    if record.over is not None:
        return record.over.get(base, "classes")
    people = numbers.metric(base).threshold or base.startswith("rank_")
    return "identities, thresholds kept" if people else "single queries"


def _reading(records: Sequence[Record], shown: Sequence[str]) -> Iterator[str]:
    cross, low = select.cross_case(records), select.lower_case(records)
    yield f"Percent; {interval_words(records, shown)}."
    if any(record.bounds for record in records):
        errors = any(numbers.metric(key).higher_is_better is False for key in shown)
        less = ", < where lower is better" if errors else ""
        bounds = f"Lower bound: {low}. Compatible: {cross} > {low} (BCT eq. 2){less}."
        if select.text_queries(records):
            yield f"{bounds} Gain: none, as the upper bound is of image queries."
        else:
            yield (
                f"{bounds} Gain: share of the way from {low} to the upper bound that {cross} goes "
                "(BCT eq. 9); none where not compatible."
            )
            yield f"Upper bound of the gain: {upper_words(records[0])}."
    yield from track_lines(records[0])


def track_lines(record: Record) -> Iterator[str]:
    """The track with its note, where it has one."""
    note = track_note(record)
    if note:
        yield f"{track_title(record)}: {note}"


def upper_words(record: Record) -> str:
    """The model that the update gain is measured against."""
    if record.upper == "upper-all":
        return "the new model trained on old and new data together (MixBCT)"
    return "the new model trained independently on the new data (BCT)"


def diverged(records: Sequence[Record]) -> str:
    """Trainings that diverged, each with the reason; empty where none did."""
    told = {title: why for record in records for title, why in record.diverged.items()}
    return "; ".join(f"{title}: {why}" for title, why in told.items())


def untold(diverged: bool) -> str:
    """The reason of a CSV line whose scores say nothing; empty of others."""
    return "a training diverged: the scores say nothing of the method" if diverged else ""


def divergence(records: Sequence[Record]) -> Iterator[str]:
    """A warning of trainings that diverged or ended too early; none where none did."""
    if told := diverged(records):
        yield f"Warning: trainings that diverged or ended too early, so no ranks: {told}."


def warnings(records: Sequence[Record]) -> Iterator[str]:
    """Lines on records of a table that are not to be compared, not applicable, or of few seeds."""
    yield from divergence(records)
    if elsewhere := of_another_old_model(records):
        yield (
            "Of another old model than the others of their seed, as its weights or scores show, or "
            "of other data, so without a rank and never marked as the best: "
            f"{'; '.join(_by_seeds((r.method, r.seed) for r in elsewhere))}. Run them again."
        )
    yield from _versions(records[0])
    yield from mixed_settings(records)
    if len({record.dataset.fingerprint for record in records}) > 1:
        yield "Warning: these records were measured on different data (fingerprints differ)."
    for method in dict.fromkeys(record.method for record in records):
        of_method = [record for record in records if record.method == method]
        refused = [record for record in of_method if record.status != "done"]
        done = {record.seed for record in of_method} - {record.seed for record in refused}
        if refused:
            where = f" with {seed_words(sorted({r.seed for r in refused}))}" if done else ""
            yield f"{method}: not applicable{where}: {refused[0].reason or 'no reason given'}"
    yield from few_seeds(records)


def few_seeds(records: Sequence[Record]) -> Iterator[str]:
    """Methods that do not have all seeds of a table, and theirs: ``fct: seed 0 only.``."""
    every = {record.seed for record in records}
    seeds = grouped((r.method, r.seed) for r in records if r.status == "done")
    few = [method for method, found in seeds.items() if set(found) < every]
    yield from (f"{words} only." for words in _by_seeds((m, s) for m in few for s in seeds[m]))


def _versions(record: Record) -> Iterator[str]:
    """A line where protocol or track has another version today: tables of both look alike."""
    for kind, load, name, version in (
        ("protocol", load_protocol, record.protocol, record.protocol_version),
        ("track", load_track, record.track, record.track_version),
    ):
        today = installed(load, name)
        if today is not None and today.version != version:
            yield (
                f"Of version {version} of {kind} {name}, which is at version {today.version} here: "
                "scores of the two are not compared."
            )


def _by_seeds(rows: Iterable[tuple[str, int]]) -> list[str]:
    """Methods with their seeds in words: ``bct, fct: seeds 0, 2``."""
    seeds = grouped(rows).items()
    methods = grouped((seed_words(sorted(set(found))), method) for method, found in seeds)
    return [f"{', '.join(names)}: {words}" for words, names in methods.items()]


def stage_name(title: str, part: str) -> str:
    """A stage's title as a reader would say it.

    Example:
        >>> stage_name("train old model (seed 0)", "model"), stage_name("fit fct (seed 1)", "map")
        ('old model', 'fct: map')
    """
    words = re.sub(r"^(train|fit)\s+|\s*\(seed \d+\)$", "", title)
    return words if part == "model" else f"{words}: {part}"
