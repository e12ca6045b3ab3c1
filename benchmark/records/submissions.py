"""Records that somebody hands in, each held to its schema, its place, itself and what was there.

What goes wrong is said file by file, in one line each; nothing is trained.
"""

import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from benchmark.config import registry
from benchmark.config.files import read_bytes
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.places import real
from benchmark.config.protocols import Protocol
from benchmark.config.tracks import Track
from benchmark.errors import BenchError, printable
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
from benchmark.records.slim import bases, check_base
from benchmark.records.verified import TOLERANCE, one_query, read_verification, verification_path

SEEDS = (0, 1, 2)
"""Seeds that a new row has at least."""
_MOST_FILES = 50_000
_LARGEST = 4 * 1024 * 1024
_MOST_REASONS = 20
"""Of one file; further ones are not looked for."""
_RECORD = re.compile(r"seed-(\d+)\.json")
_BASE = re.compile(r"base-[0-9a-f]{16}\.(json|details\.xz)")
_DEPTH = 5  # measured/<protocol>/<track>/<method>/seed-<n>.json
More = Callable[[Record], Iterable[str]]


@dataclass(frozen=True)
class Refusal:
    """Fault of a file."""

    file: str
    reason: str

    def __str__(self) -> str:
        return " ".join(printable(f"{self.file}: {self.reason}").split())[:600]


@dataclass(frozen=True)
class Validation:
    """Files that were looked at, and their faults."""

    root: Path
    records: tuple[Path, ...]  # all of them, below the root
    new: tuple[Path, ...]  # those that the base has not, or has otherwise
    problems: tuple[Refusal, ...]
    changed: int  # records of changed settings below the root, which are of no board


def validate(root: Path, base: Path | None = None, more: More = lambda record: ()) -> Validation:
    """Look at every file of some records.

    Args:
        root: A record, or a folder of records; of a folder with ``measured`` that part alone.
        base: Such a folder as it was before. What is in it may be neither removed nor silently
            changed, and new records must be of today's versions, from a clean commit, and have all
            of :data:`SEEDS`.
        more: Further faults of a new record, in words.

    Raises:
        BenchError: If there is no such file or folder, too many files, or a base of another level.
    """
    if not os.path.lexists(root):
        raise BenchError(f"validate: no file or folder {root}")
    if root.is_file():
        files, top = [root], root.parent
    else:
        top = root / "measured" if (root / "measured").is_dir() else root
        files = list(_files(top))
    before = None if base is None else base / "measured"
    if before is not None and not before.is_dir():
        before = base
    if before is not None:
        _require_same_level(files, top, before)
    found, records, new = [], [], []
    works: dict[tuple[Path, str], Path] = {}
    read = lru_cache(maxsize=64)(read_record)  # that of independent is read for each of its board
    for path in files:
        name = path.relative_to(top)
        earlier = None if before is None else before / name
        is_new, reasons = True, list[str]()
        try:
            _check_regular(path)
            is_new = earlier is None or not _same(path, earlier)
            record = read(path) if _RECORD.fullmatch(path.name) else None
            faults = _look_at(path, record, earlier, more, is_new=is_new)
            reasons += islice(faults, _MOST_REASONS)
            if record is not None:
                first = works.setdefault((path.parent, record.key), path)
                reasons += [f"key: that of {first.name}, of another seed"] * (first != path)
                bounds = _of_shared_bounds(record, path, read) if is_new else ()
                reasons += islice(bounds, _MOST_REASONS)
        except BenchError as error:
            is_new, reasons = True, [*reasons, str(error).removeprefix(f"{path}: ")]
        found += [Refusal(str(path), reason) for reason in reasons]
        if _RECORD.fullmatch(path.name):
            records.append(path)
            new += [path] if is_new and earlier is not None else []
    if not root.is_file():
        found += _unused(files, records)
    if before is not None and not root.is_file():  # of a record alone nobody knows
        found += _removed(before, top, set(files))
        found += _seeds(new, records)
    if not records:
        found.append(Refusal(str(root), "no records (files named seed-<n>.json)"))
    apart = root / "changed" if top != root else None
    changed = sum(1 for _ in apart.rglob("seed-*.json")) if apart else 0
    return Validation(root, tuple(records), tuple(new), tuple(found), changed)


def _require_same_level(files: Iterable[Path], top: Path, before: Path) -> None:
    """Raise a BenchError where the base's records lie deeper below it, or less deep, than these."""
    ours, its = (
        {len(name.parts): name for path in paths if _RECORD.fullmatch(path.name)
         for name in [path.relative_to(folder)]}
        for paths, folder in ((files, top), (_files(before), before))
    )  # fmt: skip
    if ours and its and not ours.keys() & its.keys():
        expected, got = (next(iter(each.values())) for each in (ours, its))
        raise BenchError(
            f"--against: expected a folder of the level of {top}, with records such as {expected}, "
            f"got {before} with {got}"
        )


