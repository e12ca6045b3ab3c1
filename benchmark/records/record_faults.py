"""Faults of a record, or of a file beside it: schema, place, content, and what was there before."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, islice
from pathlib import Path

from benchmark.config import registry
from benchmark.config.files import read_bytes
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.protocols import Protocol
from benchmark.config.tracks import Track
from benchmark.errors import BenchError
from benchmark.records.consistency import contradictions
from benchmark.records.details_files import (
    check_beside,
    check_digest,
    details_path,
    find_details,
    queries_path,
)
from benchmark.records.files import STUDIES, read_record
from benchmark.records.provenance import PROCESSOR
from benchmark.records.record import Record, record_path
from benchmark.records.slim import check_base
from benchmark.records.verified import TOLERANCE, one_query, read_verification, verification_path

RECORD = re.compile(r"seed-(\d+)\.json")
BASE = re.compile(r"base-[0-9a-f]{16}\.(json|details\.xz)")
_LARGEST = 4 * 1024 * 1024
_MOST_REASONS = 20
"""Of one file; further ones are not looked for."""
_DEPTH = 5  # measured/<protocol>/<track>/<method>/seed-<n>.json
More = Callable[[Record], Iterable[str]]


@dataclass(frozen=True)
class Look:
    """A look at files, one after the other."""

    top: Path  # the folder of them
    before: Path | None  # such a folder as it was before
    more: More  # further faults of a new record, in words
    # That of independent is read for each of its board.
    read: Callable[[Path], Record] = field(
        default_factory=lambda: lru_cache(maxsize=64)(read_record)
    )
    works: dict[tuple[Path, str], Path] = field(default_factory=dict)
    """The first record of a folder and a key."""

    def at(self, path: Path) -> tuple[bool, list[str]]:
        """Tell whether the base has a file not at all or otherwise, and the faults of the file."""
        earlier = None if self.before is None else self.before / path.relative_to(self.top)
        is_new, reasons = True, list[str]()
        try:
            if path.is_symlink() or not path.is_file():
                raise BenchError("expected a regular file, got a link or something else")
            is_new = earlier is None or not _same(path, earlier)
            if not RECORD.fullmatch(path.name):
                return is_new, _beside(path)
            record = self.read(path)
            reasons += islice(self._faults(path, record, earlier, is_new=is_new), _MOST_REASONS)
            first = self.works.setdefault((path.parent, record.key), path)
            reasons += [f"key: that of {first.name}, of another seed"] * (first != path)
            bounds = _of_shared_bounds(record, path, self.read) if is_new else ()
            reasons += islice(bounds, _MOST_REASONS)
        except BenchError as error:
            return True, [*reasons, str(error).removeprefix(f"{path}: ")]
        return is_new, reasons

    def _faults(
        self, path: Path, record: Record, earlier: Path | None, *, is_new: bool
    ) -> Iterator[str]:
        """Faults of a record; ``earlier`` is where it was or would have been, if anywhere."""
        yield from _of_place(record, path)
        if not is_new:  # all else was looked at when it came
            check_digest(record, path)
            return
        yield from chain(_of_names(record, path), _of_content(record, path))
        if earlier is not None:
            yield from chain(_of_origin(record), self.more(record), _changed(record, earlier))


def _beside(path: Path) -> list[str]:
    """A file that is no record: it may only be the details or the badge of one, or a base."""
    if BASE.fullmatch(path.name):
        check_base(path)
        return []
    stem = re.sub(r"\.(details\.xz|queries\.gz|json)$", "", path.name)
    record = path.with_name(stem.removeprefix("verified-") + ".json")
    expected = (f(record).name for f in (details_path, queries_path, verification_path))
    if not (RECORD.fullmatch(record.name) and path.name in expected):
        return ["expected records, their details, badges and bases only"]
    return [] if record.is_file() else [f"there is no record {record.name} beside it"]


def _of_place(record: Record, path: Path) -> Iterator[str]:
    expected = record_path(Path(), record.protocol, record.track, record.method, record.seed).parts
    found = path.absolute().parts[-_DEPTH:]
    if found != expected:
        yield f"path: expected .../{'/'.join(expected)}, as it says itself"


def _of_names(record: Record, path: Path) -> Iterator[str]:
    """Protocol, track and method that are not known here, and other versions of them."""
    own = _track_of_a_study(record, path)
    for kind, name, version, load in (
        ("protocol", record.protocol, record.protocol_version, load_protocol),
        ("track", record.track, record.track_version, load_track),
    ):
        try:
            if name.endswith((".yaml", ".yml")):
                raise BenchError(f"unknown {kind} '{name}'")
            known = _version(load, str(own) if own and kind == "track" else name)
        except BenchError as error:
            yield f"{kind}: {error} (one of your own: --{kind} FILE)"
            continue
        if version != known:
            yield f"{kind}_version: expected {known}, got {version}"
    # Variants of older records may have gone since; nobody can make these again.
    older = record.training is None
    try:
        registry.method_file(record.method.partition(":")[0] if older else record.method)
    except BenchError as error:
        package = record.adapter.package if record.adapter else "unknown"
        yield f"method: {error}; it is of package {package}"


def _track_of_a_study(record: Record, path: Path) -> Path | None:
    """The file of a track that only the records beside it are of, in a folder of studies."""
    study = path.absolute().parents[_DEPTH - 1]
    own = study / f"{record.track}.yaml"
    named = re.fullmatch(r"[\w-]+", record.track) and record.track not in registry.track_files()
    return own if named and STUDIES in study.parts and own.is_file() else None


@cache
def _version(load: Callable[[str], Protocol | Track], name: str) -> int:
    return load(name).version


def _of_content(record: Record, path: Path) -> Iterator[str]:
    if record.changed:
        keys = f"{', '.join(record.changed):.200}"
        yield f"changed: expected nothing set by --set or --first-seed, got {keys}"
    check_beside(record, path)  # results by query are read elsewhere where they are all there
    details = find_details(record, path)
    read_verification(record, path)
    if record.status == "done":
        yield from contradictions(record, details)
    elif not record.reason:
        yield "reason: missing, though the method is not applicable"
    elif record.scores:
        yield "scores: expected none, as the method is not applicable"


def _of_shared_bounds(
    record: Record, path: Path, read: Callable[[Path], Record]
) -> Iterator[str]:  # fmt: skip
    """Bounds that are not those of the record of independent beside it, of the same networks."""
    beside = path.parent.with_name("independent") / path.name
    try:
        its = read(beside) if beside.is_file() else record
    except BenchError:  # told of that record
        return
    versions = ((r.protocol_version, r.track_version) for r in (record, its))
    if len({*versions}) == 1 and its.checkpoints.items() <= record.checkpoints.items():
        like = all(record.environment.get(k) == its.environment.get(k) for k in PROCESSOR)
        allowed = TOLERANCE if like else max(TOLERANCE, one_query(its))
        for bound in sorted(record.bounds.keys() & its.bounds.keys()):
            for metric, ours, other in _apart(record.bounds[bound], its.bounds[bound], allowed):
                yield (
                    f"bounds: {bound} {metric}: expected {other} as of independent, whose models "
                    f"these are, got {ours}"
                )


def _apart(
    ours: Mapping[str, float | None], its: Mapping[str, float | None], allowed: float = TOLERANCE
) -> Iterator[tuple[str, float | None, float | None]]:
    """Metrics whose values differ by more than other machines make, and both values."""
    for metric in sorted(ours.keys() | its.keys()):
        a, b = ours.get(metric), its.get(metric)
        if (a is None) != (b is None) or 100 * abs((a or 0.0) - (b or 0.0)) > allowed:
            yield metric, a, b


def _of_origin(record: Record) -> Iterator[str]:
    code = record.run.code
    if code.dirty is not False or (code.commit is None and code.version is None):
        yield "run.code: expected a clean commit: commit the method, then run it again as before"


def _same(path: Path, earlier: Path) -> bool:
    if not earlier.is_file():
        return False
    return read_bytes(path, _LARGEST) == read_bytes(earlier, _LARGEST)


def _changed(record: Record, earlier: Path) -> Iterator[str]:
    """Silent changes: other scores of the same work."""
    if not earlier.is_file():
        return
    try:
        before = read_record(earlier)
    except BenchError:  # whatever takes its place is better
        return
    if before.key != record.key:
        return
    was, now = _numbers(before), _numbers(record)
    for part in sorted(was.keys() | now.keys()):
        for metric, new, old in _apart(now.get(part, {}), was.get(part, {})):
            yield (
                f"{part} {metric}: changed from {old} to {new}, though the work is the same "
                "(its key)"
            )


def _numbers(record: Record) -> dict[str, Mapping[str, float | None]]:
    """Numbers that boards are made of, by part and metric."""
    parts = {**record.scores, **{f"bounds: {name}": b for name, b in record.bounds.items()}}
    for name, curves in record.orders.items():
        parts |= {f"backfilling: {name} area": curves.area}
        parts |= {f"backfilling: {name} worst": curves.worst}
    return parts
