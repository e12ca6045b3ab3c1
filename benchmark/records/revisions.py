"""A folder as it was in another revision of its repository."""

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmark.config.places import real
from benchmark.errors import BenchError


@contextmanager
def earlier(base: str, root: Path) -> Iterator[Path]:
    """A folder that is named, or what ``root`` was in a git revision of that name.

    Raises:
        BenchError: If it is neither.
    """
    if Path(base).is_dir():
        yield Path(base)
        return
    folder = root if root.is_dir() else root.parent
    top = Path(_git(folder, base, "rev-parse", "--show-toplevel").decode().strip())
    commit = _git(folder, base, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
    inside = Path(os.path.relpath(real(folder), real(top))).as_posix()
    with tempfile.TemporaryDirectory(prefix="bench-base-") as copy:
        there = _git(top, base, "ls-tree", "--name-only", commit.decode().strip(), "--", inside)
        if there or inside == ".":
            packed = _git(top, base, "archive", commit.decode().strip(), "--", inside)
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(copy, filter="data")
        made = Path(copy, inside)
        made.mkdir(parents=True, exist_ok=True)
        yield made


def _git(folder: Path, base: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        reason = " ".join(said.decode("utf-8", "replace").split())
        raise BenchError(
            f"--against: expected a folder or a git revision, got '{base}': {reason:.200}"
        ) from error
    return done.stdout