def _files(root: Path) -> Iterator[Path]:
    """Everything below a folder but folders; links are not followed."""
    n = 0
    for parent, folders, names in os.walk(root):
        folders.sort()
        linked = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*names, *linked]):
            n += 1
            if n > _MOST_FILES:
                raise BenchError(f"{root}: expected at most {_MOST_FILES} files")
            yield Path(parent, name)


def _look_at(
    path: Path, record: Record | None, earlier: Path | None, more: More, *, is_new: bool
) -> Iterator[str]:
    """Faults of a file; ``earlier`` is where it was or would have been in the base, if any."""
    if record is None:
        yield from _beside(path)
        return
    yield from _of_place(record, path)
    if not is_new:  # all else was looked at when it came
        check_digest(record, path)
        return
    yield from _of_names(record, path)
    yield from _of_content(record, path)
    if earlier is not None:
        yield from _of_origin(record)
        yield from more(record)
        yield from _changed(record, earlier)


def _check_regular(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        raise BenchError("expected a regular file, got a link or something else")


def _beside(path: Path) -> list[str]:
    """A file that is no record: it may only be the details or the badge of one, or a base."""
    if _BASE.fullmatch(path.name):
        check_base(path)
        return []
    stem = re.sub(r"\.(details\.xz|queries\.gz|json)$", "", path.name)
    record = path.with_name(stem.removeprefix("verified-") + ".json")
    expected = (f(record).name for f in (details_path, queries_path, verification_path))
    if not (_RECORD.fullmatch(record.name) and path.name in expected):
        return ["expected records, their details, badges and bases only"]
    return [] if record.is_file() else [f"there is no record {record.name} beside it"]


def _unused(files: Iterable[Path], records: Iterable[Path]) -> Iterator[Refusal]:
    """Bases that no record stands on any more."""
    used: set[Path] = set()
    for path in records:
        with suppress(BenchError):  # told of the record itself
            used |= {*bases(path)}
    for path in files:
        if _BASE.fullmatch(path.name) and path not in used:
            yield Refusal(str(path), "no record stands on it; remove it")


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


def _removed(before: Path, top: Path, files: set[Path]) -> Iterator[Refusal]:
    for path in _files(before):
        now = top / path.relative_to(before)
        if now not in files and not _BASE.fullmatch(path.name):  # what stood on it has another
            yield Refusal(str(now), "removed; records stay, newer ones stand beside them")


def _seeds(new: Sequence[Path], records: Sequence[Path]) -> Iterator[Refusal]:
    """Rows with new records that lack a seed, or the bounds of one."""
    there = {*records}
    for folder in sorted({path.parent for path in new}):
        missing = [seed for seed in SEEDS if folder / f"seed-{seed}.json" not in there]
        if missing:
            names = ", ".join(map(str, missing))
            yield Refusal(str(folder), f"expected seeds {SEEDS[0]} to {SEEDS[-1]}, without {names}")
    for path in sorted(new):
        bounds = path.parent.with_name("independent") / path.name
        if bounds not in there:
            yield Refusal(str(path), f"expected the record of independent beside it, {bounds}")


@contextmanager
def earlier(base: str, root: Path) -> Iterator[Path]:
    """A folder that is named, or ``root`` in a git revision of that name; else BenchError."""
    if Path(base).is_dir():
        yield Path(base)
        return
    folder = root if root.is_dir() else root.parent
    top = Path(_git(folder, base, "rev-parse", "--show-toplevel").decode().strip())
    commit = _git(folder, base, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
    inside = Path(os.path.relpath(real(folder), real(top))).as_posix()
    with tempfile.TemporaryDirectory(prefix="bench-base-") as copy:
        there = _git(top, base, "ls-tree", "--name-only", commit.decode().strip(), "--", inside)
        if there or inside == ".":
            packed = _git(top, base, "archive", commit.decode().strip(), "--", inside)
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                # Links may lead outside, and records are files.
                some = [member for member in archive if member.isreg() or member.isdir()]
                archive.extractall(copy, some, filter="data")
        made = Path(copy, inside)
        made.mkdir(parents=True, exist_ok=True)
        yield made


def _git(folder: Path, base: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        reason = " ".join(said.decode("utf-8", "replace").split())
        raise BenchError(
            f"--against: expected a folder or a git revision, got '{base}': {reason:.200}"
        ) from error
    return done.stdout
