"""Tables of single pairs: the scores of every strategy, and which pairs there are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.pairs import analysis
from benchmark.pairs.records import PairRecord
from benchmark.report.numbers import DASH, number
from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.upgrade.read.request import KEEP, REEMBED

_ROWS = {
    KEEP: "keep the old model", "naive": "new queries, old index as it is",
    "truncate": "both cut to one length, old index", "procrustes:query": "rotate the queries",
    "linear:query": "map the queries (linear)", "procrustes": "rotate stored vectors",
    "linear": "map stored vectors (linear)", "slerp": "queries between both models",
    "rrf-converted": "fuse old and converted index", "rrf": "fuse old and re-embedded index",
    "cascade-mapped": "mapped query, first 100 rescored",
    "cascade": "old query, first 100 rescored",
    "re-embed-short": "re-embed, cut to the old length", REEMBED: "embed everything again",
}  # fmt: skip


@dataclass(frozen=True)
class ShownPair:
    """A pair of embedders: a name for its place on a page, and its table."""

    anchor: str
    title: str
    words: str
    table: TextTable


def _anchor(record: PairRecord) -> str:
    return f"{record.old.id}--{record.new.id}"


def matrix(title: str, groups: Sequence[Sequence[PairRecord]]) -> TextTable:
    """Old models by new ones: points of nDCG@10 that the upgrade gives, by the mean of corpora."""
    both = (side for its in groups for side in (its[0].old, its[0].new))
    sides = sorted({(s.parameters, s.id, s.title) for s in both})
    cells = {its[0].name: its for its in groups}
    lines = []
    for _, i, name in sides:
        line = [TextCell(i, hint=name)]
        for _, new, _ in sides:
            its = cells.get(f"{i}:{new}")
            if its is None:
                line.append(TextCell("" if i != new else "·"))
                continue
            gains = [analysis.whole(r, REEMBED) - analysis.whole(r, KEEP) for r in its]
            text = number(float(np.mean(gains)), signed=True)
            line.append(TextCell(text, href=f"#{_anchor(its[0])}", hint=f"{len(its)} corpora"))
        lines.append(line)
    heads = [TextColumn(i) for _, i, _ in sides]
    return simple_table(f"{title}: from (row) to (column)", "", ("old model",), heads, lines)


def shown(its: Sequence[PairRecord]) -> ShownPair:
    """A pair: scores on every corpus, by strategy, and the share of the upgrade that they keep."""
    first = its[0]
    names = [n for n in _ROWS if any(n in r.reports[0].strategies for r in its)]
    lines = []
    for name in names:
        cells = [TextCell(_ROWS[name], hint=name)]
        for record in its:
            if name not in record.reports[0].strategies:
                cells.append(TextCell(DASH))
                continue
            size = None if name in (KEEP, REEMBED) else analysis.SIZE
            score = number(analysis.whole(record, name, size))
            share = math.nan if size is None else analysis.share(record, name, size)
            small = "" if math.isnan(share) else f"{100 * share:.0f} %"
            cells.append(TextCell(score, small=small))
        lines.append(cells)
    lines.append([TextCell("verdicts of reports"), *(TextCell(_verdicts(r)) for r in its)])
    sides = (f"{side.vintage}, {side.dim} numbers" for side in (first.old, first.new))
    words = ", to ".join(sides)
    if any(r.old.trained_on_corpus or r.new.trained_on_corpus for r in its):
        words += "; trained on a corpus here"
    title = f"{first.old.title} to {first.new.title}"
    heads = [r.corpus.title for r in its]
    table = simple_table(title, _anchor(first), ("strategy",), heads, lines)
    return ShownPair(_anchor(first), title, words, table)


def _verdicts(record: PairRecord) -> str:
    said = [analysis.decision(report) or "none" for report in record.reports]
    return ", ".join(f"{v} {said.count(v)}/{len(said)}" for v in dict.fromkeys(said))
