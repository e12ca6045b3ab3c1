"""Items that are gone, beside the truth: maps of other corpora's texts on a corpus of the board.

A report has the stored vectors, one half of the queries with their judgements, and vectors of all
other corpora of the board: of the same texts by both models, or by the new model alone; or of one
half of the corpus itself by the new model, and it is not known which. What it
says of the alignment, and what it takes, is held against the other half of the queries and against
the corpus embedded again, which it does not know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmark.metrics.intervals import mean_interval
from benchmark.pairs.analysis import CHOSEN_ON, HALVES
from benchmark.pairs.board import CellPlan
from benchmark.pairs.corpora import embedded, place_of
from benchmark.pairs.records import METRIC
from benchmark.report.numbers import DASH, number
from benchmark.report.text_table import TextTable, simple_table
from benchmark.upgrade.decide.verdict import Evidence, decide
from benchmark.upgrade.measure.bridge import (
    MOST,
    Alignment,
    alignment_of,
    bridge,
    refused_strategies,
)
from benchmark.upgrade.read.apart import read_apart
from benchmark.upgrade.read.request import FOUND, KEEP, REEMBED, Tell
from benchmark.upgrade.search.lists import ResultList
from benchmark.upgrade.search.strategies import map_list

BASES = PAIRS, OWN, OTHERS = (
    "pairs of other corpora", "half of its own, no pair", "other corpora, no pair"
)  # fmt: skip
"""Texts that maps are fitted on."""
MAPS = ("procrustes:query", "linear:query")
"""Of pairs; the index stays."""
_WORDS = {"by_queries": "queries", "by_pairs": "held-out pairs", "agree": "attempts"}
_LEAST = {"by_queries": FOUND["queries"], "by_pairs": FOUND["pairs"], "agree": MOST}
USEFUL = 0.5
"""Share of re-embedding's score from which on a map is of use: what an alignment must tell."""


@dataclass(frozen=True)
class GoneCell:
    """A target of the board, and what its maps are fitted on."""

    plan: CellPlan
    others: Sequence[CellPlan]
    basis: str


def cells(plans: Sequence[CellPlan], basis: str) -> list[GoneCell]:
    """Every cell whose vectors are in the cache, with those of the same models on other corpora.

    Without pairs those whose models give vectors of one size. ``basis`` is one of :data:`BASES`.
    """
    there = [
        each for each in plans
        if all(place_of(e, each.corpus).is_file() for e in (each.old, each.new))
    ]  # fmt: skip
    found = []
    for each in there:
        others = [
            o for o in there
            if (o.old.id, o.new.id) == (each.old.id, each.new.id)
            and o.corpus.source.id != each.corpus.source.id
        ]  # fmt: skip
        if others and (basis == PAIRS or each.old.dim == each.new.dim):
            found.append(GoneCell(each, others, basis))
    return found


def measure(found: Iterable[GoneCell], tell: Tell = lambda words: None) -> Iterator[dict[str, Any]]:
    """A row for each map of each cell.

    Yields:
        ``corpus``, ``old``, ``new``, ``basis``, ``map``; what the report says of it
        (``by_queries`` and ``by_pairs``: shares of texts whose own vector it finds, ``agree``:
        attempts without pairs); ``taken`` by the verdict; scores on the queries that the report
        has not seen: ``keep``, ``bridge``, ``again``.
    """
    for each in found:
        tell(f"{each.plan.name}, {each.basis}")
        yield from _rows(each)


