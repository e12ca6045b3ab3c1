"""Records that somebody hands in, each held to its schema, its place, itself and what was there.

What goes wrong is said file by file, in one line each; nothing is trained.
"""

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmark.config.places import real
from benchmark.errors import BenchError, printable
from benchmark.records.record_faults import BASE, RECORD, Look, More
from benchmark.records.slim import bases

SEEDS = (0, 1, 2)
"""Seeds that a new row has at least."""
_MOST_FILES = 50_000


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
    found, records, new = list[Refusal](), list[Path](), list[Path]()
    look = Look(top, before, more)
    for path in files:
        is_new, reasons = look.at(path)
        found += [Refusal(str(path), reason) for reason in reasons]
        if RECORD.fullmatch(path.name):
            records.append(path)
            new += [path] if is_new and before is not None else []
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
        {len(name.parts): name for path in paths if RECORD.fullmatch(path.name)
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


def _unused(files: Iterable[Path], records: Iterable[Path]) -> Iterator[Refusal]:
    """Bases that no record stands on any more."""
    used: set[Path] = set()
    for path in records:
        with suppress(BenchError):  # told of the record itself
            used |= {*bases(path)}
    for path in files:
        if BASE.fullmatch(path.name) and path not in used:
            yield Refusal(str(path), "no record stands on it; remove it")


def _removed(before: Path, top: Path, files: set[Path]) -> Iterator[Refusal]:
    for path in _files(before):
        now = top / path.relative_to(before)
        if now not in files and not BASE.fullmatch(path.name):  # what stood on it has another
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
