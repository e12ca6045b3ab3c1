"""Methods, tracks, datasets and backbones of other packages.

One that is broken is named and passed over.
"""

import importlib.util
import re
import traceback
import warnings
from collections.abc import Callable, Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple

from benchmark.errors import BenchError, PassedOverWarning

METHODS, TRACKS, DATASETS, BACKBONES = (
    f"compatbench.{kind}" for kind in ("methods", "tracks", "datasets", "backbones")
)
"""Groups of entry points, by which other packages add to what is here."""

_NAME = re.compile(r"[a-z0-9][\w.-]{0,99}", re.ASCII)


class Added(NamedTuple):
    """Entries that other packages add to a group."""

    found: dict[str, tuple[str, Path]]  # name -> module and its file
    broken: dict[str, str]  # name -> why it is passed over, in words that name the package


def added(group: str, is_known: Callable[[str], bool]) -> Added:
    """Entries of other packages beside what is known; modules above theirs may be imported.

    What is broken is told by a :class:`PassedOverWarning`.
    """
    all_added = Added({}, {})
    for entry in sorted(entry_points(group=group)):
        try:
            module, path = _located(entry)
            if not _NAME.fullmatch(entry.name):
                name = f"'{entry.name:.60}'"
                raise BenchError(f"{name}: expected small letters, digits and ._-, at most 100")
            # A package that lies on the path twice is listed twice.
            if is_known(entry.name) or all_added.found.get(entry.name, (module,))[0] != module:
                raise BenchError(f"'{entry.name}' exists already")
        except BenchError as error:
            reason = f"entry point {group} of {_package(entry)}: {error}"
            all_added.broken[entry.name] = reason
            warnings.warn(PassedOverWarning(f"passed over {reason}"), stacklevel=2)
        else:
            all_added.found[entry.name] = (module, path)
    return all_added


@cache
def package_of(module: str) -> str:
    """The package whose entry point names a module; empty where none does."""
    for group in (METHODS, TRACKS, DATASETS, BACKBONES):
        for entry in entry_points(group=group):
            if entry.value.partition(":")[0].strip() == module:
                return _package(entry)
    return ""


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "some package"


def _located(entry: EntryPoint) -> tuple[str, Path]:
    """Module and file of an entry point; BenchError if there is none."""
    try:
        spec = importlib.util.find_spec(entry.module)
    except ImportError:  # of a package above it
        spec = None
    except (Exception, SystemExit) as error:  # whatever a package above it does when imported
        raise BenchError(f"'{entry.value}': {one_line(error)}") from error
    if spec is None or spec.origin is None:
        raise BenchError(f"'{entry.value}' cannot be found")
    return entry.module, Path(spec.origin)


def one_line(error: BaseException, files: Collection[str] = ()) -> str:
    """An exception of somebody's code as one line: its kind, its words, where it was raised.

    Where it passed through one of ``files``, that place is named, not a library's below it.
    """
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}, line {error.lineno}"
    places = passed(error)
    own = [place for place in places if place[0] in files] or places
    where = f" ({own[-1][0]}, line {own[-1][1]})" if own else ""
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if words else ''}{words}{where}"


def passed(error: BaseException) -> list[tuple[str, int]]:
    """Files and lines that an exception passed through; the one that raised it comes last."""
    frames = traceback.walk_tb(error.__traceback__)
    found = [(frame.f_code.co_filename, line) for frame, line in frames]
    return [(file, line) for file, line in found if not file.startswith("<")]
