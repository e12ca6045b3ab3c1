"""Places of datasets: one folder, or one for each of several datasets by its name."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.config.declarations import DatasetDeclaration
from benchmark.config.reading import named_values
from benchmark.errors import BenchError, nearest

Root = Path | Mapping[str, Path] | None
"""A folder, or by dataset the folder of each; ``None`` where nothing is known of the data."""
_NAMED = re.compile(r"[a-z0-9_-]+=.+")


def parse_root(text: str | Path | Mapping[str, str | Path] | None) -> Root:
    """``DIR``, or ``imagenet=DIR,places365=DIR``.

    Raises:
        BenchError: If a folder does not exist, or a dataset comes twice.

    Example:
        >>> parse_root("imagenet=.,places365=..")
        {'imagenet': PosixPath('.'), 'places365': PosixPath('..')}
    """
    if text is None:
        return None
    if isinstance(text, Mapping):
        return {name: existing(Path(path)) for name, path in text.items()}
    parts = str(text).split(",")
    if not _NAMED.fullmatch(parts[0]) or Path(text).exists():
        return existing(Path(text))
    for part in parts:
        if not _NAMED.fullmatch(part):
            raise BenchError(f"--data-root: expected DATASET=DIR, got '{part}'")
    folders = named_values("--data-root", "DATASET=DIR", parts)
    return {name: existing(Path(folder)) for name, folder in folders.items()}


def folders_of(root: Root) -> list[Path]:
    """The folders that are read."""
    return [] if root is None else [*root.values()] if isinstance(root, Mapping) else [root]


def existing(path: Path) -> Path:
    """The path, if something is there; BenchError otherwise."""
    if not path.exists():
        raise BenchError(f"--data-root: {path} does not exist")
    return path


def root_of(dataset: DatasetDeclaration, name: str, root: Root) -> Any:
    """The folder of a dataset; of one that joins others the folders of all."""
    if dataset.members or not isinstance(root, Mapping):
        return root
    return root.get(name)


def check_roots(dataset: DatasetDeclaration, name: str, root: Root, others: Sequence[str]) -> None:
    """Refuse folders of which one is missing, or named after a dataset that is not used.

    ``others`` may have a folder beside the dataset called ``name``; a BenchError names the one.
    """
    if root is None:
        return
    wanted = dataset.members or (name,)
    if not isinstance(root, Mapping):
        if dataset.members:
            expected = ",".join(f"{each}=DIR" for each in wanted)
            raise BenchError(f"--data-root: expected {expected}, got one folder: {root}")
        return
    for each in wanted:
        if each not in root:
            given = ", ".join(root)
            raise BenchError(f"--data-root: expected {each}=DIR, got folders of {given} alone")
    known = (*wanted, *others)
    for each in root:
        if each not in known:
            raise BenchError(f"--data-root: '{each}' is not used here{nearest(each, known)}")
