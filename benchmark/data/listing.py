"""Listings of anybody's images, and what is said of each: by folders, names or a table."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.data.files import IMAGES, check_names, csv_lines, is_made, readable
from benchmark.errors import BenchError, nearest

TABLE = "items.csv"
FOLDERS = ("train", "gallery", "query")
SEEN, TEST = "seen", "test"
PARTS = (*FOLDERS, TEST, SEEN)
FIELDS = ("class", "camera", "group", "part")
"""Facts that a table or the names of files may give of an image."""

_BESIDE = frozenset((".txt", ".json", ".csv", ".tsv", ".xml", ".yaml", ".yml", ".md", ".html"))
_STRAY = frozenset(("thumbs.db", "desktop.ini"))
_MOST_TABLE = 2**28
_MOST_LINES = 2**24
_LONGEST_PATTERN = 1000


class Item(NamedTuple):
    """An image of a listing; what nothing is said of is empty."""

    path: Path
    class_name: str
    part: str = ""  # of :data:`PARTS`; empty where the classes are yet to be split
    camera: str = ""
    group: str = ""


def of_folders(root: Path) -> list[Item]:
    """Images in folders named after their classes, which may stand in folders of the parts."""
    with readable(root):
        present = [name for name in FOLDERS if (root / name).is_dir() and _folders(root / name)]
        if not present:
            return _listed(root, "")
        for name in FOLDERS:
            if name not in present:
                raise BenchError(
                    f"{root}: {name}: no class folder found: expected {name}/CLASS/... "
                    f"beside {' and '.join(present)}"
                )
        for path in [*_folders(root), *_loose(root)]:
            if path.name not in (*FOLDERS, SEEN):
                raise _unexpected(path)
        return [item for name in (*FOLDERS, *_seen(root)) for item in _listed(root / name, name)]


def has_seen(root: Path) -> bool:
    """Tell whether there is a folder of other images of training classes beside the other parts."""
    parted = any((root / name).is_dir() and _folders(root / name) for name in FOLDERS)
    return parted and bool(_seen(root))


def _seen(root: Path) -> list[str]:
    return [SEEN] if (root / SEEN).is_dir() and _folders(root / SEEN) else []


def of_table(path: Path, root: Path) -> list[Item]:
    """The images that a CSV table lists, its header ``file`` and any of :data:`FIELDS`.

    Raises:
        BenchError: Naming the line that is not as it should be.
    """
    found: dict[Path, Mapping[str, str]] = {}
    for number, row in _rows(path):
        where, name = f"{path}:{number}", row["file"]
        if name.startswith("/") or ".." in name.split("/"):
            raise BenchError(f"{where}: file: expected a path below {root}, got '{name:.80}'")
        file = root / name
        if not file.is_file():
            raise BenchError(f"{where}: file: there is no file '{name:.80}' below {root}")
        if file in found:
            raise BenchError(f"{where}: file: '{name:.80}' is listed twice")
        found[file] = _checked(where, {k: v for k, v in row.items() if k != "file"})
    return _placed(root, dict(sorted(found.items())))  # whatever the order of its lines


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a table, with their numbers."""
    lines = csv_lines(path, _MOST_TABLE)
    head = [name.strip() for name in next(lines, (1, []))[1]]
    for name in head:
        if name not in ("file", *FIELDS):
            known = nearest(name, ("file", *FIELDS))
            raise BenchError(f"{path}:1: unknown column '{name:.80}'{known}")
    if "file" not in head or len(set(head)) < len(head):
        raise BenchError(f"{path}:1: expected a header of file and, each once, {_some(FIELDS)}")
    for number, cells in lines:
        if number > _MOST_LINES:
            raise BenchError(f"{path}: expected at most {_MOST_LINES} lines")
        if cells and len(cells) != len(head):
            raise BenchError(f"{path}:{number}: expected {len(head)} cells, got {len(cells)}")
        if cells:
            yield number, dict(zip(head, map(str.strip, cells), strict=True))


class Pattern:
    """A regular expression for the names of files, matched in time that grows with their length.

    It is one of RE2, as Arrow has it, which has no backtracking: no pattern of others is slow on
    any name.
    """

    def __init__(self, text: str) -> None:
        """Check the pattern.

        Raises:
            ValueError: If it is none, or has no group of :data:`FIELDS`, or others.
            BenchError: Without pyarrow.
        """
        if len(text) > _LONGEST_PATTERN:
            raise ValueError(f"pattern: expected at most {_LONGEST_PATTERN} letters")
        self.text = text
        self.fields = tuple(field.name for field in self._extracted([]).type)
        for name in self.fields:
            if name not in FIELDS:
                raise ValueError(f"pattern: unknown group '{name}'{nearest(name, FIELDS)}")
        if not self.fields:
            raise ValueError(f"pattern: expected named groups, (?P<class>...), of {_some(FIELDS)}")

    def groups(self, names: Sequence[str]) -> list[dict[str, str] | None]:
        """Matches of the groups in each name; ``None`` of one that does not match as a whole."""
        found = self._extracted(names).to_pylist()
        return [each and {key: value or "" for key, value in each.items()} for each in found]

    def _extracted(self, names: Sequence[str]) -> Any:
        try:
            import pyarrow as pa
            import pyarrow.compute as pc
        except ModuleNotFoundError as error:
            raise BenchError(
                "data.pattern needs the package pyarrow: pip install 'compatbench[vectors]'"
            ) from error
        try:
            return pc.extract_regex(pa.array(names, pa.string()), pattern=f"^(?:{self.text})$")
        except (pa.ArrowInvalid, UnicodeError) as error:
            cause = str(error).removeprefix("Invalid regular expression: ")
            hint = ", write (?:...)" if "unnamed" in cause else ""
            raise ValueError(
                f"pattern: expected a regular expression of RE2: {cause:.200}{hint}"
            ) from error


