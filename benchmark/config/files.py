"""Files and folders: hashes, and writing whole or not at all."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError

_NOTHING_LEFT = 256 * 1024
"""Bytes; below this a failed write is put down to the disk."""


def digest(value: Any) -> str:
    """SHA-256 of a JSON-able value, independent of the order of keys: 24 hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, ``sha256:...``."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def writable(folder: Path, option: str) -> None:
    """Make ``folder`` and a file in it, or say that it cannot be.

    Raises:
        BenchError: Naming the option and the folder.
    """
    probe = folder / f".write-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise BenchError(f"{option}: cannot write in {folder}: {error.strerror}") from error


@contextmanager
def plain_io_errors(folder: Path) -> Iterator[None]:
    """A full disk as one line instead of a traceback; what is stored stays.

    Libraries say it each in their own way (torch a RuntimeError, numpy an OSError without a
    number), so the free space is looked at as well.
    """
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_full or shutil.disk_usage(folder).free < _NOTHING_LEFT:
            raise BenchError(
                f"{folder}: the disk is full; free some space and run the same command again, "
                "finished stages are kept"
            ) from error
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all: to a neighbour first, then in place of the old."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with plain_io_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        # Numbers of a list on one line: a curve is read as one, and is a fourth of the size. A
        # text cannot hold the line break that this looks for.
        text = re.sub(r"\[\n[-\d.e+,\snul]+\]", lambda m: "".join(m[0].split()), text)
        part.write_text(text + "\n")
        part.replace(path)
