"""Tables of records of pairs: how good reports are, what decisions cost, what strategies keep."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.config.embedders import Embedder, every_embedder, load_embedder
from benchmark.errors import BenchError
from benchmark.metrics.compatibility import LEAST_UPGRADE
from benchmark.pairs import analysis
from benchmark.pairs.analysis import LINEAR, ROTATION, Held
from benchmark.pairs.checks import Check
from benchmark.pairs.records import SIZES, PairRecord
from benchmark.records.files import evidence_file
from benchmark.report.numbers import DASH, number
from benchmark.report.text_table import TextCell, TextColumn, TextTable, shown_table, simple_table
from benchmark.studies.claims import read_claims
from benchmark.upgrade.read.request import KEEP, REEMBED

Records = Sequence[PairRecord]
SHOWN = (
    "naive", ROTATION, LINEAR, "procrustes", "linear", "slerp", "rrf-converted", "rrf",
    "cascade-mapped", "cascade",
)  # fmt: skip
"""Strategies of the table of what is kept; ``truncate`` stands with ``naive``."""
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
_NEAREST = 2  # other pairs that are shown
_SHOWN = (analysis.ROTATION, analysis.LINEAR, "procrustes", "linear", "slerp", "rrf", "cascade")


def held_table(records: Records) -> TextTable:
    """Intervals beside the truth, by strategy; bias and error of what is estimated.

    Where all that a strategy needs is known its score is exact, and says nothing of estimates.
    """
    found = list(analysis.held(records))
    names = list(dict.fromkeys(h.strategy for h in found))
    lines = [_held_line(name, [h for h in found if h.strategy == name]) for name in names]
    corpora = list(dict.fromkeys(h.corpus for h in found))
    lines += [_held_line(f"all, {c}", [h for h in found if h.corpus == c]) for c in corpora]
    lines.append(_held_line("all", found))
    heads = ("reports", "covered", "gain covered", "sampling holds", "bias", "error", "error there")
    return shown_table("Reports beside the truth", "pairs-held", ("strategy",), heads, lines)


def _held_line(name: str, found: Sequence[Held]) -> list[str]:
    same = np.array([h.same_off for h in found if h.within is not None])
    other = np.array([h.off for h in found])
    return [
        name, str(len(found)), *(
            _mean(getattr(h, key) for h in found) for key in ("covered", "gain", "within")
        ),
        number(float(same.mean()), signed=True) if len(same) else DASH, _root(same), _root(other),
    ]  # fmt: skip


def regret_table(records: Records) -> TextTable:
    """Regret of the verdict and of plain rules, on queries that the report has not seen."""
    lines = []
    for name, rule in analysis.RULES.items():
        values = analysis.regrets(records, name)
        made = (rule(report) for r in records for report in r.reports)
        taken = [verdict for verdict in made if verdict is not None]
        lines.append([
            name, str(len(values)),
            *(shown_share(analysis.quantile(values, q)) for q in (0.5, 0.9, 1.0)), _mean(values),
            *(_mean(t == wanted for t in taken) for wanted in (REEMBED, KEEP)),
        ])  # fmt: skip
    heads = ("reports", "median", "nine of ten", "worst", "mean", "re-embeds", "keeps")
    return shown_table("Regret of decisions", "pairs-regret", ("rule",), heads, lines)


def levels_table(records: Records) -> TextTable:
    """Regret by the level of the test whether re-embedding is better, on both halves of corpora."""
    lines = []
    for level in (0.025, 0.08, 0.16, 0.3, 0.5):
        for words, chosen in analysis.HALVES.items():
            some = [r for r in records if (r.corpus.id in analysis.CHOSEN_ON) == chosen]
            taken = [(r, x, analysis.decision(x, level)) for r in some for x in r.reports]
            values = [analysis.regret(x, name) for _, x, name in taken]
            worse = (r for r in some if analysis.whole(r, REEMBED) <= analysis.whole(r, KEEP))
            names = {id(r) for r in worse}
            vain = (name == REEMBED and id(r) in names for r, _, name in taken)
            ends = (analysis.quantile(values, q) for q in (0.5, 0.9))
            lines.append([
                f"{100 * level:g} %", words, str(len(taken)), *map(shown_share, ends),
                _mean(name == REEMBED for *_, name in taken), _mean(vain),
            ])  # fmt: skip
    heads = ("reports", "median", "nine of ten", "re-embeds", "in vain")
    return shown_table("Level of the test", "pairs-levels", ("level", "corpora"), heads, lines)


def verdict_table(records: Records) -> TextTable:
    """Counts of each verdict, and the share that was right."""
    reports = [report for r in records for report in r.reports]
    groups = {
        "keep the old model": [r for r in reports if analysis.decision(r) == KEEP],
        "embed everything again": [r for r in reports if analysis.decision(r) == REEMBED],
        "something cheaper": [r for r in reports if analysis.decision(r) not in (KEEP, REEMBED)],
    }
    lines = [
        [
            name,
            str(len(its)),
            _mean(analysis.right(r) for r in its),
            _median(analysis.regret(r, analysis.decision(r)) for r in its),
        ]
        for name, its in groups.items()
    ]
    heads = ("reports", "right", "median regret")
    return shown_table("Verdicts", "pairs-verdicts", ("verdict",), heads, lines)


def kept_table(records: Records) -> TextTable:
    """The share of the upgrade that strategies keep, by pair: means over corpora that have one."""
    lines, both = [], (KEEP, REEMBED)
    told = [r for r in analysis.upgrades(records) if not math.isnan(analysis.share(r, REEMBED))]
    for name, its in analysis.by_pair(told).items():
        sides = [float(np.mean([analysis.whole(r, s) for r in its])) for s in both]
        shares = [_mean(_share_kept(r, strategy) for r in its) for strategy in SHOWN]
        lines.append([name, str(len(its)), *map(number, sides), *shares])
    heads = ("corpora", "old", "new", *SHOWN)
    return shown_table("Share of the upgrade kept", "pairs-kept", ("pair",), heads, lines)


def _share_kept(record: PairRecord, strategy: str) -> float:
    is_cut = strategy == "naive" and strategy not in record.reports[0].strategies
    return analysis.share(record, "truncate" if is_cut else strategy)


def cells_table(records: Records) -> TextTable:
    """Every cell: gain of the upgrade, and what a rotation of the queries keeps of the whole."""
    lines = [
        [
            r.name,
            r.corpus.title,
            str(r.corpus.items),
            str(r.corpus.queries),
            number(analysis.whole(r, KEEP)),
            number(analysis.whole(r, REEMBED)),
            number(analysis.gain(r), "coefficient"),
            shown_share(analysis.kept(r, ROTATION)),
            "yes" if r.old.trained_on_corpus or r.new.trained_on_corpus else "",
        ]
        for r in records
    ]
    heads = ("items", "queries", "old", "new", "gain", "rotation keeps", "trained on it")
    return shown_table("Cells", "pairs-cells", ("pair", "corpus"), heads, lines)


def sizes_table(records: Records) -> TextTable:
    """Shares of the whole that maps keep, by the size of the sample: medians over upgrades."""
    some = analysis.upgrades(records)
    every = [r for r in some if all(any(x.size == s for x in r.reports) for s in SIZES)]
    names = (ROTATION, LINEAR, "procrustes", "linear")
    lines = [
        [name, str(len(every)), *(
            _median(analysis.kept(r, name, size) for r in every) for size in SIZES
        )]
        for name in names
    ]  # fmt: skip
    heads = ("cells", *(f"{size:,} items" for size in SIZES))
    return shown_table("Pairs that suffice", "pairs-sizes", ("map",), heads, lines)


def claims_table(records: Records) -> TextTable:
    """Claims about real models, and what the records make of them."""
    lines = []
    for name, claim in read_claims().pairs.items():
        value = analysis.VALUES[claim.value](records)
        low = -math.inf if claim.at_least is None else claim.at_least
        high = math.inf if claim.at_most is None else claim.at_most
        bounds = [f">= {low:g}"] * math.isfinite(low) + [f"<= {high:g}"] * math.isfinite(high)
        verdict = (
            "cannot tell" if math.isnan(value) else "agree" if low <= value <= high else "disagree"
        )
        shown = DASH if math.isnan(value) else f"{value:.3f}"
        says = claim.says if claim.source == "ours" else f"{claim.says} ({claim.source})"
        lines.append([name, says, shown, " and ".join(bounds), verdict])
    heads = ("value", "rule", "records")
    return shown_table("Claims about real models", "pairs-claims", ("claim", "says"), heads, lines)


def embedders_table() -> TextTable:
    """The embedders that come along."""
    lines = [
        [
            e.id,
            e.title,
            e.vintage,
            e.licence,
            f"{e.parameters / 1e6:.1f} M",
            str(e.dim),
            str(e.longest or DASH),
            ", ".join(e.packages),
        ]
        for e in every_embedder()
    ]
    heads = ("parameters", "numbers", "longest", "packages")
    words = ("embedder", "model", "vintage", "licence")
    return shown_table("Embedders", "pairs-embedders", words, heads, lines)


def checks_table(checks: Iterable[Check]) -> TextTable:
    """Embedders beside published numbers."""
    lines = [
        [c.embedder, c.corpus, c.metric, number(c.published), number(c.here), c.source]
        for c in checks
    ]
    words = ("embedder", "corpus", "metric")
    heads = ("published", "here", "source")
    return shown_table("Embedders beside published numbers", "pairs-checks", words, heads, lines)


def _root(values: np.ndarray) -> str:
    return number(float(np.sqrt((values**2).mean()))) if len(values) else DASH


def _mean(values: Iterable[float | None]) -> str:
    return shown_share(analysis.mean(values))


def _median(values: Iterable[float | None]) -> str:
    return shown_share(analysis.median(values))


def shown_share(value: float) -> str:
    """A share as tables print it; a dash for NaN."""
    return DASH if math.isnan(value) else number(value)


TABLES: Mapping[str, Callable[[Records], TextTable]] = {
    "claims": claims_table, "held": held_table, "regret": regret_table, "verdicts": verdict_table,
    "kept": kept_table, "sizes": sizes_table, "levels": levels_table, "cells": cells_table,
}  # fmt: skip
APART = ("embedders", "checks")
"""Tables that records say nothing of."""


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
            score = shown_share(analysis.whole(record, name, size))
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


@dataclass(frozen=True)
class Like:
    """A pair by the names of its embedders."""

    old: Embedder
    new: Embedder

    @classmethod
    def parse(cls, text: str) -> "Like":
        """Read ``OLD:NEW``; BenchError naming the nearest embedder where one is unknown."""
        old, colon, new = text.partition(":")
        if not colon:
            raise BenchError(f"--like: expected OLD:NEW, got '{text}'")
        sides = load_embedder(old), load_embedder(new)
        if sides[0].modality != sides[1].modality:
            raise BenchError(f"--like: expected two models of one modality, got {text}")
        return cls(*sides)

    def distance(self, record: PairRecord) -> tuple[int, float]:
        """Sides that are other models, then how much larger or smaller they are, by ratios."""
        sides = (self.old, record.old), (self.new, record.new)
        ratios = [a.parameters / b.parameters for a, b in sides]
        return sum(a.id != b.id for a, b in sides), sum(max(r, 1 / r) - 1 for r in ratios)

    def table(self, records: Sequence[PairRecord]) -> TextTable:
        """The pair and the nearest others that were measured: shares of the upgrade kept.

        Raises:
            BenchError: If no pair of this modality was measured.
        """
        pairs = analysis.by_pair(r for r in records if r.corpus.modality == self.old.modality)
        if not pairs:
            raise BenchError(f"--like: no pair of {self.old.modality}s was measured")
        order = sorted(pairs.values(), key=lambda its: self.distance(its[0]))
        name = f"{self.old.id}:{self.new.id}"
        exact = order[0][0].name == name
        lines = [_line(record) for its in order[: _NEAREST + exact] for record in its]
        heads = ("old", "new", *_SHOWN)
        title = "A prior: measured elsewhere, not on your vectors (share of the upgrade kept, %)"
        others = (
            "Below it stand the nearest other pairs"
            if exact
            else f"{name} is not measured: these are the nearest pairs"
        )
        notes = (
            f"{others}, by their models and these models' sizes.",
            f"{DASH}: the new model is less than {100 * LEAST_UPGRADE:g} points better there, too "
            "little to take a share of, or the strategy does not fit the pair.",
        )
        return simple_table(
            title, "pairs-prior", ("pair", "corpus"), heads, lines, notes=notes, grouped=True
        )


def _line(record: PairRecord) -> list[str]:
    old, new = analysis.whole(record, KEEP), analysis.whole(record, REEMBED)
    shares = (shown_share(analysis.share(record, name)) for name in _SHOWN)
    return [record.name, record.corpus.title, number(old), number(new), *shares]


def default_records() -> Path:
    """``results/pairs`` here, or in the checkout; AbsentError if there is none."""
    return evidence_file("pairs/core.yaml").parent
