"""A corpus of hostile files, made by committed code: the same bytes each time.

:func:`corpus` gives the samples of a kind, :func:`write` lays one down. A sample is what somebody
might hand to a verb: a record, a protocol, a folder of images, ...; mostly one file, named by what
is wrong with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

TOKEN = "pwn7531"
"""Mark of every planted piece of markup or code (see :mod:`support.detectors`)."""


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Pipe:
    """A pipe that nobody writes to."""


@dataclass(frozen=True)
class Folder:
    """A folder where a file is expected."""


@dataclass(frozen=True)
class Sparse:
    """A file of some bytes, then nothing but a size."""

    size: int
    begins: bytes = b""


Content = bytes | Link | Pipe | Folder | Sparse
Files = Mapping[Any, Content]
"""Path, text or bytes, -> what lies there."""


@dataclass(frozen=True)
class Sample:
    """Something hostile.

    Attributes:
        kind: What it pretends to be: ``record``, ``protocol``, ...
        name: What is wrong with it; unique within the kind.
        files: Relative path -> content.
        words: What goes to the command line, where the kind is that.
    """

    kind: str
    name: str
    files: Files = field(default_factory=dict)
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


ENDLESS: Mapping[str, Content] = {
    "link-to-an-endless-device": Link("/dev/zero"),
    "link-to-random-bytes": Link("/dev/urandom"),
    "pipe-nobody-writes": Pipe(),
    "folder-in-its-place": Folder(),
    "link-to-itself": Link("SELF"),
    "link-to-nothing": Link("/nonexistent/file"),
    "link-to-a-terminal": Link("/dev/tty"),
    "link-to-stdin": Link("/dev/stdin"),
    "link-to-a-secret": Link("/etc/shadow"),
    "link-to-memory": Link("/proc/self/mem"),
    "sparse-8-gib": Sparse(8 * 2**30),
    "empty": b"",
    "null-bytes": bytes(4096),
    "all-bytes": bytes(range(256)) * 16,
}
"""Things that may lie in the place of any file."""


def in_place(kind: str, path: str, others: Files | None = None) -> Iterator[Sample]:
    """Samples with something else in the place of a file, among others that are sound."""
    for name, content in ENDLESS.items():
        itself = isinstance(content, Link) and content.target == "SELF"
        placed = Link(path.rpartition("/")[2]) if itself else content
        yield Sample(kind, name, {**(others or {}), path: placed})


def lay(what: str, path: Path) -> None:
    """Lay one of ``ENDLESS`` into the place of a file."""
    (sample,) = [each for each in in_place("", path.name) if each.name == what]
    write(sample, path.parent)


def write(sample: Sample, root: Path) -> None:
    """Lay the files of a sample into an empty folder."""
    for name, content in sample.files.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, bytes):
            with open(path, "wb") as file:
                file.write(content)
        elif isinstance(content, Link):
            os.symlink(content.target, path)
        elif isinstance(content, Pipe):
            os.mkfifo(path)
        elif isinstance(content, Folder):
            os.makedirs(path)
        else:
            with open(path, "wb") as file:
                file.write(content.begins)
                file.truncate(content.size)


def empty(folder: Path) -> None:
    """Remove all that lies in a folder, whatever it is called."""
    shutil.rmtree(os.fsencode(folder), ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


MAKERS = {
    "record": "records.records", "base": "records.bases", "details": "records.details",
    "base-details": "records.base_details", "protocol": "configs.protocols",
    "track": "configs.tracks", "settings": "configs.settings", "published": "configs.published",
    "module": "modules.modules", "conversion": "modules.conversions", "vectors": "arrays.vectors",
    "database": "databases.databases", "image": "images.images", "archive": "archives.archives",
    "store": "stores.stores",
}  # fmt: skip
"""Kind -> the function of a module here that makes its samples."""


def corpus(kind: str) -> Iterator[Sample]:
    """Every sample of a kind, one at a time: some are large.

    Raises:
        ValueError: If two have one name.
    """
    module, _, name = MAKERS[kind].partition(".")
    seen = set()
    for sample in getattr(import_module(f"{__name__}.{module}"), name)():
        if sample.name in seen or sample.kind != kind:
            raise ValueError(f"{sample}: expected a name of its own, of kind {kind}")
        seen.add(sample.name)
        yield sample
