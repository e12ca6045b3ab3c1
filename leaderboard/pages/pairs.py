"""The page of real models: upgrades, what strategies keep of them, how good reports are."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.pairs import analysis, rebasis, tables
from benchmark.pairs.records import PairRecord, read_record
from benchmark.report import numbers
from benchmark.report.text_table import TextTable

FOLDER = "pairs"
"""Below a folder of records."""


def read_pairs(roots: Sequence[Path], damaged: Callable[[BenchError], object]) -> list[PairRecord]:
    """Records in ``pairs`` below some folders; ``damaged`` is called with what is no record."""
    found = []
    for path in sorted(p for root in roots for p in (root / FOLDER).glob("*/*--*.json")):
        try:
            found.append(read_record(path))
        except BenchError as error:
            damaged(error)
    return found


def read_probed(
    roots: Sequence[Path], damaged: Callable[[BenchError], object]
) -> list[rebasis.Probe]:  # fmt: skip
    """Another tool's verdicts beside these records; ``damaged`` as in :func:`read_pairs`."""
    found: list[rebasis.Probe] = []
    for folder in (root / FOLDER for root in roots):
        try:
            found += rebasis.read_probes(folder) if (folder / rebasis.FILE).exists() else ()
        except BenchError as error:
            damaged(error)
    return found


def real_models(records: Sequence[PairRecord]) -> dict[str, Any]:
    """The card of the page among the scenarios: kinds of its tabs, and the numbers of models."""
    kinds = {"text": "text", "image": "photographs"}
    found = list(dict.fromkeys(record.corpus.modality for record in records))
    corpora = len({record.corpus.title for record in records})
    pairs = len({record.name for record in records})
    return {
        "kinds": [kinds[each] for each in found],
        "words": f"{pairs} pairs of real models on {corpora} judged corpora.",
    }


def _told(claims: TextTable) -> str:
    """Numbers of claims by what records make of them, in a sentence."""
    counts = Counter(row.cells[-1][-1].text for row in claims.rows)
    told = (
        f"The records agree with {counts['agree']} of {len(claims.rows)} sentences on real models "
        f"and disagree with {counts['disagree']}"
    )
    open_ones = counts["cannot tell"]
    return f"{told}; {open_ones} cannot be told." if open_ones else f"{told}."


def pairs_page(
    records: Sequence[PairRecord], probed: Sequence[rebasis.Probe] = ()
) -> dict[str, Any]:  # fmt: skip
    """Values of the template."""
    from benchmark.pairs.plot import drawings  # matplotlib takes a second
    from benchmark.report.plots import style

    order = sorted(
        analysis.by_pair(records).values(),
        key=lambda its: (its[0].old.parameters, its[0].new.parameters),
    )
    some = analysis.upgrades(records)
    return {
        "matrices": [
            tables.matrix(words, [its for its in order if its[0].corpus.modality == modality])
            for modality, words in (("text", "Texts"), ("image", "Images"))
            if any(its[0].corpus.modality == modality for its in order)
        ],
        "pairs": [tables.shown(its) for its in order],
        "cells": len(records), "reports": sum(len(r.reports) for r in records),
        "corpora": list(dict.fromkeys(r.corpus.title for r in records)),
        "correlation": numbers.number(analysis.VALUES["gain-correlation"](records), "coefficient"),
        "told": _told(claims := tables.claims_table(records)),
        "n_upgrades": len(some), "figures": dict(style.files(drawings(records), ["svg"])),
        "claims": claims, "held": tables.held_table(records),
        "regret": tables.regret_table(records), "verdicts": tables.verdict_table(records),
        "kept": tables.kept_table(records), "sizes": tables.sizes_table(records),
        "tools": rebasis.tools_table(records, probed) if probed else None,
        "decisions": rebasis.decisions_table(records, probed) if probed else None,
        "all_cells": tables.cells_table(records),
    }  # fmt: skip
