"""Stage outputs on disk: named by content, written whole or not at all, checked before use.

The names of their files, and reading vectors.
"""

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import (
    file_digest,
    plain_io_errors,
    read_sealed,
    sync,
    writable,
    write_sealed,
)
from benchmark.config.reading import Model, build
from benchmark.errors import BenchError
from benchmark.harness.work import EvaluationWork

if TYPE_CHECKING:
    from filelock import BaseFileLock

META = "stage.json"
_NAME = re.compile(r"[a-z]+-[0-9a-f]{24}")  # of a stage, or a record
_LARGEST_META = 64 * 1024 * 1024  # bytes; a training's curves are the most of it
MODEL = "model.safetensors"
HEAD = "head.safetensors"
IMAGES = "images"
"""The image encoder of a generation whose queries are texts."""
VECTORS = "vectors.npy"
CASES = "cases.json"
BACKFILLING = "backfilling.json"
DETAILS = "details.gz"
Stored = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Vectors of a gallery: embeddings and side-information of all items."""


class StoredFile(Model):
    """A file of a stage, as it was written."""

    bytes: int
    digest: str


class _Meta(Model):
    """Facts of a stage about itself."""

    name: str
    title: str
    kind: str
    facts: dict[str, Any]
    run: dict[str, Any]
    files: dict[str, StoredFile]


@dataclass(frozen=True)
class Entry:
    """A folder of the store: a finished stage, or work that a killed run left."""

    name: str
    finished: bool
    n_bytes: int
    age: float  # seconds since it was written last

    @property
    def kind(self) -> str:
        """The kind of the stage, with which its name begins."""
        return self.name.partition("-")[0]


class Store:
    """A folder of finished stages, and of work in progress that a later run goes on with.

    It is made when the first stage is written. A finished stage has a sealed ``stage.json`` with
    the size and SHA-256 of each of its files. A store that has all that a run needs may lie on a
    disk that cannot be written. A BenchError if its path is not UTF-8, which the library that reads
    weights asks for.
    """

    def __init__(self, root: Path) -> None:
        try:
            str(root.absolute()).encode("utf-8")
        except UnicodeEncodeError as error:
            raise BenchError(f"{root}: store: expected a path in UTF-8") from error
        self.root = root

    def path(self, name: str) -> Path:
        """Folder of a finished stage."""
        return self.root / "stages" / name

    def has(self, name: str) -> bool:
        """Tell a finished stage; :meth:`damage` says whether it is whole."""
        return (self.path(name) / META).is_file()

    def meta(self, name: str) -> dict[str, Any]:
        """Facts of the stage about itself: ``title``, ``kind``, ``facts``, ``run``, ``files``.

        Raises:
            BenchError: If the file is damaged, or that of another stage.
        """
        path = self.path(name) / META
        value = read_sealed(path, _LARGEST_META)
        build(_Meta, value, f"{path}: damaged")
        if value["name"] != name:
            raise BenchError(f"{path}: damaged: that of another stage, {value['name']:.60}")
        return value

    def damage(self, name: str) -> str | None:
        """Damage of a finished stage in words, if there is any; every file is read for it."""
        try:
            expected = self.meta(name)["files"]
        except BenchError as error:
            return str(error).partition(f"{META}: ")[2] or str(error)
        folder = self.path(name)
        found = _files(folder)
        for file in sorted({*found, *expected}):
            if file not in found:
                return f"{file:.100} is missing"
            if file not in expected:
                return f"{file:.100} is not its own"
            with suppress(OSError):  # what cannot be read is damaged
                if _is_as_written(folder / file, expected[file]):
                    continue
            return f"{file} is not what was written"
        return None

    def remove(self, name: str) -> None:
        """Forget a stage and its work in progress, after whoever writes it has ended."""
        folders = (self.path(name), self._work(name))
        if not any(os.path.lexists(folder) for folder in folders):
            return
        writable(self.root, "--store")
        with self.lock(name):
            for folder in folders:
                if folder.is_symlink():
                    folder.unlink()
                elif folder.exists():
                    shutil.rmtree(folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path | None]:
        """A folder to write a stage into, for :meth:`publish`; ``None`` if it is finished.

        The folder outlives a killed run, so what lies there (checkpoints) can be taken up. Two
        runs that want the same stage take turns; one that is damaged is written anew.
        """
        writable(self.root, "--store")
        work = self._work(name)
        with plain_io_errors(self.root, ", finished stages are kept"):
            # Only its parent: whoever has the lock may be taking the folder itself away.
            work.parent.mkdir(parents=True, exist_ok=True)
            with self.lock(name):
                if self.has(name) and self.damage(name) is None:
                    shutil.rmtree(work, ignore_errors=True)
                    yield None
                else:
                    work.mkdir(parents=True, exist_ok=True)
                    yield work
            # Whoever got hold of it meanwhile finds the stage finished.
            if self.has(name):
                self._lock_file(name).unlink(missing_ok=True)

    def publish(self, name: str, meta: Mapping[str, Any]) -> None:
        """Make what lies in the folder of :meth:`writing` the finished stage, for good.

        Files and folders are on the disk before the stage has its name, and checkpoints are gone.
        """
        work, final = self._work(name), self.path(name)
        for checkpoint in work.glob("*.checkpoint.*"):
            checkpoint.unlink()
        files = _files(work)
        for file in files:
            sync(work / file)
        facts = {
            file: {"bytes": (work / file).stat().st_size, "digest": file_digest(work / file)}
            for file in files
        }
        write_sealed(work / META, {"name": name, **meta, "files": facts})
        final.parent.mkdir(parents=True, exist_ok=True)
        if final.exists():  # damaged
            shutil.rmtree(final)
        work.replace(final)
        sync(final.parent)

    def entries(self) -> list[Entry]:
        """Everything in the store, by name; folders of other names are somebody's own."""
        return [
            Entry(folder.name, finished, *_usage(folder))
            for finished, parent in ((True, "stages"), (False, "work"))
            for folder in self._within(parent)
            if _is(folder, stat.S_ISDIR) and _NAME.fullmatch(folder.name)
        ]

    def clean(self, older_than: float | None = None) -> list[Entry]:
        """Free what is of no use; returns what is gone.

        That is damaged stages and work of killed runs, and of finished stages those that are
        ``older_than`` so many seconds. What a running process writes is left alone.
        """
        from filelock import Timeout

        gone = []
        for entry in self.entries():
            old = older_than is not None and entry.age > older_than
            if entry.finished and not old and self.damage(entry.name) is None:
                continue
            # Another process may just have published or removed it.
            with suppress(Timeout, FileNotFoundError), self.lock(entry.name, timeout=0):
                shutil.rmtree(self.path(entry.name) if entry.finished else self._work(entry.name))
                gone.append(entry)
        for lock in self._within("work"):
            if lock.suffix == ".lock" and _NAME.fullmatch(lock.stem) and _is(lock, stat.S_ISREG):
                with suppress(Timeout), self.lock(lock.stem, timeout=0):
                    lock.unlink(missing_ok=True)
        return gone

    def _within(self, parent: str) -> list[Path]:
        """Entries of a folder of the store; links lead elsewhere and are passed over."""
        folder = self.root / parent
        return sorted(folder.iterdir()) if _is(folder, stat.S_ISDIR) else []

    def _work(self, name: str) -> Path:
        return self.root / "work" / name

    def _lock_file(self, name: str) -> Path:
        return self.root / "work" / f"{name}.lock"

    def lock(self, name: str, timeout: float = -1) -> "BaseFileLock":
        """A lock that processes on this store share, for a stage or anything else of a name."""
        from filelock import FileLock

        for parent in ("work", "stages"):
            if (self.root / parent).is_symlink():
                raise BenchError(f"{self.root / parent}: expected a folder, got a link")
        path = self._lock_file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path, timeout=timeout)


