"""``probe`` of rebasis, another tool that judges upgrades, on the same reports beside the truth.

It is given what a report of ``bench upgrade`` has: the old and new vectors of the same sampled
items, the queries of one half by both models, and what is relevant to them. Its map of new queries
into the old index is measured in the whole gallery by the other half of the queries, as the
strategies of the report are. It runs in an environment of its own: it needs Python 3.12.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmark.config.reading import Model, read_json
from benchmark.errors import BenchError
from benchmark.pairs import rebasis_probe
from benchmark.pairs.analysis import SIZE, decision, median, regret
from benchmark.pairs.records import MOST_BYTES, PairRecord, ReportRow
from benchmark.pairs.tables import shown_share
from benchmark.report.numbers import DASH, number
from benchmark.report.text_table import TextTable, shown_table
from benchmark.upgrade.read.request import INPUTS, KEEP, REEMBED

if TYPE_CHECKING:
    from benchmark.pairs.board import CellPlan
    from benchmark.pairs.cells import CellVectors

FILE = "rebasis.json"
BRIDGE = "bridge"
TAKEN = {
    "no_upgrade_needed": KEEP, "full_reindex": REEMBED, "bridge_sufficient": BRIDGE,
    "bridge_and_migrate": BRIDGE, "caution": None,
}  # fmt: skip
"""Decisions and the strategy that each takes at once; ``caution`` recommends nothing."""


class ProcessCost(Model):
    """Cost of a whole process, its imports among it."""

    seconds: float
    """Of processors."""
    memory: int
    """Bytes at most."""


class Probe(Model):
    """A probe of the report of one cell."""

    corpus: str
    pair: str
    size: int
    draw: int
    decision: str
    provisional: bool
    """It says itself that this is no recommendation yet."""
    adapter: str
    bridge: float
    """nDCG@10 of its map, of the queries that it has not seen in the whole gallery."""
    cost: ProcessCost
    own: ProcessCost | None = None
    """Of ``bench upgrade`` on the same vectors, and the whole old gallery."""
    whole: bool = False
    """It was given all items by both models, as its default of 10,000 embeds: no sample."""


def read_probes(folder: Path) -> tuple[Probe, ...]:
    """Those beside the records of a folder; BenchError where they are missing or damaged."""
    path = folder / FILE
    if not path.is_file():
        raise BenchError(f"{path}: missing; bench pairs rebasis --python PYTHON writes it")
    return read_json(tuple[Probe, ...], path, MOST_BYTES)


def report_of(record: PairRecord) -> ReportRow:
    """The report that is compared: of the first draw, from the largest sample up to ``SIZE``."""
    return max((r for r in record.reports if r.draw == 0 and r.size <= SIZE), key=lambda r: r.size)


def run_probe(
    python: Path, cell: "CellPlan", report: ReportRow, maps: str, *, whole: bool = False
) -> Probe:
    """Run it on what a report has seen, then ``bench upgrade`` on the same vectors.

    If ``whole``, it is given new vectors of all items instead, alone. A BenchError if that Python
    has no such package, or one of the tools fails.
    """
    from benchmark.pairs.cells import measured_in_old

    problem = cell.vectors()
    others = problem.halves(report.draw)[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(problem, report, folder, whole)
        cost = _process([str(python), "-I", rebasis_probe.__file__, name], folder)
        own = None if whole else _process([
            sys.executable, "-m", "benchmark.cli.app", "upgrade", "--maps", maps,
            *(f"--{side.replace('_', '-')}={folder / side}.npz" for side in INPUTS),
            f"--qrels={folder / 'relevant.qrels'}", f"--json={folder / 'own.json'}",
        ], folder)  # fmt: skip
        said = json.loads((folder / "said.json").read_text())
        bridged = np.load(folder / "bridged.npy", allow_pickle=False)
    return Probe(
        corpus=cell.corpus.source.id, pair=cell.pair, size=report.size, draw=report.draw,
        bridge=round(measured_in_old(problem, bridged, others), 4), cost=cost, own=own,
        whole=whole, **said,
    )  # fmt: skip


def _write(problem: "CellVectors", report: ReportRow, folder: Path, whole: bool) -> None:
    """The same vectors and judgements for both tools."""
    sample = np.arange(problem.n) if whole else problem.sample(report.size, report.draw)
    rows, (mine, others) = sample, problem.halves(report.draw)
    sides = {
        "old_gallery": (problem.old.items, np.arange(problem.n)),
        "new_gallery": (problem.new.items[rows], rows),
        "queries": (problem.new.queries[mine], mine),
        "old_queries": (problem.old.queries[mine], mine),
    }
    for name, (vectors, ids) in sides.items():
        np.savez(folder / name, vectors=vectors, id=ids.astype(str))
    np.savez(
        folder / "vectors", old=problem.old.items[rows], new=problem.new.items[rows],
        old_queries=problem.old.queries[mine], queries=problem.new.queries[mine],
        others=problem.new.queries[others],
    )  # fmt: skip
    place = {int(row): i for i, row in enumerate(rows)}
    relevant, lines = [], []
    for query in mine.tolist():
        start, end = problem.qrels.offset[query : query + 2]
        its = problem.qrels.rows[start:end].tolist()
        relevant.append([place[row] for row in its])
        gains = problem.qrels.gains[start:end].tolist()
        lines += [f"{query} 0 {r} {g:g}" for r, g in zip(its, gains, strict=True)]
    (folder / "relevant.json").write_text(json.dumps(relevant))
    (folder / "relevant.qrels").write_text("\n".join(lines))


def _process(call: list[str], folder: Path) -> ProcessCost:
    """Run a command; BenchError with its last line if it fails."""
    try:
        with (folder / "said").open("w") as out:
            child = subprocess.Popen(call, stdout=out, stderr=out)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
    except OSError as error:
        raise BenchError(f"{call[0]}: {error}") from error
    if child.returncode:
        last = ((folder / "said").read_text().strip().splitlines() or ["no word"])[-1]
        raise BenchError(f"{call[0]} {call[2]}: ended with {child.returncode}: {last}")
    return ProcessCost(seconds=usage.ru_utime + usage.ru_stime, memory=1024 * usage.ru_maxrss)


def pairs_of(
    probed: Sequence[Probe], records: Sequence[PairRecord]
) -> list[tuple[Probe, ReportRow]]:
    """Probes beside the reports that they saw; one whose record has gone is left out."""
    reports = {
        (r.corpus.id, r.name, report.size, report.draw): report
        for r in records for report in r.reports
    }  # fmt: skip
    keys = [(p.corpus, p.pair, p.size, p.draw) for p in probed]
    return [(p, reports[k]) for p, k in zip(probed, keys, strict=True) if k in reports]


def both(probe: Probe, report: ReportRow) -> tuple[float, float]:
    """Regret of the probe's decision and of the verdict, by the best of both tools; NaN of none."""
    best = max(regret(report, KEEP) + report.value(KEEP, "other"), probe.bridge)
    taken = TAKEN.get(probe.decision)
    its = probe.bridge if taken == BRIDGE else math.nan
    if taken in (KEEP, REEMBED):
        its = report.value(str(taken), "other")
    ours = decision(report)
    return best - its, math.nan if ours is None else best - report.value(ours, "other")


