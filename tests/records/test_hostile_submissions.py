"""Every file of the hostile corpus, looked at as records that somebody hands in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import hostile
from support.command import call
from support.hostile import Sample, corpus
from support.hostile.records import NEIGHBOUR

from benchmark.records.submissions import Problem

pytestmark = pytest.mark.slow

LONGEST = 600
"""Letters of a line."""


def lie_there(folder: Path) -> Iterator[Path]:
    """What needs a line of its own: all but details, which their record's line names."""
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]
        for name in (*names, *linked):
            path = Path(parent, name)
            if not name.endswith(".details.gz") and path != folder / NEIGHBOUR:
                yield path


def check(sample: Sample, folder: Path) -> None:
    """Refused by exit code 2: a line for each file on stdout, how many there are on stderr."""
    hostile.write(sample, folder)
    code, out, err = call("validate", folder)
    assert code == 2 and "Traceback" not in out + err, f"{sample}: {out}{err}"
    lines, (last,) = out.splitlines(), err.splitlines()
    assert "problems" in last and last.isprintable(), sample
    assert all(line.isprintable() and len(line) <= LONGEST for line in lines), sample
    for path in lie_there(folder):
        named = str(Problem(str(path), ""))
        assert any(line.startswith(named) for line in lines), f"{sample}: {path}: {lines}"


@pytest.mark.parametrize("kind", [kind for kind in hostile.KINDS if kind != "settings"])
def test_each_is_refused_file_by_file(kind, tmp_path):
    tried = 0
    for sample in corpus(kind):
        check(sample, tmp_path / "records")
        hostile.empty(tmp_path / "records")
        tried += 1
    assert tried > 20
