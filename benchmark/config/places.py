"""Places that a command is to write, beside what it reads: nothing that is read is lost."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmark.errors import BenchError


def require_apart(written: Iterable[tuple[str, Path | None]], read: Iterable[Path]) -> None:
    """Refuse to write what is read, or twice to one place; links of both kinds are followed.

    Args:
        written: Files that are replaced, and folders that are replaced as a whole, each with the
            option or the like that an error begins with; None is passed over.
        read: Files and folders; what is not there is no matter. Nothing is written into a folder
            that is read.

    Raises:
        BenchError: Naming option and place.
    """
    read = list(read)
    same = {key: path for path in read if (key := _key(path)) is not None}
    resolved = {real(path): path for path in read}
    folders = [place for place in resolved if place.is_dir()]
    taken: dict[Path, str] = {}
    for option, path in written:
        if path is None:
            continue
        place = real(path)
        if any(folder in place.parents for folder in folders):
            raise BenchError(
                f"{option}: expected a file outside of the folder that is read, got {path}"
            )
        other = resolved.get(place) or same.get(_key(path) or (0, 0))
        if other is not None:
            what = path if other == path else f"{path}, which is {other}"
            raise BenchError(f"{option}: expected another file than is read, got {what}")
        if place in taken:
            raise BenchError(f"{option}: expected another file than {taken[place]}, got {path}")
        inside = next((each for each in resolved if place in each.parents), None)
        if inside is not None:
            raise BenchError(
                f"{option}: expected a folder other than that of {inside}, which is read"
            )
        taken[place] = option


def require_outside(written: Mapping[str, Path | None], read: Iterable[Path]) -> None:
    """Refuse a folder for results that is, or lies in, a folder that is read.

    What it holds would be read as data the next time.

    Raises:
        BenchError: Naming option and folder.
    """
    roots = [real(root) for root in read]
    for option, path in written.items():
        for root in roots:
            if path is not None and real(path).is_relative_to(root):
                raise BenchError(f"{option}: expected a folder outside of {root}, got {path}")


def real(path: Path) -> Path:
    """An absolute path without links; a link that leads to itself stays, where pathlib raises."""
    return Path(os.path.realpath(path))


def _key(path: Path) -> tuple[int, int] | None:
    """The identity that hard links have in common; None of what is not there."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        return None
    return about.st_dev, about.st_ino