def of_names(root: Path, pattern: str) -> list[Item]:
    """All images below a folder; of each its path from there says what the groups match."""
    paths = list(_images_below(root))
    names = [path.relative_to(root).as_posix() for path in paths]
    for path, name in zip(paths, names, strict=True):
        if not name.isprintable() and name.encode("utf-8", "ignore").decode() != name:
            raise BenchError(f"{path}: expected a name in UTF-8")
    found = {}
    for path, groups in zip(paths, Pattern(pattern).groups(names), strict=True):
        if groups is None:
            raise BenchError(f"{path}: expected a path that data.pattern matches: '{pattern:.200}'")
        found[path] = _checked(str(path), groups)
    return _placed(root, found)


def _checked(where: str, said: Mapping[str, str]) -> Mapping[str, str]:
    """The facts that are given of an image; BenchError if a value is missing or cannot be shown."""
    for field, value in said.items():
        check_names([value], f"{where}: {field}")
    if said.get("part", TEST) not in PARTS:
        raise BenchError(f"{where}: part: expected one of {_some(PARTS)}, got '{said['part']:.80}'")
    return said


def _placed(root: Path, found: Mapping[Path, Mapping[str, str]]) -> list[Item]:
    """Items; class and part are those of the folders where nothing else says them."""
    if not found:
        raise BenchError(f"{root}: expected images, found none")
    places = {path: path.relative_to(root).parts[:-1] for path in found}
    first = {parts[0] if parts else "" for parts in places.values()}
    parted = {*FOLDERS} <= first <= {*FOLDERS, SEEN}
    items = []
    for path, said in found.items():
        if {*FOLDERS} <= first and not parted and not {"class", "part"} <= {*said}:
            extra = min(first - {*FOLDERS, SEEN})
            loose = (path for path, parts in places.items() if not parts)
            raise _unexpected(root / extra if extra else next(loose))
        folders = places[path][parted:]
        if "class" not in said and not folders:
            raise BenchError(f"{path}: expected inside a folder named after its class")
        name = said.get("class") or folders[0]
        check_names([name], str(path))
        part = said.get("part") or (places[path][0] if parted else "")
        items.append(Item(path, name, part, said.get("camera", ""), said.get("group", "")))
    return items


def _unexpected(path: Path) -> BenchError:
    return BenchError(
        f"{path}: unexpected beside {_some(FOLDERS)}: expected at most {SEEN}, or class and part "
        "of every image from a table or data.pattern"
    )


def _some(names: Iterable[str]) -> str:
    return ", ".join(names)


def _loose(folder: Path) -> list[Path]:
    return _sifted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES)


def _listed(folder: Path, part: str) -> list[Item]:
    if loose := _loose(folder):
        raise BenchError(f"{loose[0]}: expected inside a folder named after its class")
    items: list[Item] = []
    seen: dict[str, Path] = {}
    for place in _folders(folder):
        check_names([place.name], str(place))
        images = _images_below(place, seen)
        if not images:
            raise BenchError(f"{place}: class without an image")
        items += [Item(path, place.name, part) for path in images]
    if not items:
        raise BenchError(
            f"{folder}: no class folder found: expected train/CLASS/..., gallery/CLASS/... and "
            "query/CLASS/..., or CLASS/..."
        )
    return items


def _folders(folder: Path) -> list[Path]:
    shown = [path for path in sorted(folder.iterdir()) if not is_made(path.name)]
    for path in shown:
        _check_link(path)
    return [path for path in shown if path.is_dir()]


def _images_below(folder: Path, seen: dict[str, Path] | None = None) -> list[Path]:
    """Images in a folder and those within, links followed; ``seen`` are folders already read.

    Raises:
        BenchError: If a link leads nowhere, or a folder is reached twice: its images would count
            twice.
    """
    seen = {} if seen is None else seen
    images: list[Path] = []

    def fail(error: OSError) -> None:
        raise error

    with readable(folder):
        for name, folders, files in os.walk(folder, followlinks=True, onerror=fail):
            place = Path(name)
            real = os.path.realpath(place)
            if real in seen:
                raise BenchError(
                    f"{place}: is the same folder as {seen[real]}: expected each folder once"
                )
            seen[real] = place
            folders[:] = sorted(each for each in folders if not is_made(each))
            images += _sifted(place / each for each in files)
    return sorted(images)


def _check_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise BenchError(f"{path}: the link leads nowhere")


def _sifted(paths: Iterable[Path]) -> list[Path]:
    """Images, sorted; hidden files and notes are passed over, anything else is refused."""
    images = []
    for path in sorted(p for p in paths if not p.name.startswith(".")):
        _check_link(path)
        suffix = path.suffix.lower()
        if not path.is_file():  # a pipe or a device
            continue
        if suffix in IMAGES:
            images.append(path)
        elif path.name.lower() not in _STRAY and suffix not in _BESIDE:
            raise BenchError(
                f"{path}: unexpected file: expected an image ({' '.join(sorted(IMAGES))})"
            )
    return images
