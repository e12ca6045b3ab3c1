"""Building the leaderboard of many records, beside reading and parsing the same files."""

import itertools
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmark.config.files import seal_of
from benchmark.errors import BenchError
from benchmark.perf import measure
from benchmark.records.details_files import details_path
from benchmark.records.files import evidence_file

_BARE, _SITE = "read and parse, bare", "bench leaderboard"
_STEP = 0.002  # what each further seed adds to its scores


def rows(items: int = 5000) -> list[dict[str, Any]]:
    """Time the site of ``items`` records: the committed ones, then the same with further seeds.

    The command is timed whole, with its start; the bare loop reads and parses every record and
    unpacks its details. See ``benchmark.perf.run``; ``size`` tells the seconds of processor, which
    count where other work shares the cores.

    Raises:
        BenchError: If there are no committed records here, or the site cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        root, out = Path(name) / "records", Path(name) / "site"
        written = write(committed(), items, root)
        calls = {_BARE: lambda: _read(written), _SITE: lambda: _build(root, out)}
        timings = measure.together(calls, 2)
        n_bytes = sum(f.stat().st_size for path in written for f in _files(path))
        pages = sum(1 for _ in out.rglob("*.html"))
        size = (
            f"{items:,} records, {n_bytes / 1e6:.0f} MB with details; {pages:,} pages, "
            f"{timings[_SITE].busy_s:.3g} s of processor on {len(os.sched_getaffinity(0))} cores"
        )
    return measure.rows(timings, size, _BARE)


def committed() -> list[Path]:
    """The committed records; BenchError if they are not here."""
    found = sorted((evidence_file("core.yaml").parent / "measured").rglob("seed-*.json"))
    if not found:
        raise BenchError("perf site: expected records below results/measured, found none")
    return found


def write(paths: Iterable[Path], n: int, root: Path) -> list[Path]:
    """Write ``n`` sealed records with details: ``paths`` again, with other seeds and scores."""
    values = [(path, json.loads(path.read_bytes())) for path in paths]
    every = 1 + max(value["seed"] for _, value in values)
    turns = ((i, path, value) for i in itertools.count() for path, value in values)
    written = []
    for i, path, value in itertools.islice(turns, n):
        made = value | {
            "seed": value["seed"] + i * every, "first_seed": value["first_seed"] + i * every,
            **({"scores": _shifted(value["scores"], _STEP * i)} if "scores" in value else {}),
        }  # fmt: skip
        board = root / path.parents[2].name / path.parents[1].name
        target = board / path.parent.name / f"seed-{made['seed']}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        for base in path.parents[1].glob("base-*"):
            shutil.copyfile(base, board / base.name)
        target.write_text(json.dumps(made | {"seal": seal_of(made)}))
        if details_path(path).is_file():
            shutil.copyfile(details_path(path), details_path(target))
        written.append(target)
    return written


def _shifted(value: Any, by: float) -> Any:
    """Nested scores, each a little higher."""
    if isinstance(value, dict):
        return {key: _shifted(each, by) for key, each in value.items()}
    if isinstance(value, list):
        return [_shifted(each, by) for each in value]
    return min(1.0, value + by) if isinstance(value, float) and value <= 1 else value


def _files(path: Path) -> list[Path]:
    return [each for each in (path, details_path(path)) if each.is_file()]


def _read(paths: Iterable[Path]) -> None:
    for path in paths:
        json.loads(path.read_bytes())
        for packed in _files(path)[1:]:
            lzma.decompress(packed.read_bytes())


def _build(root: Path, out: Path) -> None:
    """Run the command on a folder of records."""
    command = [sys.executable, "-m", "benchmark.cli.app", "leaderboard", str(root)]
    command += ["--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"perf site: bench leaderboard failed: {done.stderr.strip():.300}")
