"""Stage outputs on disk: named by content, written whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmark.config.files import plain_io_errors, writable
from benchmark.errors import BenchError

META = "stage.json"


def default_store() -> Path:
    """``$COMPATBENCH_STORE``, else ``compatbench`` in the user's cache folder."""
    given = os.environ.get("COMPATBENCH_STORE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compatbench"


class Store:
    """A folder of finished stages, and of work in progress that a later run goes on with.

    Args:
        root: The folder; made if missing.

    Raises:
        BenchError: If it cannot be written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        writable(root, "--store")

    def path(self, name: str) -> Path:
        """Folder of a finished stage."""
        return self.root / "stages" / name

    def has(self, name: str) -> bool:
        """Whether the stage is finished."""
        return (self.path(name) / META).is_file()

    def meta(self, name: str) -> dict[str, Any]:
        """What the stage said of itself: times, sizes, environment.

        Raises:
            BenchError: If the file is damaged.
        """
        path = self.path(name) / META
        try:
            value: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise BenchError(
                f"{path}: damaged ({error}); delete its folder to make it anew"
            ) from error
        return value

    def remove(self, name: str) -> None:
        """Forget a stage and its work in progress."""
        for folder in (self.path(name), self.root / "work" / name):
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A folder to write a stage into; it is published whole when the block ends well.

        The folder outlives a killed run, so what lies there (checkpoints) can be taken up. Two
        runs that want the same stage take turns.
        """
        from filelock import FileLock

        work = self.root / "work" / name
        with plain_io_errors(self.root):
            work.mkdir(parents=True, exist_ok=True)
            with FileLock(work.with_suffix(".lock")):
                if self.has(name):
                    yield work
                    shutil.rmtree(work, ignore_errors=True)
                    return
                work.mkdir(parents=True, exist_ok=True)
                yield work
                for checkpoint in work.glob("*.checkpoint.*"):
                    checkpoint.unlink()
                final = self.path(name)
                final.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(final, ignore_errors=True)
                work.replace(final)
