"""A new method and its test, from templates that pass."""

from pathlib import Path
from typing import Literal

from benchmark.config import registry
from benchmark.config.entry_points import METHODS
from benchmark.config.files import write_whole
from benchmark.config.loading import load_protocol
from benchmark.config.method_names import wrong_name
from benchmark.errors import BenchError

Kind = Literal["training", "map"]
PLACEHOLDERS = (
    "say the idea in one line", "Authors, Title, Venue Year", "for a start: ",
    "write the paper's default, section 0.0",
)  # fmt: skip
"""Words of the templates that an author replaces."""


def write_method(name: str, kind: Kind, root: Path | None = None) -> tuple[Path, Path]:
    """Write ``methods/<name>.py`` and ``tests/methods/test_<name>.py``; gives both paths.

    ``root`` is the checkout, by default the one that this code runs from.

    Raises:
        BenchError: If the name is no such name or is taken, or this is no checkout.
    """
    stem = name.replace("-", "_")
    if wrong := wrong_name(name):
        raise BenchError(f"new-method: {wrong}")
    for what, taken in (
        ("method", registry.method_files()), ("protocol", registry.protocol_files()),
        ("track", registry.track_files()),
    ):  # fmt: skip
        if name in taken:  # of any kind, as `bench info` shows one card
            raise BenchError(f"new-method: there is a {what} '{name}' already")
    protocols = map(load_protocol, registry.protocol_files())
    if any(name == generation.name for each in protocols for generation in each.generations):
        raise BenchError(f"new-method: '{name}' is the name of a generation")
    root = root or Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file() or not (root / "tests" / "methods").is_dir():
        raise BenchError(
            f"new-method: {root} is no checkout of CompatBench; a package of your own adds a "
            f"method by an entry point in the group {METHODS}"
        )
    files = root / "methods" / f"{stem}.py", root / "tests" / "methods" / f"test_{stem}.py"
    for path in files:
        if path.exists():
            raise BenchError(f"new-method: {path} exists already")
    for path, template in zip(files, ("py", "test"), strict=True):
        write_whole(path, _filled(f"{kind}.{template}.txt", name))
    return files


def placeholders(source: str) -> str:
    """Words of a template that stand in a method's source as they were, each in quotes."""
    return ", ".join(f"'{words.strip()}'" for words in PLACEHOLDERS if words in source)


def _filled(template: str, name: str) -> str:
    words = name.split("-")
    text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    for mark, value in (
        ("TITLE", " ".join(words).capitalize()), ("STEM", "_".join(words)),
        ("CLASS", "".join(map(str.capitalize, words))),
    ):  # fmt: skip
        text = text.replace(mark, value)
    return text