def _rows(cell: GoneCell) -> Iterator[dict[str, Any]]:
    plan = cell.plan
    problem = plan.vectors()
    old, new = problem.old, problem.new
    mine, unseen = problem.halves(0)
    texts = [
        np.concatenate([embedded(e, o.corpus).items for o in cell.others])
        for e in (plan.old, plan.new)
    ]
    if cell.basis == OWN:
        some = np.random.default_rng(problem.seed).permutation(problem.n)[: problem.n // 2]
        texts[1] = new.items[some]
    pairs_old = texts[0] if cell.basis == PAIRS else None
    apart = read_apart(problem.request(mine, pairs_new=texts[1], pairs_old=pairs_old))
    study, alignments = bridge(apart, MAPS)
    refused = refused_strategies(study, alignments)
    evidence = Evidence.of(study.outcomes, METRIC, study.groups)
    taken = {name: o for name, o in study.outcomes.items() if name not in refused}
    constraints = apart.inputs.request.constraints
    decision = decide(replace(evidence, outcomes=taken), constraints)
    blind = replace(apart, inputs=replace(apart.inputs, old_queries=None))
    asked = new.queries[unseen]
    scores = problem.means({
        KEEP: ResultList(old.queries[unseen], lambda block: block.old),
        REEMBED: ResultList(asked, lambda block: block.new),
        **{fit.label: map_list(fit, asked) for fit in study.first.maps},
    }, unseen)  # fmt: skip
    for fit, its in zip(study.first.maps, alignments, strict=True):
        told = alignment_of(blind, fit, its.agree)
        yield {
            "corpus": plan.corpus.source.id, "old": plan.old.id, "new": plan.new.id,
            "basis": cell.basis, "map": fit.label, "by_queries": _found(its),
            "by_pairs": _found(told), "agree": its.agree, "taken": decision.name,
            **{"keep": scores[KEEP], "bridge": scores[fit.label], "again": scores[REEMBED]},
        }  # fmt: skip


def _found(its: Alignment) -> float | None:
    return None if its.found is None else its.found.value


Rows = Sequence[Mapping[str, Any]]


def gone_table(rows: Rows) -> TextTable:
    """Alignments that reports tell, beside the truth, and the gain of following them, by halves."""
    lines = []
    for basis, by in ((b, by) for b in BASES for by in _LEAST):
        for half, aligned in ((h, a) for h in HALVES for a in (True, False)):
            its = _those(rows, basis, by, half)
            some = [r for r in its if (r[by] >= _LEAST[by]) == aligned]
            if some:
                lines.append(_line(some, by, "yes" if aligned else "no", half))
    heads = (
        "corpora", "maps", "of use (95 %)", "old model", "map", "re-embedded", "better than old",
        "taken, gain",
    )  # fmt: skip
    notes = (
        f"Means of nDCG@10 on queries that the report has not seen. Of use: maps that keep "
        f"{100 * USEFUL:g} % of re-embedding's score; intervals over cells. Taken: how often the "
        "verdict takes the map in the place of the old model, and what it brings on average.",
    )
    return simple_table(
        "Items that are gone", "pairs-gone", ("fitted on", "told by", "aligned"), heads, lines,
        notes=notes,
    )  # fmt: skip


def least_table(rows: Rows) -> TextTable:
    """Rightness of other least shares, on both halves of corpora, by maps of pairs."""
    lines = []
    for by, levels in _LEVELS.items():
        for level in levels:
            words = [_WORDS[by], f"{100 * level:g} %"]
            for half in HALVES:
                its = _those(rows, PAIRS, by, half)
                told = np.array([r[by] >= level for r in its], bool)
                right = np.array([_useful(r) for r in its], bool) == told
                share = f"{100 * right.mean():.0f} %" if its else DASH
                words += [f"{told.sum()} of {len(told)}", share]
            lines.append(words)
    heads = ("aligned, chosen on", "right", "aligned, shown on", "right")
    notes = ("Right: a map is of use where its spaces are told to align, and of none elsewhere.",)
    return simple_table(
        "Least share", "pairs-least", ("told by", "least"), heads, lines, notes=notes
    )


_LEVELS = {"by_queries": (0.3, 0.4, 0.5, 0.6, 0.7), "by_pairs": (0.8, 0.85, 0.9, 0.95)}


def _those(rows: Rows, basis: str, by: str, half: str) -> list[Mapping[str, Any]]:
    return [
        r for r in rows
        if r["basis"] == basis and r[by] is not None and (r["corpus"] in CHOSEN_ON) == HALVES[half]
    ]  # fmt: skip


def _useful(row: Mapping[str, Any]) -> bool:
    return bool(row["bridge"] >= USEFUL * row["again"])


def _line(some: Rows, by: str, said: str, half: str) -> list[str]:
    use = [float(_useful(r)) for r in some]
    cells = [f"{r['corpus']} {r['old']} {r['new']}" for r in some]
    span = mean_interval(use, np.unique(cells, return_inverse=True)[1])
    ends = "" if span is None else f" ({100 * span[0]:.0f} to {100 * span[1]:.0f})"
    keep, bridge_, again = (
        number(float(np.mean([r[k] for r in some]))) for k in ("keep", "bridge", "again")
    )
    better = np.mean([r["bridge"] > r["keep"] for r in some])
    taken = [r["bridge"] - r["keep"] for r in some if r["taken"] == r["map"]]
    gain = f"{len(taken)}, {number(float(np.mean(taken)), signed=True)}" if taken else DASH
    return [
        some[0]["basis"], _WORDS[by], said, half, str(len(some)),
        f"{100 * np.mean(use):.0f} %{ends}", keep, bridge_, again, f"{100 * better:.0f} %", gain,
    ]  # fmt: skip
