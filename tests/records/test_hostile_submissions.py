"""Every file of the hostile corpus, looked at as records that somebody hands in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import hostile
from support.command import call
from support.hostile import Sample, corpus
from support.hostile.records import NEIGHBOUR

from benchmark.cli.submitting import _MOST_LINES
from benchmark.records.submissions import Refusal

pytestmark = pytest.mark.slow

LONGEST = 600
"""Letters of a line."""


def lie_there(folder: Path) -> Iterator[Path]:
    """Files that need a line of their own: all but details and bases, named with their record."""
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]
        for name in (*names, *linked):
            path = Path(parent, name)
            of_record = name.endswith(".details.xz") or name.startswith("base-")
            if not of_record and path != folder / NEIGHBOUR:
                yield path


def check(sample: Sample, folder: Path) -> None:
    """Refused by exit code 2: a line for each file on stdout, how many there are on stderr.

    Of very many files the first are named, and the others counted.
    """
    hostile.write(sample, folder)
    code, out, err = call("validate", folder)
    assert code == 2 and "Traceback (most recent" not in out + err, f"{sample}: {out}{err}"
    lines, (last,) = out.splitlines(), err.splitlines()
    assert "problem" in last and last.isprintable(), sample
    assert all(line.isprintable() and len(line) <= LONGEST for line in lines), sample
    named = [str(Refusal(str(path), "")) for path in lie_there(folder)]
    missed = [name for name in named if not any(line.startswith(name) for line in lines)]
    if " not shown" in last:
        assert len(lines) == _MOST_LINES, sample
        assert int(re.findall(r"(\d+) of them not shown", last)[0]) >= len(missed), sample
    else:
        assert not missed, f"{sample}: {missed[:3]}: {lines[:3]}"


@pytest.mark.parametrize("kind", [kind for kind in hostile.MAKERS if kind != "settings"])
def test_each_is_refused_file_by_file(kind, tmp_path):
    tried = 0
    for sample in corpus(kind):
        check(sample, tmp_path / "records")
        hostile.empty(tmp_path / "records")
        tried += 1
    assert tried > 20