def tools_table(records: Sequence[PairRecord], probed: Sequence[Probe]) -> TextTable:
    """Regret, seconds and memory of both tools, on the same reports."""
    found = pairs_of(probed, records)
    sample = [(p, both(p, report)) for p, report in found if not p.whole]
    whole = [(p, both(p, report)) for p, report in found if p.whole]
    sides = {
        "rebasis probe": ([x for _, (x, _) in sample], [p.cost for p, _ in sample]),
        "rebasis probe, all items": ([x for _, (x, _) in whole], [p.cost for p, _ in whole]),
        "bench upgrade": ([x for _, (_, x) in sample], [p.own for p, _ in sample if p.own]),
    }
    lines = [_tool_line(name, *side) for name, side in sides.items() if side[0]]
    heads = ("reports", "recommends nothing", "median regret", "nine of ten", "worst",
             "seconds", "MiB")  # fmt: skip
    return shown_table("Two tools, the same reports", "pairs-tools", ("tool",), heads, lines)


def _tool_line(name: str, regrets: Sequence[float], costs: Sequence[ProcessCost]) -> list[str]:
    taken = np.array([v for v in regrets if not math.isnan(v)])
    ends = [number(float(np.quantile(taken, q))) for q in (0.5, 0.9, 1.0)] if len(taken) else []
    return [
        name, str(len(regrets)), str(len(regrets) - len(taken)), *(ends or [DASH] * 3),
        f"{np.median([c.seconds for c in costs]):.1f}",
        f"{np.median([c.memory for c in costs]) / 2**20:.0f}",
    ]  # fmt: skip


def decisions_table(records: Sequence[PairRecord], probed: Sequence[Probe]) -> TextTable:
    """Decisions of rebasis, and the regret of each and of the verdict beside it."""
    found = [(p, report) for p, report in pairs_of(probed, records) if not p.whole]
    lines = []
    for name, taken in TAKEN.items():
        its = [(p, report) for p, report in found if p.decision == name]
        regrets = np.array([both(p, report) for p, report in its]).reshape(-1, 2)
        same = sum(taken == decision(report) for _, report in its)
        lines.append([name, str(len(its)), str(sum(p.provisional for p, _ in its)), str(same),
                      *(shown_share(median(x)) for x in regrets.T)])  # fmt: skip
    heads = ("reports", "provisional", "same verdict", "its regret", "the verdict's")
    return shown_table("Decisions of rebasis", "pairs-decisions", ("decision",), heads, lines)