def _files(folder: Path) -> list[str]:
    """Paths below a stage's folder of everything but folders and its ``stage.json``."""
    found = [path.relative_to(folder).as_posix() for path, about in _walk(folder)]
    return sorted(name for name in found if name != META)


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything below a folder but folders; a link is itself, wherever it leads."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            try:
                about = path.lstat()
            except FileNotFoundError:  # what a running training has just replaced
                continue
            if not stat.S_ISDIR(about.st_mode):
                yield path, about


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Tell a path of a kind of :mod:`stat`, itself and not by a link."""
    try:
        return kind(path.lstat().st_mode)
    except OSError:
        return False


def _is_as_written(path: Path, expected: Mapping[str, Any]) -> bool:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size != expected["bytes"]:
        return False
    return file_digest(path) == expected["digest"]


def _usage(folder: Path) -> tuple[int, float]:
    """Bytes below a folder, and seconds since its newest file was written."""
    about = [each for _, each in _walk(folder)]
    with suppress(FileNotFoundError):
        newest = max([folder.lstat().st_mtime, *(each.st_mtime for each in about)])
        return sum(each.st_size for each in about), max(0.0, time.time() - newest)
    return 0, 0.0  # published or removed meanwhile


def load_vectors(folder: Path) -> NDArray[np.float32]:
    """Embeddings of all items, ``[n, d]``."""
    vectors: NDArray[np.float32] = np.load(folder / VECTORS)
    return vectors


def load_stored(work: EvaluationWork[Path], i: int) -> Stored:
    """Vectors of a gallery of generation ``i``; its embeddings are also its queries."""
    side = work.sides[i]
    return load_vectors(work.vectors[i]), None if side is None else load_vectors(side)
