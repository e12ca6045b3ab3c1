"""The page of a method's records on a board: all seeds, provenance, every number, queries."""

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.grouping import grouped
from benchmark.config.loading import load_track
from benchmark.errors import AbsentError, BenchError
from benchmark.records.details import Details, Nearest
from benchmark.records.files import StoredRecord
from benchmark.records.pictures import (
    FOLDER,
    KINDS,
    Pictures,
    look_at,
    pictures_name,
    read_pictures,
)
from benchmark.records.record import Record
from benchmark.report.notes import over_words, seed_words, stage_name
from benchmark.report.record_facts import Pair, Section, sections
from leaderboard.names import record_file
from leaderboard.pages.record_tables import MOST_SEEDS, in_full, other_parts, scores_part
from leaderboard.read.records import MethodRecords, ShownRecord, read_details

_LONGEST_HEADING = 30
_PACKAGES = ("python", "torch", "lightning-fabric", "timm", "numpy", "cpu", "system")


def record_page(found: MethodRecords) -> dict[str, Any]:
    """Values of the template of a method's records on a board."""
    seeds, drawn = found.seeds, found.drawn.record
    records = [seed.record for seed in seeds]
    full = in_full(records)
    shared, own = _facts(records, full)
    return {
        "method": records[0].method,
        "seeds": [
            (r.seed, record_file(r), len(s.packed)) for s, r in zip(seeds, records, strict=True)
        ],
        "seed_words": _few_words([record.seed for record in records]),
        "tags": ["older version"] * all(record.training is None for record in records),
        "remarks": [*_remarks(seeds)],
        "badges": _said({s.record.seed: s.badge[:1].upper() + s.badge[1:] for s in seeds}),
        "command": command(records),
        "provenance": dict(shared).get("", ()),
        "scores": scores_part(records, full),
        "over": over_words(records[:1]),
        "full": _full_words(records, full),
        "parts_below": [*other_parts(records, full)],
        "sections": [section for section in shared if section[0]],
        "own": own,
        "drawn": drawn,
        "data": _charts(drawn, found.details),
    }


def _few_words(seeds: Sequence[int]) -> str:
    """Seeds as a heading has room for them."""
    text = seed_words(seeds)
    return text if len(text) <= _LONGEST_HEADING else f"{len(seeds)} seeds"


def _full_words(records: Sequence[Record], full: int) -> str:
    """The seeds that there is no room for everything of."""
    words = []
    if len(records) > MOST_SEEDS:
        words.append(f"Main scores are those of the first {MOST_SEEDS} of {len(records)} seeds.")
    if len(records) > full:
        words.append(f"All else is that of {seed_words([r.seed for r in records[:full]])}.")
    return " ".join([*words, "The files of the others have all of it."] if words else [])


def _remarks(seeds: Sequence[ShownRecord]) -> Iterator[str]:
    """Remarks on some seeds, or on all."""
    records = [seed.record for seed in seeds]
    reasons = {r.seed: f"Not applicable: {r.reason}" if r.reason else "" for r in records}
    yield from _said(reasons)
    damaged = {
        s.record.seed: f"Its results by query are left out: {s.damaged}" if s.damaged else ""
        for s in seeds
    }
    yield from _said(damaged)
    older = {r.seed: "Older version" if r.training is None else "" for r in records}
    if not all(older.values()):  # else it is a tag
        yield from _said(older)


def _said(texts: Mapping[int, str]) -> list[str]:
    """Texts by seed, each once with its seeds before it, or alone where it is said of all."""
    found = grouped((text, seed) for seed, text in texts.items() if text)
    return [
        text if len(of) == len(texts) else f"{seed_words(of).capitalize()}: {text}"
        for text, of in found.items()
    ]


def command(records: Sequence[Record]) -> str:
    """The command that computes these records again."""
    first = records[0]
    methods = sorted({record.method for record in records}, key=lambda m: m.partition(":"))
    methods = [method for method in methods if method != "independent"] or methods
    seeds = sorted({record.seed for record in records})
    called = [
        "bench", "run", "--methods", ",".join(methods), "--protocol", first.protocol,
        "--track", first.track, "--seeds", ",".join(map(str, seeds)),
    ]  # fmt: skip
    for key, value in first.changed.items():
        own_option = key == "first_seed"
        called += ["--first-seed", str(value)] if own_option else ["--set", f"{key}={value}"]
    if {record.environment.get("precision") for record in records} == {"32-true"}:
        called += ["--precision", "32-true"]  # else other models than these, and no published ones
    return shlex.join(called) + (" --data-root DIR" if _needs_root(first.track) else "")


@cache
def _needs_root(track: str) -> bool:
    try:
        return load_track(track).needs_root
    except AbsentError:
        return False


def versions(records: Sequence[Record]) -> list[Pair]:
    """Versions that computed the numbers; several values where records differ."""
    values = {
        "protocol version": {str(r.protocol_version) for r in records},
        "track version": {str(r.track_version) for r in records},
        "dataset": {_dataset(r) for r in records},
        **{name: {r.environment.get(name, "") for r in records} for name in _PACKAGES},
        "device": {stage.device or "" for r in records for stage in r.run.stages.values()},
    }
    texts = {name: ", ".join(sorted(filter(None, each))) for name, each in values.items()}
    return [(name, text) for name, text in texts.items() if text]


