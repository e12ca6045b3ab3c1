"""The page of evidence: what records say of the papers' claims, and which orders transfer."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError
from benchmark.records.evidence import evidence_file
from benchmark.records.published import Published
from benchmark.records.record import Record
from benchmark.report.claims import Answer, answers, read_claims
from benchmark.report.claims.verdicts import LEAST_SEEDS
from benchmark.report.tables import claims as claim_tables
from benchmark.report.tables import transfer as transfer_tables
from benchmark.report.transfer import Transfer, TransferRules, compare_all, read_rules

FIGURES = "assets/figures"
_FEW = 3  # claims of a list on the first page


def has_evidence(records: Sequence[Record]) -> bool:
    """Whether something can be told: three seeds of a method, and the committed files are here."""
    try:
        for name in ("claims.yaml", "transfer.yaml"):
            evidence_file(name)
    except BenchError:
        return False
    seeds = Counter((r.protocol, r.track, r.method) for r in records if not r.changed)
    return max(seeds.values(), default=0) >= LEAST_SEEDS


def evidence_page(records: Sequence[Record], published: Published) -> dict[str, Any]:
    """Values of the template, ``told`` for the first page, and ``figures``: file -> its bytes."""
    claims = read_claims()
    found = answers(claims, records)
    rules = read_rules()
    compared = compare_all(records, published, rules)
    figures = _figures(compared, rules)
    return {
        "lists": [
            (heading, [(a.name, claim_tables.list_words(a)) for a in _of(found, status)])
            for status, heading in claim_tables.STATUSES.items()
        ],
        "claims": claim_tables.verdict_tables(found, claims),
        "comparisons": claim_tables.lines_table(found),
        "transfer": transfer_tables.tables(compared, rules),
        "figures": figures,
        "told": _told(found),
    }


def _told(found: Sequence[Answer]) -> list[tuple[str, int, list[str]]]:
    """What holds on photographs, what on other pictures alone, what is open.

    Returns:
        Headings, how many claims, and the first of them in words.
    """
    lists = []
    for status in ("holds", "elsewhere", "open"):
        own = _of(found, status)
        words = [claim_tables.list_words(answer) for answer in own[:_FEW]]
        lists.append((claim_tables.STATUSES[status], len(own), words))
    return lists


def _of(found: Sequence[Answer], status: str) -> list[Answer]:
    return [answer for answer in found if answer.status == status]


def _figures(found: Sequence[Transfer], rules: TransferRules) -> dict[str, bytes]:
    """Plots by the name of their file."""
    from benchmark.report.plots.transfer import plot_transfer  # matplotlib takes a second

    with tempfile.TemporaryDirectory() as folder:
        paths = plot_transfer(found, rules, Path(folder), ["svg"])
        return {path.name: path.read_bytes() for path in paths}
