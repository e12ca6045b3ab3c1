"""Files and folders: hashes and seals, reading with limits, writing whole or not at all."""

import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from benchmark.errors import BenchError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of errors that say that a disk is full."""
_NOTHING_LEFT = 256 * 1024
"""Bytes; below this a failed write is put down to the disk."""
_DAY = 24 * 60 * 60.0
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)

SEAL = "seal"
"""Key of a sealed JSON file: the SHA-256 of everything else in it."""


def user_cache() -> Path:
    """``compatbench`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compatbench"


def default_store() -> Path:
    """``$COMPATBENCH_STORE``, else ``compatbench`` in the user's cache folder."""
    given = os.environ.get("COMPATBENCH_STORE")
    return Path(given) if given else user_cache()


def digest(value: Any) -> str:
    """SHA-256 of a JSON-able value, independent of the order of keys: 24 hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def bytes_digest(content: bytes) -> str:
    """SHA-256 of some bytes, ``sha256:...``."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, ``sha256:...``."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in 64 hexadecimal digits, as model hubs show it."""
    return file_digest(path).removeprefix("sha256:")


def seal_of(value: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON-able mapping without its own seal, ``sha256:...``; keys in any order."""
    content = {key: each for key, each in value.items() if key != SEAL}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return bytes_digest(text.encode())


def read_bytes(path: Path, limit: int) -> bytes:
    """All bytes of a regular file.

    What lies at a path of others may be an endless device or a pipe that nobody writes to; neither
    is waited for.

    Raises:
        BenchError: If it cannot be read, is no regular file or has more than ``limit`` bytes.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise BenchError(f"{path}: expected a regular file")
            # Not the limit at once, for which Python would make room first.
            content = file.read(min(limit, about.st_size) + 1)
            if len(content) > about.st_size:  # it grew, or says no size as those of /proc do
                content += file.read(limit + 1 - len(content))
    except (OSError, ValueError) as error:  # a ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise BenchError(f"{path}: cannot be read: {reason}") from error
    if len(content) > limit:
        size = max(about.st_size, len(content))
        raise BenchError(f"{path}: expected at most {limit} bytes, got {size}")
    return content


def file_size(path: Path, limit: int) -> int:
    """Bytes of a regular file, for those that are too large to be read at once.

    Raises:
        BenchError: As :func:`read_bytes`.
    """
    try:
        about = Path(path).stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BenchError(f"{path}: cannot be read: {reason}") from error
    if not stat.S_ISREG(about.st_mode):
        raise BenchError(f"{path}: expected a regular file")
    if about.st_size > limit:
        raise BenchError(f"{path}: expected at most {limit} bytes, got {about.st_size}")
    return about.st_size


def part_of(path: Path) -> Path:
    """The neighbour that a file or folder is written to, before it takes its place."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}.part")


def clear_parts(path: Path) -> None:
    """Take away what killed processes left of :func:`part_of`: those of this machine, or old ones.

    What another machine may be writing, on a disk that both see, stays for a day.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*-*.part"):
        host, _, number = part.name[len(path.name) + 2 : -len(".part")].rpartition("-")
        with suppress(OSError, ValueError):
            is_ours = host == _host() and number.isdecimal() and not _runs(int(number))
            if is_ours or time.time() - part.stat().st_mtime > _DAY:
                shutil.rmtree(part) if part.is_dir() else part.unlink()


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname())[:64]


def _runs(process: int) -> bool:
    """Tell whether there is a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


def writable(folder: Path, option: str, *, keep: bool = True) -> None:
    """Make ``folder`` and a file in it, or say that it cannot be.

    Without ``keep`` folders that were not there go again: who writes later makes them.

    Raises:
        BenchError: Naming the option and the folder.
    """
    try:
        made = [each for each in (folder, *folder.parents) if not keep and not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BenchError(f"{option}: cannot write in {folder}: {error.strerror}") from error
    with suppress(OSError):  # another process has begun to use it
        for each in made:
            each.rmdir()


def require_file_place(path: Path, option: str) -> None:
    """Raise a BenchError if something else than a file is where one is to be written."""
    if path.exists() and not path.is_file():
        what = "the folder " if path.is_dir() else ""
        raise BenchError(f"{option}: expected a file, got {what}{path}")


@contextmanager
def plain_io_errors(folder: Path, kept: str = "") -> Iterator[None]:
    """A full disk as one line instead of a traceback, with words on what is ``kept``.

    Libraries say it each in their own way (torch a RuntimeError, numpy an OSError without a
    number), so the free space is looked at where an error has no number.
    """
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        number = getattr(error, "errno", None)
        if number in FULL or (number is None and shutil.disk_usage(folder).free < _NOTHING_LEFT):
            raise BenchError(
                f"{folder}: the disk is full; free some space and run the same command again{kept}"
            ) from error
        raise


def write_whole(path: Path, content: str | bytes, durable: bool = False) -> None:
    """Write a file whole or not at all: to a neighbour first, then in place of the old.

    What is ``durable`` outlives a power cut as soon as this returns.
    """
    part = path.with_name(f".{secrets.token_hex(8)}.part")  # threads share the process's number
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        part.write_bytes(raw)
        if durable:
            sync(part)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def write_json(path: Path, value: Any, durable: bool = False) -> None:
    """Write JSON as :func:`write_whole`; a full disk is an error of one line."""
    with plain_io_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        # Numbers of a list on one line: a curve is read as one, and is a fourth of the size. A
        # text cannot hold the line break that this looks for.
        text = re.sub(r"\[\n[-\d.e+,\snul]+\]", lambda m: "".join(m[0].split()), text)
        write_whole(path, (text + "\n").encode(), durable)


def write_sealed(path: Path, value: Mapping[str, Any], durable: bool = True) -> None:
    """Write a mapping as JSON with its seal, for :func:`read_sealed`."""
    write_json(path, {**value, SEAL: seal_of(value)}, durable)


def read_sealed(path: Path, limit: int) -> dict[str, Any]:
    """The mapping of a file of :func:`write_sealed`, without its seal.

    Raises:
        BenchError: As :func:`read_bytes`; if it is not JSON, or its seal is missing or another.
    """
    try:
        value = from_json(read_bytes(path, limit), allow_inf_nan=False)
    except ValueError as error:
        raise BenchError(f"{path}: damaged: {error}") from error
    if not isinstance(value, dict) or value.pop(SEAL, None) != seal_of(value):
        raise BenchError(f"{path}: damaged: its seal does not fit")
    return value


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Some file systems cannot do it for folders.
        with suppress(OSError) if path.is_dir() else nullcontext():
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