def _dataset(record: Record) -> str:
    fingerprint = record.dataset.fingerprint
    return f"{record.dataset.name} ({fingerprint[:12]})" if fingerprint else record.dataset.name


def _facts(
    records: Sequence[Record], full: int
) -> tuple[list[Section], list[tuple[int, tuple[Pair, ...]]]]:
    """Facts that are the same of every seed, the provenance as part ""; seed -> all others."""
    shared: list[Section] = []
    own: dict[int, list[Pair]] = {record.seed: [] for record in records[:full]}
    for title, parts in _parts(records).items():
        first = parts[0]
        if all(part is first or part == first for part in parts):
            shared.append((title, first))
            continue
        same = set(first).intersection(*parts[1:])
        shared.append((title, tuple(pair for pair in first if pair in same)))
        for record, part in zip(records[:full], parts, strict=False):
            before = f"{title}: " if title else ""
            own[record.seed] += [(before + name, v) for name, v in part if (name, v) not in same]
    return (
        [section for section in shared if section[1]],
        [(seed, tuple(pairs)) for seed, pairs in own.items() if pairs],
    )


def _parts(records: Sequence[Record]) -> dict[str, list[tuple[Pair, ...]]]:
    """Title -> pairs of each record."""
    return grouped(section for record in records for section in sections(record))


def _charts(record: Record, details: Details | None) -> dict[str, Any]:
    """Values of the charts of a record's page; empty parts are not shown."""
    curves = {
        stage_name(title, part): [None if v is None else float(f"{v:.5g}") for v in curve.loss]
        for title, parts in record.curves.items()
        for part, curve in parts.items()
        if any(value is not None for value in curve.loss)
    }
    picture = None if details is None else details.picture
    order = None if details is None else details.ordering
    return {
        "curves": curves,
        "picture": picture and {
            "case": picture.case, "classes": list(picture.classes),
            "label": picture.label.tolist(),
            "old": _shares(picture.old), "new": _shares(picture.new),
        },
        "ordering": order and {
            "predicted": _shares(order.predicted), "true": _shares(order.true),
            "tau": order.tau, "items": order.n_items,
        },
    }  # fmt: skip


def _shares(shares: NDArray[np.float64]) -> Any:
    """Shares in ten-thousandths: whole numbers are shorter, and sooner written."""
    return np.rint(10_000 * shares).astype(int).tolist()


class QueriesLookedAt:
    """Queries of a board with their nearest items, and pictures of these."""

    def __init__(self, roots: Sequence[Path], drawn: Mapping[str, Pictures] | None = None) -> None:
        """Pictures are read from ``pictures/`` in or beside folders of records, or just drawn."""
        beside = [place for root in roots for place in (root, root.parent)]
        self._folders, self._drawn = [place / FOLDER.name for place in beside], drawn or {}
        self.damaged: list[BenchError] = []  # files of pictures that were passed over
        self._pictures: dict[str, Pictures] = {}
        self._bounds: dict[Path, Nearest | None] = {}

    def page(
        self, own: Nearest | None, stored: StoredRecord, independent: Mapping[int, StoredRecord]
    ) -> dict[str, list[dict[str, Any]]]:
        """Values of the template by kind of query; empty without neighbours or pictures.

        Args:
            own: Neighbours of the record itself.
            stored: The record.
            independent: Seed -> the board's record of ``independent``, which chooses the queries.
        """
        kinds: dict[str, list[dict[str, Any]]] = {}
        pictures = {} if own is None else self.pictures(stored.record)
        chooser = independent.get(stored.record.seed)
        if own is None or chooser is None or not pictures:
            return kinds
        bounds = own if chooser is stored else self._neighbours(chooser)
        if bounds is None:
            return kinds
        for looked in look_at(own, bounds):
            rows = [("before", own.cases[0], looked.before), ("after", own.cases[1], looked.after)]
            items = [looked.query, *(item for _, _, found in rows for item, _ in found)]
            if all(item in pictures for item in items):
                kinds.setdefault(KINDS[looked.kind], []).append({
                    "query": _tile(pictures[looked.query]),
                    "rows": [
                        (words, case, [(_tile(pictures[item]), right) for item, right in found])
                        for words, case, found in rows
                    ],
                })  # fmt: skip
        return kinds

    def pictures(self, record: Record) -> Pictures:
        """Those of a record's evaluation set; none where there is no file, or a damaged one."""
        name = pictures_name(record)
        if name is None:
            return {}
        if name not in self._pictures:
            self._pictures[name] = self._drawn.get(name) or self._read(name)
        return self._pictures[name]

    def _read(self, name: str) -> Pictures:
        paths = [folder / f"{name}.safetensors" for folder in self._folders]
        try:
            return next((read_pictures(path) for path in paths if path.is_file()), {})
        except BenchError as error:
            self.damaged.append(error)
            return {}

    def _neighbours(self, stored: StoredRecord) -> Nearest | None:
        """Those of a record; None where it has none, or damaged ones."""
        if stored.path not in self._bounds:
            try:
                details = read_details(stored)[0]
            except BenchError:
                details = None
            self._bounds[stored.path] = None if details is None else details.nearest
        return self._bounds[stored.path]


@lru_cache(maxsize=1 << 12)
def _tile(webp: bytes) -> str:
    return f"data:image/webp;base64,{base64.b64encode(webp).decode()}"
