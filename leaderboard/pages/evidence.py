"""The page of evidence: claims of papers by our records, and the orders that transfer."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.errors import AbsentError, BenchError
from benchmark.records.evidence import evidence_file
from benchmark.records.files import StoredRecord, study_records
from benchmark.records.published import Published
from benchmark.records.record import Record
from benchmark.studies.claims import Answer, answers, read_claims
from benchmark.studies.claims import tables as claim_tables
from benchmark.studies.claims.verdicts import LEAST_SEEDS
from benchmark.studies.lengths import tables as length_tables
from benchmark.studies.lengths.shares import Lengths, compare_lengths
from benchmark.studies.transfer import Transfer, TransferRules, compare_all, read_rules
from benchmark.studies.transfer import tables as transfer_tables
from leaderboard.read.records import skip

FIGURES = "assets/figures"
_FEW = 2  # claims of a list on the first page


def has_evidence(records: Sequence[Record]) -> bool:
    """Something can be told: three seeds of a method, and the committed files are here."""
    try:
        for name in ("claims.yaml", "transfer.yaml"):
            evidence_file(name)
    except AbsentError:
        return False
    seeds = Counter((r.protocol, r.track, r.method) for r in records if not r.changed)
    return max(seeds.values(), default=0) >= LEAST_SEEDS


def evidence_page(
    stored: Sequence[StoredRecord], published: Published, roots: Sequence[Path] = ()
) -> dict[str, Any]:
    """Values of the template, ``told`` for the first page, and ``figures``: file -> its bytes.

    Studies are read in or beside the ``roots`` of the records; ``skipped`` is what is damaged
    there, and so was passed over.
    """
    records = [each.record for each in stored]
    claims, damaged = read_claims(), list[BenchError]()
    asked_for = study_records(roots, "claims", damaged.append)
    found = answers(claims, [*records, *(each.record for each in asked_for)])
    rules = read_rules()
    compared = compare_all(records, published, rules)
    figures = _figures(compared, rules)
    lengths = _lengths(stored, study_records(roots, "lengths", damaged.append), damaged.append)
    return {
        "lists": [
            (
                heading,
                _anchor(status),
                [
                    (answer.name, claim_tables.list_words(answer))
                    for answer in claim_tables.of_status(found, status)
                ],
            )
            for status, heading in claim_tables.STATUSES.items()
        ],
        "claims": claim_tables.verdict_tables(found, claims),
        "comparisons": claim_tables.lines_table(found),
        "transfer": transfer_tables.tables(compared, rules),
        "lengths": length_tables.tables(lengths),
        "length_figures": (drawn := _length_figures(lengths)),
        "transfer_figures": figures,
        "figures": figures | drawn,
        "told": _told(found),
        "skipped": [skip(error, roots) for error in damaged],
    }


@dataclass(frozen=True)
class ToldClaims:
    """Claims of one status on the first page."""

    heading: str
    anchor: str  # of its list on the page of evidence
    n: int
    claims: tuple[tuple[str, str], ...]  # the first of them: name, what the paper says


def _told(found: Sequence[Answer]) -> list[ToldClaims]:
    """Claims that hold on photographs, on other pictures alone, that are open; then that fail."""
    lists = []
    for status, heading in claim_tables.STATUSES.items():
        own = claim_tables.of_status(found, status)
        first = tuple((answer.name, answer.claim.says) for answer in own[:_FEW])
        lists.append(ToldClaims(heading, _anchor(status), len(own), first))
    return lists


def _anchor(status: str) -> str:
    return status.replace(" ", "-")


def _lengths(
    stored: Sequence[StoredRecord], longer: Sequence[StoredRecord],
    on_damaged: Callable[[BenchError], None],
) -> list[Lengths]:  # fmt: skip
    """Methods by length of training, of studies beside the board's records of the usual length."""
    places = {(s.record.protocol, s.record.track, s.record.seed) for s in longer}
    usual = [
        each
        for each in stored
        if (each.record.protocol, each.record.track, each.record.seed) in places
    ]
    try:
        return compare_lengths([*usual, *longer], ["cmc_at_1"]) if longer else []
    except AbsentError:  # one length only so far
        return []
    except BenchError as error:  # damaged details
        on_damaged(error)
        return []


def _length_figures(found: Sequence[Lengths]) -> dict[str, bytes]:
    """Plots by the name of their file."""
    if not found:
        return {}
    from benchmark.studies.lengths.plot import plot_lengths  # matplotlib takes a second

    with tempfile.TemporaryDirectory() as folder:
        paths = plot_lengths(found, Path(folder), ["svg"])
        return {path.name: path.read_bytes() for path in paths}


def _figures(found: Sequence[Transfer], rules: TransferRules) -> dict[str, bytes]:
    """Plots by the name of their file."""
    from benchmark.studies.transfer.plot import plot_transfer  # matplotlib takes a second

    with tempfile.TemporaryDirectory() as folder:
        paths = plot_transfer(found, rules, Path(folder), ["svg"])
        return {path.name: path.read_bytes() for path in paths}
